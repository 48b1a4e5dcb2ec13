/** What becomes of a host, and of what it records, where the writer or the store is lost on the way. */
import { cpSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { recordedFetch, recordStdio } from '../../src/record/record.ts';
import { exchangesOf, framesOf, sessionsOf } from '../support/recorded.ts';
import { inFull, sample } from '../support/scale.ts';
import {
  listSessions,
  ROOT,
  start,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const LOSES_ITS_THREAD = `
  import { channel } from 'node:diagnostics_channel';
  import { PassThrough } from 'node:stream';
  import { recordStdio, recordedFetch } from 'mcp-tapedeck/record';
  let thread;
  channel('worker_threads').subscribe((message) => { thread = message.worker; });
  const told = [];
  const open = (name) => recordStdio({ name, stdin: new PassThrough(), stdout: new PassThrough(), onTrouble: (text) => told.push(text) });
  const [one, calls] = [open('one'), recordedFetch(async () => new Response('{}'), { name: 'calls', onTrouble() {} })];
  const call = async () => (await calls('http://127.0.0.1:1/mcp')).text();
  one.stdout.write('{"id":1}\\n');
  await call();
  await Promise.all([one.flush(), calls.flush()]);
  await thread.terminate();
  one.stdout.write('{"id":2}\\n');
  const answer = await call();
  await Promise.all([one.flush(), calls.flush()]);
  await Promise.all([one.close(), calls.close()]);
  const two = open('two');
  two.stdout.write('{"id":3}\\n');
  await two.close();
  process.stdout.write(JSON.stringify({ told, answer }));
`;

test('where its thread is lost a host goes on, hears of it, and the loss is counted; the next door has a new thread', async () => {
  const db = tempStore();
  const args = ['--input-type=module', '--eval', LOSES_ITS_THREAD];
  const run = start(process.execPath, args, { cwd: ROOT, env: { TAPEDECK_DB: db } });
  const { code, stdout, stderr } = await run.ended;
  expect([code, stderr]).toEqual([0, '']);
  const { told, answer } = JSON.parse(stdout.toString());
  expect(answer).toBe('{}');
  expect(told).toEqual([
    expect.stringContaining('its thread has ended. Traffic goes on'),
    expect.stringContaining('the writer is gone: 9 bytes of traffic are lost'),
  ]);
  const facts = sessionsOf(db).map(({ name, frames, dropped }) => [name, frames, (dropped as number) > 0]);
  expect(facts.toSorted()).toEqual([
    ['calls', 1, true],
    ['one', 1, true],
    ['two', 1, false],
  ]);
});

const BROKEN: Record<string, string | null> = {
  'has no file': null,
  'fails at its beginning': "throw new Error('planted')",
  'ends at once': 'process.exit(1)',
};

/** Ends by itself, without closing anything. */
const HAS_NO_THREAD = `
  import { PassThrough } from 'node:stream';
  import { setTimeout } from 'node:timers/promises';
  import { recordedFetch, recordedTransport, recordStdio } from './dist/record.js';
  const { stdout } = recordStdio({ name: 'stdio', stdin: new PassThrough(), stdout: process.stdout });
  const recorded = recordedFetch(async () => new Response('fetched\\n'), { name: 'fetch' });
  const transport = recordedTransport({ send: async () => 'sent\\n', close: async () => {} }, { name: 'transport' });
  const pass = async () => {
    stdout.write('written\\n');
    process.stdout.write(await transport.send({ id: 1 }) + await (await recorded('http://127.0.0.1:1/mcp')).text());
  };
  await pass();
  let isWarned = false;
  process.once('warning', () => { isWarned = true; });
  while (!isWarned) await setTimeout(10);
  await pass();
`;

/** Runs a host with a library whose thread is broken. */
async function runBroken(how: string, host: string, db: string) {
  const folder = tempFolder();
  cpSync(join(ROOT, 'dist'), join(folder, 'dist'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'), 'dir');
  cpSync(join(ROOT, 'package.json'), join(folder, 'package.json'));
  const code = BROKEN[how];
  rmSync(join(folder, 'dist/worker.js'));
  if (code != null) writeFileSync(join(folder, 'dist/worker.js'), code);
  else rmSync(join(folder, 'dist/shared-worker.js'));
  writeFileSync(join(folder, 'host.js'), host);
  return await start(process.execPath, ['host.js'], { cwd: folder, env: { TAPEDECK_DB: db } }).ended;
}

const ENDS_AT_ONCE = `
  import { PassThrough } from 'node:stream';
  import { recordStdio } from './dist/record.js';
  for (const name of ['one', 'two'])
    recordStdio({ name, stdin: new PassThrough(), stdout: process.stdout }).stdout.write(name + '\\n');
  process.exit();
`;

test.each([
  [
    'has no file',
    /^tapedeck: the writer stopped: its file is not beside this module, .*; something is lost$/,
  ],
  ['fails at its beginning', /^tapedeck: the writer stopped: planted; something is lost$/],
  ['ends at once', /^tapedeck: the writer stopped: its thread has ended; something is lost$/],
])(
  'where the thread %s a host that ends in the same turn is not held up, and says why',
  async (how, said) => {
    const { code, stdout, stderr } = await runBroken(how, ENDS_AT_ONCE, tempStore());
    expect([code, stdout.toString()]).toEqual([0, 'one\ntwo\n']);
    // It would not say why, had it waited for the thread until it had no more time.
    expect(stderr.trim()).toMatch(said);
  },
);

test.each(sample(Object.keys(BROKEN)))(
  'where the thread %s the host goes on, warns once, and the loss is counted at its end',
  async (name) => {
    const db = tempStore();
    const { code: exitCode, stdout, stderr } = await runBroken(name, HAS_NO_THREAD, db);
    expect([exitCode, stdout.toString()]).toEqual([0, 'written\nsent\nfetched\n'.repeat(2)]);
    const lines = stderr.trim().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/TapedeckWarning: .*Traffic goes on/),
      expect.stringContaining('--trace-warnings'),
    ]);
    await listSessions(db);
    expect(sessionsOf(db).map((session) => [session['name'], Number(session['dropped']) > 0])).toEqual(
      expect.arrayContaining([
        ['stdio', true],
        ['fetch', true],
        ['transport', true],
      ]),
    );
  },
);

const ON_A_SMALL_DISK = `
  import { recordStdio } from 'mcp-tapedeck/record';
  const { stdout, close } = recordStdio({ db: process.env.FULL + '/x.db' });
  for (let i = 0; i < 8; i += 1) {
    for (let k = 0; k < 1000; k += 1) stdout.write('x'.repeat(1000) + '\\n');
    await new Promise((resolve) => stdout.write('', resolve));
  }
  await close();
`;

inFull(
  'on a full disk nothing of the host is harmed, it is warned once, and the loss is counted',
  async () => {
    const folder = join(tempFolder(), 'full');
    mkdirSync(folder);
    const copy = join(tempFolder(), 'copy.db');
    const host = `'${process.execPath}' --input-type=module --eval "$HOST"`;
    const script = `mount -t tmpfs -o size=2m tmpfs '${folder}' && ${host}; code=$?
    cp '${folder}/x.db' '${copy}'; cp '${folder}/x.db-wal' '${copy}-wal' 2>/dev/null; exit $code`;
    const args = ['--user', '--map-root-user', '--mount', 'sh', '-c', script];
    const env = { HOST: ON_A_SMALL_DISK, FULL: folder };
    const { code, stdout, stderr } = await start('unshare', args, { cwd: ROOT, env }).ended;
    expect([code, stdout.length]).toEqual([0, 8_008_000]);
    expect(stderr.match(/TapedeckWarning: .*the disk is full/g)).toHaveLength(1);
    await listSessions(copy);
    const [session] = sessionsOf(copy);
    expect(Number(session?.['dropped'])).toBeGreaterThan(0);
    expect(Number(session?.['frames']) + Number(session?.['dropped'])).toBe(8000);
  },
);

test('what passes while another process has the store locked is there afterwards', async () => {
  const db = tempStore();
  await tapedeckInProcess(['import', '/dev/null', '--db', db]);
  const holder = new Database(db);
  holder.exec('BEGIN IMMEDIATE');
  const told: string[] = [];
  const options = { db, onTrouble: (text: string) => told.push(text) };
  const door = recordStdio({ ...options, stdin: new PassThrough(), stdout: new PassThrough() });
  const calls = recordedFetch((async () => new Response('{}')) as typeof fetch, options);
  for (let id = 1; id <= 100; id += 1) door.stdout.write(`{"id":${id}}\n`);
  expect(await (await calls('http://127.0.0.1:1/mcp')).text()).toBe('{}');
  await Promise.all([door.flush(), calls.flush()]);
  holder.exec('ROLLBACK');
  holder.close();
  await Promise.all([door.close(), calls.close()]);
  await listSessions(db);
  expect(framesOf(db).length).toBe(101);
  expect(exchangesOf(db)).toMatchObject([{ status: 200, closedBy: 'server' }]);
  expect(told).toEqual([]);
});

test('where the store is removed, the host hears of it once, and what passes goes into a new one', async () => {
  const db = tempStore();
  const told: string[] = [];
  const options = { db, onTrouble: (text: string) => told.push(text) };
  const door = recordStdio({ ...options, stdin: new PassThrough(), stdout: new PassThrough() });
  door.stdout.write('{"id":1}\n');
  await door.flush();
  for (const end of ['', '-wal', '-shm']) rmSync(`${db}${end}`, { force: true });
  let id = 1;
  await until('the host has heard of it', async () => {
    id += 1;
    door.stdout.write(`{"id":${id}}\n`);
    await door.flush();
    return told.length > 0;
  });
  door.stdout.write('{"last":true}\n');
  await door.close();
  expect(told).toEqual([expect.stringContaining('was removed or replaced')]);
  // Whoever reads first takes in what the end left no time for.
  await listSessions(db);
  expect(framesOf(db).at(-1)).toMatchObject({ text: '{"last":true}' });
});
