/** Reads a recording once, from its beginning to its end, and tells what the server sent for which call (script.ts). */
import { type OpenCall, OpenCalls, placeKey } from './open-calls.ts';
import {
  createScriptColumns,
  kindNumber,
  type Place,
  type Script,
  type ScriptLine,
  scriptOf,
} from './script.ts';

const LISTEN = 'subscriptions/listen';

export function buildScript(lines: Iterable<ScriptLine>): Script {
  const builder = new Builder();
  for (const line of lines) builder.add(line);
  return builder.script();
}

class Builder {
  readonly #columns = createScriptColumns();
  readonly #open = new OpenCalls();
  /** Lines of the server's requests without an answer so far, by place. */
  readonly #asked = new Map<number | string, number>();
  /** Where the next line without a call goes: to the call that was answered last, or the prologue. */
  #unowned: { call: number | null; last: number } = { call: null, last: 0 };
  /** Where late progress of a call went last. */
  #late = { call: -1, last: 0 };
  #isBegun = false;

  add(line: ScriptLine): void {
    if (!this.#isBegun) this.#columns.beginning = line.at;
    this.#isBegun = true;
    if (line.direction === 'server-to-client') this.#addServerLine(line);
    else if (line.kind === 'request') this.#addCall(line);
    else if (line.to !== null && line.relation === 'reply') this.#addAnswer(line.to);
    else if (line.to !== null && line.relation === 'cancel') {
      const cancelled = this.#open.at(line.to);
      if (cancelled !== undefined) this.#open.close(cancelled);
    }
  }

  #addCall({ place, id, at, exchange, method, target }: ScriptLine): void {
    const { calls: call, call: columns, topics } = this.#columns;
    this.#columns.calls += 1;
    columns.topic.set(call, topics.add({ method: method ?? '', target }));
    columns.seq.set(call, place.seq);
    columns.n.set(call, place.n);
    columns.at.set(call, at);
    columns.exchange.set(call, exchange === null ? 0 : exchange + 1);
    const isListen = method === LISTEN;
    this.#open.add({ call, place, id, exchange, isListen, isShared: false, isOpen: true, last: 0 });
  }

  #addAnswer(to: Place): void {
    const line = this.#asked.get(placeKey(to));
    if (line !== undefined) this.#columns.line.answeredAfter.set(line, this.#columns.lines);
    this.#asked.delete(placeKey(to));
  }

  #addServerLine(said: ScriptLine): void {
    const { place, kind, exchange, relation, to } = said;
    if (relation === 'progress' && to !== null && this.#open.at(to) === undefined) {
      this.#addLateProgress(said, to);
      return;
    }
    const line = this.#pushLine(said);
    if (kind === 'request') this.#asked.set(placeKey(place), line);
    const owner = this.#ownerOf(relation, to, exchange);
    if (owner === undefined) this.#appendUnowned(line);
    else {
      this.#append(owner, line);
      if (relation === 'reply') this.#settle(owner, line, exchange);
    }
  }

  #pushLine({ place, kind, at, exchange }: ScriptLine): number {
    const { line: columns } = this.#columns;
    this.#columns.lines += 1;
    const line = this.#columns.lines;
    columns.seq.set(line, place.seq);
    columns.n.set(line, place.n);
    columns.kind.set(line, kindNumber(kind));
    columns.at.set(line, at);
    columns.exchange.set(line, exchange === null ? 0 : exchange + 1);
    return line;
  }

  /** A call that began a task goes on after its answer; of one that was taken back nobody hears any more. */
  #addLateProgress(said: ScriptLine, to: Place): void {
    const call = this.#callAt(to);
    if (call < 0 || this.#columns.call.answer.at(call) === 0) return;
    const line = this.#pushLine(said);
    if (call === this.#unowned.call) this.#appendUnowned(line);
    else this.#appendAfter(call, line);
  }

  /** Behind all that followed the call so far, which others have followed since. */
  #appendAfter(call: number, line: number): void {
    const { next } = this.#columns.line;
    let last = this.#late.call === call ? this.#late.last : this.#columns.call.firstAfter.at(call);
    if (last === 0) this.#columns.call.firstAfter.set(call, line);
    else {
      while (next.at(last) !== 0) last = next.at(last);
      next.set(last, line);
    }
    this.#late = { call, last: line };
  }

  /** Calls stand in the order of their places. Below zero where there is none. */
  #callAt(place: Place): number {
    const { seq, n } = this.#columns.call;
    let low = 0;
    let high = this.#columns.calls - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const order = seq.at(middle) - place.seq || n.at(middle) - place.n;
      if (order === 0) return middle;
      if (order < 0) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  #ownerOf(relation: string | null, to: Place | null, exchange: number | null): OpenCall | undefined {
    const named = to === null ? undefined : this.#open.at(to);
    if (named !== undefined || relation === 'reply') return named;
    const onExchange = exchange === null ? undefined : this.#open.onExchange(exchange);
    return onExchange ?? this.#open.askedLast();
  }

  #settle(owner: OpenCall, line: number, exchange: number | null): void {
    const { answer, isDoubtful } = this.#columns.call;
    answer.set(owner.call, line);
    const isOnItsOwn = exchange !== null && owner.exchange === exchange;
    if (owner.isShared && !isOnItsOwn) isDoubtful.set(owner.call, 1);
    this.#open.answer(owner);
    this.#unowned = { call: owner.call, last: 0 };
  }

  #append(owner: OpenCall, line: number): void {
    if (owner.last === 0) this.#columns.call.first.set(owner.call, line);
    else this.#columns.line.next.set(owner.last, line);
    owner.last = line;
  }

  #appendUnowned(line: number): void {
    const { call, last } = this.#unowned;
    if (last !== 0) this.#columns.line.next.set(last, line);
    else if (call === null) this.#columns.prologue = line;
    else this.#columns.call.firstAfter.set(call, line);
    this.#unowned.last = line;
  }

  script(): Script {
    return scriptOf(this.#columns);
  }
}
