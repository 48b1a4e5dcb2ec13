/** What is read from an engine is what is read from the store that was shipped to it. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Socket, connect as tcpConnect } from 'node:net';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { processStarted } from '../../src/store/file/process.ts';
import { withEngine } from '../support/engine.ts';
import { expectSame, fleet, newStore, ship } from '../support/fleet.ts';
import { IS_FULL, inFull, scale } from '../support/scale.ts';
import { recordAgain } from '../support/spools.ts';
import { storeSession } from '../support/stored.ts';
import {
  fixture,
  ROOT,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
} from '../support/tapedeck.ts';

const FORMATS = ['ndjson', 'har', 'mermaid', 'markdown', 'curl', 'otlp'];

const COMMANDS: readonly (readonly string[])[] = [
  ['list'],
  ['list', '--json'],
  ['list', '--by', 'server'],
  ['list', '--by', 'client', '--json'],
  ['list', '--by', 'run'],
  ['list', '--limit', '2'],
  ['list', '--filter', 'status~error', '--limit', '1'],
  ['list', '--filter', 'tool=echo or resource~static'],
  ['list', '--filter', 'not session=latest and http>=200'],
  ['show'],
  ['show', 'everything-stdio', '--full'],
  ['show', 'everything-http', '--json'],
  ['show', 'modern-http', '--http', '--full'],
  ['show', 'modern', '--filter', 'status!=ok'],
  ['show', 'nowhere'],
  ['stats'],
  ['stats', '--all', '--json'],
  ['stats', '--all', '--by', 'session', '--filter', 'dur>5ms'],
  ['search', 'echo'],
  ['search', 'TOOL', '--limit', '3'],
  ['search', '--filter', 'text~/e[a-z]{6}/ kind=result', '--json'],
  ['search', 'Kelvin'],
  ['check'],
  ['check', 'everything-http', 'everything-stdio', '--severity', 'note', '--json'],
  ['diff', 'everything-stdio', 'everything-http'],
  ['diff', 'modern-http', 'everything-http', '--json'],
  ...FORMATS.map((format) => ['export', 'everything-http', '--format', format]),
  ['export', 'modern-http', '--filter', 'tool=test_error_handling'],
  ['scan', 'everything-http'],
  ['scan'],
  ['show', '--run', 'latest'],
  ['show', 'latest', '--gap', '1ms'],
  ['list', '--by', 'run', '--json'],
  ['check', 'modern-http', '--expect', 'tool=echo', '--forbid', 'status~error', '--max', 'dur<1s'],
  ['verify', 'everything-stdio', '--', 'false'],
];

/** What goes on until somebody ends it, and what has tests of its own below. */
const OTHERWISE = ['tail', 'ui', 'mcp', 'replay', 'pull'];

/** In the short run every third of them. */
const TRIED = COMMANDS.filter((_, i) => IS_FULL || i % 3 === 0);

/** A session in which frames have no payload is named `filtered`. */
const OF_META_ONLY: readonly (readonly string[])[] = [
  ['list', '--json'],
  ['show', 'filtered', '--full'],
  ['show', 'filtered', '--json'],
  ['stats', 'filtered', '--json'],
  ['stats', '--all'],
  ['search', 'echo'],
  ['check', 'filtered'],
  ['check', 'filtered', '--json', '--severity', 'note'],
  ['diff', 'filtered', 'everything-stdio'],
  ['scan', 'filtered'],
  ...['ndjson', 'markdown', 'otlp'].map((format) => ['export', 'filtered', '--format', format]),
  ['list', '--filter', 'status=unanswered'],
  ['verify', 'filtered', '--', 'false'],
];

