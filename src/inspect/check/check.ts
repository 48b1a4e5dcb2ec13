/**
 * The protocol check: a session's frames and HTTP exchanges in, findings out. It does no I/O; `schemas` may. What a message belongs to is found by the same code that indexes recordings.
 */

import { BoundedMap } from '../../protocol/bounded.ts';
import { joinedFields } from '../../protocol/http/headers.ts';
import { isObject } from '../../protocol/json/read.ts';
import {
  type Conversation,
  createConversation,
  type IndexedMessage,
  jsonOf,
  messagesOf,
} from '../../protocol/message/conversation.ts';
import { type HttpClosing, httpClosing } from '../../protocol/message/correlate.ts';
import { withoutByteOrderMark } from '../../protocol/text.ts';
import { directionOf, type Frame, sentBytes } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import type { HttpExchangeRow } from '../../store/read/http.ts';
import { type SessionRow, sessionDetails, stateOf } from '../../store/read/sessions.ts';
import type { Schemas } from '../schema/schemas.ts';
import { earlierTools } from '../verdict/earlier.ts';
import { prepareFates } from '../verdict/fate.ts';
import { mayMissFrames } from '../verdict/passages.ts';
import { fateText } from '../view/fate.ts';
import { eachHappening } from '../view/timeline.ts';
import { inspectCodes, inspectMeta } from './answers.ts';
import { inspectProviders } from './beyond/providers.ts';
import { inspectSkills } from './beyond/skills.ts';
import {
  type AnsweredRequest,
  type CheckedFrame,
  type CheckedHttpExchange,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
} from './checked-message.ts';
import { inspectContent } from './content.ts';
import { inspectElicitation } from './elicitation.ts';
import { inspectEnvelope } from './envelope.ts';
import { inspectCursors, inspectLogLevel, inspectPrompts, inspectUpdates } from './given.ts';
import { inspectEndpoint, inspectHttp } from './http.ts';
import { inspectLifecycle } from './lifecycle.ts';
import { inspectCapabilities, inspectMethods } from './methods.ts';
import { inspectCaching } from './modern/caching.ts';
import { inspectDeprecated } from './modern/deprecated.ts';
import { inspectMirroredHeaders } from './modern/headers.ts';
import { inspectToolOrder } from './modern/order.ts';
import { inspectRounds, inspectSubscriptions, inspectTasks } from './modern/patterns.ts';
import { inspectRefetches } from './modern/refetches.ts';
import { inspectCancellation, inspectIds, inspectProgress } from './open-requests.ts';
import { applies, type Finding, type Report, RULES, type RuleId } from './rules.ts';
import { inspectShapes } from './shapes.ts';
import { inspectTools } from './tools.ts';
import { inspectDefinitions } from './verdict/definitions.ts';
import { inspectRepeats } from './verdict/repeats.ts';

export type Check = {
  /** Takes the next frame; returns what is found with it. */
  frame(frame: Frame, seq: number): Finding[];
  /** An HTTP exchange ended, after its last frame. `how` as the index has it, null where messages alone end it. */
  httpExchange(httpExchange: CheckedHttpExchange, how: HttpClosing | null): Finding[];
  /** The session is over: returns what only its end shows. */
  end(): Finding[];
};

/** Larger and deeper payloads are not looked into: their envelopes are checked, their values are not. */
const MAX_VALUE_BYTES = 16 * 1024 * 1024;

const MAX_DEPTH = 500;

export function createCheck(session: CheckedSession, schemas: Schemas): Check {
  const conversation = createConversation();
  let findings: Finding[] = [];
  const report: Report = (rule, side, { place, revision, http }, expected, seen) => {
    if (applies(RULES[rule], revision))
      findings.push({ rule, side, place, http: http ?? null, expected, seen });
  };
  const inspectors: readonly Inspector[] = [
    inspectEnvelope(report),
    inspectIds(report, session),
    inspectLifecycle(report, session),
    inspectMethods(report),
    inspectShapes(report),
    inspectCapabilities(report),
    inspectProgress(report),
    inspectCancellation(report),
    inspectCodes(report),
    inspectMeta(report),
    inspectTools(report, schemas),
    inspectProviders(report),
    inspectRepeats(report, session),
    inspectDefinitions(report, session),
    inspectContent(report),
    inspectElicitation(report, schemas),
    inspectPrompts(report),
    inspectCursors(report),
    inspectLogLevel(report, session),
    inspectUpdates(report, session),
    inspectHttp(report, session),
    inspectMirroredHeaders(report, session),
    inspectEndpoint(report, session),
    inspectRounds(report),
    inspectSubscriptions(report),
    inspectTasks(report),
    inspectSkills(report),
    inspectCaching(report),
    inspectRefetches(report, session),
    inspectToolOrder(report),
    inspectDeprecated(report, session),
  ];
  const reader = createReader(conversation);
  /** HTTP exchanges that are open and had a fault put into them. */
  const faulted = new Set<number>();

  function take(): Finding[] {
    const taken = findings;
    findings = [];
    return taken;
  }

  return {
    frame(frame, seq) {
      const { channel, http } = frame;
      if (frame.fault !== undefined && http !== null) faulted.add(http.exchange);
      const seen = {
        place: { seq, n: 0 },
        channel,
        payload: sentBytes(frame),
        http: http?.exchange ?? null,
        copied: copiedIn(frame),
      };
      for (const inspector of inspectors) inspector.frame?.(seen);
      for (const seen of reader.read(frame, seq)) for (const { message } of inspectors) message?.(seen);
      return take();
    },
    httpExchange(httpExchange, how) {
      const closed = how === null ? [] : conversation.close(httpExchange.number, how);
      const places = closed.map(({ place }) => place);
      for (const inspector of inspectors) inspector.httpExchange?.(httpExchange, places);
      const found = take();
      // Its status and its end may be the fault's.
      return faulted.delete(httpExchange.number) ? [] : found;
    },
    end() {
      for (const { end } of inspectors) end?.();
      return take();
    },
  };
}

