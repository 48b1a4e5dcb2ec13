/** What ever ran here, for people (`list --by server`, `list --by client`) and for programs. */

import { type Column, tableLines } from '../../inspect/view/table.ts';
import { formatTime, type TerminalStyle } from '../../inspect/view/text.ts';
import { formatIsoTime } from '../../protocol/text.ts';
import type { PeerKind, PeerRow } from '../../store/read/peers.ts';

const NO_NAME = '?';

function columnsOf(kind: PeerKind): readonly Column<PeerRow>[] {
  const others = kind === 'server' ? 'CLIENTS' : 'SERVERS';
  return [
    {
      title: kind.toUpperCase(),
      cell: (row) => nameOf(kind, row),
      least: 12,
      wanted: 22,
      color: (c) => c.bold,
    },
    { title: 'VERSIONS', ...listed((row) => row.versions), least: 8, expendable: 2 },
    { title: others, ...listed((row) => row.others.map((name) => name ?? NO_NAME)), least: 9 },
    { title: 'SESSIONS', cell: ({ sessions }) => String(sessions), isNumber: true },
    { title: 'LAST SEEN', cell: ({ lastAt }) => toTheMinute(lastAt), expendable: 1 },
    { title: 'FIRST SEEN', cell: ({ firstAt }) => toTheMinute(firstAt), expendable: 6 },
    { title: 'PROTOCOL', ...listed((row) => row.protocolVersions), least: 14, expendable: 4 },
    { title: 'BY', ...listed((row) => row.transports), isFor: () => kind === 'client', expendable: 7 },
    { title: 'TARGETS', cell: ({ targets }) => someOf(targets, 1), least: 16, expendable: 3 },
    { title: 'EXCHANGES', cell: (row) => figureOf(row, row.exchanges), isNumber: true, expendable: 5 },
    {
      title: 'ERRORS',
      cell: (row) => figureOf(row, row.errors),
      isNumber: true,
      color: (c, { errors }) => (errors > 0 ? c.red : undefined),
    },
    {
      title: 'OPEN',
      cell: ({ unanswered }) => String(unanswered),
      isNumber: true,
      color: (c, { unanswered }) => (unanswered > 0 ? c.yellow : undefined),
    },
    {
      title: 'LOST',
      cell: ({ dropped }) => String(dropped),
      isNumber: true,
      color: (c, { dropped }) => (dropped > 0 ? c.red : undefined),
    },
  ];
}

/** The table, and below it what a row without a name means. */
export function* peerTable(
  kind: PeerKind,
  rows: readonly PeerRow[],
  style: TerminalStyle,
): Generator<string> {
  yield* tableLines(columnsOf(kind), rows, style);
  if (rows.some(({ name }) => name === null))
    yield style.colors.dim(`${NO_NAME}: its sessions have no handshake in which the ${kind} says its name.`);
}

/** One object of `--json`. */
export function peerLine(kind: PeerKind, row: PeerRow): string {
  const { name, program, others, firstAt, lastAt, ...rest } = row;
  return JSON.stringify({
    [kind]: name,
    ...(kind === 'client' ? { program } : {}),
    versions: rest.versions,
    [kind === 'server' ? 'clients' : 'servers']: others,
    protocolVersions: rest.protocolVersions,
    transports: rest.transports,
    targets: rest.targets,
    sessions: rest.sessions,
    firstSeenAt: formatIsoTime(firstAt),
    lastSeenAt: formatIsoTime(lastAt),
    exchanges: rest.exchanges,
    errors: rest.errors,
    unanswered: rest.unanswered,
    dropped: rest.dropped,
    sessionsBehind: rest.behind,
  });
}

/** Without a name, what stands for one. */
function nameOf(kind: PeerKind, { name, program, targets }: PeerRow): string {
  const instead = kind === 'server' ? targets[0] : program;
  return name ?? `${NO_NAME} ${instead ?? ''}`.trimEnd();
}

function toTheMinute(at: number): string {
  return formatTime(at).slice(0, -':00'.length);
}

/** A server may have had thousands of ports. */
const MOST_NAMED = 3;

function someOf(words: readonly string[], most: number): string {
  const more = words.length > most ? `, +${words.length - most}` : '';
  return `${words.slice(0, most).join(', ')}${more}`;
}

/** The first words of a list, or the very first where there is no room: cut in the middle, a list says nothing. */
function listed(words: (row: PeerRow) => readonly string[]): Pick<Column<PeerRow>, 'cell' | 'shorten'> {
  return {
    cell: (row) => someOf(words(row), MOST_NAMED),
    shorten(cell) {
      const [first = '', ...others] = cell.split(', ');
      const uncounted = /^\+(\d+)$/.exec(others.at(-1) ?? '');
      const count = others.length + (uncounted === null ? 0 : Number(uncounted[1]) - 1);
      return count > 0 ? `${first}, +${count}` : first;
    },
  };
}

/** Where an index is behind, a figure is the least that there is. */
function figureOf({ behind }: PeerRow, figure: number): string {
  return behind > 0 ? `≥${figure}` : String(figure);
}
