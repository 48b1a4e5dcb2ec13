/** A server on stdio that records itself, beside the same one under the command line. */
import { existsSync } from 'node:fs';
import { PassThrough, Readable, Writable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { Client as SecondClient } from '@modelcontextprotocol/client';
import { StdioClientTransport as SecondStdio } from '@modelcontextprotocol/client/stdio';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { expect, test } from 'vitest';
import { recordStdio } from '../../src/record/record.ts';
import { framesOf, sessionsOf } from '../support/recorded.ts';
import { inFull } from '../support/scale.ts';
import {
  fixture,
  ROOT,
  type Run,
  record,
  start,
  tapedeckInProcess,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const SERVER = fixture('records-itself.js');

function startItself(db: string, env: Record<string, string> = {}): Run {
  return start(process.execPath, [SERVER], { cwd: ROOT, env: { DB: db, ...env } });
}

/** Lines as no client would write them, and a last one without its end. */
const ODD = Buffer.concat([
  Buffer.from('{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}\n'),
  Buffer.from('{ "id" : 1, "jsonrpc":"2.0",\t"method":"ping"}\r\n'),
  Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]),
  Buffer.from('\n'),
  Buffer.from(
    '{"jsonrpc":"2.0","id":2,"method":"ping","params":{"token":"ghp_0000000000000000000000000000000000aa"}}\n',
  ),
  Buffer.from('{"jsonrpc":"2.0","id":3'),
]);

test('a server that records itself has the frames that the command line records', async () => {
  const [own, outer] = [tempStore(), tempStore()];
  const run = startItself(own);
  const wrapped = record(outer, ['records-itself.js']);
  for (const { child } of [run, wrapped]) child.stdin.end(ODD);
  const [direct, proxied] = await Promise.all([run.ended, wrapped.ended]);
  expect(direct.stdout).toEqual(proxied.stdout);
  expect([direct.code, direct.stderr]).toEqual([0, '']);
  const frames = framesOf(own);
  expect(frames.length).toBe(11);
  // What passed at the same time on both channels may stand in either order.
  const on = (db: string, channel: string) => framesOf(db).filter((frame) => frame.channel === channel);
  for (const channel of ['stdin', 'stdout']) expect(on(own, channel)).toEqual(on(outer, channel));
  const facts = (db: string) =>
    sessionsOf(db).map(({ basis, transport, end_reason, exit_code, dropped }) => ({
      basis,
      transport,
      end_reason,
      exit_code,
      dropped,
    }));
  expect(facts(own)).toEqual(facts(outer));
});

test.each([
  ['process.exit()', 'exit', 3, ''],
  ['an uncaught error', 'throw', 1, 'the own error of the host'],
])('%s in the middle of a turn loses nothing, and stays the host’s own', async (_, then, code, words) => {
  const db = tempStore();
  const run = startItself(db, { THEN: then, LINES: '3' });
  run.child.stdin.write('{"id":1}\n{"id":2}\n{"id":3}\n');
  const ended = await run.ended;
  expect(ended.code).toBe(code);
  expect(ended.stderr).toContain(words);
  expect(
    framesOf(db)
      .map(({ channel }) => channel)
      .toSorted(),
  ).toEqual([...Array(3).fill('stdin'), ...Array(3).fill('stdout')]);
  expect(sessionsOf(db)).toMatchObject([{ end_reason: 'server-exited', exit_code: code, dropped: 0 }]);
});

test('of a server that is killed everything is there that was stored, and its session is cut off', async () => {
  const db = tempStore();
  const run = startItself(db, { THEN: 'hang' });
  run.child.stdin.write('{"id":1}\n');
  await until('both frames are stored', () => framesOf(db).length === 2);
  run.child.kill('SIGKILL');
  expect((await run.ended).signal).toBe('SIGKILL');
  expect(framesOf(db).length).toBe(2);
  expect(sessionsOf(db)).toMatchObject([{ end_reason: null }]);
});

