/** What stands in the way of a reader is told with what to do, and never with the password. */
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Socket, connect as tcpConnect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { withEngine } from '../support/engine.ts';
import { fleet, newStore } from '../support/fleet.ts';
import { freePort, type Postgres, startPostgres } from '../support/postgres.ts';
import { inFull } from '../support/scale.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeck, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

async function read(url: string, words: readonly string[] = [], env: Record<string, string> = {}) {
  const run = await tapedeckInProcess(['list', '--db', url, ...words], {
    env: { XDG_CACHE_HOME: tempFolder(), ...env },
  });
  expect(`${run.stderr}${run.stdout}`).not.toContain('hush');
  return run;
}

/** A host that is none of loopback by its name, and is this machine. */
const ELSEWHERE = '127.1';

withEngine('a reader', () => {
  test.each([
    [
      'postgres://ann:hush@127.0.0.1:1/deck',
      /cannot be reached: .*ECONNREFUSED.* Is it running, and is this its host and port\?/,
    ],
    [
      'postgres://ann:hush@nowhere.invalid/deck',
      /nowhere\.invalid:5432\/deck cannot be reached: .* Is it running/,
    ],
    ['postgres://ann@127.0.0.1:1/deck?password=hush', /ann@127\.0\.0\.1:1\/deck cannot be reached/],
    ['postgres://ann:hush@127.0.0.1/deck?sslmode=maybe', /Expected one of disable, .* got `maybe`/],
    ['postgres://ann:hush@127.0.0.1/deck?host=%', /Expected|cannot be reached/],
    ['postgres://ann:hu%sh@127.0.0.1/deck', /Write %25/],
    [
      'postgres://ann:hush@db.example/deck?sslmode=require',
      /not loopback, got `sslmode=require`.*--insecure-engine/,
    ],
  ])('is told of %s what to do', async (url, message) => {
    const { code, stderr } = await read(url);
    expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
  });

  test('of an engine that is none, older, newer, another program’s, and of what it may not read', async () => {
    const own = await fleet();
    const { database, reader } = own;
    expect((await read(await database.login())).stderr).toMatch(/permission denied .* in tapedeck_read/);
    expect((await read(reader.replace(/[^/]+$/, 'nowhere'))).stderr).toMatch(
      /"nowhere" does not exist \(3D000\)\. The database stands at the end of the URL/,
    );
    expect((await read(reader.replace(/[^/]+$/, 'postgres'))).stderr).toMatch(
      /`postgres` is not set up yet.* tapedeck engine init/,
    );
    for (const [version, message] of [
      ['99', /newer than this tapedeck \(schema 99, .*npm install -g mcp-tapedeck@latest/],
      ['0', /older than this tapedeck \(schema 0, .*tapedeck engine migrate/],
    ] as const) {
      await database.query('UPDATE tapedeck.meta SET value = $1 WHERE name = $2', [version, 'version']);
      const { code, stderr } = await read(reader);
      expect([code, stderr]).toEqual([2, expect.stringMatching(message)]);
    }
    await database.query("UPDATE tapedeck.meta SET value = 'somebody' WHERE name = 'created_by'");
    expect((await read(reader)).stderr).toMatch(/is another program’s\. Use another database/);
  });

  test('of a cache folder that cannot be written', async () => {
    const own = await fleet();
    const blocked = join(tempFolder(), 'file');
    writeFileSync(blocked, '');
    const { code, stderr } = await read(own.reader, [], { XDG_CACHE_HOME: blocked });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/XDG_CACHE_HOME/)]);
  });
});

