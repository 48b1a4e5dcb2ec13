/** What the library does to the programs that it runs in. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { recordedFetch, recordedTransport, recordStdio } from '../../src/record/record.ts';
import { blocksOf } from '../support/documents.ts';
import { listenOn } from '../support/http.ts';
import { query } from '../support/http-record.ts';
import { exchangesOf, framesOf, sessionsOf } from '../support/recorded.ts';
import { inFull } from '../support/scale.ts';
import { installPacked } from '../support/stranger.ts';
import { fixture, ROOT, type Run, start, tempFolder, tempStore, until } from '../support/tapedeck.ts';

/** Runs a program of one line or more in the package's own folder, where it finds the package by its name. */
function host(source: string, env: Record<string, string>, flags: readonly string[] = []): Run {
  return start(process.execPath, [...flags, '--input-type=module', '--eval', source], { cwd: ROOT, env });
}

const TWO_DOORS = `
  import { channel } from 'node:diagnostics_channel';
  import { PassThrough } from 'node:stream';
  let threads = 0;
  channel('worker_threads').subscribe(() => { threads += 1; });
  const { recordStdio } = await import('mcp-tapedeck/record');
  const doors = ['one', 'two'].map((name) => recordStdio({ name, stdin: new PassThrough(), stdout: new PassThrough() }));
  const before = threads;
  for (const { stdout } of doors) stdout.write('{"id":1}\\n');
  await Promise.all(doors.map((door) => door.flush()));
  process.stdout.write(JSON.stringify({ before, after: threads, signals: process.listenerCount('SIGTERM') }));
`;

test('there is no thread before the first message, one for all doors, and the program ends by itself', async () => {
  const db = tempStore();
  const preload = `data:text/javascript,${encodeURIComponent("process.stderr.write('preloaded ')")}`;
  const { code, stdout, stderr } = await host(TWO_DOORS, { TAPEDECK_DB: db }, ['--import', preload]).ended;
  expect([code, stderr]).toEqual([0, 'preloaded ']);
  expect(JSON.parse(stdout.toString())).toEqual({ before: 0, after: 1, signals: 0 });
  expect(sessionsOf(db).map(({ name, end_reason }) => [name, end_reason])).toEqual(
    expect.arrayContaining([
      ['one', 'server-exited'],
      ['two', 'server-exited'],
    ]),
  );
});

inFull('a host in a thread of its own, and one in CommonJS', async () => {
  const [ofThread, ofCommonJs] = [tempStore(), tempStore()];
  const file = fixture('records-in-thread.js');
  const thread = start(process.execPath, [file], { cwd: ROOT, env: { TAPEDECK_DB: ofThread } });
  const source = `
    const { PassThrough } = require('node:stream');
    const { recordStdio } = require('mcp-tapedeck/record');
    recordStdio({ stdin: new PassThrough(), stdout: new PassThrough() }).stdout.write('{"id":1}\\n');`;
  const flags = ['--disable-warning=ExperimentalWarning', '--eval', source];
  const commonJs = start(process.execPath, flags, { cwd: ROOT, env: { TAPEDECK_DB: ofCommonJs } });
  for (const { code, stderr } of await Promise.all([thread.ended, commonJs.ended]))
    expect([code, stderr]).toEqual([0, '']);
  for (const db of [ofThread, ofCommonJs]) expect(framesOf(db).map(({ text }) => text)).toEqual(['{"id":1}']);
});

const LISTENED = `
  import { PassThrough } from 'node:stream';
  const counts = () => process.eventNames().map((name) => [String(name), process.listenerCount(name)]).toSorted();
  const before = counts();
  const { recordStdio, recordedFetch, recordedHandler, recordedTransport } = await import('mcp-tapedeck/record');
  const imported = counts();
  const { stdout, flush } = recordStdio({ stdin: new PassThrough(), stdout: new PassThrough() });
  const transport = recordedTransport({ send: async () => {}, close: async () => {} });
  const recorded = recordedFetch(async () => new Response('{}'));
  recordedHandler(() => {});
  stdout.write('{"id":1}\\n');
  await transport.send({ id: 1 });
  await (await recorded('http://127.0.0.1:1/mcp')).text();
  await Promise.all([flush(), transport.flush(), recorded.flush()]);
  const told = { before, imported, after: counts(), exitCode: process.exitCode ?? null };
  process.stdout.write(JSON.stringify(told));
  process.exitCode = 7;
`;

test('of its process it hears nothing but the end, and the exit code stays that of the host', async () => {
  const { code, stdout, stderr } = await host(LISTENED, { TAPEDECK_DB: tempStore() }).ended;
  expect([code, stderr]).toEqual([7, '']);
  const { before, imported, after, exitCode } = JSON.parse(stdout.toString());
  expect(imported).toEqual(before);
  const ends = (counts: [string, number][]) => counts.find(([name]) => name === 'exit')?.[1] ?? 0;
  const others = (counts: [string, number][]) => counts.filter(([name]) => name !== 'exit');
  expect([ends(after) - ends(before), others(after), exitCode]).toEqual([1, others(before), null]);
});

