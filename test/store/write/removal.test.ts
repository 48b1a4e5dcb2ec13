import { expect, test } from 'vitest';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { sessionDetails } from '../../../src/store/read/sessions.ts';
import { createRemoval, hideSessions, removeSession } from '../../../src/store/write/removal.ts';
import { insertSession } from '../../../src/store/write/rows.ts';
import { plantSessions } from '../../support/planted.ts';
import { inFull } from '../../support/scale.ts';
import { tempStore } from '../../support/tapedeck.ts';

/** Rows of a session, by table: all that have a column for it. */
function rowsOf(store: Store, session: number): Record<string, number> {
  const tables = store
    .prepare<[], string>(
      "SELECT m.name FROM sqlite_schema AS m JOIN pragma_table_info(m.name) AS c WHERE m.type = 'table' AND c.name = 'session'",
    )
    .pluck()
    .all();
  return Object.fromEntries(
    tables.map((table) => [
      table,
      Number(store.prepare(`SELECT count(*) FROM ${table} WHERE session = ?`).pluck().get(session)),
    ]),
  );
}

test('a removed session has no row left in any table, and the others have all of theirs', () => {
  const store = openStore(tempStore());
  const [first = 0, second = 0] = plantSessions(store, [1e15, 1e15 + 1], 700);
  store.exec(`INSERT INTO frame_part (session, seq, part, bytes) VALUES (${first}, 1, 1, 'more')`);
  for (const session of [first, second])
    store.exec(`INSERT INTO masking (session, profile, seq, key_lines) VALUES (${session}, '{}', 0, '[]')`);
  for (const session of [first, second]) {
    store.exec(`INSERT INTO run (session, kind, key, id) VALUES (${session}, 'label', 'label a', 'a')`);
    store.exec(
      `INSERT INTO frame_fault (session, seq, number, rule, action) VALUES (${session}, 1, 1, 'drop', 'drop')`,
    );
    store.exec(
      `INSERT INTO shipped (target, session, key, revision, seq, frames, bytes, indexed, digest, state, at)
         VALUES ('engine', ${session}, 'key', 0, 1, 1, 1, 0, x'', 'open', 0)`,
    );
    store.exec(`INSERT INTO packing (session, seq) VALUES (${session}, 1)`);
    store.exec(`INSERT INTO trace (session, seq, trace_id, parent_id) VALUES (${session}, 1, 'a', 'b')`);
  }
  const { removal: _, ...planted } = rowsOf(store, first);
  for (const [table, rows] of Object.entries(planted)) expect(rows, table).toBeGreaterThan(0);
  const others = rowsOf(store, second);
  removeSession(store, first);
  for (const [table, rows] of Object.entries(rowsOf(store, first))) expect(rows, table).toBe(0);
  expect(rowsOf(store, second)).toEqual(others);
  expect(() => sessionDetails(store, first)).toThrow('removed meanwhile');
  expect(store.prepare('SELECT number FROM session').pluck().all()).toEqual([second]);
  expect(createRemoval(store).isDue()).toBe(false);
  store.close();
});

test('a hidden session is found by no reader, and a new one does not get its number before its rows are gone', () => {
  const store = openStore(tempStore());
  const [first = 0, last = 0] = plantSessions(store, [1e15, 1e15 + 1], 10);
  hideSessions(store, [last]);
  expect(store.prepare('SELECT DISTINCT session FROM frame_text').pluck().all()).toEqual(['PLANT0END']);
  const { number } = insertSession(store, START);
  expect(number).toBeGreaterThan(last);
  expect(createRemoval(store).advance(Number.POSITIVE_INFINITY)).toBe(true);
  expect(rowsOf(store, first)['frame']).toBe(10);
  store.close();
});

inFull('a session goes in many short transactions, and another connection may write between them', () => {
  const db = tempStore();
  const store = openStore(db);
  const [first = 0] = plantSessions(store, [1e15], 3000);
  const other = openStore(db);
  const removal = createRemoval(store);
  hideSessions(store, [first]);
  let transactions = 0;
  let left = Number.POSITIVE_INFINITY;
  while (!removal.advance(0)) {
    transactions += 1;
    other.exec('UPDATE upkeep SET scraps = scraps');
    const now = Object.values(rowsOf(store, first)).reduce((a, b) => a + b);
    // So many rows of each table at most.
    expect(left - now <= 8 * 512 || left === Number.POSITIVE_INFINITY).toBe(true);
    expect(now).toBeLessThan(left);
    left = now;
  }
  expect(transactions).toBeGreaterThan(5);
  other.close();
  store.close();
});

const START = {
  name: null,
  labels: [],
  basis: 'stdio-process' as const,
  transport: 'stdio' as const,
  target: 'server',
  command: null,
  cwd: null,
  at: 1,
  host: 'host',
  pid: 1,
  processStarted: null,
  clientPid: null,
  clientProgram: null,
  tapedeck: '0',
};