withEngine('a reader of an engine with passwords', () => {
  let server: Postgres | undefined;
  beforeAll(async () => {
    server = await startPostgres({ auth: 'scram-sha-256' });
    server.sql("CREATE ROLE ann LOGIN PASSWORD 'hush'");
  });
  afterAll(() => server?.remove());
  const urlOf = (user: string, host = '127.0.0.1') => `postgres://${user}@${host}:${server?.port}/postgres`;

  inFull('is told of a wrong one, of none, and of a plain connection beyond loopback', async () => {
    for (const [url, message] of [
      [urlOf('ann:hushed'), /password authentication failed .*28P01\)\. The password comes from PGPASSFILE/],
      [urlOf('ann'), /It asks for a password, and none is given: PGPASSFILE/],
      [urlOf('ann:hush'), /is not set up yet/],
      [urlOf('ann:hush', ELSEWHERE), /does not support SSL.* turn on `ssl`, or pass --insecure-engine/],
    ] as const)
      expect((await read(url)).stderr).toMatch(message);
    const plain = `${urlOf('ann:hush', ELSEWHERE)}?sslmode=disable`;
    expect((await read(plain)).stderr).toMatch(/Expected `sslmode=verify-full` for 127\.1/);
    for (const words of [
      ['list'],
      ['show'],
      ['stats'],
      ['search', 'x'],
      ['check'],
      ['export'],
      ['scan'],
      ['tail'],
      ['mcp'],
      ['ui', '--no-open'],
    ]) {
      const run = await tapedeckInProcess([...words, '--insecure-engine', '--db', plain], {
        env: { XDG_CACHE_HOME: tempFolder() },
      });
      expect([words, run.stderr]).toEqual([words, expect.stringMatching(/is not set up yet/)]);
    }
    for (const words of [
      ['replay', plain],
      ['diff', plain, plain],
      ['verify', plain, '--', 'true'],
      ['pull', 'x', '--from', plain],
    ]) {
      const run = await tapedeckInProcess([words[0] ?? '', '--insecure-engine', ...words.slice(1)], {
        env: { XDG_CACHE_HOME: tempFolder() },
      });
      expect([words, run.stderr]).toEqual([words, expect.stringMatching(/is not set up yet/)]);
    }
  });

  inFull(
    'waits for one that is stopped in the middle, says so, and is told of one that is killed',
    async () => {
      if (server === undefined) throw new Error('there is no server');
      const slow = await startPostgres();
      onTestFinished(slow.remove);
      expect((await tapedeckInProcess(['engine', 'init', '--to', slow.url()])).code).toBe(0);
      const file = newStore((store) => void storeSession(store, { start: { name: 'one' } }));
      const shipped = await tapedeckInProcess([
        'ship',
        '--once',
        '--ship-unredacted',
        '--to',
        slow.url(),
        '--db',
        file,
      ]);
      expect(shipped.code).toBe(0);
      // Answers pass until the session is asked for.
      const gate = await gateTo(slow.port);
      const url = slow.url().replace(/:\d+\//, `:${gate.port}/`);
      const env = { XDG_CACHE_HOME: tempFolder() };
      const waiting = tapedeck(['show', 'one', '--db', url], { env });
      await expect
        .poll(() => waiting.stderr(), { timeout: 50_000 })
        .toContain('still waiting for postgres://postgres@');
      gate.open();
      const { code, stdout } = await waiting.ended;
      expect([code, String(stdout)]).toEqual([0, expect.stringContaining('tools/call')]);

      const killed = tapedeck(['show', 'one', '--db', (await gateTo(slow.port)).url(slow.url())], { env });
      await expect
        .poll(() => slow.sql("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'tapedeck'"))
        .toBe('1');
      await slow.kill();
      const end = await killed.ended;
      expect([end.code, String(end.stdout)]).toEqual([2, '']);
      expect(end.stderr).toMatch(/cannot be reached/);
    },
  );
});

test('no password is in the list of processes but where somebody writes it there', async () => {
  const password = 'planted-password';
  const file = join(tempFolder(), 'passwords');
  writeFileSync(file, `*:*:*:ann:${password}\n`, { mode: 0o600 });
  const port = await freePort();
  const silent = createServer(() => {});
  await new Promise<void>((resolve) => silent.listen(port, '127.0.0.1', resolve));
  onTestFinished(() => void silent.close());
  const run = tapedeck(['list', '--db', `postgres://ann@127.0.0.1:${port}/deck?connect_timeout=2`], {
    env: { PGPASSFILE: file, XDG_CACHE_HOME: tempFolder() },
  });
  const title = readFileSync(`/proc/${run.child.pid}/cmdline`, 'utf8');
  const { code, stderr } = await run.ended;
  expect(title).not.toContain(password);
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(/cannot be reached: timeout expired\. Is it running/),
  ]);
});

/** Lets the start of a connection pass, and then nothing of the server until it is opened. */
async function gateTo(port: number) {
  let isOpen = false;
  const held: (() => void)[] = [];
  const server = createServer((socket: Socket) => {
    const upstream = tcpConnect(port, '127.0.0.1');
    let hasBegun = false;
    socket.on('data', (chunk) => {
      hasBegun ||= chunk.includes('REPEATABLE READ');
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (isOpen || !hasBegun) socket.write(chunk);
      else held.push(() => socket.write(chunk));
    });
    for (const one of [socket, upstream]) one.on('error', () => {});
    socket.on('close', () => upstream.destroy());
    upstream.on('close', () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = server.address();
  const own = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    port: own,
    url: (url: string) => url.replace(/:\d+\//, `:${own}/`),
    open() {
      isOpen = true;
      for (const write of held) write();
    },
  };
}
