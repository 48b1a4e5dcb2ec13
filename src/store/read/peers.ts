/** What ever ran here: the servers and the clients of all sessions, from the rows of `session` alone. */

import type { Store } from '../file/open.ts';

export type PeerKind = 'server' | 'client';

/**
 * All that one server, or one client, has had to do here. Lists have what was seen last first. Times are microseconds since the
 * Unix epoch.
 */
export type PeerRow = {
  /** What it calls itself (`serverInfo`, `clientInfo`); null: its sessions have no handshake that says so. */
  name: string | null;
  /** Of a client without a name: the program that started the server. */
  program: string | null;
  versions: string[];
  /** Commands and URLs. */
  targets: string[];
  transports: string[];
  protocolVersions: string[];
  /** The names of those it spoke with; null for those that have not said theirs. */
  others: (string | null)[];
  sessions: number;
  firstAt: number;
  /** When its last session ended; of one that has no end, when its last frame passed. */
  lastAt: number;
  exchanges: number;
  errors: number;
  unanswered: number;
  dropped: number;
  /** Sessions whose index is behind their frames: then the figures are the least that there is. */
  behind: number;
};

/** Sessions that are alike in all that is listed. */
type Alike = {
  clientName: string | null;
  clientVersion: string | null;
  serverName: string | null;
  serverVersion: string | null;
  program: string | null;
  target: string;
  transport: string;
  protocolVersion: string | null;
} & Pick<PeerRow, Figure | 'firstAt' | 'lastAt'>;

const FIGURES = ['sessions', 'exchanges', 'errors', 'unanswered', 'dropped', 'behind'] as const;

type Figure = (typeof FIGURES)[number];

const ALIKE = `client_name, client_version, server_name, server_version,
  CASE WHEN client_name IS NULL THEN client_program END, target, transport, protocol_version`;

const LAST_FRAME = 'SELECT f.at FROM frame AS f WHERE f.session = session.number ORDER BY f.seq DESC LIMIT 1';

/**
 * One row for each name; one for each target of servers, and for each program of clients, without a name. The one that was seen
 * last is the first. `among`: the numbers of the sessions that count; undefined: all.
 */
export function peersOf(store: Store, kind: PeerKind, among?: Iterable<number>): PeerRow[] {
  const rows = new Map<string, PeerRow>();
  for (const alike of selectAlike(store, among)) {
    const key = keyOf(kind, alike);
    const row = rows.get(key);
    if (row === undefined) rows.set(key, rowOf(kind, alike));
    else add(row, rowOf(kind, alike));
  }
  return [...rows.values()].map(withoutRepeats);
}

function selectAlike(store: Store, among: Iterable<number> | undefined): IterableIterator<Alike> {
  const where = among === undefined ? '' : 'WHERE number IN (SELECT value FROM json_each(@among))';
  const sql = `SELECT client_name AS clientName, client_version AS clientVersion, server_name AS serverName,
      server_version AS serverVersion, CASE WHEN client_name IS NULL THEN client_program END AS program, target, transport,
      protocol_version AS protocolVersion, min(started_at) AS firstAt,
      max(coalesce(ended_at, (${LAST_FRAME}), started_at)) AS lastAt, count(*) AS sessions, sum(exchanges) AS exchanges,
      sum(errors) AS errors, sum(unanswered) AS unanswered, sum(dropped) AS dropped, sum(indexed < frames) AS behind
    FROM session ${where} GROUP BY ${ALIKE} ORDER BY lastAt DESC, max(number) DESC`;
  return store
    .prepare<[object], Alike>(sql)
    .iterate(among === undefined ? {} : { among: JSON.stringify([...among]) });
}

/** A name and what stands for one are never taken for each other. */
function keyOf(kind: PeerKind, { clientName, serverName, program, target }: Alike): string {
  return JSON.stringify(kind === 'server' ? [serverName, serverName ?? target] : [clientName, program]);
}

function rowOf(kind: PeerKind, alike: Alike): PeerRow {
  const { clientName, clientVersion, serverName, serverVersion, target, transport, protocolVersion } = alike;
  const isServer = kind === 'server';
  const version = isServer ? serverVersion : clientVersion;
  return {
    name: isServer ? serverName : clientName,
    program: isServer ? null : alike.program,
    versions: version === null ? [] : [version],
    targets: [target],
    transports: [transport],
    protocolVersions: protocolVersion === null ? [] : [protocolVersion],
    others: [isServer ? clientName : serverName],
    firstAt: alike.firstAt,
    lastAt: alike.lastAt,
    ...(Object.fromEntries(FIGURES.map((figure) => [figure, alike[figure]])) as Record<Figure, number>),
  };
}

const LISTS = ['versions', 'targets', 'transports', 'protocolVersions', 'others'] as const;

function add(row: PeerRow, more: PeerRow): void {
  for (const list of LISTS) (row[list] as (string | null)[]).push(...more[list]);
  for (const figure of FIGURES) row[figure] += more[figure];
  row.firstAt = Math.min(row.firstAt, more.firstAt);
  row.lastAt = Math.max(row.lastAt, more.lastAt);
}

function withoutRepeats(row: PeerRow): PeerRow {
  return { ...row, ...Object.fromEntries(LISTS.map((list) => [list, [...new Set(row[list])]])) };
}