withEngine('reading from an engine', () => {
  test('of a session with frames without payload, too, every command prints what it prints of the store', async () => {
    const own = await fleet();
    const file = tempStore();
    const recording = join(ROOT, 'recordings/everything-stdio.ndjson');
    await tapedeckInProcess(['import', recording, '--db', file]);
    recordAgain(file, ['kind=result', 'kind=error', 'tool=get-sum']);
    await ship(own, file);
    for (const words of OF_META_ONLY.filter((_, i) => IS_FULL || i % 3 === 1))
      await expectSame(own, file, words);
  });

  test('every command prints of an engine what it prints of the store', async () => {
    const own = await fleet();
    const file = tempStore();
    for (const name of ['everything-stdio', 'everything-http', 'modern-http'])
      await tapedeckInProcess(['import', join(ROOT, `recordings/${name}.ndjson`), '--db', file]);
    await ship(own, file);
    for (const words of TRIED) await expectSame(own, file, words);
    // As a recording, by a URL that names the session.
    const client = JSON.parse(
      (await showFrames(file, 'everything-stdio')).find(({ direction }) => direction === 'client-to-server')
        ?.text ?? '',
    );
    const stdin = `${JSON.stringify(client)}\n`;
    const [here, there] = await Promise.all(
      [['everything-stdio', '--db', file], [`${own.reader}#everything-stdio`]].map((words) =>
        tapedeckInProcess(['replay', ...words], { env: own.env, stdin }),
      ),
    );
    expect(String(here?.stdout)).toContain('"serverInfo"');
    expect(String(there?.stdout)).toBe(String(here?.stdout));
    // A second time from the cache.
    const shown = await expectSame(own, file, ['show', 'everything-http', '--json']);
    expect(shown.split('\n').length).toBeGreaterThan(20);
  });

  inFull('what text cannot hold, large frames and what they were before come as they are', async () => {
    const own = await fleet();
    const large = Buffer.alloc(2_500_000 + scale(61_500_000, 0), 'x');
    const file = newStore((store) => {
      storeSession(store, {
        start: { name: 'odd\0name', labels: [['k\0', 'v\0']], target: 'a\0b' },
        lines: [
          '{"jsonrpc":"2.0","id":"a\\u0000b","method":"tools/call","params":{"name":"\\ud800 \\u0000"}}',
          '{"jsonrpc":"2.0","id":"a\\u0000b","error":{"code":-1,"message":"\\u0000"}}',
          Buffer.from([0x7b, 0xff, 0x00, 0x7d]),
          Buffer.concat([Buffer.from('{"jsonrpc":"2.0","method":"m","params":"'), large, Buffer.from('"}')]),
        ],
      });
      store
        .prepare(
          'INSERT INTO frame_edit (session, seq, original) VALUES (1, 1, ?), (1, 2, zeroblob(2500000))',
        )
        .run(Buffer.from('was'));
    });
    await ship(own, file);
    for (const words of [
      ['list', '--json'],
      ['list', '--filter', 'tool~\ud800 or label~k'],
      ['list', '--filter', 'not label=x'],
      ['show', '--filter', 'size<1kb', '--full'],
      ['check', '--json'],
      ['search', 'XXXX', '--limit', '1'],
    ])
      await expectSame(own, file, words);
    const [here, there] = await Promise.all(
      [file, own.reader].map((db) => tapedeckInProcess(['export', '--db', db], { env: own.env })),
    );
    expect(there?.stdout.equals(here?.stdout ?? Buffer.alloc(0))).toBe(true);
  });

  test('a session that has not arrived whole is shown as it is, and how far it is', async () => {
    const own = await fleet();
    const file = newStore((store) => {
      const own = { host: hostname(), pid: process.pid, processStarted: processStarted(process.pid) };
      const start = { ...own, name: 'live' };
      storeSession(store, { start, isOpen: true });
    });
    await tapedeckInProcess(['ship', '--once', '--to', own.host, '--db', file]);
    const shown = await tapedeckInProcess(['show', 'live', '--db', own.reader], { env: own.env });
    expect(shown.stderr).toMatch(
      /session \w+ has not arrived whole yet: 2 frames are here, the last of 2001-09-09T/,
    );
    expect(shown.code).toBe(0);
    const listed = await tapedeckInProcess(['list', '--db', own.reader], { env: own.env });
    expect(String(listed.stdout)).toContain('open');
  });

  inFull('where two hosts have a session of one id, the host tells them apart', async () => {
    const own = await fleet();
    for (const [i, host] of ['alpha', 'beta'].entries()) {
      const file = newStore((store) => {
        storeSession(store, { start: { host, at: 1e15 + i } });
        store.exec("UPDATE session SET id = 'aaaabbbbcccc'");
      });
      await ship(own, file);
    }
    const run = (...words: string[]) => tapedeckInProcess([...words, '--db', own.reader], { env: own.env });
    expect((await run('show', 'aaaabbbbcccc')).stderr).toMatch(
      /Give the host too: beta\/aaaabbbbcccc, alpha\/aaaabbbbcccc/,
    );
    expect(String((await run('show', 'alpha/aaaabbbbcccc', '--json')).stdout)).toContain(
      'alpha/aaaabbbbcccc',
    );
    const listed = await run('list', '--json');
    expect(String(listed.stdout)).toMatch(/"aaaabbbbcccc".*\n.*"alpha\/aaaabbbbcccc"/);
    expect(listed.stderr).toContain(
      'two sessions have the id aaaabbbbcccc: the one of alpha is shown as alpha/aaaabbbbcccc',
    );
  });

  test('pull makes a store of its own, in which nothing else is', async () => {
    const own = await fleet();
    const file = newStore((store) => {
      for (let i = 0; i < 4; i += 1) storeSession(store, { start: { name: `n${i}`, at: 1e15 + i * 1e9 } });
    });
    await ship(own, file);
    const out = join(tempFolder(), 'out.db');
    const pulled = await tapedeckInProcess(['pull', 'n1', '--from', own.reader, '--out', out], {
      env: own.env,
    });
    expect(pulled.stderr).toMatch(/1 session with 2 frames in /);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const [here, there] = await Promise.all(
      [file, out].map((db) => tapedeckInProcess(['show', 'n1', '--json', '--db', db])),
    );
    expect(String(there?.stdout)).toBe(String(here?.stdout));
    const store = openStore(out);
    for (const table of ['session', 'message', 'frame'])
      expect(store.prepare(`SELECT count(*) FROM ${table}`).pluck().get()).toBe(table === 'session' ? 1 : 2);
    store.close();
    const again = await tapedeckInProcess(
      ['pull', '--filter', 'name~n', '--from', own.reader, '--out', out],
      { env: own.env },
    );
    expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('a file that is not there yet') });
    // It was not recorded here.
    const shipped = await tapedeckInProcess(['ship', '--once', '--to', own.host, '--db', out]);
    expect(shipped.stderr).toContain('shipped 0 frames');
  });

  inFull('an agent is told of an engine what it is told of the store', async () => {
    const own = await fleet();
    const file = newStore((store) => void storeSession(store, { start: { name: 'one' } }));
    await ship(own, file);
    const asked = [
      {
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/list' },
      { id: 3, method: 'resources/list' },
    ];
    const stdin = asked.map((one) => `${JSON.stringify({ jsonrpc: '2.0', ...one })}\n`).join('');
    const answers = async (db: string) => {
      const mcp = tapedeck(['mcp', '--db', db], { env: own.env });
      mcp.child.stdin?.write(stdin);
      await expect.poll(() => String(mcp.stdout()), { timeout: 20_000 }).toContain('"id":3');
      mcp.child.stdin?.end();
      return String((await mcp.ended).stdout);
    };
    expect(await answers(own.reader)).toBe(await answers(file));
  });

  inFull('tail shows what comes in, of sessions that were there and of new ones', async () => {
    const own = await fleet();
    const file = newStore((store) => void storeSession(store, { start: { name: 'old' } }));
    await ship(own, file);
    const tail = tapedeck(['tail', '--json', '--lines', '1', '--db', own.reader], { env: own.env });
    await expect.poll(() => lines(tail.stdout()).length).toBe(1);
    const store = openStore(file);
    storeSession(store, { start: { name: 'new', at: 1e15 + 5 } });
    store.close();
    await ship(own, file);
    await expect.poll(() => lines(tail.stdout()).length).toBe(3);
    tail.child.kill('SIGINT');
    expect((await tail.ended).code).toBe(0);
    const folder = join(String(own.env['XDG_CACHE_HOME']), 'tapedeck/engine');
    expect(readdirSync(folder).filter((name) => name.startsWith('reading-'))).toEqual([]);
  });

  inFull('an engine that is cut off in the middle leaves nothing half fetched', async () => {
    const own = await fleet();
    const lines = Array.from(
      { length: 60 },
      (_, i) => `{"jsonrpc":"2.0","method":"m","params":"${'y'.repeat(60_000)}${i}"}`,
    );
    const file = newStore((store) => void storeSession(store, { start: { name: 'cut' }, lines }));
    await ship(own, file);
    const port = await relayThatCuts(Number(new URL(own.reader).port), 400_000);
    const url = own.reader.replace(/:\d+\//, `:${port}/`);
    const cut = await tapedeckInProcess(['show', 'cut', '--db', url], { env: own.env });
    expect(cut).toMatchObject({ code: 2, stderr: expect.stringContaining('cannot be reached') });
    expect(String(cut.stdout)).toBe('');
    const folder = join(String(own.env['XDG_CACHE_HOME']), 'tapedeck/engine');
    expect(readdirSync(folder).filter((name) => name.startsWith('reading-'))).toEqual([]);
    await expectSame(own, file, ['show', 'cut']);
  });

  test('a store of one’s own is read without loading anything of this', async () => {
    const own = await fleet();
    const file = newStore((store) => void storeSession(store));
    const loaded = async (db: string) => {
      const told = join(tempFolder(), 'modules');
      const preload = `--import ${pathToFileURL(fixture('tell-modules.js')).href}`;
      const env = { ...own.env, NODE_OPTIONS: preload, MODULES_TOLD: told };
      expect((await tapedeck(['list', '--db', db], { env }).ended).code).toBe(0);
      const urls = readFileSync(told, 'utf8').split('\n');
      return urls.filter((url) => /node_modules\/pg|open-engine/.test(url)).length;
    };
    expect(await loaded(file)).toBe(0);
    expect(await loaded(own.reader)).toBeGreaterThan(1);
  });

  test('who may not read, an engine of another version, and none at all are told apart', async () => {
    const own = await fleet();
    await ship(
      own,
      newStore((store) => void storeSession(store)),
    );
    const read = (db: string) => tapedeckInProcess(['show', 'latest', '--db', db], { env: own.env });
    expect((await read(own.host)).stderr).toMatch(/lets us do nothing: permission denied/);
    expect((await read('postgres://nobody@127.0.0.1:1/deck')).stderr).toMatch(
      /127\.0\.0\.1:1\/deck cannot be reached/,
    );
    await own.database.query("UPDATE tapedeck.meta SET value = '99' WHERE name = 'version'");
    expect((await read(own.reader)).stderr).toMatch(/The engine is newer than this tapedeck/);
  });
});

