/** A frame as a line of a text recording. What is ordinary about it is left out. */

import { isUtf8 } from 'node:buffer';
import { withoutSpace } from '../../protocol/json/edit.ts';
import { type Span, stringText } from '../../protocol/json/read.ts';
import {
  type Channel,
  FIRST_CLIENT,
  type Frame,
  type FrameFault,
  type FramePart,
  type HttpMark,
  type LineEnd,
} from '../../protocol/wire/frame.ts';
import type { BareFrame } from '../../store/read/frames.ts';
import type { ImportedRest } from '../../store/write/import.ts';
import { BadLine, type Members, wellFormed } from './members.ts';

/** By channel the parts that it may have, the ordinary one first. */
const PARTS: Record<Channel, readonly [FramePart, ...FramePart[]]> = {
  stdin: ['line', 'lsp-header', 'lsp-body', 'reserialised'],
  stdout: ['line', 'lsp-header', 'lsp-body', 'reserialised'],
  stderr: ['line', 'lsp-header', 'lsp-body'],
  request: ['body', 'foreign-body'],
  response: ['body', 'foreign-body'],
  sse: ['event', 'block'],
};

const LINE_ENDS: Record<LineEnd, true> = { '\n': true, '\r\n': true, '': true };

const MARKS: Record<HttpMark, true> = {
  undecoded: true,
  'wrong-type': true,
  incomplete: true,
  replayed: true,
};

const STDIO_MEMBERS = [
  'ms',
  'client',
  'channel',
  'unfinished',
  'part',
  'lineEnd',
  'truncated',
  'redacted',
  'fault',
  'original',
];

const HTTP_MEMBERS = [
  'ms',
  'http',
  'client',
  'channel',
  'unfinished',
  'part',
  'truncated',
  'redacted',
  'marks',
  'fault',
  'original',
];

const RULE_ID = /^[a-z0-9-]+$/;

const SHA256 = /^[0-9a-f]{64}$/;

/** The line in pieces. `original` is what the sender had sent, where it was edited or a fault changed it. */
export function* frameLine(frame: BareFrame, ms: string, original: Buffer | null): Generator<string> {
  const { channel, http, payload, client } = frame;
  const exchange = http === null ? '' : `,"http":${http.exchange}`;
  const whose = client === undefined ? '' : `,"client":${client}`;
  yield `{"ms":${ms}${exchange}${whose},"channel":"${channel}"${frame.isUnfinished ? ',"unfinished":true' : formJson(frame)}`;
  yield* payloadJson(channel, payload);
  if (original !== null) {
    const pieces = payloadJson(channel, original);
    // Without the comma before its first member; there always is one.
    yield `,"original":{${pieces.next().value?.slice(1)}`;
    yield* pieces;
    yield '}';
  }
  yield '}\n';
}

function formJson({ channel, part, lineEnd, truncated, size, http, redacted, fault }: BareFrame): string {
  let text = '';
  if (part !== PARTS[channel][0]) text += `,"part":"${part}"`;
  if (http === null && lineEnd !== '\n') text += `,"lineEnd":${JSON.stringify(lineEnd)}`;
  if (truncated) {
    const sha256 = http?.sha256 == null ? '' : `,"sha256":"${http.sha256}"`;
    text += `,"truncated":{"size":${size}${sha256}}`;
  }
  if (redacted !== undefined) {
    const ownSize = truncated ? '' : `"size":${size},`;
    text += `,"redacted":{${ownSize}"rules":${JSON.stringify(redacted)}}`;
  }
  if (fault !== undefined) {
    const { number, rule, action } = fault;
    text += `,"fault":${JSON.stringify({ number, rule, action })}`;
  }
  if (http !== null && http.marks.length > 0) text += `,"marks":${JSON.stringify(http.marks)}`;
  return text;
}

