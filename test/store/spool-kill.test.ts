import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { spoolsOf } from '../../src/store/file/spool.ts';
import { query } from '../support/http-record.ts';
import { storeOnce } from '../support/once.ts';
import { IS_FULL, sample, scale } from '../support/scale.ts';
import { hasFrames, spoolSession } from '../support/spools.ts';
import { listSessions, type Run, record, tapedeck, tempStore, until } from '../support/tapedeck.ts';

/** Taking in is in many transactions: each takes 1 MiB. */
const LINES = IS_FULL ? 20_000 : 2000;

const LINE = `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"${'y'.repeat(3000)}"}}`;

const framesIn = (db: string) =>
  query<{ n: number }>(db, 'SELECT ifnull(sum(frames), 0) AS n FROM session')[0]?.n ?? 0;

const OWN_LINES = 1000;

/** Kills `run` once some more frames have come into the store, at a moment that chance chooses. */
async function killWhileTakingIn(db: string, run: Run, most: number, all: number): Promise<void> {
  const enough = framesIn(db) + Math.random() * most;
  await until('some are taken in', () => framesIn(db) > enough || framesIn(db) === all);
  run.child.kill('SIGKILL');
  await run.ended;
}

/** Nothing is missing, and nothing there twice. */
async function expectWhole(db: string, name: string, frames: number): Promise<void> {
  const sessions = (await listSessions(db)).filter((session) => session.name === name);
  expect(sessions).toMatchObject([{ frames, dropped: 0 }]);
  expect(spoolsOf(db)).toEqual([]);
  expect(query(db, 'PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  const numbers = 'count(*) AS count, count(DISTINCT seq) AS numbers, min(seq) AS first, max(seq) AS last';
  const where = `session = (SELECT number FROM session WHERE name = '${name}')`;
  expect(query(db, `SELECT ${numbers} FROM frame WHERE ${where}`)).toEqual([
    { count: frames, numbers: frames, first: 1, last: frames },
  ]);
}

const storeWithSpool = storeOnce(async (db) => {
  openStore(db).close();
  spoolSession(db, 'left', Array(LINES).fill(LINE)).close();
});

test.each(
  sample([
    ['a reader', scale(30, 3), (db: string) => tapedeck(['list', '--db', db])],
    // It begins with that two seconds after its start.
    ['a recorder', scale(10, 1), (db: string) => record(db, ['cat.js'])],
  ] as const),
)(
  'killed with -9 at any moment, %s that takes a spool in loses nothing of it and takes nothing twice',
  async (_, kills, startTaker) => {
    const db = await storeWithSpool();
    for (let kill = 0; kill < kills && spoolsOf(db).length > 0; kill += 1)
      await killWhileTakingIn(db, startTaker(db), LINES / kills, LINES);
    await expectWhole(db, 'left', LINES);
  },
  300_000,
);

test('killed with -9 at any moment, a recorder that takes its own spool in loses nothing of it and takes nothing twice', async () => {
  for (let kill = 0; kill < scale(10, 1); kill += 1) {
    const db = tempStore();
    openStore(db).close();
    const lock = new Database(db);
    lock.exec('BEGIN IMMEDIATE');
    const run = record(db, ['cat.js'], ['--name', 'own']);
    run.child.stdin.write(`${LINE}\n`.repeat(OWN_LINES));
    await until('all is kept', () => spoolsOf(db).some((spool) => hasFrames(spool, 2 * OWN_LINES)));
    lock.exec('ROLLBACK');
    lock.close();
    await killWhileTakingIn(db, run, 2 * OWN_LINES, 2 * OWN_LINES);
    await expectWhole(db, 'own', 2 * OWN_LINES);
  }
}, 300_000);
