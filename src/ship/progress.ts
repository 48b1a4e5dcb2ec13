/** What a store notes of its being shipped: to where, what is in the way, and how far each session has come. What the engine says counts. */

import type { Store } from '../store/file/open.ts';
import { NO_DIGEST } from './digest.ts';

type ShipState = 'open' | 'sealed' | 'skipped' | 'refused';

export type SessionProgress = {
  /** In the local store. */
  readonly number: number;
  readonly key: string;
  /** UTC, on which it began: `2026-11-23`. */
  readonly day: string;
  revision: number;
  /** The last frame that the engine has, how many there are up to it, and their sizes together. */
  seq: number;
  frames: number;
  bytes: number;
  digest: Buffer;
  /** How many parts the engine has of the frame after that, where it is a large one. */
  part: number;
  /** Messages are there up to this frame. */
  indexed: number;
  /** Null: we do not know which HTTP exchanges the engine has. */
  exchanges: ExchangeProgress | null;
  /** What of `unfinished` is there, as a word that changes with it; null: we do not know. */
  unfinished: string | null;
  /** The engine's row of the session says what the local one did at this number of its own. */
  amendments: number;
  state: ShipState;
  reason: string | null;
};

/** Exchanges are there up to this number; those that had not ended by then, with a word that changes with them. */
export type ExchangeProgress = { upTo: number; open: ReadonlyMap<number, string> };

/** What a slice changes. */
export type Advance = Pick<
  SessionProgress,
  | 'revision'
  | 'seq'
  | 'frames'
  | 'bytes'
  | 'digest'
  | 'part'
  | 'indexed'
  | 'exchanges'
  | 'unfinished'
  | 'amendments'
  | 'state'
>;

type Row = Pick<
  SessionProgress,
  'key' | 'revision' | 'seq' | 'frames' | 'bytes' | 'digest' | 'indexed' | 'amendments' | 'state' | 'reason'
>;

export type ProgressBook = {
  /** What is known of a session; a session of which nothing is known begins at its beginning. */
  of(session: { number: number; key: string; day: string; revision: number }): SessionProgress;
  /** Says that it has changed, and is to be written. */
  change(progress: SessionProgress, to: Partial<Advance & { reason: string | null }>): void;
  forget(number: number): void;
  /** A transaction has ended so. */
  count(end: TransactionEnd): void;
  /**
   * Writes what has changed into the store, with what is counted of it: both or nothing, so that a kill costs the counts of at
   * most the transactions since. Throws SQLite's errors; then nothing is lost.
   */
  save(): void;
};

/** `refused`: the engine does not take a session's rows; `failed`: what is in the way of all of them. */
type TransactionEnd = 'committed' | 'refused' | 'failed';

export function createProgressBook(store: Store, target: string): ProgressBook {
  const select = store.prepare<[string, number], Row>(
    `SELECT key, revision, seq, frames, bytes, digest, indexed, amendments, state, reason FROM shipped
       WHERE target = ? AND session = ?`,
  );
  const put = store.prepare(
    `INSERT OR REPLACE INTO shipped
       (target, session, key, revision, seq, frames, bytes, indexed, digest, amendments, state, reason, at, sample)
     SELECT @target, @number, @key, @revision, @seq, @frames, @bytes, @indexed, @digest, @amendments, @state, @reason, @at,
       -- What was on its way when another shipper left it out of the sample is there now.
       (SELECT nullif(p.sample, 0) FROM shipped AS p WHERE p.target = @target AND p.session = @number AND p.key = @key)
       WHERE EXISTS (SELECT 1 FROM session WHERE number = @number)`,
  );
  const add = store.prepare(
    `UPDATE shipper SET frames = frames + @frames, bytes = bytes + @bytes, committed = committed + @committed,
       refused = refused + @refused, failed = failed + @failed, committed_at = ifnull(@committedAt, committed_at)`,
  );
  const known = new Map<number, SessionProgress>();
  const changed = new Set<SessionProgress>();
  let counts = { ...NO_COUNTS };

  const saveAll = store.transaction(() => {
    let [frames, bytes] = [0, 0];
    for (const { exchanges: _, unfinished: __, part: ___, ...row } of changed) {
      const before = select.get(target, row.number);
      const isKnown = before?.key === row.key;
      const { changes } = put.run({ ...row, target, at: Date.now() * 1000 });
      if (changes === 0) continue;
      frames += Math.max(0, row.frames - (isKnown ? before.frames : 0));
      bytes += Math.max(0, row.bytes - (isKnown ? before.bytes : 0));
    }
    add.run({ ...counts, frames, bytes });
  }).immediate;

  return {
    of({ number, key, day, revision }) {
      const before = known.get(number);
      if (before?.key === key) return before;
      const row = select.get(target, number);
      const progress: SessionProgress = {
        ...{ number, key, day, revision, ...AT_THE_BEGINNING, state: 'open' as const, reason: null },
        // A session that has taken the number of another one has a key of its own.
        ...(row?.key === key ? { ...row, exchanges: null, unfinished: null } : {}),
      };
      known.set(number, progress);
      return progress;
    },
    change(progress, to) {
      Object.assign(progress, to);
      changed.add(progress);
    },
    forget(number) {
      const progress = known.get(number);
      if (progress !== undefined) changed.delete(progress);
      known.delete(number);
    },
    count(end) {
      counts[end] += 1;
      if (end === 'committed') counts.committedAt = Date.now() * 1000;
    },
    save() {
      if (changed.size === 0 && counts.committed + counts.refused + counts.failed === 0) return;
      saveAll();
      changed.clear();
      counts = { ...NO_COUNTS };
    },
  };
}

/** `committedAt`: in microseconds since the Unix epoch. */
const NO_COUNTS = { committed: 0, refused: 0, failed: 0, committedAt: null as number | null };

/** Nothing is there. */
export const AT_THE_BEGINNING = {
  ...{ seq: 0, frames: 0, bytes: 0, digest: NO_DIGEST, part: 0, indexed: 0 },
  exchanges: null,
  unfinished: null,
  amendments: 0,
} as const;

/** From now on this store is shipped to this engine. What is not there yet is kept by `prune`. */
export function noteTarget(
  store: Store,
  target: string,
  { imported, unredacted }: { imported: boolean; unredacted: boolean },
): void {
  store.prepare('INSERT OR IGNORE INTO shipper (one) VALUES (1)').run();
  store
    .prepare('UPDATE shipper SET target = ?, imported = ?, unredacted = ?')
    .run(target, Number(imported), Number(unredacted));
}

/** Null: nothing is in the way. Where it cannot be noted, it is at least said. */
export function noteTrouble(store: Store, text: string | null): void {
  try {
    store.prepare('INSERT OR IGNORE INTO shipper (one) VALUES (1)').run();
    store.prepare('UPDATE shipper SET trouble = ?').run(text);
  } catch {
    // A full disk, or somebody else at work.
  }
}
