/**
 * Which sessions are shipped where not all are: each is decided as a whole, once it has ended or has been open for long, by what is in
 * the local store. What was decided is noted with the session's progress, and stands: it does not change with the rules.
 */

import type { Store } from '../file/open.ts';
import { drawOf } from './sampling.ts';

export type ShipSampling = {
  /** The share of sessions that are shipped, from 0 to 1. */
  rate: number;
  /** A filter: sessions that have what it asks for are shipped too. */
  keep: string;
  /** A session that is open for longer is decided by what it has by then. */
  decideAfterMs: number;
};

/** Finds out which sessions have what a filter asks for. Throws `TapedeckError` `usage` for one that cannot be read. */
export type PrepareKept = (store: Store, filter: string) => Promise<(session: { number: number }) => boolean>;

/** Which of these sessions the engine knows, by their keys. */
export type FindThere = (keys: readonly string[]) => Promise<readonly { key: string }[]>;

/** A session of which nobody knows yet whether it is shipped. `startedAt` in microseconds since the Unix epoch. */
export type UndecidedSession = {
  number: number;
  key: string;
  revision: number;
  startedAt: number;
  isOver: boolean;
};

/** What the store's own sample and that of shipping make together. Null: all such sessions are there. */
export function sampleOfBoth(stored: number | null, shipped: number | null): number | null {
  return stored === null || shipped === null ? (stored ?? shipped) : stored * shipped;
}

/** Notes by which rules sessions are decided from now on; null: all are shipped. Throws SQLite's errors. */
export function noteSampling(store: Store, sampling: ShipSampling | null): void {
  const text = sampling && JSON.stringify(sampling);
  const before = store.prepare('SELECT sampling FROM shipper').pluck().get() ?? null;
  if (before === text) return;
  store.prepare('INSERT OR IGNORE INTO shipper (one) VALUES (1)').run();
  store.prepare('UPDATE shipper SET sampling = ?').run(text);
}

type Decision = UndecidedSession & {
  /** As in the table `shipped`. */
  sample: number | null;
};

/**
 * Decides for those that have ended and are indexed, and for those that have been open for long enough. Returns how many were decided.
 * Throws SQLite's errors and those of the engine; then nothing was decided.
 */
export async function decideSample(
  store: Store,
  findThere: FindThere,
  target: string,
  { rate, keep, decideAfterMs }: ShipSampling,
  undecided: readonly UndecidedSession[],
  prepareKept: PrepareKept,
): Promise<number> {
  const isIndexed = prepareIndexed(store);
  const openSince = (Date.now() - decideAfterMs) * 1000;
  const due = undecided.filter((one) => (one.isOver ? isIndexed(one.number) : one.startedAt <= openSince));
  if (due.length === 0) return 0;
  const isKept = await prepareKept(store, keep);
  const decisions = due.map((one): Decision => {
    const share = drawOf(one.key, 'ship') < rate ? rate : 0;
    return { ...one, sample: isKept(one) ? 1 : share };
  });
  const out = decisions.filter(({ sample }) => sample === 0);
  const begun = await keysThere(
    findThere,
    out.map(({ key }) => key),
  );
  // What is there in part, by other rules that this store has forgotten, becomes whole.
  for (const one of out) if (begun.has(one.key)) one.sample = null;
  noteDecisions(store, target, decisions, keep);
  return decisions.length;
}

function prepareIndexed(store: Store): (session: number) => boolean {
  const select = store
    .prepare<[number], 0 | 1>(
      `SELECT indexed >= (SELECT ifnull(max(f.seq), 0) FROM frame AS f WHERE f.session = session.number)
         FROM session WHERE number = ?`,
    )
    .pluck();
  return (session) => select.get(session) === 1;
}

const ASKED_AT_ONCE = 500;

async function keysThere(findThere: FindThere, keys: readonly string[]): Promise<ReadonlySet<string>> {
  const there = new Set<string>();
  for (let from = 0; from < keys.length; from += ASKED_AT_ONCE)
    for (const { key } of await findThere(keys.slice(from, from + ASKED_AT_ONCE))) there.add(key);
  return there;
}

/** All or none. What another shipper of this store has decided or begun meanwhile stays. */
function noteDecisions(store: Store, target: string, decisions: readonly Decision[], keep: string): void {
  const put = store.prepare(
    `INSERT INTO shipped
       (target, session, key, revision, seq, frames, bytes, indexed, digest, state, reason, at, sample)
     SELECT @target, @number, @key, @revision, 0, 0, 0, 0, zeroblob(32), @state, @reason, @at, @sample
       WHERE EXISTS (SELECT 1 FROM session WHERE number = @number)
     ON CONFLICT (target, session) DO UPDATE SET state = @state, reason = @reason, at = @at, sample = @sample
       WHERE ${isUndecidedSql('shipped')}`,
  );
  const reason = `it has nothing of \`${keep}\`, and is not of the share that is shipped`;
  store
    .transaction(() => {
      for (const { number, key, revision, sample } of decisions) {
        const isOut = sample === 0;
        put.run({
          ...{ target, number, key, revision, sample, at: Date.now() * 1000 },
          ...{ state: isOut ? 'skipped' : 'open', reason: isOut ? reason : null },
        });
      }
    })
    .immediate();
}

/** Of a row of `shipped`, or of none: nothing of the session is in the engine, and nobody has decided whether it will be. */
export function isUndecidedSql(row: string): string {
  return `(${row}.state IS NULL OR (${row}.state = 'refused' AND ${row}.frames = 0 AND ${row}.sample IS NULL))`;
}
