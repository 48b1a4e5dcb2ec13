/** What `--json` prints: one object a line, its shape a promise to machines. */

import { isUtf8 } from 'node:buffer';
import { formatIsoTime } from '../../protocol/text.ts';
import { directionOf } from '../../protocol/wire/frame.ts';
import { readSse } from '../../protocol/wire/sse.ts';
import type { MessageRow, StoredFrame } from '../../store/read/frames.ts';
import type { HttpExchangeRow, HttpSummary } from '../../store/read/http.ts';
import { type SessionRow, stateOf } from '../../store/read/sessions.ts';
import type { ChangedTools } from '../verdict/earlier.ts';
import type { Fate } from '../verdict/fate.ts';
import type { RepeatedCall } from '../verdict/repeats.ts';
import { fateJson } from './fate.ts';

/** One session of `list --json`. `changed`: what its server lists otherwise than in its session before. */
export function sessionLine(session: SessionRow, changed: ChangedTools | undefined): string {
  return JSON.stringify({
    ...sessionFacts(session),
    ...(changed === undefined ? {} : { changedTools: changed }),
  });
}

/** The same, as a value. */
export function sessionFacts(session: SessionRow) {
  const state = stateOf(session);
  return {
    session: session.id,
    name: session.name,
    basis: session.basis,
    transport: session.transport,
    startedAt: formatIsoTime(session.startedAt),
    endedAt: timeOrNull(session.endedAt),
    target: session.target,
    client: peer(session.clientName, session.clientVersion),
    server: peer(session.serverName, session.serverVersion),
    protocolVersion: session.protocolVersion,
    capture: session.capture,
    ...(session.metaFor === null ? {} : { metaFor: JSON.parse(session.metaFor) as string[] }),
    frames: session.frames,
    dropped: session.dropped,
    ...(session.sample === null ? {} : { sample: session.sample }),
    exchanges: session.exchanges,
    errors: session.errors,
    unanswered: session.unanswered,
    exitCode: session.exitCode,
    signal: session.signal,
    endReason: state === 'open' ? null : state,
    run: session.run,
  };
}

function peer(name: string | null, version: string | null): { name: string; version: string | null } | null {
  return name === null ? null : { name, version };
}

/** A payload is escaped in slices of this many bytes: the whole line may exceed the longest string there is. */
const SLICE_BYTES = 8 * 1024 * 1024;

/** What a frame is shown with that its own row does not say. */
type FrameDetails = {
  summaryOf: (exchange: number) => HttpSummary | undefined;
  /** What the sender had sent in place of an edited frame, by its `seq`. */
  originalOf: (seq: number) => Buffer | null;
  /** What became of a request that its asker has no answer to, by its row. */
  fateOf?: (row: MessageRow) => Fate | null;
  /** The messages of a frame that call again what may still run, by their number; it is called with each frame. */
  repeatsOf?: (frame: StoredFrame) => ReadonlyMap<number, RepeatedCall>;
};

/** One frame of `show --json`, in pieces that together are one line. */
export function* frameJson(sessionId: string, frame: StoredFrame, details: FrameDetails): Generator<string> {
  const head = {
    session: sessionId,
    seq: frame.seq,
    at: formatIsoTime(frame.at),
    direction: directionOf(frame.channel),
    channel: frame.channel,
    size: frame.size,
  };
  yield `${JSON.stringify(head).slice(0, -1)},`;
  yield* bytesJson('text', 'base64', frame.payload);
  const { fault } = frame;
  yield `,"edited":${frame.isEdited && fault === undefined}`;
  if (fault !== undefined) {
    const { number, rule, action } = fault;
    yield `,"fault":${JSON.stringify({ number, rule, action })}`;
  }
  const original = frame.isEdited ? details.originalOf(frame.seq) : null;
  if (original !== null) {
    yield ',';
    yield* bytesJson('original', 'originalBase64', original);
  }
  const redacted =
    frame.redacted === undefined ? 'false' : `true,"redactedBy":${JSON.stringify(frame.redacted)}`;
  yield `,"redacted":${redacted},"http":${JSON.stringify(httpJson(frame, details))},"sse":`;
  yield* sseJson(frame);
  const repeats = details.repeatsOf?.(frame);
  const messages = frame.messages.map((row) =>
    messageJson(row, details.fateOf?.(row) ?? null, repeats?.get(row.n)),
  );
  yield `${formJson(frame)},"messages":${JSON.stringify(messages)}}\n`;
}

