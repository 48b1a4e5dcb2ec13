/**
 * The bytes of a frame in a text recording: readable JSON where `JSON.stringify(JSON.parse(bytes))` gives the same bytes,
 * else text, else base64. An event of a stream stands as its fields and data where its bytes can be made of these again.
 */
import { isUtf8 } from 'node:buffer';
import type { Channel } from '../protocol/frame.ts';
import { type Span, stringText } from '../protocol/json.ts';
import { withoutSpace } from '../protocol/json-edit.ts';
import { BadLine, type Members, wellFormed } from './members.ts';
import { encodeEvent, readableEvent } from './ndjson-event.ts';

/** Larger JSON is no reading matter, and costs several copies to compare. */
const READABLE_BYTES = 8 * 1024 * 1024;
/** Escaping may make text six times as long, and a line must not outgrow the longest string there is. */
const TEXT_BYTES = 64 * 1024 * 1024;
/** Large payloads are escaped in slices; a multiple of three, so that base64 has no padding between them. */
const SLICE_BYTES = 3 * 1024 * 1024;

/** What may hold the payload of a frame on this channel. */
export function payloadMembers(channel: Channel): readonly string[] {
  return channel === 'sse' ? ['lineEnd', 'sse', ...BYTES_MEMBERS] : BYTES_MEMBERS;
}

const BYTES_MEMBERS = ['message', 'text', 'base64'];

/** The members that hold `payload`, each with a comma before it, in pieces. */
export function* payloadJson(channel: Channel, payload: Buffer): Generator<string> {
  const isReadable = payload.length <= READABLE_BYTES && isUtf8(payload);
  if (channel !== 'sse') {
    yield* bytesJson(payload, isReadable ? payload.toString() : null, true);
    return;
  }
  const event = isReadable ? readableEvent(payload) : null;
  if (event === null) {
    yield* bytesJson(payload, isReadable ? payload.toString() : null, false);
    return;
  }
  if (event.lineEnd !== '\n') yield `,"lineEnd":${JSON.stringify(event.lineEnd)}`;
  const fields = event.fields.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
  yield `,"sse":{${fields.join(',')}}`;
  if (event.data !== null) yield* bytesJson(event.data, event.data.toString(), true);
}

/** `text` is null where the bytes are too many to be one string, or no UTF-8. */
function* bytesJson(bytes: Buffer, text: string | null, mayBeJson: boolean): Generator<string> {
  if (text !== null) {
    yield mayBeJson && isPlainJson(text) ? `,"message":${text}` : `,"text":${JSON.stringify(text)}`;
    return;
  }
  if (bytes.length > TEXT_BYTES || !isUtf8(bytes)) {
    yield ',"base64":"';
    for (let at = 0; at < bytes.length; at += SLICE_BYTES)
      yield bytes.toString('base64', at, at + SLICE_BYTES);
    yield '"';
    return;
  }
  yield ',"text":"';
  for (let at = 0; at < bytes.length; ) {
    const end = characterBoundary(bytes, at + SLICE_BYTES);
    yield JSON.stringify(bytes.toString('utf8', at, end)).slice(1, -1);
    at = end;
  }
  yield '"';
}

/** Whether a reader that parses the text and writes it again has the same text. */
function isPlainJson(text: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === text;
  } catch {
    // No JSON, or nested so deep that JSON.stringify runs out of stack.
    return false;
  }
}

/** The nearest position at or before `at` where no UTF-8 character is cut. */
function characterBoundary(bytes: Buffer, at: number): number {
  if (at >= bytes.length) return bytes.length;
  let end = at;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

/** The bytes that these members stand for. */
export function readPayload(channel: Channel, members: Members): Buffer {
  if (channel !== 'sse') return requiredBytes(members);
  const isEvent = members.has('sse') || members.has('message');
  if (!isEvent) {
    if (members.has('lineEnd')) throw new BadLine('`lineEnd` of an event goes with `sse` or `message`');
    return requiredBytes(members);
  }
  const lineEnd = members.oneOf('lineEnd', { '\n': 1, '\r\n': 1 }) ?? '\n';
  const sse = members.object('sse');
  const fields = (sse?.names() ?? []).map((name): [string, string] => [name, sse?.text(name) ?? '']);
  return encodeEvent({ lineEnd, fields, data: readBytes(members) });
}

function requiredBytes(members: Members): Buffer {
  const bytes = readBytes(members);
  if (bytes !== null) return bytes;
  throw new BadLine(`expected \`message\`, \`text\` or \`base64\` in ${members.where}, got none of them`);
}

function readBytes(members: Members): Buffer | null {
  const { bytes } = members;
  const message = members.span('message');
  const text = members.span('text');
  const base64 = members.span('base64');
  const given = [message, text, base64].filter((span) => span !== undefined);
  if (given.length > 1) {
    throw new BadLine(
      `expected one of \`message\`, \`text\` and \`base64\` in ${members.where}, got ${given.length} of them`,
    );
  }
  if (message !== undefined) return withoutSpace(bytes.subarray(message.start, message.end));
  if (text !== undefined) return textBytes(bytes, text);
  return base64 === undefined ? null : base64Bytes(bytes, base64);
}

const BACKSLASH = 0x5c;

function textBytes(bytes: Buffer, span: Span): Buffer {
  if (span.type !== 'string') throw new BadLine('expected a string as `text`');
  const raw = bytes.subarray(span.start + 1, span.end - 1);
  if (!raw.includes(BACKSLASH)) return raw;
  return Buffer.from(wellFormed(stringText(bytes, span), 'text'));
}

function base64Bytes(bytes: Buffer, span: Span): Buffer {
  const text = span.type === 'string' ? bytes.toString('latin1', span.start + 1, span.end - 1) : '*';
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const digits = text.length - padding;
  const strange = text.search(/[^A-Za-z0-9+/]/);
  const isWhole = text.length % 4 === 0 && (strange === -1 || strange === digits);
  if (isWhole) return Buffer.from(text, 'base64');
  throw new BadLine('expected base64 with its padding as `base64`, got something else');
}