/** What only the command line needs: its words, its commands, its proxy. */
const OF_COMMANDS = /\brunCommand\b|\byargs\b|\bhttp-proxy\b|Not enough arguments/;

test('the import loads two files, no library, nothing of the command line, and nothing that writes', async () => {
  const told = join(tempFolder(), 'modules');
  const preload = ['--import', pathToFileURL(fixture('tell-modules.js')).href];
  const { code } = await host(`await import('mcp-tapedeck/record')`, { MODULES_TOLD: told }, preload).ended;
  expect(code).toBe(0);
  const urls = readFileSync(told, 'utf8').trim().split('\n');
  const files = urls.filter((url) => url.startsWith('file:')).map((url) => fileURLToPath(url));
  const dist = join(ROOT, 'dist');
  expect(files.toSorted()).toEqual([join(dist, 'errors.js'), join(dist, 'record.js')]);
  expect(files.filter((file) => OF_COMMANDS.test(readFileSync(file, 'utf8')))).toEqual([]);
  expect(
    urls.filter((url) => /better-sqlite3|worker\.js|node:(?:http|net|tls|child_process)/.test(url)),
  ).toEqual([]);
  // The test would not fail otherwise, where it has no eyes.
  const all = readdirSync(dist).filter((name) => name.endsWith('.js'));
  expect(all.some((name) => OF_COMMANDS.test(readFileSync(join(dist, name), 'utf8')))).toBe(true);
});

test('its errors are of the class that the package exports', async () => {
  const source = `
    import { TapedeckError } from 'mcp-tapedeck';
    import { TapedeckError as own, recordStdio } from 'mcp-tapedeck/record';
    try { recordStdio({ maxFrame: 'much' }) } catch (error) { console.log(error instanceof TapedeckError, own === TapedeckError) }`;
  expect((await host(source, {}).ended).stdout.toString()).toBe('true true\n');
});

const FORGETS = `
  import { createServer } from 'node:http';
  import { setTimeout } from 'node:timers/promises';
  import { recordedFetch } from 'mcp-tapedeck/record';
  const server = createServer((request, response) => {
    response.setHeader('content-type', request.url === '/events' ? 'text/event-stream' : 'application/json');
    response.write('data: 1\\n\\n');
    if (request.url !== '/events') response.end();
  });
  await new Promise((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const url = 'http://127.0.0.1:' + server.address().port;
  const recorded = recordedFetch(fetch);
  const keeps = await recorded(url + '/kept');
  const WAYS = {
    '/unread': async (response) => response.status,
    '/looked-at': async (response) => response.body === null,
    '/events': async (response) => (await response.body.getReader().read()).done,
    '/copied': async (response) => response.clone().text(),
  };
  for (const [path, use] of Object.entries(WAYS)) await use(await recorded(url + path));
  const reading = recorded(url + '/read').then((response) => response.text());
  process.on('message', async () => {
    gc();
    await setTimeout(1);
    await recorded.flush();
    process.send('flushed');
  });
  process.on('disconnect', async () => {
    process.stdout.write(await keeps.text() + await reading);
    process.exit();
  });
  process.send('ready');
`;

