/**
 * Which frames are kept without their payloads (`--meta-for`): decided for each as it is stored, by what has passed until then.
 * It asks what the filter language asks (inspect/filter), of one frame and the call that it belongs to. Where nobody can say
 * whose a payload is, it is not kept. Loaded by recorders with `--meta-for`, and by nobody else.
 */

import { BoundedMap } from '../../protocol/bounded.ts';
import {
  createConversation,
  type FrameWithReading,
  holdsMessages,
  type IndexedMessage,
} from '../../protocol/message/conversation.ts';
import { resultOutcome } from '../../protocol/message/correlate.ts';
import type { KeptAnswer } from '../../protocol/message/envelope.ts';
import type { Message } from '../../protocol/message/message.ts';
import { TARGETED } from '../../protocol/message/methods.ts';
import { createTextTest, type Pattern } from '../../protocol/text-test.ts';
import { directionOf, sentBytes } from '../../protocol/wire/frame.ts';
import type { JudgeFrame } from '../write/redaction-rules.ts';

/** What can be asked of a frame as it passes. */
export type FrameField =
  | 'method'
  | 'tool'
  | 'prompt'
  | 'resource'
  | 'kind'
  | 'id'
  | 'dir'
  | 'channel'
  | 'size'
  | 'text';

/** A filter that single frames can answer, as plain data for the writer's thread. Without parts, `and` holds always and `or` never. */
export type FrameRule =
  | { type: 'and'; parts: readonly FrameRule[] }
  | { type: 'or'; parts: readonly FrameRule[] }
  | { type: 'not'; part: FrameRule }
  | { type: 'term'; field: FrameField; isNegated: boolean; test: FrameTest };

export type FrameTest =
  | { type: 'equals'; value: string | number }
  | { type: 'compares'; operator: '>' | '<' | '>=' | '<='; value: number }
  | { type: 'matches'; pattern: Pattern };

/** What a request asks. `origin`: the call that it goes on with, or asks about, such as the one that began a task. */
type Call = {
  method: string | null;
  canonical: string | null;
  target: string | null;
  id: string | null;
  origin: Call | null;
};

/** What a term is asked of. Null: there is no message in the frame, or it belongs to no call. */
type Asked = { frame: FrameWithReading; kind: string | null; own: Call | null; call: Call | null };

type Holds = (asked: Asked) => boolean;

/** So many requests are remembered until they are answered. */
const MAX_OPEN = 10_000;

/** Returns what decides for the frames of one more session. */
export function createMetaFor(rule: FrameRule): () => JudgeFrame {
  const holds = compiled(rule);
  const needs = needsOf(rule);
  return () => createJudge(holds, needs);
}

/** What a rule must know: the frame alone, the messages in it, or the calls that they belong to. */
type Needs = 'frame' | 'message' | 'call';

function aloneOf(frame: FrameWithReading): Asked {
  return { frame, kind: null, own: null, call: null };
}

function createJudge(holds: Holds, needs: Needs): JudgeFrame {
  /** The rule asks for what only the request says. */
  const isOfCalls = needs === 'call';
  const conversation = createConversation();
  const calls = new BoundedMap<string, Call>(MAX_OPEN);
  /** HTTP exchanges with a request that was not kept. */
  const exchanges = new BoundedMap<number, true>(MAX_OPEN);
  /** Requests whose payloads are kept. */
  const kept = new BoundedMap<string, true>(MAX_OPEN);
  let seq = 0;

  function judge(frame: FrameWithReading, indexed: IndexedMessage): boolean {
    const { message, correlation, n } = indexed;
    const { to, relation } = correlation;
    const asked = to === null ? undefined : calls.get(placeOf(to));
    const own: Call = {
      method: 'method' in message ? message.method : null,
      canonical: 'canonical' in message ? message.canonical : null,
      target: message.details.target,
      id: ('id' in message ? message.id?.text : null) ?? null,
      origin: asked === undefined ? null : (asked.origin ?? asked),
    };
    const isCall = message.kind === 'request' || to === null;
    if (message.kind === 'request' || message.kind === 'invalid') calls.set(`${seq}.${n}`, own);
    // A task goes on, and so does a round that needs input.
    const isOver =
      relation === 'reply' && !message.details.beginsTask && correlation.outcome !== 'input-required';
    if (isOver && to !== null) calls.delete(placeOf(to));
    if (isOfCalls && isOfUnknownCall(frame, indexed, asked)) return true;
    const call = isCall ? own : (asked ?? own);
    const asks = (one: Call | null) => holds({ frame, kind: message.kind, own, call: one });
    return asks(call) || (call.origin !== null && asks(call.origin));
  }

  function isMetaOnly(frame: FrameWithReading, messages: readonly IndexedMessage[]): boolean {
    if (needs === 'frame') return holds(aloneOf(frame));
    const exchange = frame.http?.exchange ?? null;
    if (!holdsMessages(frame)) {
      const isOfExchange = exchange !== null && isOfCalls && exchanges.get(exchange) === true;
      return isOfExchange || holds(aloneOf(frame));
    }
    let isIt = isUnreadable(frame, messages);
    for (const message of messages) isIt = judge(frame, message) || isIt;
    if (messages.length === 0) isIt ||= holds(aloneOf(frame));
    if (isIt && exchange !== null && frame.channel === 'request') exchanges.set(exchange, true);
    return isIt;
  }

  /** What it answers of all that is kept; remembers what is asked in it. */
  function answersIn(
    frame: FrameWithReading,
    messages: readonly IndexedMessage[],
    isKept: boolean,
  ): KeptAnswer[] {
    return messages.flatMap(({ n, message, correlation: { relation, to } }) => {
      if (isKept && message.kind === 'request') kept.set(placeOf({ seq, n }), true);
      if (relation !== 'reply' || to === null || !kept.has(placeOf(to))) return [];
      kept.delete(placeOf(to));
      // Of one that a fault was put into, the outcome says nothing of its server.
      return frame.fault === undefined ? answerOf(message) : [];
    });
  }

  return (frame) => {
    seq += 1;
    const messages = holdsMessages(frame) ? conversation.add(frame, seq) : [];
    const isKept = !isMetaOnly(frame, messages);
    const answers = answersIn(frame, messages, isKept);
    return isKept ? null : { answers, isBatch: messages.length > 1 };
  };
}

