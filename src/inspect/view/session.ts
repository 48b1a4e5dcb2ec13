/** `list` for people: one session a row, as wide as the terminal allows. */

import { escapeText } from '../../protocol/text.ts';
import { type MetaOnly, metaOnlyText } from '../../store/read/meta-only.ts';
import { type SessionRow, stateOf } from '../../store/read/sessions.ts';
import { changeText } from '../verdict/definitions.ts';
import type { ChangedTools } from '../verdict/earlier.ts';
import { type Column, tableLines } from './table.ts';
import { clip, formatCount, formatDuration, formatSize, formatTime, type TerminalStyle } from './text.ts';

const NO_PAYLOADS = '(no payloads)';

const COLUMNS: readonly Column<SessionRow>[] = [
  { title: 'SESSION', cell: (s) => s.id, color: (c) => c.bold },
  { title: 'NAME', cell: (s) => s.name ?? s.target, least: 16 },
  { title: 'STARTED', expendable: 3, cell: (s) => formatTime(s.startedAt) },
  { title: 'LASTED', expendable: 2, cell: durationOf, isNumber: true },
  { title: 'CLIENT', expendable: 4, cell: clientOf, least: NO_PAYLOADS.length },
  { title: 'SERVER', expendable: 5, cell: (s) => peerOf(s.serverName, s.serverVersion), least: 6 },
  {
    title: 'HTTP',
    expendable: 6,
    cell: (s) => (isHttp(s) ? String(s.httpExchanges) : ''),
    isFor: isHttp,
    isNumber: true,
  },
  { title: 'EXCHANGES', cell: (s) => figureOf(s, s.exchanges), isNumber: true, expendable: 1 },
  {
    title: 'ERRORS',
    cell: (s) => figureOf(s, s.errors),
    isNumber: true,
    color: (c, s) => (s.errors > 0 ? c.red : undefined),
  },
  {
    title: 'OPEN',
    cell: (s) => String(s.unanswered),
    isNumber: true,
    color: (c, s) => (s.unanswered > 0 ? c.yellow : undefined),
  },
  { title: 'SAMPLE', cell: sampleOf, isFor: ({ sample }) => sample !== null, isNumber: true, expendable: 7 },
  {
    title: 'LOST',
    cell: (s) => String(s.dropped),
    isNumber: true,
    color: (c, s) => (s.dropped > 0 ? c.red : undefined),
  },
  { title: 'END', cell: endOf, least: 6 },
];

/** Of a session whose index is behind, and that nobody records any more, a figure is the least that there is. */
function figureOf(session: SessionRow, figure: number): string {
  const isBehind = session.indexed < session.frames && stateOf(session) !== 'open';
  return isBehind ? `≥${figure}` : String(figure);
}

/** The table's lines, without line ends. Cells are escaped; no line is wider than `style.width`, if that can be. */
export function sessionTable(sessions: readonly SessionRow[], style: TerminalStyle): Generator<string> {
  return tableLines(COLUMNS, sessions, style);
}

/** Tools that are named of one server; the rest is counted. */
const MAX_CHANGES = 5;

/** Below the table: what servers list otherwise than in their session before. `advice`: where to see more, by session. */
export function* changedToolsLines(
  sessions: readonly SessionRow[],
  changed: ReadonlyMap<string, ChangedTools>,
  { colors, width }: TerminalStyle,
  advice: (id: string) => string,
): Generator<string> {
  let isFirst = true;
  for (const { id, name, target } of sessions) {
    const { since, changes } = changed.get(id) ?? { since: '', changes: [] };
    if (changes.length === 0) continue;
    const isLoosened = changes.some(({ loosened }) => loosened.length > 0);
    const paint = isLoosened ? colors.red : colors.yellow;
    if (isFirst) yield '';
    isFirst = false;
    const what = `${escapeText(name ?? target)}: ${formatCount(changes.length, 'tool')} not as in session ${since}`;
    yield paint(clip(`! ${what} (${advice(id)})`, width));
    for (const change of changes.slice(0, MAX_CHANGES))
      yield clip(`  ${escapeText(`${change.tool}: ${changeText(change)}`)}`, width);
    if (changes.length > MAX_CHANGES) yield colors.dim(`  … and ${changes.length - MAX_CHANGES} more`);
  }
}

