import type { HttpBasis, HttpEndReason, HttpTransport } from '../../protocol/http/sessions.ts';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import {
  type Channel,
  FIRST_CLIENT,
  type Frame,
  type FramePart,
  type HttpMark,
  type LineEnd,
  type StdioChannel,
} from '../../protocol/wire/frame.ts';

/** Larger payloads are stored in parts, so that no copy of a whole large frame is ever made inside SQLite. */
export const PART_BYTES = 1024 * 1024;

/** What was forwarded but could not be kept: `frames` lines, `bytes` bytes. */
export type Loss = { frames: number; bytes: number };

/** Chunks of one channel that were dropped on their way here. */
export type StdioGap = { channel: StdioChannel; loss: Loss; endsInsideLine: boolean };

/** What the row of a session says of its redaction; null: there was none. `key` tells one store's placeholders from another's. */
export type SessionRedaction = RedactionProfile & { key: string };

/** `sdk-transport`: one transport of an SDK, whatever it spoke; its messages stand in the channels of stdio. */
export type Basis = 'stdio-process' | 'sdk-transport' | HttpBasis;

export type Transport = 'stdio' | HttpTransport;

/**
 * What tells the client run that a session belongs to. `process`: the process that started its server, `peer`: the one at the
 * other end of its HTTP connection, both by `processKey`; `label`: its user said so; `trace`: a trace that goes on in another session.
 */
export type RunEvidence = { kind: 'process' | 'label' | 'trace' | 'peer'; key: string };

/** Where and how a session began. `at` in microseconds since the Unix epoch. */
export type SessionStart = {
  name: string | null;
  labels: readonly (readonly [key: string, value: string])[];
  basis: Basis;
  transport: Transport;
  /** The wrapped command as one line, or the URL of the HTTP server. */
  target: string;
  /** Null for HTTP. */
  command: readonly string[] | null;
  cwd: string | null;
  at: number;
  host: string;
  pid: number;
  processStarted: string | null;
  clientPid: number | null;
  clientProgram: string | null;
  /** When that process started, in the platform's own words. */
  clientStarted?: string | null;
  /** Of a session that was recorded elsewhere: the process that tells its run. */
  run?: RunEvidence | null;
  tapedeck: string;
  /** Of a session that was recorded elsewhere: the share of such sessions that are kept; null or missing: all. */
  sample?: number | null;
  /** With which rules it is redacted (redaction.ts); null or missing: with none. */
  redaction?: string | null;
};

/** `stopped`: tapedeck was, while the session was open. */
export type EndReason =
  | 'client-closed'
  | 'server-exited'
  | 'signalled'
  | 'not-started'
  | 'stopped'
  | HttpEndReason;

export type SessionEnd = {
  at: number;
  reason: EndReason;
  exitCode: number | null;
  signal: string | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
};

/** What is not ordinary about a stored frame, as words in one column. An ordinary one has none: a line that ends with "\n", a body that holds messages, an event that holds one. */

type Form = Pick<Frame, 'lineEnd' | 'part' | 'truncated' | 'client'> & { marks: readonly HttpMark[] };

const LINE_END_WORDS: Record<LineEnd, string> = { '\n': '', '\r\n': 'crlf', '': 'no-line-end' };

const PARTS: readonly FramePart[] = ['lsp-header', 'lsp-body', 'reserialised', 'foreign-body', 'block'];

const MARKS: readonly HttpMark[] = ['undecoded', 'wrong-type', 'incomplete', 'replayed'];

const NO_MARKS: readonly HttpMark[] = [];

const CLIENT_WORD = /(?:^| )client-(\d+)/;

export function flagsOf({ channel, lineEnd, part, truncated, http, client }: Frame): string | null {
  if (lineEnd === '\n' && part === 'line' && !truncated && client === undefined) return null;
  const words: string[] = [];
  if (http === null && LINE_END_WORDS[lineEnd] !== '') words.push(LINE_END_WORDS[lineEnd]);
  if (part !== ordinaryPart(channel)) words.push(part);
  if (truncated) words.push('truncated');
  if (http !== null) words.push(...http.marks);
  if (client !== undefined) words.push(`client-${client}`);
  return words.length === 0 ? null : words.join(' ');
}

export function formOf(flags: string | null, channel: Channel): Form {
  const isStdio = ordinaryPart(channel) === 'line';
  if (flags === null)
    return {
      lineEnd: isStdio ? '\n' : '',
      part: ordinaryPart(channel),
      truncated: false,
      marks: NO_MARKS,
    };
  const words = new Set(flags.split(' '));
  const client = clientIn(flags);
  const stdioLineEnd: LineEnd = words.has('crlf') ? '\r\n' : words.has('no-line-end') ? '' : '\n';
  return {
    lineEnd: isStdio ? stdioLineEnd : '',
    part: PARTS.find((part) => words.has(part)) ?? ordinaryPart(channel),
    truncated: words.has('truncated'),
    marks: isStdio ? NO_MARKS : MARKS.filter((mark) => words.has(mark)),
    ...(client === FIRST_CLIENT ? {} : { client }),
  };
}

/** The client that the flags of a frame name. */
export function clientIn(flags: string | null): number {
  const [, digits] = flags === null ? [] : (CLIENT_WORD.exec(flags) ?? []);
  return digits === undefined ? FIRST_CLIENT : Number(digits);
}

function ordinaryPart(channel: Channel): FramePart {
  switch (channel) {
    case 'request':
    case 'response':
      return 'body';
    case 'sse':
      return 'event';
    default:
      return 'line';
  }
}