/** Reads a line that has a `channel`. Throws `BadLine`. */
export function readFrame(line: Members, at: number, isStdio: boolean): Frame | ImportedRest {
  const channel = line.oneOf('channel', PARTS);
  if (channel === null) throw new BadLine('expected a string as `channel`, got null');
  const isUnfinished = line.flag('unfinished') === true;
  if (isUnfinished) {
    line.only('ms', ...(isStdio ? [] : ['http']), 'channel', 'unfinished', ...payloadMembers(channel));
  } else line.only(...(isStdio ? STDIO_MEMBERS : HTTP_MEMBERS), ...payloadMembers(channel));
  const exchange = readHttpNumber(line, channel, isStdio);
  const payload = readPayload(channel, line);
  if (isUnfinished) return { channel, at, bytes: payload, exchange };
  const redacted = readRedacted(line.object('redacted'));
  const { size, sha256, isCut } = readTruncated(
    line.object('truncated'),
    redacted.redacted ? 0 : payload.length,
  );
  const common = {
    ...{ channel, at, payload, truncated: isCut, part: readPart(line, channel) },
    ...redacted,
    ...readClient(line),
    size: isCut ? size : (redacted.size ?? payload.length),
  };
  const originalMembers = line.object('original');
  originalMembers?.only(...payloadMembers(channel));
  const original = originalMembers === null ? null : readPayload(channel, originalMembers);
  const fault = readFault(line.object('fault'), original);
  if (exchange === null) {
    if (original !== null && fault === null)
      throw new BadLine('`original` of a line of stdio goes with a `fault`');
    if (sha256 !== null) throw new BadLine('`sha256` is for bodies and events, not for lines of stdio');
    return { ...common, ...fault, lineEnd: line.oneOf('lineEnd', LINE_ENDS) ?? '\n', http: null };
  }
  const edit = fault === null ? original : null;
  return {
    ...common,
    ...fault,
    lineEnd: '',
    http: { exchange, marks: readMarks(line), original: edit, sha256 },
  };
}

/** `original`: what the sender had sent; null where it went on as it was. */
function readFault(fault: Members | null, original: Buffer | null): { fault: FrameFault } | null {
  if (fault === null) return null;
  fault.only('number', 'rule', 'action');
  const number = fault.count('number');
  const [rule, action] = [fault.text('rule'), fault.text('action')];
  if (number === null || rule === null || action === null)
    throw new BadLine('expected `number`, `rule` and `action` in `fault`');
  return { fault: { number, rule, action, original } };
}

function readHttpNumber(line: Members, channel: Channel, isStdio: boolean): number | null {
  const isOfStdio = PARTS[channel][0] === 'line';
  if (isOfStdio !== isStdio) {
    throw new BadLine(`the channel ${channel} cannot be in a session by ${isStdio ? 'stdio' : 'HTTP'}`);
  }
  if (isStdio) return null;
  const exchange = line.count('http');
  if (exchange === null || exchange === 0) {
    throw new BadLine('expected the number of its HTTP exchange, from 1 on, as `http`');
  }
  return exchange;
}

/** The first client is not named. */
function readClient(line: Members): Pick<Frame, 'client'> {
  const client = line.count('client');
  if (client === 0) throw new BadLine('expected the number of its client, from 1 on, as `client`, got 0');
  return client === null || client === FIRST_CLIENT ? {} : { client };
}

function readTruncated(
  truncated: Members | null,
  keptBytes: number,
): { size: number; sha256: string | null; isCut: boolean } {
  if (truncated === null) return { size: keptBytes, sha256: null, isCut: false };
  truncated.only('size', 'sha256');
  const size = truncated.count('size') ?? keptBytes;
  const sha256 = truncated.text('sha256');
  if (size < keptBytes) {
    throw new BadLine(`expected a \`size\` of ${keptBytes} bytes or more, as many as are there, got ${size}`);
  }
  if (sha256 === null || SHA256.test(sha256)) return { size, sha256, isCut: true };
  throw new BadLine('expected 64 hexadecimal digits in lower case as `sha256`');
}

/** What was replaced may have been longer or shorter than what stands there now. */
function readRedacted(redacted: Members | null): { redacted?: readonly string[]; size?: number } {
  if (redacted === null) return {};
  redacted.only('size', 'rules');
  const rules = redacted.texts('rules') ?? [];
  if (rules.length === 0 || !rules.every((rule) => RULE_ID.test(rule)))
    throw new BadLine('expected the ids of rules as `rules` in `redacted`');
  const size = redacted.count('size');
  return size === null ? { redacted: rules } : { redacted: rules, size };
}

function readPart(line: Members, channel: Channel): FramePart {
  const parts = PARTS[channel];
  return (
    line.oneOf('part', Object.fromEntries(parts.map((part) => [part, true])) as Record<FramePart, true>) ??
    parts[0]
  );
}

