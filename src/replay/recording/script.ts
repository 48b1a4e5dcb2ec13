/**
 * Turns a recorded session into a script: for every call of the client, what the server then sent, in order. Columns hold
 * numbers only, some forty bytes for a call and its answer. The bytes stay in the store until they are sent.
 *
 * Each message of the server belongs to one call. Answers, progress, and messages of a subscription or task belong to the
 * call that they name. Over HTTP, a message on the stream of a call belongs to that call. Any other message belongs to the
 * open call that was asked last. Where no call is open, it follows the call that was answered last (its aftermath), or
 * comes before all calls (the prologue). Progress after the answer (of a task) is in that call's aftermath.
 *
 * Where several clients were recorded, all this holds for each of them alone.
 *
 * HTTP exchanges tell apart calls that had one id at one time. Without them nobody knows which call an answer is for, so
 * all of them are doubtful, and none answers a client.
 */
import type { Place } from '../../protocol/message/correlate.ts';
import { type Direction, FIRST_CLIENT } from '../../protocol/wire/frame.ts';
import { createColumn } from './columns.ts';
import { createTopics, type Topics } from './topics.ts';

/** One message of the recording. `at` in microseconds; `httpExchange`: the HTTP exchange that it came on, null for stdio. */
export type ScriptLine = {
  place: Place;
  /** With its type; null where it has none. */
  id: string | null;
  direction: Direction;
  kind: string;
  method: string | null;
  /** The tool, prompt or resource that it is about. */
  target: string | null;
  at: number;
  httpExchange: number | null;
  relation: string | null;
  to: Place | null;
  /** The recorded client that it came from or went to. */
  client: number;
  /** The code of an error. */
  errorCode: number | null;
};

/** One message that the server sent. */
export type Step = {
  place: Place;
  kind: string;
  isAnswer: boolean;
  /** Microseconds after the call; in an aftermath after the answer; in the prologue after the recording's beginning. */
  after: number;
  httpExchange: number | null;
  /** Requests of the server, asked within the same call, that the client had answered since the step before this. */
  waitsFor: readonly Place[];
};

/** Calls are numbered from 0, in the order in which the client asked them. */
export type Script = {
  /** How many calls there are. */
  size: number;
  topics: Topics;
  topicOf(call: number): number;
  placeOf(call: number): Place;
  /** The recorded clients that have asked something, in that order. */
  clients: readonly number[];
  /** Which of them has asked. */
  clientOf(call: number): number;
  /** The code of the error that answered it; null for any other answer, and for a code that is no refusal of a fault. */
  refusalOf(call: number): FaultCode | null;
  httpExchangeOf(call: number): number | null;
  /** What the server sent for the call. It ends with the answer, if one came. */
  stepsOf(call: number): readonly Step[];
  isAnswered(call: number): boolean;
  /** Whether its answer may be that of another call with the same id. */
  isDoubtful(call: number): boolean;
  aftermathOf(call: number): readonly Step[];
  /** What the server sent to a client before its first call. */
  prologue(client: number): readonly Step[];
};

/**
 * Errors by which a server of 2026-07-28 refuses what a request says of its client: no `_meta` (or any other fault of the
 * params), a capability that it lacks, a revision that the server does not speak (2026-07-28, basic/index).
 */
const FAULT_CODES = [-32602, -32021, -32022] as const;

type FaultCode = (typeof FAULT_CODES)[number];

const NOTHING: readonly Place[] = [];

const NO_STEPS: readonly Step[] = [];

const KINDS = ['request', 'notification', 'result', 'error', 'invalid'];

/**
 * The columns of calls, and of lines, which are what the server sent. Lines are numbered from 1, and HTTP exchanges stand as
 * their number plus one, so that 0 stands for none.
 */
type ScriptColumns = ReturnType<typeof createScriptColumns>;

