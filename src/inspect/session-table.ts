/** `list` for people: one session a row, as wide as the terminal allows. */
import { type SessionRow, stateOf } from '../store/reader.ts';
import { formatCount, formatDuration, formatTime } from './figures.ts';
import type { Colors, Look } from './look.ts';
import { clip, escapeText, pad, widthOf } from './text.ts';

type Column = {
  title: string;
  /** Left out where the terminal is too narrow, the highest first. */
  expendable?: number;
  /** The text of a cell, not escaped yet. */
  cell: (session: SessionRow) => string;
  isNumber?: boolean;
  /** The least width this column may be cut to; without one it is never cut. */
  least?: number;
  color?: (colors: Colors, session: SessionRow) => ((text: string) => string) | undefined;
};

const COLUMNS: readonly Column[] = [
  { title: 'SESSION', cell: (s) => s.id, color: (c) => c.bold },
  { title: 'NAME', cell: (s) => s.name ?? s.target, least: 8 },
  { title: 'STARTED', expendable: 2, cell: (s) => formatTime(s.startedAt) },
  { title: 'LASTED', expendable: 1, cell: durationOf, isNumber: true },
  { title: 'CLIENT', expendable: 3, cell: clientOf, least: 6 },
  { title: 'SERVER', expendable: 4, cell: (s) => peerOf(s.serverName, s.serverVersion), least: 6 },
  { title: 'EXCHANGES', cell: (s) => String(s.exchanges), isNumber: true },
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

const GAP = 2;

/** A column with the texts and the width that it takes. */
type Laid = { column: Column; cells: string[]; width: number };

/** The table's lines, without line ends. Cells are escaped; no line is wider than `look.width`, if that can be. */
export function* sessionTable(sessions: readonly SessionRow[], look: Look): Generator<string> {
  const laid = fitColumns(
    COLUMNS.map((column) => layColumn(column, sessions)),
    look.width,
  );
  const line = (cells: string[]) => cells.join(' '.repeat(GAP)).trimEnd();
  yield look.colors.dim(line(laid.map(({ column, width }) => cellText(column, column.title, width))));
  for (const [r, session] of sessions.entries()) {
    const cells = laid.map(({ column, cells, width }) => {
      const text = cellText(column, cells[r] ?? '', width);
      return column.color?.(look.colors, session)?.(text) ?? text;
    });
    yield line(cells);
  }
}

function layColumn(column: Column, sessions: readonly SessionRow[]): Laid {
  const cells = sessions.map((session) => escapeText(column.cell(session)));
  return { column, cells, width: Math.max(column.title.length, ...cells.map(widthOf)) };
}

function cellText({ isNumber }: Column, cell: string, width: number): string {
  const text = clip(cell, width);
  return isNumber ? ' '.repeat(Math.max(0, width - widthOf(text))) + text : pad(text, width);
}

/** Leaves columns out while not even the least widths fit, then takes from the widest that may be cut. */
function fitColumns(all: readonly Laid[], available: number): Laid[] {
  let laid = [...all];
  const total = (width: (column: Laid) => number) =>
    laid.reduce((sum, column) => sum + width(column), GAP * (laid.length - 1));
  while (total(leastWidth) > available) {
    const rank = Math.max(...laid.map(({ column }) => column.expendable ?? 0));
    if (rank === 0) break;
    laid = laid.filter(({ column }) => column.expendable !== rank);
  }
  for (let excess = total(({ width }) => width) - available; excess > 0; excess -= 1) {
    const [widest] = laid.filter((one) => one.width > leastWidth(one)).sort((a, b) => b.width - a.width);
    if (widest === undefined) break;
    widest.width -= 1;
  }
  return laid;
}

function leastWidth({ column, width }: Laid): number {
  return column.least === undefined ? width : Math.min(width, column.least);
}

function durationOf(session: SessionRow): string {
  if (session.endedAt !== null) return formatDuration((session.endedAt - session.startedAt) / 1000);
  return stateOf(session) === 'open' ? formatDuration(Date.now() - session.startedAt / 1000) : '?';
}

/** What the client calls itself, else the program that started us. */
function clientOf(session: SessionRow): string {
  return peerOf(session.clientName, session.clientVersion) || (session.clientProgram ?? '');
}

function peerOf(name: string | null, version: string | null): string {
  return [name, version].filter((word) => word !== null).join(' ');
}

/** How a session ended, in a word or two. */
export function endOf(session: SessionRow): string {
  const state = stateOf(session);
  switch (state) {
    case 'open':
      return 'open';
    case 'cut-off':
      return 'cut off';
    case 'not-started':
      return 'not started';
    case 'stopped':
      return 'stopped';
    default:
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
