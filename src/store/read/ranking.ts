/** The sessions of a store for a list that is shown page by page, and what of them may change while one looks on. */

import type { Store } from '../file/open.ts';
import type { SessionRow } from './sessions.ts';

/** What sessions can be ranked by. Of the text of a name case does not count. */
export const SESSION_RANKS = {
  started: 'started_at',
  name: 'lower(ifnull(name, target))',
  client: "lower(ifnull(client_name, ''))",
  server: "lower(ifnull(server_name, ''))",
  lasted: `ifnull(ended_at, ifnull((SELECT at FROM frame AS f WHERE f.session = session.number ORDER BY f.seq DESC LIMIT 1),
    started_at)) - started_at`,
  frames: 'frames',
  exchanges: 'exchanges',
  errors: 'errors',
  open: 'unanswered',
  lost: 'dropped',
} as const;

/** A place in a ranking. It stands although its session is gone. */
export type RankedPlace = { key: string | number; number: number };

/** Up to `limit` places after one. `among`: only these sessions, by number; undefined: all. */
export function rankedSessions(
  store: Store,
  by: keyof typeof SESSION_RANKS,
  {
    isDescending,
    after,
    limit,
    among,
  }: {
    isDescending: boolean;
    after: RankedPlace | null;
    limit: number;
    among: readonly number[] | undefined;
  },
): RankedPlace[] {
  const [order, sign] = isDescending ? ['DESC', '<'] : ['ASC', '>'];
  const where = [
    ...(after === null ? [] : [`(${SESSION_RANKS[by]}, number) ${sign} (@key, @number)`]),
    ...(among === undefined ? [] : ['number IN (SELECT value FROM json_each(@among))']),
  ];
  return store
    .prepare<[object], RankedPlace>(
      `SELECT ${SESSION_RANKS[by]} AS key, number FROM session ${where.length === 0 ? '' : `WHERE ${where.join(' AND ')}`}
       ORDER BY key ${order}, number ${order} LIMIT @limit`,
    )
    .all({
      ...(after ?? {}),
      ...(among === undefined ? {} : { among: JSON.stringify(among) }),
      limit,
    });
}

export function countSessions(store: Store): number {
  return store.prepare<[], number>('SELECT count(*) FROM session').pluck().get() ?? 0;
}

/** What tells that a session has changed. `facts`: all that a list shows of it besides frames. */
export type SessionMark = Pick<
  SessionRow,
  'number' | 'id' | 'frames' | 'indexed' | 'endReason' | 'host' | 'pid' | 'processStarted' | 'importedFrom'
> & { facts: string };

/** Of some sessions by number and all that began later; null: of all. */
export function sessionMarks(
  store: Store,
  only: { numbers: readonly number[]; after: number } | null,
): SessionMark[] {
  const where =
    only === null ? '' : 'WHERE number > @after OR number IN (SELECT value FROM json_each(@numbers))';
  return store
    .prepare<[object], SessionMark>(
      `SELECT number, id, frames, indexed, end_reason AS endReason, host, pid, process_started AS processStarted,
         iif(imported_at IS NULL, NULL, '') AS importedFrom,
         json_array(name, transport, client_name, client_version, server_name, server_version, protocol_version, exchanges, errors,
           unanswered, dropped, truncated, ended_at, redaction) AS facts
       FROM session ${where}`,
    )
    .all(only === null ? {} : { after: only.after, numbers: JSON.stringify(only.numbers) });
}