function readMarks(line: Members): HttpMark[] {
  const marks = line.texts('marks') ?? [];
  for (const mark of marks) {
    if (Object.hasOwn(MARKS, mark)) continue;
    throw new BadLine(
      `expected some of ${Object.keys(MARKS).join(', ')} as \`marks\`, got ${JSON.stringify(mark)}`,
    );
  }
  return marks as HttpMark[];
}

/**
 * The bytes of a frame in a text recording: readable JSON where `JSON.stringify(JSON.parse(bytes))` gives the same bytes,
 * else text, else base64. An event of a stream stands as its fields and data where its bytes can be made of these again.
 */

/** Larger JSON is no reading matter, and costs several copies to compare. */
const READABLE_BYTES = 8 * 1024 * 1024;

/** Escaping may make text six times as long, and a line must not outgrow the longest string there is. */
const TEXT_BYTES = 64 * 1024 * 1024;

/** Large payloads are escaped in slices; a multiple of three, so that base64 has no padding between them. */
const SLICE_BYTES = 3 * 1024 * 1024;

/** What may hold the payload of a frame on this channel. */
function payloadMembers(channel: Channel): readonly string[] {
  return channel === 'sse' ? ['lineEnd', 'sse', ...BYTES_MEMBERS] : BYTES_MEMBERS;
}

const BYTES_MEMBERS = ['message', 'text', 'base64'];

/** The members that hold `payload`, each with a comma before it, in pieces. */
function* payloadJson(channel: Channel, payload: Buffer): Generator<string> {
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
function readPayload(channel: Channel, members: Members): Buffer {
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

/**
 * An event of a stream as its fields: possible where its lines are `event`, `id` and `retry` (each at most once, in any
 * order), then at most one line of data, each with one space after its colon and all with the same line end, and then the
 * empty line. Anything else (comments, several lines of data) stands as it came.
 */

type ReadableEvent = {
  lineEnd: '\n' | '\r\n';
  /** In the order in which they stood. */
  fields: readonly (readonly [name: string, value: string])[];
  /** Null where there is no line of data. */
  data: Buffer | null;
};

const LF = 0x0a;

const CR = 0x0d;

const DATA = Buffer.from('data: ');

const FIELD = /^(event|id|retry): (.*)$/s;

const FIELD_NAMES = new Set(['event', 'id', 'retry']);

/** Null where the block's bytes cannot be made of its fields again. The block must be UTF-8. */
function readableEvent(block: Buffer): ReadableEvent | null {
  const firstEnd = block.indexOf(LF);
  if (firstEnd < 1) return null;
  const lineEnd = block[firstEnd - 1] === CR ? '\r\n' : '\n';
  const fields = new Map<string, string>();
  let data: Buffer | null = null;
  let from = 0;
  for (;;) {
    const lf = block.indexOf(LF, from);
    if (lf === -1) return null;
    const end = lf - (lineEnd.length - 1);
    if (end < from || (lineEnd === '\r\n' && block[end] !== CR)) return null;
    const line = block.subarray(from, end);
    from = lf + 1;
    if (line.includes(CR)) return null;
    if (line.length === 0) return from === block.length ? { lineEnd, fields: [...fields], data } : null;
    if (data !== null) return null;
    if (line.subarray(0, DATA.length).equals(DATA)) {
      data = line.subarray(DATA.length);
      continue;
    }
    const [, name, value] = FIELD.exec(line.toString()) ?? [];
    if (name === undefined || value === undefined || fields.has(name)) return null;
    fields.set(name, value);
  }
}

/** The bytes of the event. Throws `BadLine` where the fields or the data cannot stand in an event. */
function encodeEvent({ lineEnd, fields, data }: ReadableEvent): Buffer {
  const lines = fields.map(([name, value]) => {
    if (!FIELD_NAMES.has(name)) {
      throw new BadLine(`expected \`event\`, \`id\` or \`retry\` in \`sse\`, got ${JSON.stringify(name)}`);
    }
    if (/[\r\n]/.test(value)) throw new BadLine(`expected one line as \`${name}\` in \`sse\`, got several`);
    return `${name}: ${value}${lineEnd}`;
  });
  const head = Buffer.from(lines.join(''));
  if (data === null) return Buffer.concat([head, Buffer.from(lineEnd)]);
  if (data.includes(LF) || data.includes(CR)) {
    throw new BadLine(
      'expected one line of data beside `sse`, got several; without `sse`, `text` is the whole block as it is on the wire',
    );
  }
  return Buffer.concat([head, DATA, data, Buffer.from(lineEnd + lineEnd)]);
}