function httpJson({ http }: StoredFrame, { summaryOf }: FrameDetails) {
  if (http === null) return null;
  const none = { method: null, path: null, status: null, closedBy: null, error: null };
  return { exchange: http.exchange, ...(summaryOf(http.exchange) ?? none) };
}

/** The fields of an event; null where the frame is none, or is still in its content coding. */
function* sseJson({ channel, payload, http }: StoredFrame): Generator<string> {
  if (channel !== 'sse' || http?.marks.includes('undecoded')) {
    yield 'null';
    return;
  }
  const { event, id, retry, data } = readSse(payload);
  yield `${JSON.stringify({ event, id, retry }).slice(0, -1)},`;
  if (data === null) yield '"data":null';
  else yield* bytesJson('data', 'dataBase64', data);
  yield '}';
}

/** What is not ordinary about how it was kept. */
function formJson({ part, http, truncated, isUnfinished }: StoredFrame): string {
  if (part === 'reserialised' && !truncated) return ',"reserialised":true';
  if (!truncated) return '';
  if (isUnfinished) return ',"unfinished":true';
  return `,"truncated":true${http === null ? '' : `,"sha256":${JSON.stringify(http.sha256)}`}`;
}

/** One HTTP exchange of `show --json --http`. */
export function httpExchangeJson(sessionId: string, httpExchange: HttpExchangeRow): string {
  const { informations, at, requestEndedAt, responseAt, endedAt } = httpExchange;
  return JSON.stringify({
    session: sessionId,
    http: httpExchange.number,
    method: httpExchange.method,
    path: httpExchange.path,
    httpVersion: httpExchange.version,
    client: httpExchange.client,
    status: httpExchange.status,
    statusText: httpExchange.statusText,
    requestHeaders: httpExchange.requestHeaders,
    requestTrailers: httpExchange.requestTrailers,
    requestBytes: httpExchange.requestBytes,
    informations: informations.map((one) => ({ ...one, at: formatIsoTime(one.at) })),
    responseHeaders: httpExchange.responseHeaders,
    responseTrailers: httpExchange.responseTrailers,
    responseBytes: httpExchange.responseBytes,
    at: formatIsoTime(at),
    requestEndedAt: timeOrNull(requestEndedAt),
    responseAt: timeOrNull(responseAt),
    endedAt: timeOrNull(endedAt),
    closedBy: httpExchange.closedBy,
    error: httpExchange.error,
    edits: httpExchange.edits,
  });
}

function timeOrNull(at: number | null): string | null {
  return at === null ? null : formatIsoTime(at);
}

/** A member with the bytes as text, or under its other name as base64 where they are no UTF-8. */
function* bytesJson(textName: string, base64Name: string, payload: Buffer): Generator<string> {
  if (!isUtf8(payload)) {
    yield `"${base64Name}":"`;
    // A multiple of three bytes, so that the pieces of base64 join without padding between them.
    const step = SLICE_BYTES - (SLICE_BYTES % 3);
    for (let at = 0; at < payload.length; at += step) yield payload.toString('base64', at, at + step);
    yield '"';
    return;
  }
  yield `"${textName}":"`;
  for (let at = 0; at < payload.length; ) {
    const end = characterBoundary(payload, at + SLICE_BYTES);
    yield JSON.stringify(payload.toString('utf8', at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

/** The nearest position at or before `at` where no UTF-8 character is cut. */
function characterBoundary(bytes: Buffer, at: number): number {
  if (at >= bytes.length) return bytes.length;
  let end = at;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

function messageJson(message: MessageRow, fate: Fate | null, repeat: RepeatedCall | undefined) {
  const isReply = message.relation === 'reply';
  return {
    kind: message.kind,
    id: message.id,
    idType: message.idType,
    method: message.method,
    replyTo: isReply ? message.toSeq : null,
    latencyMs: message.latency === null ? null : message.latency / 1000,
    problem: message.problem,
    ...(fate === null ? {} : { fate: fateJson(fate) }),
    ...(repeat === undefined ? {} : { repeats: { seq: repeat.first.seq, afterMs: repeat.gap / 1000 } }),
  };
}
