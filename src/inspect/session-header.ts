/** What `show` says of a session as a whole. */

import { escapeText } from '../protocol/escape.ts';
import type { SessionRow } from '../store/reader.ts';
import { formatCount, formatDuration, formatSize, formatTime } from './figures.ts';
import type { Look } from './look.ts';
import { endOf, summaryOf } from './session-table.ts';
import { clip } from './text.ts';

const NO_PAYLOADS: [string, string] = [
  'payloads',
  'none: recorded with --capture meta, so there are sizes, times and hashes, and nothing to show or play',
];

/** `userAgent` is what a client over HTTP calls itself, which may never have said so by MCP. */
export function* sessionHeader(
  session: SessionRow,
  userAgent: string,
  { colors, width }: Look,
): Generator<string> {
  const name = session.name === null ? '' : `  ${session.name}`;
  const lines: [title: string, text: string][] = [
    ['session', `${session.id}${name}`],
    ...(session.transport === 'stdio' ? stdioLines(session) : httpLines(session, userAgent)),
    ['started', startText(session)],
    ['ended', endText(session)],
    ['recorded', recordedText(session)],
    ...importedLine(session),
    ...(session.capture === 'meta' ? [NO_PAYLOADS] : []),
  ];
  for (const [title, text] of lines) {
    yield `${colors.dim(title.padEnd(10))}${clip(escapeText(text), width - 10)}`;
  }
  yield '';
}

/** The host is that of who wrote the row: of another tool's recording it tells nothing. */
function startText({ startedAt, host, importedFrom }: SessionRow): string {
  return importedFrom === null ? `${formatTime(startedAt)} on ${host}` : formatTime(startedAt);
}

/** Other tools keep less. */
function importedLine({ importedFrom }: SessionRow): [string, string][] {
  if (importedFrom === null) return [];
  return [['imported', `from ${importedFrom}: messages as it kept them, not the bytes that passed`]];
}

function stdioLines(session: SessionRow): [string, string][] {
  return [
    [session.importedFrom === null ? 'command' : 'target', session.target || 'unknown'],
    ['client', who(session.clientName, session.clientVersion, processOf(session))],
    ['server', who(session.serverName, session.serverVersion, '')],
    ['protocol', session.protocolVersion ?? 'unknown'],
  ];
}

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

/** How a session by HTTP ended; the stored reasons of stdio are told by the exit. */
const HTTP_ENDS: Record<string, string> = {
  deleted: 'DELETE by the client',
  gone: '404: the server forgot it',
  idle: 'idle: nothing more came',
  'client-closed': 'the client closed the stream',
  'server-closed': 'the server closed the stream',
};

function endText(session: SessionRow): string {
  const { endReason, endedAt, startedAt, transport } = session;
  const lasted = endedAt === null ? '' : `, after ${formatDuration((endedAt - startedAt) / 1000)}`;
  if (transport !== 'stdio') return `${HTTP_ENDS[endReason ?? ''] ?? endOf(session)}${lasted}`;
  const why = endReason === 'client-closed' ? ', the client closed first' : '';
  return `${endOf(session)}${lasted}${why}`;
}

function recordedText(session: SessionRow): string {
  const { frames, bytes, transport, httpExchanges } = session;
  const text = `${summaryOf(session)}, ${frames} frames, ${formatSize(bytes)}`;
  return transport === 'stdio' ? text : `${text}, ${formatCount(httpExchanges, 'HTTP exchange')}`;
}
