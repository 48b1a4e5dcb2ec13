/** What is pruned: for people, one session a row with why it goes; for programs, one a line. */

import { escapeText, formatIsoTime } from '../../protocol/text.ts';
import type { Pruned } from '../../store/keep/prune.ts';
import type { Departure, Reason } from '../../store/keep/retention.ts';
import { clip, formatDuration, formatSize, formatTime, pad, type TerminalStyle, widthOf } from './text.ts';

const WORDS: Record<Reason, string> = {
  named: 'named',
  filter: 'filter',
  age: 'too old',
  count: 'too many',
  size: 'no room',
};

const NAME_WIDTH = 32;

const GAP = '  ';

/** The lines of the table, without line ends. `now` in microseconds since the Unix epoch. */
export function* pruneTable(
  departures: readonly Departure[],
  now: number,
  style: TerminalStyle,
): Generator<string> {
  const rows = departures.map((departure) => cellsOf(departure, now));
  const titles = ['SESSION', 'NAME', 'STARTED', 'LAST', 'SIZE', 'ERRORS', 'WHY'];
  const widths = titles.map((title, c) =>
    Math.max(title.length, ...rows.map((row) => widthOf(row[c] ?? ''))),
  );
  const line = (cells: readonly string[]) =>
    clip(
      cells
        .map((cell, c) => pad(cell, widths[c] ?? 0))
        .join(GAP)
        .trimEnd(),
      style.width,
    );
  yield style.colors.dim(line(titles));
  for (const row of rows) yield line(row);
}

function cellsOf({ session, reason, bytes }: Departure, now: number): string[] {
  return [
    session.id,
    clip(escapeText(session.name ?? session.target), NAME_WIDTH),
    formatTime(session.startedAt),
    `${formatDuration(Math.max(0, now - session.lastAt) / 1000)} ago`,
    `~${formatSize(bytes)}`,
    String(session.errors),
    WORDS[reason],
  ];
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
