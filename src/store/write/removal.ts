/**
 * Takes whole sessions out of a store beside recorders that write into it. A session goes in two steps: its own row goes
 * first, in one short transaction, so that from then on no reader finds it; its other rows follow in many short ones.
 * `removal` knows what has not followed yet: a process that is killed on the way leaves a sound store, and the next one goes on.
 */
import type { Store } from '../file/open.ts';
import { prepareEvidenceOf, prepareRunPart } from './run.ts';

/** Tables whose rows may be large, in the order in which they go, with the column that makes them so. */
const LARGE: readonly { table: string; column: string }[] = [
  { table: 'http_exchange', column: 'request_headers' },
  { table: 'unfinished', column: 'bytes' },
  { table: 'frame_part', column: 'bytes' },
  { table: 'frame_edit', column: 'original' },
  { table: 'frame', column: 'payload' },
];

/** One transaction takes so much at most (or one row): other writers wait for some milliseconds. */
const ROWS_AT_ONCE = 512;

const BYTES_AT_ONCE = 1024 * 1024;

const ROWS_LOOKED_AT = 32;

export type Removal = {
  /** Something is left to be removed. */
  isDue(): boolean;
  /** Takes rows away for about `maxMs` milliseconds, at least one transaction. True: nothing is left to be removed. */
  advance(maxMs: number): boolean;
};

/** Makes sessions disappear for readers, in one transaction. */
export function hideSessions(store: Store, sessions: readonly number[]): void {
  // Otherwise SQLite would take all frames of a session along with its row, in the same transaction.
  store.pragma('foreign_keys = OFF');
  const note = store.prepare('INSERT OR IGNORE INTO removal (session) VALUES (?)');
  const forget = store.prepare('DELETE FROM session WHERE number = ?');
  const hide = store.transaction(() => {
    store.prepare('UPDATE upkeep SET scraps = 1').run();
    for (const session of sessions) {
      note.run(session);
      forget.run(session);
    }
  });
  hide.immediate();
}

/** Removes what is left of hidden sessions, no matter which process hid them. Throws SQLite's errors; then nothing is half done. */
export function createRemoval(store: Store): Removal {
  // The rows that a row refers to go along with it: checking that would only cost time.
  store.pragma('foreign_keys = OFF');
  const next = store.prepare<[], number>('SELECT session FROM removal ORDER BY session LIMIT 1').pluck();
  const done = store.prepare('DELETE FROM removal WHERE session = ?');
  const steps = [
    ...otherTables(store).map((table) => prepareSmall(store, table)),
    ...LARGE.map(({ table, column }) => prepareLarge(store, table, column)),
  ];

  const evidenceOf = prepareEvidenceOf(store);
  const partRun = prepareRunPart(store);

  const removeSome = store.transaction(() => {
    const session = next.get();
    if (session === undefined) return;
    const evidence = evidenceOf(session);
    const isEmpty = steps.every((step) => step(session) === 0);
    if (isEmpty) done.run(session);
    // What it alone had tied together are several runs from now on.
    if (evidenceOf(session).id === null) partRun(evidence);
  }).immediate;

  const isDue = () => next.get() !== undefined;

  return {
    isDue,
    advance(maxMs) {
      const deadline = performance.now() + maxMs;
      while (isDue()) {
        removeSome();
        if (performance.now() >= deadline) return !isDue();
      }
      return true;
    },
  };
}

/** Removes one session at once, in short transactions. */
export function removeSession(store: Store, session: number): void {
  const removal = createRemoval(store);
  hideSessions(store, [session]);
  removal.advance(Number.POSITIVE_INFINITY);
}

/** Whatever else has rows of sessions: what hangs on frames goes before them. */
function otherTables(store: Store): string[] {
  const known = new Set(['removal', ...LARGE.map(({ table }) => table)]);
  return store
    .prepare<[], string>(
      `SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c
       WHERE m.type = 'table' AND c.name = 'session'`,
    )
    .pluck()
    .all()
    .filter((table) => !known.has(table));
}

/** Each step removes some rows of a session, and tells how many. */
type Step = (session: number) => number;

function prepareSmall(store: Store, table: string): Step {
  const remove = store.prepare(`DELETE FROM ${table} WHERE session = ? LIMIT ${ROWS_AT_ONCE}`);
  return (session) => remove.run(session).changes;
}

function prepareLarge(store: Store, table: string, column: string): Step {
  const select = store.prepare<[number], { row: number; bytes: number }>(
    `SELECT rowid AS row, length(${column}) AS bytes FROM ${table} WHERE session = ? LIMIT ${ROWS_LOOKED_AT}`,
  );
  const remove = store.prepare(`DELETE FROM ${table} WHERE rowid = ?`);
  return (session) => {
    let removed = 0;
    let left = BYTES_AT_ONCE;
    while (removed < ROWS_AT_ONCE && left > 0) {
      const rows = select.all(session);
      if (rows.length === 0) break;
      for (const { row, bytes } of rows) {
        remove.run(row);
        removed += 1;
        left -= bytes;
        if (left <= 0) break;
      }
    }
    return removed;
  };
}
