import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openForReading, openStore } from '../../../src/store/file/open.ts';
import { countInFiles, plantSessions, wordOf } from '../../support/planted.ts';
import { inFull, scale } from '../../support/scale.ts';
import { indexHolds } from '../../support/secrets.ts';
import {
  BIN,
  fixture,
  latestSession,
  listSessions,
  record,
  showFrames,
  start,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const HOUR_US = 3600 * 1e6;
const LINE = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';

/** Session i ended i hours before the last one, which ended now. */
function hourly(count: number): number[] {
  return Array.from({ length: count }, (_, i) => Date.now() * 1000 - (count - 1 - i) * HOUR_US);
}

function plant(count: number, rounds: number): string {
  const db = tempStore();
  const store = openStore(db);
  plantSessions(store, hourly(count), rounds);
  store.close();
  return db;
}

async function idsOf(db: string): Promise<string[]> {
  return (await listSessions(db)).map(({ session }) => session).toSorted();
}

function count(db: string, sql: string): unknown {
  const store = openForReading(db);
  const value = store.prepare(sql).pluck().get();
  store.close();
  return value;
}

test('the dry run tells what goes and changes nothing; then exactly that goes, for good', async () => {
  const db = plant(6, 150);
  const limits = ['prune', '--older-than', '150m', '--db', db];
  const before = readFileSync(db);
  const dry = await tapedeckInProcess([...limits, '--dry-run', '--json']);
  const planned = dry.stdout.toString().split('\n').slice(0, -1);
  expect(planned.map((line) => JSON.parse(line))).toMatchObject(
    [0, 1, 2].map((i) => ({ session: wordOf(i), reason: 'age' })),
  );
  expect(readFileSync(db).equals(before)).toBe(true);

  const { code, stdout, stderr } = await tapedeckInProcess([...limits, '--json']);
  expect([code, stderr]).toEqual([0, '']);
  const done = stdout.toString().split('\n').slice(0, -1);
  expect(done.slice(0, -1)).toEqual(planned);
  expect(JSON.parse(done.at(-1) ?? '')).toMatchObject({ deleted: 3, remains: [] });
  expect(await idsOf(db)).toEqual([3, 4, 5].map(wordOf));
  expect(countInFiles(db, [0, 1, 2].map(wordOf))).toBe(0);
  expect(countInFiles(db, [wordOf(5)])).toBeGreaterThan(100);
  expect(statSync(db).size).toBeLessThan(before.length * 0.65);
});

test('the index of texts has nothing of what is gone, and finds what stays', async () => {
  const db = tempStore();
  for (const text of ['zqjwv', 'stays']) {
    const run = record(db, ['cat.js'], ['--name', text]);
    run.child.stdin.end(`${text}\n`);
    await run.ended;
  }
  const search = async (text: string) =>
    (await tapedeckInProcess(['search', text, '--db', db])).stdout.toString().includes('Nothing was found.');
  expect(await search('zqjwv')).toBe(false);
  expect(indexHolds(db, 'zqj')).toBe(true);
  expect((await tapedeckInProcess(['prune', 'zqjwv', '--db', db])).stderr).toBe('');
  for (const three of ['zqj', 'qjw', 'jwv']) expect(indexHolds(db, three), three).toBe(false);
  expect(indexHolds(db, 'ays')).toBe(true);
  expect(await search('stays')).toBe(false);
  expect(await search('zqjwv')).toBe(true);
});

test('a filter chooses what goes, another what stays, with limits and without', async () => {
  const db = tempStore();
  for (const [name, text] of [
    ['a', 'red'],
    ['b', 'red blue'],
    ['c', 'green'],
    ['d', 'red'],
  ] as const) {
    const run = record(db, ['cat.js'], ['--name', name]);
    run.child.stdin.end(`${text}\n`);
    await run.ended;
  }
  const prune = async (...args: string[]) => {
    const { code, stdout, stderr } = await tapedeckInProcess(['prune', '--db', db, '--json', ...args]);
    const lines = stdout.toString().split('\n').slice(0, -1);
    const gone = lines.map((line) => JSON.parse(line)).filter(({ session }) => session !== undefined);
    return { code, stderr, gone: gone.map(({ name, reason }) => `${name} ${reason}`) };
  };
  const red = ['--filter', 'text~red', '--dry-run'];
  expect(await prune(...red)).toMatchObject({ gone: ['a filter', 'b filter', 'd filter'] });
  expect(await prune(...red, '--keep', 'text~blue')).toMatchObject({ gone: ['a filter', 'd filter'] });
  expect(await prune(...red, '--max-sessions', '3')).toMatchObject({ gone: ['a count'] });
  expect(await prune('--max-sessions', '0', '--keep', 'text~red')).toMatchObject({ gone: ['c count'] });
  expect(await prune('--filter', 'text~red', '--keep', 'name=b')).toMatchObject({
    code: 0,
    gone: ['a filter', 'd filter'],
  });
  expect((await listSessions(db)).map(({ name }) => name)).toEqual(['b']);
  expect(await prune('--keep', 'name=b')).toMatchObject({ code: 2, gone: [] });
  expect(await prune('b', '--filter', 'name=b')).toMatchObject({ code: 2, gone: [] });
  expect(await prune('--filter', 'nmae=b')).toMatchObject({ code: 2, gone: [] });
  expect(await listSessions(db)).toHaveLength(1);
});

test('people get a table of what goes and why, and what was given back', async () => {
  const db = plant(3, 20);
  const { stdout } = await tapedeckInProcess(['prune', '--max-sessions', '2', '--db', db]);
  expect(stdout.toString()).toMatch(
    /^SESSION +NAME +STARTED +LAST +SIZE +ERRORS +WHY\nPLANT0END +PLANT0END .* 2 h 0 min ago +~[\d.]+ kB +0 +too many\n1 session deleted, [\d.]+ kB given back: the store takes [\d.]+ kB\.\n$/,
  );
});

test('a limit on the size is kept by the file', async () => {
  const db = plant(10, 150);
  const limit = Math.round(statSync(db).size / 2);
  const { code } = await tapedeckInProcess(['prune', '--max-size', String(limit), '--db', db]);
  expect(code).toBe(0);
  expect(statSync(db).size).toBeLessThanOrEqual(limit);
  expect(statSync(db).size).toBeGreaterThan(limit * 0.6);
  const kept = await idsOf(db);
  expect(kept).toEqual([...kept.keys()].map((i) => wordOf(10 - kept.length + i)));
});

test('without a limit or a session it refuses and explains', async () => {
  const db = plant(1, 5);
  const { code, stderr } = await tapedeckInProcess(['prune', '--db', db]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^tapedeck: Expected what to delete: a limit or sessions\. Examples: .*\n$/);
  expect(await idsOf(db)).toEqual([wordOf(0)]);
});

test.each([
  [['--older-than', '30'], /Expected a time after `--older-than`, got `30`/],
  [['--max-size', 'much'], /Expected a size after `--max-size`, got `much`/],
  [['--max-sessions', '1.5'], /Expected a whole number after `--max-sessions`, got `1.5`/],
  [['--keep-errors'], /`--keep-errors` goes with a limit/],
  [['--older-than', '1d', 'latest'], /either sessions or limits/],
  [['nobody'], /No session has the id or name `nobody`/],
])('prune %j is refused', async (args, message) => {
  const db = plant(1, 5);
  const { code, stderr } = await tapedeckInProcess(['prune', ...args, '--db', db]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
});

test('a store that is not there is not made', async () => {
  const db = tempStore();
  const { code, stderr } = await tapedeckInProcess(['prune', '--max-sessions', '1', '--db', db]);
  expect([code, stderr]).toEqual([2, expect.stringMatching(/There is no store at/)]);
  expect(() => statSync(db)).toThrow();
});

test('an open session stays, by name and by limit, and loses nothing', async () => {
  const db = plant(4, 20);
  const run = record(db, ['cat.js'], ['--name', 'live']);
  run.child.stdin.write(LINE);
  await until('it is stored', async () => (await latestSession(db)).frames === 2);
  const named = await tapedeckInProcess(['prune', 'live', '--db', db]);
  expect([named.code, named.stderr]).toEqual([2, expect.stringMatching(/is being recorded/)]);
  const { code } = await tapedeckInProcess(['prune', '--max-sessions', '0', '--db', db]);
  expect(code).toBe(0);
  run.child.stdin.end(LINE);
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  expect(await listSessions(db)).toMatchObject([{ name: 'live', frames: 4, dropped: 0, exitCode: 0 }]);
  expect(countInFiles(db, [0, 1, 2, 3].map(wordOf))).toBe(0);
});

test('an imported session counts as new, however old its recording is', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js']);
  run.child.stdin.end(LINE);
  await run.ended;
  const aged = openStore(db);
  aged.exec('UPDATE session SET started_at = 1e15, ended_at = 1e15 + 2; UPDATE frame SET at = 1e15 + 1');
  aged.close();
  const file = join(tempFolder(), 'old.ndjson');
  for (const args of [
    ['export', '--output', file],
    ['import', file, '--name', 'imported'],
    ['prune', '--older-than', '1d'],
  ])
    expect(await tapedeckInProcess([...args, '--db', db])).toMatchObject({ code: 0 });
  expect(await listSessions(db)).toMatchObject([{ name: 'imported', frames: 2 }]);
});

inFull(
  'killed with -9 in the midst it leaves a sound store, and the next one finishes',
  async () => {
    const kills = scale(5, 2);
    for (let i = 0; i < kills; i += 1) {
      const db = plant(8, 500);
      const { child, ended } = tapedeck(['prune', '--max-sessions', '1', '--db', db]);
      await until('it has begun', () => Number(count(db, 'SELECT count(*) FROM removal')) > 0);
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150));
      child.kill('SIGKILL');
      await ended;
      expect(count(db, 'PRAGMA integrity_check')).toBe('ok');
      expect(await idsOf(db)).toEqual([wordOf(7)]);
      // What is recorded meanwhile does not become part of what is on its way out.
      const run = record(db, ['cat.js']);
      run.child.stdin.end(LINE);
      await run.ended;
      const { code } = await tapedeckInProcess(['prune', '--max-sessions', '2', '--db', db]);
      expect(code).toBe(0);
      expect(await showFrames(db)).toHaveLength(2);
      expect(
        countInFiles(
          db,
          Array.from({ length: 7 }, (_, n) => wordOf(n)),
        ),
      ).toBe(0);
    }
  },
  180_000,
);