function copiedIn(frame: Frame): CheckedFrame['copied'] {
  const side = directionOf(frame.channel) === 'client-to-server' ? 'client' : 'server';
  if (frame.fault?.original?.length !== 0) return { side, messages: [] };
  const { fault: _, ...asItWent } = frame;
  return { side, messages: messagesOf(asItWent) };
}

/** Reads frames as the messages that inspectors look at. */
function createReader(conversation: Conversation): { read(frame: Frame, seq: number): CheckedMessage[] } {
  const asked = new BoundedMap<string, AnsweredRequest>(MAX_REMEMBERED);
  /** Of the handshake, or the last one that a message named. */
  let spoken: string | null = null;

  function read(frame: Frame, seq: number): CheckedMessage[] {
    const indexed = conversation.add(frame, seq);
    // What was sent again was checked when it came first.
    if (indexed.length === 0 || frame.http?.marks.includes('replayed')) return [];
    const values = valuesOf(frame);
    const isBatch = values !== null && Array.isArray(values);
    return indexed.map((message) => seenOf(frame, message, isBatch ? values[message.n] : values, isBatch));
  }

  function seenOf(
    frame: Frame,
    { seq, n, message, correlation }: IndexedMessage,
    parsed: unknown,
    isBatch: boolean,
  ): CheckedMessage {
    const value = isObject(parsed) ? parsed : null;
    const params = isObject(value?.['params']) ? value['params'] : null;
    const target =
      correlation.to === null ? null : (asked.get(`${correlation.to.seq}.${correlation.to.n}`) ?? null);
    const side = directionOf(frame.channel) === 'client-to-server' ? 'client' : 'server';
    const { details } = message;
    if (message.kind === 'request' && details.protocolVersion !== null) spoken = details.protocolVersion;
    if (message.kind === 'result' && target?.method === 'initialize')
      spoken = details.protocolVersion ?? spoken;
    const revision = details.isModern ? details.protocolVersion : (target?.revision ?? spoken);
    const place = { seq, n };
    if (message.kind === 'request')
      asked.set(`${seq}.${n}`, {
        place,
        at: frame.at,
        side,
        message,
        method: message.canonical,
        params,
        revision,
      });
    if (correlation.relation === 'reply' && correlation.to !== null && !details.beginsTask)
      asked.delete(`${correlation.to.seq}.${correlation.to.n}`);
    const http = frame.http?.exchange ?? null;
    const isAnswer = correlation.relation === 'reply' || correlation.relation === 'cancel';
    return {
      place,
      at: frame.at,
      size: frame.size,
      side,
      channel: frame.channel,
      message,
      correlation,
      value,
      params,
      revision,
      asked: isAnswer ? target : null,
      http,
      isBatch,
      fault: frame.fault ?? null,
    };
  }

  return { read };
}

function valuesOf(frame: Frame): unknown {
  const json = jsonOf(frame);
  if (json.length > MAX_VALUE_BYTES || frame.truncated || isDeep(json)) return null;
  try {
    return JSON.parse(withoutByteOrderMark(json.toString('utf8')));
  } catch {
    return null;
  }
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];

/** Whether brackets of one kind or another stand within one another more than `MAX_DEPTH` times. */
function isDeep(json: Uint8Array): boolean {
  let depth = 0;
  let isText = false;
  for (let i = 0; i < json.length && json.length > 2 * MAX_DEPTH; i += 1) {
    const byte = json[i] ?? 0;
    if (isText) {
      if (byte === BACKSLASH) i += 1;
      else if (byte === QUOTE) isText = false;
    } else if (byte === QUOTE) isText = true;
    // `{` and `[`, `}` and `]` differ in one bit.
    else if ((byte | 0x20) === 0x7b) {
      depth += 1;
      if (depth > MAX_DEPTH) return true;
    } else if ((byte | 0x20) === 0x7d) depth -= 1;
  }
  return false;
}

/** Checks a stored session. */