function createScriptColumns() {
  return {
    topics: createTopics(),
    beginning: 0,
    /** How many there are. */
    calls: 0,
    lines: 0,
    /** By client: the first line. */
    prologues: new Map<number, number>(),
    clients: new Set<number>(),
    line: {
      seq: createColumn(Uint32Array),
      n: createColumn(Uint32Array),
      kind: createColumn(Uint8Array),
      at: createColumn(Float64Array),
      httpExchange: createColumn(Uint32Array),
      /** The next line of the same call and part. */
      next: createColumn(Uint32Array),
      /** For a request of the server: the last line before the client's answer came. */
      answeredAfter: createColumn(Uint32Array),
    },
    call: {
      topic: createColumn(Uint32Array),
      seq: createColumn(Uint32Array),
      n: createColumn(Uint32Array),
      at: createColumn(Float64Array),
      httpExchange: createColumn(Uint32Array),
      first: createColumn(Uint32Array),
      answer: createColumn(Uint32Array),
      firstAfter: createColumn(Uint32Array),
      isDoubtful: createColumn(Uint8Array),
      /** The client, less the first one's number. */
      client: createColumn(Uint32Array),
      /** The number of a fault's code plus one. */
      refusal: createColumn(Uint8Array),
    },
  };
}

/** From 1 on; 0 for a code that is none of a fault. */
function faultNumber(code: number | null): number {
  return 1 + (FAULT_CODES as readonly (number | null)[]).indexOf(code);
}

function kindNumber(kind: string): number {
  return KINDS.indexOf(kind);
}

function scriptOf(columns: ScriptColumns): Script {
  const { line, call: calls, topics, calls: size, prologues, beginning } = columns;
  const steps = (first: number, since: number, answer = 0) => stepsFrom(line, first, since, answer);
  return {
    size,
    topics,
    topicOf: calls.topic.at,
    placeOf: (call) => ({ seq: calls.seq.at(call), n: calls.n.at(call) }),
    clients: [...columns.clients],
    clientOf: (call) => calls.client.at(call) + FIRST_CLIENT,
    refusalOf: (call) => FAULT_CODES[calls.refusal.at(call) - 1] ?? null,
    httpExchangeOf: (call) => httpExchangeFrom(calls.httpExchange.at(call)),
    stepsOf: (call) => steps(calls.first.at(call), calls.at.at(call), calls.answer.at(call)),
    isAnswered: (call) => calls.answer.at(call) !== 0,
    isDoubtful: (call) => calls.isDoubtful.at(call) !== 0,
    aftermathOf: (call) => steps(calls.firstAfter.at(call), line.at.at(calls.answer.at(call))),
    prologue: (client) => steps(prologues.get(client) ?? 0, beginning),
  };
}

function stepsFrom(
  lines: ScriptColumns['line'],
  first: number,
  since: number,
  answer: number,
): readonly Step[] {
  /** Most are one, which takes no list that could grow. */
  let steps: Step[] | null = null;
  /** Requests of the server whose answers no step has waited for so far. */
  let asked: number[] | null = null;
  for (let line = first; line !== 0; line = lines.next.at(line)) {
    let waitsFor = NOTHING;
    if (asked !== null) {
      const [answered, open]: [number[], number[]] = parted(asked, (request) =>
        wasAnswered(lines, request, line),
      );
      waitsFor = answered.map((one) => placeAt(lines, one));
      asked = open;
    }
    const kind = KINDS[lines.kind.at(line)] ?? '';
    const step = {
      place: placeAt(lines, line),
      kind,
      isAnswer: line === answer,
      after: Math.max(0, lines.at.at(line) - since),
      httpExchange: httpExchangeFrom(lines.httpExchange.at(line)),
      waitsFor,
    };
    if (steps === null) steps = [step];
    else steps.push(step);
    if (kind !== 'request') continue;
    if (asked === null) asked = [line];
    else asked.push(line);
  }
  return steps ?? NO_STEPS;
}

/** Whether the client had answered this request of the server before this line. */
function wasAnswered({ answeredAfter }: ScriptColumns['line'], request: number, line: number): boolean {
  const after = answeredAfter.at(request);
  return after !== 0 && after < line;
}

function parted<T>(all: readonly T[], isFirst: (one: T) => boolean): [T[], T[]] {
  return [all.filter(isFirst), all.filter((one) => !isFirst(one))];
}

function placeAt({ seq, n }: ScriptColumns['line'], line: number): Place {
  return { seq: seq.at(line), n: n.at(line) };
}

function httpExchangeFrom(numberPlusOne: number): number | null {
  return numberPlusOne === 0 ? null : numberPlusOne - 1;
}

const LISTEN = 'subscriptions/listen';