inFull('several that prune at once delete no more than one would, and recorders lose nothing', async () => {
  const db = plant(12, 150);
  const lines = `${'x'.repeat(500)}\n`.repeat(4000);
  const recorders = [record(db, ['cat.js'], ['--name', 'a']), record(db, ['cat.js'], ['--name', 'b'])];
  for (const { child } of recorders) child.stdin.write(lines);
  await until(
    'both are stored',
    () => count(db, "SELECT count(*) FROM session WHERE name IN ('a', 'b')") === 2,
  );
  const prunes = [1, 2, 3].map(() => tapedeck(['prune', '--max-sessions', '8', '--db', db]).ended);
  for (const ended of prunes) expect(await ended).toMatchObject({ code: 0 });
  for (const { child } of recorders) child.stdin.end(lines);
  for (const { ended } of recorders) expect(await ended).toMatchObject({ code: 0, stderr: '' });
  const sessions = await listSessions(db);
  expect(sessions).toHaveLength(8);
  expect(sessions.filter(({ name }) => name === 'a' || name === 'b')).toMatchObject([
    { frames: 16_000, dropped: 0 },
    { frames: 16_000, dropped: 0 },
  ]);
  expect(count(db, 'PRAGMA integrity_check')).toBe('ok');
});

inFull('on a disk that is nearly full it makes room', async () => {
  const folder = tempFolder();
  const db = plant(6, 300);
  const kilobytes = Math.round(statSync(db).size / 1024) + 4096;
  const node = `'${process.execPath}'`;
  const script = [
    `mount -t tmpfs -o size=${kilobytes}k tmpfs '${folder}'`,
    `cp '${db}' '${folder}/x.db'`,
    `${node} '${BIN}' prune --max-sessions 2 --db '${folder}/x.db'`,
    `${node} '${fixture('sound.js')}' '${folder}/x.db'`,
  ].join(' && ');
  const inNamespace = ['--user', '--map-root-user', '--mount', 'sh', '-c', script];
  const { code, stdout, stderr } = await start('unshare', inNamespace).ended;
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout.toString()).toMatch(/4 sessions deleted/);
});
