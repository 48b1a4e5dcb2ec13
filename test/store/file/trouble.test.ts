import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/file/open.ts';
import { spoolsOf } from '../../../src/store/file/spool.ts';
import { query } from '../../support/http-record.ts';
import { inFull, sample, scale } from '../../support/scale.ts';
import { hasFrames, spoolSession } from '../../support/spools.ts';
import {
  BIN,
  fixture,
  latestSession,
  listSessions,
  type Run,
  record,
  showFrames,
  start,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const LINE = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n';

/** Sends lines through a relay to `cat.js` and expects them back, and the server's own exit code. */
async function expectUnharmedTraffic(
  { child, ended }: Run,
  lines = LINE.repeat(100),
  expected = lines,
): Promise<string> {
  child.stdin.end(lines);
  const { code, signal, stdout, stderr } = await ended;
  expect({ code, signal }).toEqual({ code: 0, signal: null });
  expect(stdout.toString()).toBe(expected);
  return stderr;
}

function expectOneComplaint(stderr: string, reason: RegExp): void {
  expect(stderr.split('\n')).toHaveLength(2);
  expect(stderr).toMatch(reason);
  expect(stderr).toMatch(/^tapedeck: .*Traffic goes on; what cannot be recorded is counted\.\n$/);
}

test('a folder that is a file harms no traffic and is said once', async () => {
  const file = join(tempFolder(), 'plain');
  writeFileSync(file, '');
  expectOneComplaint(
    await expectUnharmedTraffic(record(join(file, 'x.db'), ['cat.js'])),
    /EEXIST|ENOTDIR|not a folder/,
  );
});

test('missing rights harm no traffic and are said once', async () => {
  const folder = tempFolder();
  chmodSync(folder, 0o500);
  const command = [process.execPath, BIN, 'record', '--db', join(folder, 'x.db'), '--'];
  const server = [process.execPath, fixture('cat.js')];
  // Root may write anywhere, unless it gives that up.
  const asUser = ['setpriv', '--bounding-set=-dac_override,-dac_read_search'];
  const [program = '', ...args] = [...(process.getuid?.() === 0 ? asUser : []), ...command, ...server];
  expectOneComplaint(await expectUnharmedTraffic(start(program, args)), /access is denied/);
});

test('a damaged store harms no traffic, is said once, and stays as it was', async () => {
  const db = tempStore();
  const rubbish = Buffer.alloc(50_000, 'rubbish');
  writeFileSync(db, rubbish);
  expectOneComplaint(await expectUnharmedTraffic(record(db, ['cat.js'])), /not an SQLite database/);
  expect(readFileSync(db).equals(rubbish)).toBe(true);
});

test('a store of a newer tapedeck harms no traffic, is said once, and stays as it was', async () => {
  const db = tempStore();
  const store = openStore(db);
  store.pragma('user_version = 99');
  store.close();
  expectOneComplaint(
    await expectUnharmedTraffic(record(db, ['cat.js'])),
    /written by a newer tapedeck \(store version 99/,
  );
  const again = new Database(db, { readonly: true });
  expect(again.pragma('user_version', { simple: true })).toBe(99);
  again.close();
});

test('another program’s database harms no traffic, is said once, and stays as it was', async () => {
  const db = tempStore();
  const other = new Database(db);
  other.exec('CREATE TABLE mine (a)');
  other.close();
  expectOneComplaint(await expectUnharmedTraffic(record(db, ['cat.js'])), /another program's database/);
});

const REMOVALS: [name: string, remove: (db: string) => void][] = [
  ['removed', (db) => rmSync(db)],
  ['removed with its folder', (db) => rmSync(dirname(db), { recursive: true })],
  ['moved away', (db) => renameSync(db, `${db}.old`)],
];

test.each([...sample(REMOVALS), ['replaced', replaceStore] as const])(
  'of a store that is %s, which is said once, what passes after it is kept',
  async (_, remove) => {
    const db = join(tempFolder(), 'of-its-own', 'recordings.db');
    const run = record(db, ['cat.js'], ['--name', 'it']);
    run.child.stdin.write(LINE);
    const stored = async () => (await latestSession(db).catch(() => undefined))?.frames;
    await until('the line is stored', async () => (await stored()) === 2);
    remove(db);
    run.child.stdin.write(LINE);
    await until('the next one is kept', async () => (await stored()) === 2 && run.stderr() !== '');
    run.child.stdin.end(LINE.repeat(2));
    const { code, stdout, stderr } = await run.ended;
    expect([code, stdout.toString()]).toEqual([0, LINE.repeat(4)]);
    expectOneComplaint(stderr, /removed or replaced/);
    const sessions = (await listSessions(db)).filter(({ name }) => name === 'it');
    expect(sessions).toMatchObject([{ frames: 6, dropped: 2, endReason: 'client-closed' }]);
    expect((await showFrames(db)).map(({ seq }) => seq)).toEqual([3, 4, 5, 6, 7, 8]);
    expect(spoolsOf(db)).toEqual([]);
  },
);

/** By one that has a session of the same number. */
function replaceStore(db: string): void {
  const other = join(tempFolder(), 'other.db');
  spoolSession(other, 'other', [LINE]).close();
  renameSync(spoolsOf(other)[0] ?? '', other);
  for (const end of ['-wal', '-shm']) rmSync(db + end);
  renameSync(other, db);
}

test('--strict ends a server whose store is removed', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js'], ['--strict']);
  run.child.stdin.write(LINE);
  await until('the line is back', () => run.stdout().includes(LINE));
  rmSync(db);
  run.child.stdin.write(LINE);
  expect((await run.ended).code).toBe(1);
});

inFull('trouble with the index alone is not told, and ends no server, even with --strict', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js'], ['--strict']);
  run.child.stdin.write(LINE);
  await until('the line is back', () => run.stdout().includes(LINE));
  const store = new Database(db);
  store.exec('DROP TABLE message');
  const stored = store.prepare<[], number>('SELECT count(*) FROM frame').pluck();
  run.child.stdin.write(LINE);
  await until('the next line is stored', () => stored.get() === 4);
  expect(await expectUnharmedTraffic(run, LINE, LINE.repeat(3))).toBe('');
  expect(stored.get()).toBe(6);
  store.close();
});

test('a lock that passes costs nothing: what waited is stored', async () => {
  const db = tempStore();
  openStore(db).close();
  const lock = start(process.execPath, [fixture('hold-lock.js'), db]);
  await until('the store is locked', () => lock.stdout().includes('locked'));
  const run = record(db, ['cat.js']);
  run.child.stdin.write(LINE);
  await until('the line is back', () => run.stdout().includes(LINE));
  lock.child.stdin.end();
  await lock.ended;
  run.child.stdin.end();
  expect((await run.ended).code).toBe(0);
  expect(await latestSession(db)).toMatchObject({ frames: 2, dropped: 0 });
});

test.each(sample(['--strict', '']))('a lock that stays costs nothing and is not said, %s', async (strict) => {
  const db = tempStore();
  const run = record(db, ['cat.js'], strict === '' ? [] : [strict]);
  run.child.stdin.write(LINE);
  await until(
    'the session is stored',
    async () => (await latestSession(db).catch(() => undefined))?.frames === 2,
  );
  const lock = start(process.execPath, [fixture('hold-lock.js'), db]);
  await until('the store is locked', () => lock.stdout().includes('locked'));
  run.child.stdin.end(LINE.repeat(10));
  const { code, stdout, stderr } = await run.ended;
  expect([code, stdout.toString(), stderr]).toEqual([0, LINE.repeat(11), '']);
  const reader = await tapedeckInProcess(['list', '--db', db]);
  expect(reader.stderr).toMatch(/^tapedeck: what a recorder could not store yet is not shown[^\n]*\n$/);
  lock.child.stdin.end();
  await lock.ended;
  expect(await latestSession(db)).toMatchObject({ frames: 22, dropped: 0, endReason: 'client-closed' });
  expect(spoolsOf(db)).toEqual([]);
});

test('what was forwarded while there was no store to open is there after kill -9', async () => {
  const db = tempStore();
  openStore(db).close();
  const lock = start(process.execPath, [fixture('hold-lock.js'), db]);
  await until('the store is locked', () => lock.stdout().includes('locked'));
  const run = record(db, ['cat.js']);
  run.child.stdin.write(LINE.repeat(10));
  await until('the lines are kept', () => spoolsOf(db).some((spool) => hasFrames(spool, 20)));
  run.child.kill('SIGKILL');
  await run.ended;
  lock.child.stdin.end();
  await lock.ended;
  expect(await latestSession(db)).toMatchObject({ frames: 20, endReason: 'cut-off' });
});

/** Runs a shell script in a namespace where `$FULL` is a file system of two megabytes. */
function onSmallDisk(script: string): Run {
  const folder = join(tempFolder(), 'full');
  mkdirSync(folder);
  const mounted = `mount -t tmpfs -o size=2m tmpfs '${folder}' && FULL='${folder}' && ${script}`;
  return start('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', mounted]);
}

