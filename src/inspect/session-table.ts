/** `list` for people: one session a row, as wide as the terminal allows. */
import { type SessionRow, stateOf } from '../store/reader.ts';
import { formatCount, formatDuration, formatTime } from './figures.ts';
import type { Look } from './look.ts';
import { type Column, tableLines } from './table.ts';

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
  { title: 'EXCHANGES', cell: (s) => String(s.exchanges), isNumber: true, expendable: 1 },
  {
    title: 'ERRORS',
    cell: (s) => String(s.errors),
    isNumber: true,
    color: (c, s) => (s.errors > 0 ? c.red : undefined),
  },
  {
    title: 'OPEN',
    cell: (s) => String(s.unanswered),
    isNumber: true,
    color: (c, s) => (s.unanswered > 0 ? c.yellow : undefined),
  },
  {
    title: 'LOST',
    cell: (s) => String(s.dropped),
    isNumber: true,
    color: (c, s) => (s.dropped > 0 ? c.red : undefined),
  },
  { title: 'END', cell: endOf, least: 6 },
];

/** The table's lines, without line ends. Cells are escaped; no line is wider than `look.width`, if that can be. */
export function sessionTable(sessions: readonly SessionRow[], look: Look): Generator<string> {
  return tableLines(COLUMNS, sessions, look);
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

/** How a session by HTTP ended, if not with tapedeck. The reasons of stdio are told by the exit. */
const HTTP_ENDS: Record<string, string> = {
  deleted: 'DELETE',
  gone: '404',
  idle: 'idle',
  'client-closed': 'client left',
  'server-closed': 'server left',
};

/** How a session ended, in a word or two. */
export function endOf(session: SessionRow): string {
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
      if (isHttp(session)) return HTTP_ENDS[state] ?? state;
      return session.signal ?? `exit ${session.exitCode}`;
  }
}

/** The summary of a session in words: `14 exchanges, 1 error, nothing lost`. */
export function summaryOf(session: SessionRow): string {
  const parts = [formatCount(session.exchanges, 'exchange'), formatCount(session.errors, 'error')];
  if (session.unanswered > 0) parts.push(`${session.unanswered} unanswered`);
  if (session.truncated > 0) parts.push(`${formatCount(session.truncated, 'frame')} cut`);
  parts.push(session.dropped > 0 ? `${formatCount(session.dropped, 'frame')} LOST` : 'nothing lost');
  return parts.join(', ');
}
