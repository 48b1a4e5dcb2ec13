/**
 * Decides which sessions are kept once they have ended, where a filter says so (`record --keep`). By what the row of each session
 * says, so that whoever comes next can do it where a recorder was killed.
 */

import { hostname } from 'node:os';
import type { Store } from '../../store/file/open.ts';
import { isAlive } from '../../store/file/process.ts';
import { stateOf } from '../../store/read/sessions.ts';
import type { OpenDecision } from '../../store/sample/sampling.ts';
import { reindexSession } from '../../store/write/index.ts';
import { parseFilter } from '../filter/filter.ts';
import { prepareSessionTest } from '../filter/sql.ts';

type Row = {
  number: number;
  sampling: string;
  endReason: null;
  host: string;
  pid: number;
  processStarted: string | null;
  isBehind: 0 | 1;
};

/** A session that has ended, and by what it is decided. */
type Due = { number: number; decision: OpenDecision };

/**
 * Decides for every session that has ended. Returns how many have not, or whose recorder is still indexing them. Throws SQLite's
 * errors; each decision is a transaction of its own.
 */
export function decideEnded(store: Store): number {
  const rows = undecided(store);
  const due = rows.filter(isReady).map((row) => {
    // Its recorder is gone, so nobody else completes it.
    if (row.isBehind === 1) reindexSession(store, row.number);
    return { number: row.number, decision: JSON.parse(row.sampling) as OpenDecision };
  });
  for (const keep of new Set(due.map(({ decision }) => decision.keep)))
    decide(
      store,
      keep,
      due.filter(({ decision }) => decision.keep === keep),
    );
  return rows.length - due.length;
}

function undecided(store: Store): Row[] {
  return store
    .prepare<[], Row>(
      `SELECT number, sampling, end_reason AS endReason, host, pid, process_started AS processStarted,
         indexed < (SELECT ifnull(max(f.seq), 0) FROM frame AS f WHERE f.session = session.number) AS isBehind
       FROM session WHERE sampling IS NOT NULL`,
    )
    .all();
}

function isReady(row: Row): boolean {
  if (stateOf(row) === 'open') return false;
  return row.isBehind === 0 || row.host !== hostname() || !isAlive(row.pid, row.processStarted);
}

function decide(store: Store, keep: string | null, due: readonly Due[]): void {
  const put = store.prepare('UPDATE session SET sample = ?, sampling = NULL WHERE number = ?');
  const isKept = keep === null ? null : prepareKept(store, keep);
  for (const { number, decision } of due) put.run(sampleOf(decision, isKept, number), number);
}

/** `isKept` null: its recorder was killed before it knew what names the session. Then it stays, as one that all are kept of. */
function sampleOf(
  { rate, draw }: OpenDecision,
  isKept: ((session: { number: number }) => boolean) | null,
  number: number,
): number | null {
  if (isKept === null) return null;
  if (isKept({ number })) return 1;
  return draw < rate ? rate : 0;
}

/** Whether sessions of this store have what a filter asks for. Throws `TapedeckError` `usage` for one that cannot be read. */
export function prepareKept(store: Store, keep: string): (session: { number: number }) => boolean {
  const { candidates, holds } = prepareSessionTest(store, parseFilter(keep, Date.now() * 1000));
  const among = new Set(candidates);
  return (session) => among.has(session.number) && holds(session);
}
