/**
 * All messages of a session as columns, and what belongs to what: the answer of a request, and what came up under way. It
 * grows by slices, in order of `seq`; each message is placed once, when it comes.
 */
import type { Outline } from '../../api.ts';

type NumberColumn = 'seq' | 'n' | 'at' | 'size' | 'http' | 'toSeq' | 'toN' | 'latency' | 'marks' | 'client';
type TextColumn =
  | 'channel'
  | 'kind'
  | 'id'
  | 'method'
  | 'target'
  | 'relation'
  | 'outcome'
  | 'problem'
  | 'text';

const NUMBERS: readonly NumberColumn[] = [
  'seq',
  'n',
  'at',
  'size',
  'http',
  'toSeq',
  'toN',
  'latency',
  'marks',
  'client',
];
const TEXTS: readonly TextColumn[] = [
  ...(['channel', 'kind', 'id', 'method', 'target', 'relation', 'outcome', 'problem', 'text'] as const),
];

export const MARKS = { edited: 1, redacted: 2, cut: 4, unfinished: 8, early: 16 } as const;

const LOG = 'notifications/message';

function emptyColumns<K extends string>(names: readonly K[]): Record<K, number[]> {
  return Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>;
}

export class SessionOutline {
  readonly numbers: Record<NumberColumn, number[]>;
  /** Of a request the index of its answer, of an answer that of its request; -1 for neither. */
  readonly partner: number[] = [];
  /** The index of the call that it came up in; -1 outside of one. */
  readonly parent: number[] = [];
  /** Of a call that took several rounds, the answer of the last. */
  readonly lastAnswer = new Map<number, number>();
  readonly children = new Map<number, number[]>();
  /** What was changed on its way. */
  readonly edited: number[] = [];
  /** Calls without an answer so far. */
  readonly open = new Set<number>();
  private readonly strings: string[] = [];
  private readonly numberOf = new Map<string, number>();
  private readonly texts: Record<TextColumn, number[]>;
  /** The latest call of an HTTP exchange. */
  private readonly callOfHttp = new Map<number, number>();

  constructor() {
    this.numbers = emptyColumns(NUMBERS);
    this.texts = emptyColumns(TEXTS);
  }

  get count(): number {
    return this.partner.length;
  }

  text(column: TextColumn, index: number): string {
    const number = this.texts[column][index] ?? -1;
    return number < 0 ? '' : (this.strings[number] ?? '');
  }

  number(column: NumberColumn, index: number): number {
    return this.numbers[column][index] ?? 0;
  }

  isByClient(index: number): boolean {
    const channel = this.text('channel', index);
    return channel === 'stdin' || channel === 'request';
  }

  /** An answer whose request is there too. */
  isAnswer(index: number): boolean {
    const partner = this.partner[index] ?? -1;
    return partner >= 0 && partner < index;
  }

  /** When a call was over, or 0 while it is not; of anything else its own time. */
  endOf(index: number): number {
    const last = this.lastAnswer.get(index) ?? this.partner[index] ?? -1;
    if (last > index) return this.number('at', last);
    return this.text('kind', index) === 'request' && this.text('outcome', index) === ''
      ? 0
      : this.number('at', index);
  }

  /** The index of the first message of a frame, or of the frame; -1 where it is not there. */
  find(seq: number, n: number = 0): number {
    const seqs = this.numbers.seq;
    let [low, high] = [0, seqs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((seqs[middle] ?? 0) < seq) low = middle + 1;
      else high = middle;
    }
    return seqs[low] === seq ? Math.min(low + n, seqs.length - 1) : -1;
  }

  append(slice: Outline): void {
    const known = slice.strings.map((text) => this.intern(text));
    const start = this.count;
    for (const name of NUMBERS) for (const value of slice[name]) this.numbers[name].push(value);
    for (const name of TEXTS)
      for (const at of slice[name]) this.texts[name].push(at < 0 ? -1 : (known[at] ?? -1));
    for (let i = start; i < start + slice.seq.length; i += 1) this.place(i);
  }

  private childrenOf(index: number): number[] {
    const known = this.children.get(index);
    if (known !== undefined) return known;
    const children: number[] = [];
    this.children.set(index, children);
    return children;
  }

  private intern(text: string): number {
    let number = this.numberOf.get(text);
    if (number === undefined) {
      number = this.strings.push(text) - 1;
      this.numberOf.set(text, number);
    }
    return number;
  }

  private place(i: number): void {
    this.partner.push(-1);
    if ((this.number('marks', i) & MARKS.edited) !== 0 && this.number('n', i) === 0) this.edited.push(i);
    const relation = this.text('relation', i);
    const toSeq = this.number('toSeq', i);
    const to = toSeq === 0 ? -1 : this.find(toSeq, this.number('toN', i));
    if (relation === 'reply' && to >= 0) {
      this.parent.push(this.parent[to] ?? -1);
      this.answer(to, i);
      return;
    }
    const parent = to >= 0 ? this.rootOf(to) : this.underWay(i);
    this.parent.push(parent);
    if (parent >= 0) this.childrenOf(parent).push(i);
    if (this.text('kind', i) !== 'request' || this.text('outcome', i) !== '') return;
    this.open.add(i);
    const http = this.number('http', i);
    if (http > 0 && this.isByClient(i)) this.callOfHttp.set(http, i);
  }

  private answer(request: number, answer: number): void {
    this.partner[request] = answer;
    this.partner[answer] = request;
    this.open.delete(request);
    const root = this.text('relation', request) === 'round' ? (this.parent[request] ?? -1) : -1;
    if (root >= 0) this.lastAnswer.set(root, answer);
  }

  private rootOf(index: number): number {
    const asked = this.text('kind', index) === 'request' ? index : (this.partner[index] ?? -1);
    const start = asked < 0 ? index : asked;
    // Rounds of a call are one call; what comes up in a call of the server stays with that call.
    return this.text('relation', start) === 'round' ? (this.parent[start] ?? start) : start;
  }

  /**
   * The call of the client that something of the server belongs to where nothing links them: the one of its HTTP exchange,
   * else the only one that is open. Where several are, nobody can tell.
   */
  private underWay(i: number): number {
    const kind = this.text('kind', i);
    const isOurs = kind === 'request' || kind === '' || this.text('method', i) === LOG;
    if (this.isByClient(i) || !isOurs) return -1;
    const byHttp = this.callOfHttp.get(this.number('http', i));
    if (byHttp !== undefined && this.open.has(byHttp)) return this.rootOf(byHttp);
    if (kind === '') return -1;
    let only = -1;
    for (const call of this.open) {
      if (!this.isByClient(call)) continue;
      if (only >= 0) return -1;
      only = call;
    }
    return only < 0 ? -1 : this.rootOf(only);
  }
}
