/** What is pruned: for people, one session a row with why it goes; for programs, one a line. */

import { formatIsoTime } from '../../protocol/text.ts';
import type { Pruned } from '../../store/keep/prune.ts';
import type { Departure, Reason } from '../../store/keep/retention.ts';
import { type Column, tableLines } from './table.ts';
import { formatDuration, formatSize, formatTime, type TerminalStyle } from './text.ts';

const WORDS: Record<Reason, string> = {
  named: 'named',
  filter: 'filter',
  age: 'too old',
  count: 'too many',
  size: 'no room',
  shipped: 'in the engine',
  unshipped: 'never shipped',
  sample: 'not in the sample',
};

/** Why it goes is said in the narrowest terminal. */
const COLUMNS: readonly Column<Departure & { now: number }>[] = [
  { title: 'SESSION', cell: ({ session }) => session.id },
  { title: 'NAME', cell: ({ session }) => session.name ?? session.target, least: 12 },
  { title: 'STARTED', cell: ({ session }) => formatTime(session.startedAt), expendable: 2 },
  {
    title: 'LAST',
    cell: ({ session, now }) => `${formatDuration(Math.max(0, now - session.lastAt) / 1000)} ago`,
    expendable: 1,
  },
  { title: 'SIZE', cell: ({ bytes }) => `~${formatSize(bytes)}`, isNumber: true },
  { title: 'ERRORS', cell: ({ session }) => String(session.errors), isNumber: true, expendable: 3 },
  { title: 'WHY', cell: ({ reason }) => WORDS[reason] },
];

/** The lines of the table, without line ends. `now` in microseconds since the Unix epoch. */
export function pruneTable(
  departures: readonly Departure[],
  now: number,
  style: TerminalStyle,
): Generator<string> {
  const rows = departures.map((departure) => ({ ...departure, now }));
  return tableLines(COLUMNS, rows, style);
}

/** For programs: one session that goes, or went. */
export function departureLine({ session, reason, bytes }: Departure): string {
  return JSON.stringify({
    session: session.id,
    name: session.name,
    startedAt: formatIsoTime(session.startedAt),
    lastAt: formatIsoTime(session.lastAt),
    errors: session.errors,
    bytes,
    reason,
  });
}

/** For programs: how much space was freed, and what could not be done. */
export function prunedLine({ departures, bytesBefore, bytesAfter, excessBytes, remains }: Pruned): string {
  return JSON.stringify({ deleted: departures.length, bytesBefore, bytesAfter, excessBytes, remains });
}