test.each([
  [['redact', 'latest'], /Redact the session on the host/],
  [['reindex'], /on the host that has recorded/],
  [['prune', '--older-than', '1d'], /What an engine keeps/],
  [['import', 'x.ndjson'], /Import into a local store/],
  [['record', '--', 'true'], /Record into a file, and ship that/],
  [['wrap', 'x.json'], /Record into a file, and ship that/],
] as const)('%j writes to no engine', async (words, advice) => {
  const [command = '', ...rest] = words;
  const { code, stderr } = await tapedeckInProcess([command, '--db', 'postgres://127.0.0.1:1/deck', ...rest]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/got the URL of an engine/);
  expect(stderr).toMatch(advice);
});

function lines(bytes: Buffer): string[] {
  return String(bytes)
    .split('\n')
    .filter((line) => line !== '');
}

/** Lets so many bytes of the server through, and then nothing more of anybody. */
async function relayThatCuts(port: number, bytes: number): Promise<number> {
  const server = createServer((socket: Socket) => {
    const upstream = tcpConnect(port, '127.0.0.1');
    let left = bytes;
    upstream.on('data', (chunk) => {
      left -= chunk.length;
      if (left > 0) socket.write(chunk);
      else for (const one of [socket, upstream]) one.destroy();
    });
    socket.on('data', (chunk) => upstream.write(chunk));
    for (const one of [socket, upstream]) one.on('error', () => {});
    socket.on('close', () => upstream.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

inFull('whatever reads a store is tried', async () => {
  const { stdout } = await tapedeckInProcess(['--get-yargs-completions', 'tapedeck', '']);
  const names = String(stdout).trim().split('\n');
  const readers = [];
  for (const name of names) {
    const help = String((await tapedeckInProcess([name, '--help'])).stdout);
    if (/--insecure-engine/.test(help)) readers.push(name);
  }
  const tried = new Set([...COMMANDS.map(([name = '']) => name), ...OTHERWISE]);
  expect(readers.length).toBeGreaterThan(10);
  expect(readers.filter((name) => !tried.has(name))).toEqual(['record', 'run', 'ship', 'engine']);
});