test('a full disk harms no traffic, is said once, and the loss is on the session', async () => {
  const lines = Buffer.from(`${'x'.repeat(1000)}\n`.repeat(8000));
  const copy = join(tempFolder(), 'copy.db');
  const node = `'${process.execPath}'`;
  const run = onSmallDisk(
    `${node} '${BIN}' record --db "$FULL/x.db" -- ${node} '${fixture('cat.js')}'; code=$?; cp "$FULL/x.db" '${copy}'; cp "$FULL/x.db-wal" '${copy}-wal' 2>/dev/null; exit $code`,
  );
  run.child.stdin.end(lines);
  const { code, stdout, stderr } = await run.ended;
  expect(code).toBe(0);
  expect(stdout.equals(lines)).toBe(true);
  expectOneComplaint(stderr, /the disk is full \(SQLITE_FULL\)/);
  expect(existsSync(copy)).toBe(true);
  const { frames, dropped, endReason } = await latestSession(copy);
  expect(frames + dropped).toBe(16_000);
  expect(dropped).toBeGreaterThan(0);
  expect(endReason).toBe('client-closed');
});

inFull(
  'a flood of lines of few bytes takes no more memory than one of long ones, and loses nothing',
  async () => {
    const db = tempStore();
    const count = scale(2_000_000, 250_000);
    // All of them as frames would need three times as much, be it in the small run.
    const run = record(db, ['cat.js'], [], { env: { NODE_OPTIONS: '--max-old-space-size=80' } });
    expect(await expectUnharmedTraffic(run, '{}\n'.repeat(count))).toBe('');
    expect(query(db, 'SELECT frames, dropped FROM session')).toEqual([{ frames: 2 * count, dropped: 0 }]);
  },
);

