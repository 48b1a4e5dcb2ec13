/** What `--json` prints: one object a line, its shape a promise to machines. */
import { isUtf8 } from 'node:buffer';
import { directionOf } from '../protocol/frame.ts';
import { type MessageRow, type SessionRow, type StoredFrame, stateOf } from '../store/reader.ts';
import { formatIsoTime } from './figures.ts';

/** One session of `list --json`. */
export function sessionLine(session: SessionRow): string {
  const state = stateOf(session);
  return JSON.stringify({
    session: session.id,
    name: session.name,
    basis: session.basis,
    transport: session.transport,
    startedAt: formatIsoTime(session.startedAt),
    endedAt: session.endedAt === null ? null : formatIsoTime(session.endedAt),
    target: session.target,
    client: peer(session.clientName, session.clientVersion),
    server: peer(session.serverName, session.serverVersion),
    protocolVersion: session.protocolVersion,
    frames: session.frames,
    dropped: session.dropped,
    exchanges: session.exchanges,
    errors: session.errors,
    unanswered: session.unanswered,
    exitCode: session.exitCode,
    signal: session.signal,
    endReason: state === 'open' ? null : state,
  });
}

function peer(name: string | null, version: string | null): { name: string; version: string | null } | null {
  return name === null ? null : { name, version };
}

/** A payload is escaped in slices of this many bytes: the whole line may exceed the longest string there is. */
const SLICE_BYTES = 8 * 1024 * 1024;

/** One frame of `show --json`, in pieces that together are one line. */
export function* frameLine(sessionId: string, frame: StoredFrame): Generator<string> {
  const head = {
    session: sessionId,
    seq: frame.seq,
    at: formatIsoTime(frame.at),
    direction: directionOf(frame.channel),
    channel: frame.channel,
    size: frame.size,
  };
  const tail = {
    edited: false,
    redacted: false,
    http: null,
    sse: null,
    messages: frame.messages.map(messageJson),
  };
  yield `${JSON.stringify(head).slice(0, -1)},`;
  yield* payloadJson(frame.payload);
  yield `,${JSON.stringify(tail).slice(1)}\n`;
}

function* payloadJson(payload: Buffer): Generator<string> {
  if (!isUtf8(payload)) {
    yield '"base64":"';
    // A multiple of three bytes, so that the pieces of base64 join without padding between them.
    const step = SLICE_BYTES - (SLICE_BYTES % 3);
    for (let at = 0; at < payload.length; at += step) yield payload.toString('base64', at, at + step);
    yield '"';
    return;
  }
  yield '"text":"';
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

function messageJson(message: MessageRow) {
  const isReply = message.relation === 'reply';
  return {
    kind: message.kind,
    id: message.id,
    idType: message.idType,
    method: message.method,
    replyTo: isReply ? message.toSeq : null,
    latencyMs: message.latency === null ? null : message.latency / 1000,
    problem: message.problem,
  };
}
