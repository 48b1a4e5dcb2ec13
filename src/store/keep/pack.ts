/**
 * Packs the payloads of sessions that have ended, frame by frame. A recorder never packs what it stores: that would take it more time
 * than all the rest of its work.
 *
 * Each transaction is short: what it writes was packed before it. It also says in `packing` how far it has come, so that a process
 * that is killed leaves a sound store, in which some frames are packed, and the next one goes on from there.
 */

import { DEFLATE, packed } from '../file/codec.ts';
import type { Store } from '../file/open.ts';
import { type Candidate, candidates, isOpen } from './retention.ts';

/** One transaction takes so much at most (or one piece of a frame): other writers wait for some milliseconds. */
const ROWS_AT_ONCE = 256;

const BYTES_AT_ONCE = 256 * 1024;

export type Packing = {
  /** Packs for about `maxMs` milliseconds, at least one transaction. True: nothing is left. Throws SQLite's errors. */
  advance(maxMs: number): boolean;
  /** What was gained so far: bytes of payloads, before and after, and how many frames or parts of frames were packed. */
  gained(): { rows: number; before: number; after: number };
};

/**
 * Sessions, by number, that ended at least so long ago, in milliseconds, and are not wholly packed. To be called, as all of this,
 * by whoever has the turn (turn.ts): what `redact` and `prune` rewrite is nothing to be packed meanwhile.
 */
export function packable(store: Store, afterMs: number): number[] {
  const now = Date.now() * 1000;
  const upTo = packedUpTo(store);
  const isDue = (session: Candidate) =>
    session.lastAt <= now - afterMs * 1000 &&
    session.frames > (upTo.get(session.number) ?? 0) &&
    !isOpen(session, now);
  return candidates(store)
    .filter(isDue)
    .map(({ number }) => number);
}

function packedUpTo(store: Store): ReadonlyMap<number, number> {
  return new Map(store.prepare<[], [number, number]>('SELECT session, seq FROM packing').raw().all());
}

type Row = { rowid: number; seq: number; bytes: Buffer };

type Part = Row & { part: number };

/** What a row held, and what it is to hold. */
type Change = { rowid: number; bytes: Buffer; smaller: Buffer };

export function createPacking(store: Store, sessions: readonly number[]): Packing {
  const due = [...sessions];
  const upTo = store.prepare<[number], number>('SELECT seq FROM packing WHERE session = ?').pluck();
  // A session may have gone since it was chosen.
  const come = store.prepare(
    'INSERT OR REPLACE INTO packing (session, seq) SELECT number, ? FROM session WHERE number = ?',
  );
  const framesAfter = prepareFrames(store);
  const nextPart = store.prepare<[number, number, number, number], Part>(
    `SELECT rowid, seq, part, bytes FROM frame_part
     WHERE session = ? AND (seq, part) > (?, ?) AND seq <= ? AND codec IS NULL ORDER BY seq, part LIMIT 1`,
  );
  const [putFrame, putPart] = [
    preparePut(store, 'frame', 'payload'),
    preparePut(store, 'frame_part', 'bytes'),
  ];
  const gained = { rows: 0, before: 0, after: 0 };
  /** The last part that was looked at, of the session at hand. */
  let tried = { seq: 0, part: 0 };

  function save(put: (change: Change) => boolean, changes: readonly Change[], mark: () => void): void {
    const write = store.transaction(() => {
      mark();
      return changes.filter(put);
    });
    for (const { bytes, smaller } of write.immediate()) {
      gained.rows += 1;
      gained.before += bytes.length;
      gained.after += smaller.length;
    }
  }

  /** One transaction. True: nothing is left of this session. */
  function packSome(session: number): boolean {
    const from = upTo.get(session) ?? 0;
    const { rows, last } = framesAfter(session, from);
    if (last === undefined) return true;
    if (tried.seq <= from) tried = { seq: from, part: Number.MAX_SAFE_INTEGER };
    // A large frame counts as packed after its parts.
    const part = nextPart.get(session, tried.seq, tried.part, last);
    if (part !== undefined) {
      tried = part;
      save(putPart, changesOf([part]), () => {});
      return false;
    }
    let isGone = false;
    save(putFrame, changesOf(rows), () => {
      isGone = come.run(last, session).changes === 0;
    });
    return isGone;
  }

  return {
    advance(maxMs) {
      const deadline = performance.now() + maxMs;
      for (let session = due[0]; session !== undefined; [session] = due) {
        if (packSome(session)) {
          due.shift();
          tried = { seq: 0, part: 0 };
        }
        if (performance.now() >= deadline) break;
      }
      return due.length === 0;
    },
    gained: () => gained,
  };
}

/** Some frames behind one that may be packed, and the last one that was looked at; undefined: there are none behind it. */
function prepareFrames(store: Store): (session: number, seq: number) => { rows: Row[]; last?: number } {
  const select = store.prepare<[number, number], Row & { codec: string | null }>(
    `SELECT rowid, seq, codec, payload AS bytes FROM frame WHERE session = ? AND seq > ? ORDER BY seq LIMIT ${ROWS_AT_ONCE}`,
  );
  return (session, seq) => {
    const rows: Row[] = [];
    let bytes = 0;
    let last: number | undefined;
    for (const row of select.iterate(session, seq)) {
      last = row.seq;
      bytes += row.bytes.length;
      if (row.codec === null) rows.push(row);
      if (bytes >= BYTES_AT_ONCE) break;
    }
    return last === undefined ? { rows } : { rows, last };
  };
}

function changesOf(rows: readonly Row[]): Change[] {
  return rows.flatMap(({ rowid, bytes }) => {
    const smaller = packed(bytes);
    return smaller === null ? [] : [{ rowid, bytes, smaller }];
  });
}

/**
 * Only in the place of the very bytes that were packed: true. Somebody may have rewritten them meanwhile. A row that only becomes
 * smaller leaves its page half empty; where it is taken out of its place and put back, SQLite joins such pages.
 */
function preparePut(store: Store, table: string, column: string): (change: Change) => boolean {
  const put = store.prepare(
    `UPDATE ${table} SET rowid = -rowid, ${column} = ?, codec = '${DEFLATE}', unpacked = ?
     WHERE rowid = ? AND codec IS NULL AND ${column} = ?`,
  );
  const putBack = store.prepare(`UPDATE ${table} SET rowid = -rowid WHERE rowid = -?`);
  return ({ rowid, bytes, smaller }) => {
    if (put.run(smaller, bytes.length, rowid, bytes).changes === 0) return false;
    putBack.run(rowid);
    return true;
  };
}
