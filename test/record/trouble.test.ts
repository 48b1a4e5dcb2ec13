/** What becomes of a host, and of what it records, where the writer or the store is lost on the way. */
import { rmSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { recordedFetch, recordStdio } from '../../src/record/record.ts';
import { exchangesOf, framesOf, sessionsOf } from '../support/recorded.ts';
import { listSessions, ROOT, start, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

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
