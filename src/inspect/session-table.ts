/** `list` for people: one session a row, as wide as the terminal allows. */
import { type SessionRow, stateOf } from '../store/reader.ts';
import { formatCount, formatDuration, formatTime } from './figures.ts';
import type { Colors, Look } from './look.ts';
import { clip, escapeText, pad, widthOf } from './text.ts';

type Column = {
  title: string;
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
  { title: 'STARTED', cell: (s) => formatTime(s.startedAt) },
  { title: 'LASTED', cell: durationOf, isNumber: true },
  { title: 'CLIENT', cell: clientOf, least: 6 },
  { title: 'SERVER', cell: (s) => peerOf(s.serverName, s.serverVersion), least: 6 },
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

/** The table's lines, without line ends. Cells are escaped; no line is wider than `look.width`, if that can be. */
export function* sessionTable(sessions: readonly SessionRow[], look: Look): Generator<string> {
  const rows = sessions.map((session) => COLUMNS.map((column) => escapeText(column.cell(session))));
  const natural = COLUMNS.map(({ title }, i) =>
    Math.max(title.length, ...rows.map((row) => widthOf(row[i] ?? ''))),
  );
  const widths = fitWidths(natural, look.width);
  yield look.colors.dim(
    formatRow(
      COLUMNS.map(({ title }) => title),
      widths,
    )
      .join(' '.repeat(GAP))
      .trimEnd(),
  );
  for (const [r, session] of sessions.entries()) {
    const cells = formatRow(rows[r] ?? [], widths);
    const colored = cells.map((cell, i) => COLUMNS[i]?.color?.(look.colors, session)?.(cell) ?? cell);
    yield colored.join(' '.repeat(GAP)).trimEnd();
  }
}

function formatRow(cells: readonly string[], widths: readonly number[]): string[] {
  return cells.map((cell, i) => {
    const width = widths[i] ?? 0;
    const text = clip(cell, width);
    return COLUMNS[i]?.isNumber ? ' '.repeat(Math.max(0, width - widthOf(text))) + text : pad(text, width);
  });
}

/** Takes from the widest column that may be cut, one by one, until the row fits. */
function fitWidths(natural: readonly number[], available: number): number[] {
  const widths = [...natural];
  let excess = widths.reduce((sum, width) => sum + width, GAP * (widths.length - 1)) - available;
  for (; excess > 0; excess -= 1) {
    let widest = -1;
    for (const [i, width] of widths.entries()) {
      const least = COLUMNS[i]?.least;
      if (least !== undefined && width > least && width > (widths[widest] ?? 0)) widest = i;
    }
    if (widest === -1) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
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
