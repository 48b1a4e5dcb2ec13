/**
 * A recorded session as a script: for every call of the client, what the server then sent, in order. Only numbers are
 * kept, in columns, some forty bytes for a call and its answer; the bytes stay in the store until they are sent.
 *
 * Whose call a message of the server belongs to: an answer, progress, and what names a subscription or a task belong to
 * the call that they name; over HTTP what came on the stream of a call belongs to that call; anything else to the call
 * that was asked last and is still open. Where none is open, it follows the call that was answered last (its aftermath),
 * or comes before all calls (the prologue). Progress after the answer (of a task) is in that call's aftermath.
 *
 * Calls that had one id at one time are told apart by their HTTP exchanges; without these nobody knows which of them
 * an answer is for, so neither has one that could be given to somebody else.
 */
import type { Direction } from '../protocol/frame.ts';
import { createColumn } from './column.ts';
import { createTopics, type Topics } from './topics.ts';

/** Where a message stands in its recording: the frame's number, and its own number inside the frame. */
export type Place = { seq: number; n: number };

/** One message of the recording. `at` in microseconds; `exchange`: the HTTP exchange that it came on, null for stdio. */
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
  exchange: number | null;
  relation: string | null;
  to: Place | null;
};

/** Something that the server sent. */
export type Step = {
  place: Place;
  kind: string;
  isAnswer: boolean;
  /** Microseconds after the call; in an aftermath after the answer; in the prologue after the recording's beginning. */
  after: number;
  exchange: number | null;
  /** Requests of the server, asked within the same call, that the client had answered since the step before this. */
  waitsFor: readonly Place[];
};

/** A call is named by its index: the calls of the client in the order in which it asked them. */
export type Script = {
  /** How many calls there are. */
  size: number;
  topics: Topics;
  topicOf(call: number): number;
  placeOf(call: number): Place;
  exchangeOf(call: number): number | null;
  /** What was sent for the call. It ends with the answer, if one came. */
  stepsOf(call: number): Step[];
  isAnswered(call: number): boolean;
  /** Whether its answer may be that of another call with the same id. */
  isDoubtful(call: number): boolean;
  aftermathOf(call: number): Step[];
  prologue(): Step[];
};

const NOTHING: readonly Place[] = [];
const KINDS = ['request', 'notification', 'result', 'error', 'invalid'];

/**
 * Columns of lines, which are what the server sent, and of calls. Lines are named by their index plus one, so that 0
 * says that there is none; so are exchanges.
 */
export type ScriptColumns = ReturnType<typeof createScriptColumns>;

export function createScriptColumns() {
  return {
    topics: createTopics(),
    beginning: 0,
    /** How many there are. */
    calls: 0,
    lines: 0,
    prologue: 0,
    line: {
      seq: createColumn(Uint32Array),
      n: createColumn(Uint32Array),
      kind: createColumn(Uint8Array),
      at: createColumn(Float64Array),
      exchange: createColumn(Uint32Array),
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
      exchange: createColumn(Uint32Array),
      first: createColumn(Uint32Array),
      answer: createColumn(Uint32Array),
      firstAfter: createColumn(Uint32Array),
      isDoubtful: createColumn(Uint8Array),
    },
  };
}

export function kindNumber(kind: string): number {
  return KINDS.indexOf(kind);
}

export function scriptOf(columns: ScriptColumns): Script {
  const { line, call: calls, topics, calls: size, prologue, beginning } = columns;
  const steps = (first: number, since: number, answer = 0) => stepsFrom(line, first, since, answer);
  return {
    size,
    topics,
    topicOf: calls.topic.at,
    placeOf: (call) => ({ seq: calls.seq.at(call), n: calls.n.at(call) }),
    exchangeOf: (call) => exchangeFrom(calls.exchange.at(call)),
    stepsOf: (call) => steps(calls.first.at(call), calls.at.at(call), calls.answer.at(call)),
    isAnswered: (call) => calls.answer.at(call) !== 0,
    isDoubtful: (call) => calls.isDoubtful.at(call) !== 0,
    aftermathOf: (call) => steps(calls.firstAfter.at(call), line.at.at(calls.answer.at(call))),
    prologue: () => steps(prologue, beginning),
  };
}

function stepsFrom(lines: ScriptColumns['line'], first: number, since: number, answer: number): Step[] {
  const steps: Step[] = [];
  /** Requests of the server whose answers no step has waited for so far. */
  let asked: number[] = [];
  for (let line = first; line !== 0; line = lines.next.at(line)) {
    let waitsFor = NOTHING;
    if (asked.length > 0) {
      const [answered, open] = parted(asked, (request) => wasAnswered(lines, request, line));
      waitsFor = answered.map((one) => placeAt(lines, one));
      asked = open;
    }
    const kind = KINDS[lines.kind.at(line)] ?? '';
    steps.push({
      place: placeAt(lines, line),
      kind,
      isAnswer: line === answer,
      after: Math.max(0, lines.at.at(line) - since),
      exchange: exchangeFrom(lines.exchange.at(line)),
      waitsFor,
    });
    if (kind === 'request') asked.push(line);
  }
  return steps;
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

function exchangeFrom(numberPlusOne: number): number | null {
  return numberPlusOne === 0 ? null : numberPlusOne - 1;
}