/** The findings of a session in its order; in constant memory, however long it is. `onFrame` is called with each frame's number. */
export function* checkSession(
  store: Store,
  session: SessionRow,
  schemas: Schemas,
  onFrame: (seq: number) => void = () => {},
): Generator<Finding> {
  for (const step of checkingSession(store, session, schemas)) {
    if (typeof step === 'number') onFrame(step);
    else yield step;
  }
}

/** The same step by step: what is found, and the number of each frame that is done. */
export function* checkingSession(
  store: Store,
  session: SessionRow,
  schemas: Schemas,
): Generator<Finding | number> {
  const { basis } = session;
  const transport = session.transport === 'stdio' ? 'stdio' : 'http';
  const facts = {
    transport,
    basis,
    isWhole: isWhole(session),
    mayMissFrames: mayMissFrames(session),
    earlier: earlierTools(store, session),
    isForeign: session.importedFrom !== null,
    lingeredMs: lingeredOf(store, session),
  } as const;
  const checks = createClientChecks(facts, schemas);
  const sure = session.metaFor === null ? (all: Finding[]) => all : withoutDoubt;
  for (const happening of eachHappening(store, session)) {
    if (happening.type === 'frame') {
      yield* sure(checks.of(happening.frame).frame(happening.frame, happening.frame.seq));
      yield happening.frame.seq;
    } else if (happening.type === 'end') {
      const { httpExchange } = happening;
      const check = checks.ofExchange(httpExchange.number);
      yield* sure(check.httpExchange(checkedExchange(httpExchange), httpClosing(httpExchange)));
    }
  }
  for (const check of checks.all()) yield* withFates(store, session, sure(check.end()));
}

/** Rules of which a message may seem to be against, only because another one has no payload that could be read. */
const OF_OTHER_MESSAGES: ReadonlySet<RuleId> = new Set<RuleId>([
  'answer-unknown',
  'initialize-missing',
  'initialized-missing',
  'initialized-early',
  'before-answer',
  'before-initialized',
  'status-accepted',
  'session-header',
  'version-header',
  'endpoint-first',
  'capability-server',
  'capability-client',
  'capability-notification',
  'progress-unknown',
  'cancel-unknown',
  'cancel-foreign',
  'tool-unknown',
  'definition-changed',
  'definition-loosened',
  'cursor-unknown',
  'log-below',
  'log-unasked',
  'update-unasked',
  'round-unknown',
  'subscription-first',
  'subscription-unknown',
  'subscription-type',
  'task-unknown',
  'skill-undeclared',
]);

function withoutDoubt(findings: Finding[]): Finding[] {
  return findings.filter(({ rule }) => !OF_OTHER_MESSAGES.has(rule));
}

/** A request without an answer, with what became of it. */
function* withFates(store: Store, session: SessionRow, findings: readonly Finding[]): Generator<Finding> {
  const fateOf = prepareFates(store, session);
  for (const finding of findings) {
    const { rule, place, seen } = finding;
    const fate = rule === 'unanswered' && place !== null ? fateOf({ ...place, ...REQUEST }) : null;
    yield fate === null ? finding : { ...finding, seen: `${seen}: ${fateText(fate)}` };
  }
}

const REQUEST = { kind: 'request', method: null, relation: null, outcome: null } as const;

/** Each client of a session is held to the rules for itself: each has its own handshake, its own ids, its own server. */
function createClientChecks(facts: CheckedSession, schemas: Schemas) {
  const first = createCheck(facts, schemas);
  const others = new Map<number, Check>();
  /** The clients of open HTTP exchanges, but for the first one's. */
  const clientOf = new Map<number, number>();

  /** When the session's own client had gone is told of the first one. */
  function checkFor(client: number | undefined): Check {
    if (client === undefined) return first;
    const check = others.get(client) ?? createCheck({ ...facts, lingeredMs: null }, schemas);
    others.set(client, check);
    return check;
  }

  return {
    of({ client, http }: Frame): Check {
      if (client !== undefined && http !== null) clientOf.set(http.exchange, client);
      return checkFor(client);
    },
    ofExchange(number: number): Check {
      const client = clientOf.get(number);
      clientOf.delete(number);
      return checkFor(client);
    },
    all: () => [first, ...others.values()],
  };
}

function lingeredOf(store: Store, { number, transport, endedAt }: SessionRow): number | null {
  const { clientClosedAt } = sessionDetails(store, number);
  if (transport !== 'stdio' || clientClosedAt === null || endedAt === null) return null;
  return (endedAt - clientClosedAt) / 1000;
}

/** Whether what is missing did not come, rather than was not recorded. */
export function isWhole(session: SessionRow): boolean {
  const state = stateOf(session);
  const isEnded = state !== 'open' && state !== 'cut-off' && state !== 'unknown';
  return isEnded && session.dropped === 0 && session.metaFor === null;
}

function checkedExchange(httpExchange: HttpExchangeRow): CheckedHttpExchange {
  const { number, method, status, responseBytes, requestHeaders, responseHeaders } = httpExchange;
  return {
    number,
    method,
    status,
    responseBytes,
    requestHeaders: joinedFields(requestHeaders),
    responseHeaders: joinedFields(responseHeaders ?? []),
  };
}