test('an answer that its host forgets, unread or half read, has ended in the store; one that it keeps has not', async () => {
  const db = tempStore();
  const flags = ['--expose-gc', '--input-type=module', '--eval', FORGETS];
  const child = spawn(process.execPath, flags, {
    cwd: ROOT,
    env: { ...process.env, TAPEDECK_DB: db },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  const open = () =>
    exchangesOf(db)
      .filter(({ closedBy }) => closedBy === null)
      .map(({ path }) => path);
  await until('only the one that is kept is open', async () => {
    child.send('collect');
    await once(child, 'message');
    return open().length <= 1;
  });
  expect(open()).toEqual(['/kept']);
  child.disconnect();
  expect(await text(child.stdout as Readable)).toBe('data: 1\n\n'.repeat(2));
  const ends = exchangesOf(db).map(({ path, closedBy, error }) => [path, closedBy, error]);
  expect(ends).toEqual(
    expect.arrayContaining([
      ['/unread', 'server', null],
      ['/looked-at', 'server', null],
      ['/events', 'client', 'the client gave the call up'],
      ['/read', 'server', null],
    ]),
  );
});

test('where nothing can be stored the host hears of it once, and its traffic goes on', async () => {
  const server = createServer((_, response) => void response.end('{}'));
  const url = `http://127.0.0.1:${await listenOn(server)}/`;
  const told: string[] = [];
  const broken = recordedFetch(fetch, {
    // A folder is no store.
    db: tempFolder(),
    onTrouble(text) {
      told.push(text);
      throw new Error('the mistake of the host itself');
    },
  });
  for (let i = 0; i < 3; i += 1) expect(await (await broken(url)).text()).toBe('{}');
  await broken.close();
  server.close();
  expect(told.length).toBe(1);
  expect(told[0]).toContain('Traffic goes on');
});

inFull('without a listener trouble is a warning of the process', async () => {
  const source = `
    import { PassThrough } from 'node:stream';
    import { recordStdio } from 'mcp-tapedeck/record';
    const { stdout, close } = recordStdio({ stdin: new PassThrough(), stdout: new PassThrough() });
    stdout.write('{"id":1}\\n');
    await close();`;
  const { code, stderr } = await host(source, { TAPEDECK_DB: tempFolder() }).ended;
  expect(code).toBe(0);
  expect(stderr).toMatch(/TapedeckWarning: .*Traffic goes on/);
});

test.each([
  [{ maxFrame: 'much' }, 'maxFrame'],
  [{ redactRule: ['ticket=/(/'] }, 'ticket'],
  [{ noRedact: true, redact: ['$..card'] }, 'noRedact'],
  [{ capture: 'some' as 'meta' }, 'capture'],
  [{ keepErrors: true, olderThan: 'soon' }, 'soon'],
  [{ db: 'postgres://engine/tapes' }, 'ship'],
])('a wrong option throws where it stands: %j', (options, words) => {
  expect(() => recordStdio(options)).toThrow(words);
});

test('options and configuration files are those of the command line', async () => {
  const folder = tempFolder();
  const db = join(folder, 'own.db');
  mkdirSync(join(folder, 'config/tapedeck'), { recursive: true });
  writeFileSync(
    join(folder, 'config/tapedeck/config.json'),
    JSON.stringify({ db, redact: { rules: ['badge=/BADGE-[0-9]+/'] } }),
  );
  const source = `
    import { PassThrough } from 'node:stream';
    import { recordStdio } from 'mcp-tapedeck/record';
    const options = { name: 'both', labels: { env: 'test' }, redact: ['$..card'], stdin: new PassThrough(), stdout: new PassThrough() };
    recordStdio(options).stdout.write('{"id":1,"result":{"card":"1234","says":"BADGE-17"}}\\n');`;
  const env = { XDG_CONFIG_HOME: join(folder, 'config'), TAPEDECK_DB: '', TAPEDECK_RUN: 'nightly' };
  const { code, stderr } = await host(source, env).ended;
  expect([code, stderr]).toEqual([0, '']);
  expect(framesOf(db).map(({ text }) => text)).toEqual([
    '{"id":1,"result":{"card":"[redacted:path:…]","says":"[redacted:badge:…]"}}',
  ]);
  expect(sessionsOf(db)).toMatchObject([{ name: 'both' }]);
  expect(query(db, 'SELECT key, value FROM label ORDER BY key')).toEqual([
    { key: 'env', value: 'test' },
    { key: 'run', value: 'nightly' },
  ]);
});

test('flush keeps the host alive until all is stored, and close ends the recording', async () => {
  const db = tempStore();
  const transport = { send: async (_: unknown) => {}, close: async () => {}, onmessage: undefined };
  const recorded = recordedTransport(transport, { db });
  for (let id = 1; id <= 500; id += 1) await recorded.send({ id } as never);
  await recorded.flush();
  expect(framesOf(db).length).toBe(500);
  await recorded[Symbol.asyncDispose]();
  await recorded.send({ id: 501 } as never);
  await recorded.flush();
  expect(framesOf(db).length).toBe(500);
});

const EXAMPLES = blocksOf('docs/library.md').filter(({ language }) => language === 'js');

inFull('the examples of the page run, in the package as others get it', async () => {
  const folder = installPacked([
    '@modelcontextprotocol/sdk',
    '@modelcontextprotocol/client',
    '@modelcontextprotocol/server',
    '@modelcontextprotocol/node',
  ]);
  const db = join(folder, 'recordings.db');
  const run = (name: string, text: string, env: Record<string, string> = {}): Run => {
    writeFileSync(join(folder, name), text);
    return start(process.execPath, [join(folder, name)], { cwd: folder, env: { TAPEDECK_DB: db, ...env } });
  };
  const [onStdio = '', client = '', server = '', inMemory = ''] = EXAMPLES.map(({ text }) => text);
  const stdio = run('stdio.mjs', onStdio);
  stdio.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  const memory = run('memory.mjs', inMemory);
  const http = run('server.mjs', server, { PORT: '0' });
  await until('it listens', () => /listening on \d+\n/.test(http.stdout().toString()));
  const port = /\d+/.exec(http.stdout().toString())?.[0];
  const asked = run('client.mjs', client, { SERVER_URL: `http://127.0.0.1:${port}/mcp` });
  for (const { ended } of [asked, memory]) {
    const { code, stdout, stderr } = await ended;
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.toString()).toContain('sunny');
  }
  expect((await stdio.ended).code).toBe(0);
  await until('the server has stored all', () => sessionsOf(db).length === 4);
  const bases = sessionsOf(db).map(({ basis }) => basis);
  expect(bases.toSorted()).toEqual(['sdk-transport', 'stateless', 'stateless', 'stdio-process']);
});

test('each door has an example', () => {
  const doors = ['recordStdio', 'recordedFetch', 'recordedHandler', 'recordedTransport'];
  expect(EXAMPLES.map(({ text }) => doors.find((door) => text.includes(`${door}(`)))).toEqual(doors);
});
