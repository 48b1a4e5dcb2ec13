import { statSync } from 'node:fs';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/file/open.ts';
import { countInFiles, plantSessions, wordOf } from '../../support/planted.ts';
import { inFull, scale } from '../../support/scale.ts';
import {
  listSessions,
  type Run,
  record,
  showFrames,
  tapedeckInProcess,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const MB = 1024 * 1024;
const LINE = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';
const DAY_US = 24 * 3600 * 1e6;

/** The largest size on disk of the store with its WAL, from now on. */
function watchSize(db: string): () => number {
  let largest = 0;
  const look = () => {
    // The last recorder takes the WAL away when it likes, also between two questions.
    const sizes = [db, `${db}-wal`].map((file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0);
    largest = Math.max(largest, ...sizes, (sizes[0] ?? 0) + (sizes[1] ?? 0));
  };
  const timer = setInterval(look, 2);
  return () => {
    clearInterval(timer);
    look();
    return largest;
  };
}

async function expectWhole(run: Run, megabytes: number): Promise<void> {
  const { code, stdout, stderr } = await run.ended;
  expect([code, stdout.length, stderr]).toEqual([0, megabytes * MB, '']);
}

inFull(
  'a store within 5 MB that gets 20 MB stays within 7.5 MB, and its newest sessions are whole',
  async () => {
    const db = tempStore();
    const largest = watchSize(db);
    const count = scale(20, 10);
    for (let i = 0; i < count; i += 1)
      await expectWhole(record(db, ['flood.js', '1'], ['--max-size', '5mb', '--name', `s${i}`]), 1);
    expect(largest()).toBeLessThan(7.5 * MB);
    const sessions = await listSessions(db);
    expect(sessions.map(({ name }) => name)).toEqual(sessions.map((_, i) => `s${count - 1 - i}`));
    expect(sessions.length).toBeGreaterThanOrEqual(2);
    for (const { frames, dropped } of sessions) expect([frames, dropped]).toEqual([1024, 0]);
    expect(statSync(db).size).toBeLessThanOrEqual(5 * MB);
  },
  300_000,
);

inFull(
  'several recorders keep one store within its limit together',
  async () => {
    const db = tempStore();
    const largest = watchSize(db);
    const options = ['--max-size', '24mb'];
    const lanes = [0, 1, 2].map(async () => {
      for (let i = 0; i < 12; i += 1) await expectWhole(record(db, ['flood.js', '1'], options), 1);
    });
    await Promise.all(lanes);
    expect(largest()).toBeLessThan(36 * MB);
    for (const { frames, dropped } of await listSessions(db)) expect([frames, dropped]).toEqual([1024, 0]);
  },
  300_000,
);

test('one open session that is larger than the limit goes on whole, and that is said once', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js'], ['--max-size', '1mb']);
  const block = `${'y'.repeat(1000)}\n`.repeat(500);
  for (let i = 1; i <= 6; i += 1) {
    run.child.stdin.write(block);
    await until('it is stored', async () => (await listSessions(db).catch(() => []))[0]?.frames === i * 1000);
  }
  await until('it is said', () => run.stderr().includes('--max-size'));
  run.child.stdin.end();
  const { code, stderr } = await run.ended;
  expect([code, stderr]).toEqual([
    0,
    'tapedeck: open sessions alone take more than --max-size; they are not deleted until they end\n',
  ]);
  expect(await listSessions(db)).toMatchObject([{ frames: 6000, dropped: 0 }]);
});

test('a recorder deletes what is too old while it records, for good, but for sessions with errors', async () => {
  const db = tempStore();
  const store = openStore(db);
  const ends = [40, 35, 31, 20].map((days) => Date.now() * 1000 - days * DAY_US);
  plantSessions(store, ends, 60);
  const gone = [wordOf(0), wordOf(2)];
  const before = countInFiles(db, gone);
  store.exec(`UPDATE session SET errors = 1 WHERE id = '${wordOf(1)}'`);
  store.close();
  const run = record(db, ['cat.js'], ['--older-than', '30d', '--keep-errors', '--name', 'live']);
  run.child.stdin.write(LINE);
  await until('they are gone', async () => (await listSessions(db)).length === 3);
  run.child.stdin.end(LINE);
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  const names = (await listSessions(db)).map(({ name }) => name).toSorted();
  expect(names).toEqual([wordOf(1), wordOf(3), 'live'].toSorted());
  expect(await showFrames(db, 'live')).toHaveLength(4);
  // Scraps in part-filled pages are left to who has the time.
  expect(countInFiles(db, gone)).toBeLessThan(before / 50);
  expect(await tapedeckInProcess(['prune', '--max-sessions', '99', '--db', db])).toMatchObject({ code: 0 });
  expect(countInFiles(db, gone)).toBe(0);
});

test('a session larger than the limit stays when it has ended, until the next recorder', async () => {
  const db = tempStore();
  const options = ['--max-size', '1mb'];
  await record(db, ['flood.js', '3'], [...options, '--name', 'large']).ended;
  expect((await listSessions(db)).map(({ name }) => name)).toEqual(['large']);
  const run = record(db, ['cat.js'], [...options, '--name', 'next']);
  run.child.stdin.write(LINE);
  await until('it is gone', async () => (await listSessions(db)).length === 1);
  run.child.stdin.end();
  await run.ended;
  expect(await listSessions(db)).toMatchObject([{ name: 'next', frames: 2 }]);
});

inFull(
  'a recorder that is killed while it deletes leaves a sound store, and the next one goes on',
  async () => {
    const db = tempStore();
    const store = openStore(db);
    plantSessions(
      store,
      Array.from({ length: 8 }, (_, i) => 1e15 + i),
      500,
    );
    const removals = () => Number(store.prepare('SELECT count(*) FROM removal').pluck().get());
    const options = ['--max-sessions', '1'];
    const killed = record(db, ['numbered.js'], options);
    await until('it has begun', () => removals() > 0);
    killed.child.kill('SIGKILL');
    await killed.ended;
    expect(removals()).toBeGreaterThan(0);
    expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
    const run = record(db, ['cat.js'], [...options, '--name', 'next']);
    run.child.stdin.write(LINE);
    await until('all is gone', () => removals() === 0);
    run.child.stdin.end();
    expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
    expect(store.prepare('SELECT count(DISTINCT session) FROM frame').pluck().get()).toBe(1);
    store.close();
  },
);