/** The share of such sessions that are kept. */
function sampleOf({ sample }: SessionRow): string {
  if (sample === null) return '';
  return sample === 0 ? 'left out' : `${Number((sample * 100).toPrecision(3))} %`;
}

function durationOf(session: SessionRow): string {
  if (session.endedAt !== null) return formatDuration((session.endedAt - session.startedAt) / 1000);
  return stateOf(session) === 'open' ? formatDuration(Date.now() - session.startedAt / 1000) : '?';
}

/** What the client calls itself, else the program that started us. */
function clientOf(session: SessionRow): string {
  if (session.capture === 'meta') return NO_PAYLOADS;
  return peerOf(session.clientName, session.clientVersion) || (session.clientProgram ?? '');
}

function peerOf(name: string | null, version: string | null): string {
  return [name, version].filter((word) => word !== null).join(' ');
}

function isHttp({ transport }: SessionRow): boolean {
  return transport !== 'stdio';
}

/** How an HTTP session ended, if not with tapedeck. For stdio, the exit says it. */
const HTTP_ENDS: Record<string, string> = {
  deleted: 'DELETE',
  gone: '404',
  idle: 'idle',
  'crowded-out': 'crowded out',
  'client-closed': 'client left',
  'server-closed': 'server left',
};

/** How a session ended, in a word or two. */
function endOf(session: SessionRow): string {
  const state = stateOf(session);
  switch (state) {
    case 'open':
      return 'open';
    case 'cut-off':
      return 'cut off';
    case 'unknown':
      return 'unknown';
    case 'not-started':
      return 'not started';
    case 'stopped':
      return 'stopped';
    default:
      if (isHttp(session) || session.basis === 'sdk-transport') return HTTP_ENDS[state] ?? state;
      return session.signal ?? `exit ${session.exitCode}`;
  }
}

/** The summary of a session in words: `14 exchanges, 1 error, nothing lost`. */
function summaryOf(session: SessionRow): string {
  const parts = [formatCount(session.exchanges, 'exchange'), formatCount(session.errors, 'error')];
  if (session.unanswered > 0) parts.push(`${session.unanswered} unanswered`);
  parts.push(...lossesOf(session));
  if (session.dropped === 0) parts.push('nothing lost');
  return parts.join(', ');
}

/** What is missing of a session, in words; empty where nothing is. */
export function lossesOf({ truncated, dropped }: SessionRow): string[] {
  const losses: string[] = [];
  if (truncated > 0) losses.push(`${formatCount(truncated, 'frame')} cut`);
  if (dropped > 0) losses.push(`${formatCount(dropped, 'frame')} LOST`);
  return losses;
}

/** What `show` says of a session as a whole. */

const SESSION_HEADER_NO_PAYLOADS: [string, string] = [
  'payloads',
  'none: recorded with --capture meta, so there are sizes, times and hashes, and nothing to show or play',
];

/** What a header says that the session's row does not. */
type HeaderDetails = {
  /** What a client over HTTP calls itself, which may never have said so by MCP. */
  userAgent: string;
  metaOnly: MetaOnly | null;
};

export function* sessionHeader(
  session: SessionRow,
  { userAgent, metaOnly }: HeaderDetails,
  { colors, width }: TerminalStyle,
): Generator<string> {
  const name = session.name === null ? '' : `  ${session.name}`;
  const lines: [title: string, text: string][] = [
    ['session', `${session.id}${name}`],
    ...(session.transport === 'stdio' ? stdioLines(session) : httpLines(session, userAgent)),
    ['started', startText(session)],
    ['ended', endText(session)],
    ['recorded', recordedText(session)],
    ...importedLine(session),
    ...sampleLine(session),
    ...(session.capture === 'meta' ? [SESSION_HEADER_NO_PAYLOADS] : metaOnlyLine(metaOnly)),
  ];
  for (const [title, text] of lines) {
    yield `${colors.dim(title.padEnd(10))}${clip(escapeText(text), width - 10)}`;
  }
  yield '';
}

/** The host wrote the row. For a recording of another tool it means nothing. */
function startText({ startedAt, host, importedFrom }: SessionRow): string {
  return importedFrom === null ? `${formatTime(startedAt)} on ${host}` : formatTime(startedAt);
}

/** Other tools keep less. */
function importedLine({ importedFrom }: SessionRow): [string, string][] {
  if (importedFrom === null) return [];
  return [['imported', `from ${importedFrom}: messages as it kept them, not the bytes that passed`]];
}