test('TAPEDECK_RECORD=0 turns it off from outside', async () => {
  const db = tempStore();
  const run = startItself(db, { TAPEDECK_RECORD: '0' });
  run.child.stdin.end('{"id":1}\n');
  expect((await run.ended).stdout.toString()).toContain('"echo"');
  expect(existsSync(db)).toBe(false);
});

test('nothing is read before somebody reads, no faster than it is read, and the end passes', async () => {
  let given = 0;
  const source = new Readable({
    read() {
      given += 1;
      this.push(given > 200 ? null : Buffer.alloc(64 * 1024, 'x'));
    },
  });
  const recorded = recordStdio({ db: tempStore(), stdin: source, stdout: new PassThrough() });
  await setImmediate();
  expect(given).toBe(0);
  recorded.stdin.once('data', () => recorded.stdin.pause());
  await until('the first bytes have come', () => recorded.stdin.isPaused());
  for (let i = 0; i < 20; i += 1) await setImmediate();
  expect(given).toBeLessThan(10);
  let bytes = 0;
  recorded.stdin.on('data', (chunk) => {
    bytes += chunk.length;
  });
  recorded.stdin.resume();
  await until('its end has come', () => recorded.stdin.readableEnded);
  expect(bytes).toBe(199 * 64 * 1024);
  await recorded.close();
});

test('what is written waits as the stream itself waits', async () => {
  const taken: Buffer[] = [];
  let go = () => {};
  const sink = new Writable({
    highWaterMark: 10,
    write(chunk, _, done) {
      taken.push(chunk);
      go = done;
    },
  });
  const db = tempStore();
  const { stdout, close } = recordStdio({ db, stdin: new PassThrough(), stdout: sink });
  expect(stdout.write('{"id":1}\n')).toBe(true);
  expect(stdout.write('{"id":2}\n')).toBe(false);
  expect([stdout.writableLength, stdout.writableNeedDrain]).toEqual([18, true]);
  const drained = new Promise((resolve) => stdout.once('drain', resolve));
  go();
  go();
  await drained;
  stdout.end('{"id":3}\n');
  await until('all is written', () => taken.length === 3);
  await close();
  expect(framesOf(db).map(({ text }) => text)).toEqual(['{"id":1}', '{"id":2}', '{"id":3}']);
});

inFull.each([
  ['1.x', 'sdk-1'],
  ['2.x', 'sdk-2'],
])('a server of the SDK %s records itself, whichever client it has', async (_, line) => {
  const db = tempStore();
  const server = { command: process.execPath, args: [fixture('records-itself-sdk.js'), line, db], cwd: ROOT };
  const text = { type: 'text', text: 'hi' };
  // A client gives a server that takes long to end no time for it.
  const isStored = () => framesOf(db).at(-1)?.text.includes('"text":"hi"') ?? false;
  const first = new Client({ name: 'first', version: '1' });
  await first.connect(new StdioClientTransport(server));
  expect((await first.callTool({ name: 'say', arguments: { text: 'hi' } })).content).toEqual([text]);
  await until('all is stored', isStored);
  await first.close();
  const second = new SecondClient({ name: 'second', version: '2' }, { versionNegotiation: { mode: 'auto' } });
  await second.connect(new SecondStdio(server));
  expect((await second.callTool({ name: 'say', arguments: { text: 'hi' } })).content).toEqual([text]);
  await until('all is stored', () => sessionsOf(db).length === 2 && isStored());
  await second.close();
  const listed = await tapedeckInProcess(['list', '--json', '--db', db]);
  const sessions = listed.stdout
    .toString()
    .trim()
    .split('\n')
    .map((one) => JSON.parse(one));
  expect(sessions).toMatchObject([
    {
      client: { name: 'second' },
      protocolVersion: line === 'sdk-1' ? '2025-11-25' : '2026-07-28',
      dropped: 0,
    },
    { client: { name: 'first' }, protocolVersion: '2025-11-25', dropped: 0 },
  ]);
});