/** Reads the lines once, from the first to the last. */
export function buildScript(lines: Iterable<ScriptLine>): Script {
  const builder = new Builder();
  for (const line of lines) builder.add(line);
  return builder.script();
}

class Builder {
  readonly #columns = createScriptColumns();
  readonly #parties = new Map<number, Party>();
  /** Lines of the server's requests without an answer so far, by place. */
  readonly #asked = new Map<number | string, number>();
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
      const { open } = this.#partyOf(line);
      const cancelled = open.at(line.to);
      if (cancelled !== undefined) open.close(cancelled);
    }
  }

  #partyOf({ client }: ScriptLine): Party {
    const known = this.#parties.get(client);
    if (known !== undefined) return known;
    const party: Party = { client, open: new OpenCalls(), unowned: { call: null, last: 0 } };
    this.#parties.set(client, party);
    return party;
  }

  #addCall(line: ScriptLine): void {
    const { place, id, at, httpExchange, method, target, client } = line;
    const { calls: call, call: columns, topics, clients } = this.#columns;
    this.#columns.calls += 1;
    clients.add(client);
    columns.client.set(call, client - FIRST_CLIENT);
    columns.topic.set(call, topics.add({ method: method ?? '', target }));
    columns.seq.set(call, place.seq);
    columns.n.set(call, place.n);
    columns.at.set(call, at);
    columns.httpExchange.set(call, httpExchange === null ? 0 : httpExchange + 1);
    const isListen = method === LISTEN;
    this.#partyOf(line).open.add({
      call,
      place,
      id,
      httpExchange,
      isListen,
      isShared: false,
      isOpen: true,
      last: 0,
    });
  }

  #addAnswer(to: Place): void {
    const line = this.#asked.get(placeKey(to));
    if (line !== undefined) this.#columns.line.answeredAfter.set(line, this.#columns.lines);
    this.#asked.delete(placeKey(to));
  }

  #addServerLine(said: ScriptLine): void {
    const { place, kind, httpExchange, relation, to } = said;
    const party = this.#partyOf(said);
    if (relation === 'progress' && to !== null && party.open.at(to) === undefined) {
      this.#addLateProgress(said, to, party);
      return;
    }
    const line = this.#pushLine(said);
    if (kind === 'request') this.#asked.set(placeKey(place), line);
    const owner = ownerOf(party.open, relation, to, httpExchange);
    if (owner === undefined) this.#appendUnowned(line, party);
    else {
      this.#append(owner, line);
      if (relation === 'reply') this.#settle(owner, line, said, party);
    }
  }

  #pushLine({ place, kind, at, httpExchange }: ScriptLine): number {
    const { line: columns } = this.#columns;
    this.#columns.lines += 1;
    const line = this.#columns.lines;
    columns.seq.set(line, place.seq);
    columns.n.set(line, place.n);
    columns.kind.set(line, kindNumber(kind));
    columns.at.set(line, at);
    columns.httpExchange.set(line, httpExchange === null ? 0 : httpExchange + 1);
    return line;
  }

  /** A call that began a task goes on after its answer; a call that was taken back does not. */
  #addLateProgress(said: ScriptLine, to: Place, party: Party): void {
    const call = this.#callAt(to);
    if (call < 0 || this.#columns.call.answer.at(call) === 0) return;
    const line = this.#pushLine(said);
    if (call === party.unowned.call) this.#appendUnowned(line, party);
    else this.#appendAfter(call, line);
  }

  /** Appends to the aftermath of a call that other calls have followed since. */
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

  /** Finds a call by its place, in whose order calls stand. Below zero where there is none. */
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

  #settle(owner: OpenCall, line: number, { httpExchange, errorCode }: ScriptLine, party: Party): void {
    const { answer, isDoubtful, refusal } = this.#columns.call;
    answer.set(owner.call, line);
    refusal.set(owner.call, faultNumber(errorCode));
    const isOnItsOwn = httpExchange !== null && owner.httpExchange === httpExchange;
    if (owner.isShared && !isOnItsOwn) isDoubtful.set(owner.call, 1);
    party.open.answer(owner);
    party.unowned = { call: owner.call, last: 0 };
  }

  #append(owner: OpenCall, line: number): void {
    if (owner.last === 0) this.#columns.call.first.set(owner.call, line);
    else this.#columns.line.next.set(owner.last, line);
    owner.last = line;
  }

  #appendUnowned(line: number, { client, unowned }: Party): void {
    const { call, last } = unowned;
    if (last !== 0) this.#columns.line.next.set(last, line);
    else if (call === null) this.#columns.prologues.set(client, line);
    else this.#columns.call.firstAfter.set(call, line);
    unowned.last = line;
  }

  script(): Script {
    return scriptOf(this.#columns);
  }
}