function metaOnlyLine(metaOnly: MetaOnly | null): [string, string][] {
  return metaOnly === null ? [] : [['payloads', metaOnlyText(metaOnly)]];
}

function sampleLine(session: SessionRow): [string, string][] {
  const text = sampleText(session);
  return text === null ? [] : [['sample', text]];
}

/** What a session stands for, in words; null where all of such sessions are kept. */
export function sampleText(session: SessionRow): string | null {
  switch (session.sample) {
    case null:
      return null;
    case 0:
      return 'not in it: this session is the first to be deleted';
    case 1:
      return 'kept for what it has, as all such sessions are';
    default:
      return `${sampleOf(session)} of such sessions are kept`;
  }
}

/** Whether it is the session of a program that was started for it. */
function isStarted({ importedFrom, basis }: SessionRow): boolean {
  return importedFrom === null && basis !== 'sdk-transport';
}

function stdioLines(session: SessionRow): [string, string][] {
  return [
    [isStarted(session) ? 'command' : 'target', session.target || 'unknown'],
    ['client', who(session.clientName, session.clientVersion, processOf(session))],
    ['server', who(session.serverName, session.serverVersion, '')],
    ['protocol', session.protocolVersion ?? 'unknown'],
    ...(session.basis === 'sdk-transport' ? [SESSION_HEADER_RESERIALISED] : []),
  ];
}

const SESSION_HEADER_RESERIALISED: [string, string] = [
  'transport',
  'of an SDK: messages as it had parsed them, written anew; not the bytes that passed',
];

const TRANSPORTS: Record<string, string> = {
  'session-header': 'Streamable HTTP, a session by its Mcp-Session-Id',
  'sse-endpoint': 'HTTP+SSE, a session by the endpoint of its stream',
  stateless: 'HTTP, without a session id',
};

function httpLines(session: SessionRow, userAgent: string): [string, string][] {
  return [
    ['url', session.target],
    ['client', who(session.clientName, session.clientVersion, userAgent)],
    ['server', who(session.serverName, session.serverVersion, '')],
    ['protocol', session.protocolVersion ?? 'unknown'],
    ['transport', TRANSPORTS[session.basis] ?? `${session.transport}, ${session.basis}`],
  ];
}

function who(name: string | null, version: string | null, detail: string): string {
  const self = [name, version].filter((word) => word !== null).join(' ');
  if (self === '') return detail || 'unknown';
  return detail === '' ? self : `${self} (${detail})`;
}

function processOf({ clientProgram, clientPid }: SessionRow): string {
  return clientProgram === null ? '' : `${clientProgram}, pid ${clientPid}`;
}

/** How an HTTP session ended. For stdio, the exit says it. */
const SESSION_HEADER_HTTP_ENDS: Record<string, string> = {
  deleted: 'DELETE by the client',
  gone: '404: the server forgot it',
  idle: 'idle: nothing more came',
  'crowded-out': 'crowded out: idle for longest of too many open ones',
  'client-closed': 'the client closed the stream',
  'server-closed': 'the server closed the stream',
};

const SDK_ENDS: Record<string, string> = {
  'client-closed': 'the client closed the transport',
  'server-closed': 'the server closed the transport',
};

/** How a session ended, and how long it had lasted by then. */
export function endText(session: SessionRow): string {
  const { endReason, endedAt, startedAt, transport, basis } = session;
  const lasted = endedAt === null ? '' : `, after ${formatDuration((endedAt - startedAt) / 1000)}`;
  if (basis === 'sdk-transport' && endReason !== null)
    return `${SDK_ENDS[endReason] ?? endOf(session)}${lasted}`;
  if (transport !== 'stdio') return `${SESSION_HEADER_HTTP_ENDS[endReason ?? ''] ?? endOf(session)}${lasted}`;
  const why = endReason === 'client-closed' ? ', the client closed first' : '';
  return `${endOf(session)}${lasted}${why}`;
}

function recordedText(session: SessionRow): string {
  const { frames, bytes, transport, httpExchanges } = session;
  const text = `${summaryOf(session)}, ${frames} frames, ${formatSize(bytes)}`;
  return transport === 'stdio' ? text : `${text}, ${formatCount(httpExchanges, 'HTTP exchange')}`;
}
