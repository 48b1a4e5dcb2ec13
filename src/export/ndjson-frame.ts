/** A line of a text recording that is a frame. What is ordinary about it goes without saying. */
import type { Channel, Frame, FramePart, HttpMark, LineEnd } from '../protocol/frame.ts';
import type { BareFrame } from '../store/reader.ts';
import type { ImportedRest } from '../store/session-import.ts';
import { BadLine, type Members } from './members.ts';
import { payloadJson, payloadMembers, readPayload } from './ndjson-payload.ts';

/** By channel the parts that it may have, the ordinary one first. */
const PARTS: Record<Channel, readonly [FramePart, ...FramePart[]]> = {
  stdin: ['line', 'lsp-header', 'lsp-body'],
  stdout: ['line', 'lsp-header', 'lsp-body'],
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
const STDIO_MEMBERS = ['ms', 'channel', 'unfinished', 'part', 'lineEnd', 'truncated', 'redacted'];
const HTTP_MEMBERS = [
  'ms',
  'http',
  'channel',
  'unfinished',
  'part',
  'truncated',
  'redacted',
  'marks',
  'original',
];
const RULE_ID = /^[a-z0-9-]+$/;
const SHA256 = /^[0-9a-f]{64}$/;

/** The line in pieces. `original` is what the sender had sent, where it was edited. */
export function* frameLine(frame: BareFrame, ms: string, original: Buffer | null): Generator<string> {
  const { channel, http, payload } = frame;
  const exchange = http === null ? '' : `,"http":${http.exchange}`;
  yield `{"ms":${ms}${exchange},"channel":"${channel}"${frame.isUnfinished ? ',"unfinished":true' : formJson(frame)}`;
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

function formJson({ channel, part, lineEnd, truncated, size, http, redacted }: BareFrame): string {
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
  const exchange = readExchangeNumber(line, channel, isStdio);
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
    size: isCut ? size : (redacted.size ?? payload.length),
  };
  if (exchange === null) {
    if (sha256 !== null) throw new BadLine('`sha256` is for bodies and events, not for lines of stdio');
    return { ...common, lineEnd: line.oneOf('lineEnd', LINE_ENDS) ?? '\n', http: null };
  }
  const originalMembers = line.object('original');
  originalMembers?.only(...payloadMembers(channel));
  const original = originalMembers === null ? null : readPayload(channel, originalMembers);
  return { ...common, lineEnd: '', http: { exchange, marks: readMarks(line), original, sha256 } };
}

function readExchangeNumber(line: Members, channel: Channel, isStdio: boolean): number | null {
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