test('a queue that is full drops and counts, and the traffic does not wait', async () => {
  const db = tempStore();
  const count = scale(200_000);
  const lines = LINE.repeat(count);
  const stderr = await expectUnharmedTraffic(record(db, ['cat.js'], ['--max-queue', '100kb']), lines);
  expect(stderr).toBe('');
  const { frames, dropped } = await latestSession(db);
  expect(dropped).toBeGreaterThan(0);
  expect(frames + dropped).toBe(2 * count);
});

inFull('--strict waits for the store instead of dropping', async () => {
  const db = tempStore();
  const count = scale(50_000);
  const lines = LINE.repeat(count);
  await expectUnharmedTraffic(record(db, ['cat.js'], ['--max-queue', '100kb', '--strict']), lines);
  expect(await latestSession(db)).toMatchObject({ frames: 2 * count, dropped: 0 });
});

test('--strict refuses to start a server whose traffic cannot be recorded', async () => {
  const db = tempStore();
  writeFileSync(db, Buffer.alloc(50_000, 'rubbish'));
  const marker = join(tempFolder(), 'started');
  const script = `require('node:fs').writeFileSync(${JSON.stringify(marker)}, '')`;
  const { code, stderr } = await tapedeck([
    'record',
    '--strict',
    '--db',
    db,
    '--',
    process.execPath,
    '-e',
    script,
  ]).ended;
  expect(code).toBe(1);
  expect(stderr).toMatch(/not an SQLite database.*Stopping, because of --strict/);
  expect(existsSync(marker)).toBe(false);
});