function answerOf(message: Message): KeptAnswer[] {
  if (message.kind === 'result') return [{ id: message.id, outcome: resultOutcome(message.details) }];
  return message.kind === 'error' && message.id !== null ? [{ id: message.id, outcome: 'error' }] : [];
}

function placeOf({ seq, n }: { seq: number; n: number }): string {
  return `${seq}.${n}`;
}

/** Its messages cannot be told: it was cut, broke off, is no JSON, or in a content coding that nobody could undo. */
function isUnreadable(frame: FrameWithReading, messages: readonly IndexedMessage[]): boolean {
  const { truncated, lineEnd, http } = frame;
  if (truncated || http?.marks.includes('undecoded') || http?.marks.includes('incomplete')) return true;
  if (!messages.some(({ message }) => message.kind === 'invalid' && message.reason === 'not-json'))
    return false;
  // Of whole lines, all others are words for people.
  return http !== null || lineEnd === '' || BEGINS_AS_JSON.test(sentBytes(frame).toString('latin1', 0, 100));
}

const BEGINS_AS_JSON = /^\s*[{[]/;

/** An answer to a request that did not pass here, or too long ago; and what a server sends again, which is tied to nothing. */
function isOfUnknownCall(
  { http }: FrameWithReading,
  { message, correlation: { relation, to } }: IndexedMessage,
  asked: Call | undefined,
): boolean {
  if (http?.marks.includes('replayed')) return true;
  if (to !== null) return asked === undefined;
  const isAnswer = message.kind === 'result' || message.kind === 'error';
  return (isAnswer || (message.kind === 'invalid' && message.isAnswer)) && relation !== 'reply';
}

function needsOf(rule: FrameRule): Needs {
  if (rule.type === 'term') {
    if (rule.field === 'kind') return 'message';
    return OF_FRAMES.has(rule.field) ? 'frame' : 'call';
  }
  const needs = (rule.type === 'not' ? [rule.part] : rule.parts).map(needsOf);
  return needs.includes('call') ? 'call' : needs.includes('message') ? 'message' : 'frame';
}

const OF_FRAMES: ReadonlySet<FrameField> = new Set<FrameField>(['dir', 'channel', 'size', 'text']);

function compiled(rule: FrameRule): Holds {
  if (rule.type === 'not') {
    const part = compiled(rule.part);
    return (asked) => !part(asked);
  }
  if (rule.type === 'and') {
    const parts = rule.parts.map(compiled);
    return (asked) => parts.every((part) => part(asked));
  }
  if (rule.type === 'or') {
    const parts = rule.parts.map(compiled);
    return (asked) => parts.some((part) => part(asked));
  }
  const { field, isNegated } = rule;
  const term = field === 'text' ? textTerm(rule.test) : valueTerm(VALUES[field], rule.test);
  return isNegated ? (asked) => !term(asked) : term;
}

type Value = string | number | null;

/** A field may have several values, or none: a term holds where it holds for one of them. */
const VALUES: Record<Exclude<FrameField, 'text'>, (asked: Asked) => readonly Value[]> = {
  method: ({ own, call }) => [own, call].flatMap((one) => (one === null ? [] : [one.canonical, one.method])),
  tool: targets(TARGETED.tool),
  prompt: targets(TARGETED.prompt),
  resource: targets(TARGETED.resource),
  kind: ({ kind }) => [kind],
  id: ({ own, call }) => [own?.id ?? null, call?.id ?? null],
  dir: ({ frame }) => [directionOf(frame.channel)],
  channel: ({ frame }) => [frame.channel],
  size: ({ frame }) => [frame.size],
};

/** What a call is about, where its method is one of these. */
function targets(methods: readonly string[]): (asked: Asked) => readonly Value[] {
  return ({ own, call }) =>
    [own, call].flatMap((one) =>
      one?.canonical != null && methods.includes(one.canonical) ? [one.target] : [],
    );
}

function valueTerm(values: (asked: Asked) => readonly Value[], test: FrameTest): Holds {
  const holds = valueTest(test);
  return (asked) => values(asked).some((value) => value !== null && holds(value));
}

function valueTest(test: FrameTest): (value: string | number) => boolean {
  if (test.type === 'equals') return (value) => value === test.value;
  if (test.type === 'matches') {
    const text = createTextTest(test.pattern);
    return (value) => text.has(String(value));
  }
  const { operator, value: bound } = test;
  return (value) => {
    const number = Number(value);
    if (operator === '>') return number > bound;
    if (operator === '<') return number < bound;
    return operator === '>=' ? number >= bound : number <= bound;
  };
}

/** All that is stored of a frame, as it passed: before secrets are replaced. */
function textTerm(test: FrameTest): Holds {
  if (test.type !== 'matches') return () => false;
  const text = createTextTest(test.pattern);
  return ({ frame: { payload, http, fault } }) =>
    [payload, http?.original, fault?.original].some((bytes) => bytes != null && text.has(bytes));
}