/** What is open between one client and the server, while the recording is read. */
type Party = {
  client: number;
  open: OpenCalls;
  /** Where the next line without a call goes: to the call that was answered last, or to the prologue. */
  unowned: { call: number | null; last: number };
};

function ownerOf(
  open: OpenCalls,
  relation: string | null,
  to: Place | null,
  httpExchange: number | null,
): OpenCall | undefined {
  const named = to === null ? undefined : open.at(to);
  if (named !== undefined || relation === 'reply') return named;
  const onHttpExchange = httpExchange === null ? undefined : open.onHttpExchange(httpExchange);
  return onHttpExchange ?? open.askedLast();
}

/** A call that is not answered yet, while the recording is read. */
type OpenCall = {
  call: number;
  place: Place;
  /** With its type; null where it has none. */
  id: string | null;
  httpExchange: number | null;
  /** A subscription is long-lived, so messages that do not name it do not belong to it. */
  isListen: boolean;
  /** Another one had its id at the same time. */
  isShared: boolean;
  isOpen: boolean;
  /** The last line that was sent for it; 0 for none. */
  last: number;
};

/** A place as the key of a Map. No line has as many messages as would make two places share a key, short of 256 MB. */
function placeKey({ seq, n }: Place): number | string {
  return n < MANY ? seq * MANY + n : `${seq}.${n}`;
}

const MANY = 2 ** 20;

const FEW = 64;

class OpenCalls {
  readonly #open = new Map<number | string, OpenCall>();
  readonly #byHttpExchange = new Map<number, OpenCall[]>();
  /** Calls without an answer, also cancelled ones, by id. */
  readonly #unanswered = new Map<string, OpenCall[]>();
  /** The one asked last at the end; some may be open no more. */
  #inOrder: OpenCall[] = [];

  add(call: OpenCall): void {
    this.#open.set(placeKey(call.place), call);
    if (call.httpExchange !== null) addTo(this.#byHttpExchange, call.httpExchange, call);
    if (!call.isListen) this.#inOrder.push(call);
    if (this.#inOrder.length > 2 * this.#open.size + FEW)
      this.#inOrder = this.#inOrder.filter(({ isOpen }) => isOpen);
    const same = addTo(this.#unanswered, call.id ?? '', call);
    // Of more than two, those before this one are marked already.
    if (same.length === 2) for (const one of same) one.isShared = true;
    else if (same.length > 2) call.isShared = true;
  }

  at(place: Place): OpenCall | undefined {
    return this.#open.get(placeKey(place));
  }

  /** Of those that were asked on an HTTP exchange, the first. */
  onHttpExchange(httpExchange: number): OpenCall | undefined {
    return this.#byHttpExchange.get(httpExchange)?.[0];
  }

  askedLast(): OpenCall | undefined {
    while (this.#inOrder.at(-1)?.isOpen === false) this.#inOrder.pop();
    return this.#inOrder.at(-1);
  }

  answer(call: OpenCall): void {
    removeFrom(this.#unanswered, call.id ?? '', call);
    this.close(call);
  }

  /** Nothing belongs to it any more. */
  close(call: OpenCall): void {
    call.isOpen = false;
    this.#open.delete(placeKey(call.place));
    if (call.httpExchange !== null) removeFrom(this.#byHttpExchange, call.httpExchange, call);
  }
}

function addTo<K>(lists: Map<K, OpenCall[]>, key: K, call: OpenCall): OpenCall[] {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [call]);
  else list.push(call);
  return list ?? [call];
}

function removeFrom<K>(lists: Map<K, OpenCall[]>, key: K, call: OpenCall): void {
  const list = lists.get(key) ?? [];
  if (list.length > 1) list.splice(list.indexOf(call), 1);
  else lists.delete(key);
}
