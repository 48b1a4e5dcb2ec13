import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { buffer } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { inFull, scale } from '../support/scale.ts';
import {
  BIN,
  fixture,
  isRunning,
  latestSession,
  payloadOf,
  record,
  showFrames,
  start,
  tapedeck,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

/** The lines of a stream as a naive reader has them: the yardstick for what is stored. */
function linesOf(bytes: Buffer): string[] {
  const text = bytes.toString('latin1');
  const lines = text
    .split('\n')
    .map((line, i, all) => (i < all.length - 1 && line.endsWith('\r') ? line.slice(0, -1) : line));
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}

const wireBytes = fc.uint8Array({ maxLength: 4000 }).map((bytes) => {
  // Make line ends and multi-byte characters likely.
  const common = [0x0a, 0x0d, 0xc3, 0xa9, 0x7b, 0x7d, 0x00, 0xff];
  return Buffer.from(bytes.map((byte) => (byte % 3 === 0 ? (common[byte % common.length] ?? byte) : byte)));
});

test('any bytes in any chunking arrive unchanged on both sides and are stored as their lines', async () => {
  await fc.assert(
    fc.asyncProperty(
      wireBytes,
      fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1 }),
      async (bytes, cuts) => {
        const db = tempStore();
        const { child, ended } = record(db, ['cat.js']);
        for (let at = 0, i = 0; at < bytes.length; i += 1) {
          const size = cuts[i % cuts.length] ?? 1;
          await new Promise((resolve) => child.stdin.write(bytes.subarray(at, at + size), resolve));
          at += size;
        }
        child.stdin.end();
        const { code, stdout } = await ended;
        expect(code).toBe(0);
        expect(stdout.equals(bytes)).toBe(true);
        const frames = await showFrames(db);
        for (const channel of ['stdin', 'stdout']) {
          const stored = frames
            .filter((frame) => frame.channel === channel)
            .map((frame) => payloadOf(frame).toString('latin1'));
          expect(stored).toEqual(linesOf(bytes));
        }
      },
    ),
    { numRuns: scale(12, 4) },
  );
});

test('a line of 64 MB passes whole and is stored whole', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['cat.js']);
  const line = Buffer.alloc(
    scale(64) * 1024 * 1024,
    // Neither end of line: the last byte of the line would be taken for half of a CRLF.
    randomBytes(3001).map((byte) => (byte === 0x0a || byte === 0x0d ? 0x0b : byte)),
  );
  child.stdin.end(Buffer.concat([line, Buffer.from('\n')]));
  const { stdout } = await ended;
  const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
  expect(hash(stdout.subarray(0, -1))).toBe(hash(line));
  const frames = await showFrames(db);
  expect(frames.map((frame) => [frame.channel, frame.size, hash(payloadOf(frame))])).toEqual([
    ['stdin', line.length, hash(line)],
    ['stdout', line.length, hash(line)],
  ]);
});

inFull('both sides may talk at once without waiting for each other', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['babble.js']);
  const bytes = 4 * 1024 * 1024;
  child.stdin.end(Buffer.alloc(bytes, 'c'));
  const { code, stdout } = await ended;
  expect(code).toBe(0);
  expect(stdout.length).toBe(4096 * 1024 + `received ${bytes}\n`.length);
  expect(stdout.toString().endsWith(`received ${bytes}\n`)).toBe(true);
});

test('text on stdout that is no message passes and is recorded as invalid', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['garbage-stdout.js']);
  child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  const { stdout } = await ended;
  const answer = 'debug: got 1\r\n{"jsonrpc":"2.0","id":1,"result":{}}\n42\n["no", "message"]\n';
  expect(stdout.toString()).toBe(`Server starting on stdio…\n\n[info] ready\n${answer}`);
  const frames = (await showFrames(db)).filter((frame) => frame.channel === 'stdout');
  const kinds = frames.map((frame) => frame.messages.map((message) => message.problem ?? message.kind));
  expect(kinds).toEqual([
    ['not-json'],
    [],
    ['not-json'],
    ['not-json'],
    ['result'],
    ['not-object'],
    ['not-object', 'not-object'],
  ]);
});

test('stderr passes through and is recorded, a megabyte of it before the first answer', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['noisy-stderr.js']);
  child.stdin.end('hello\n');
  const { stdout, stderr } = await ended;
  expect(stdout.toString()).toBe('hello\n');
  expect(stderr).toBe(`${'x'.repeat(1023)}\n`.repeat(1024));
  const frames = await showFrames(db);
  expect(frames.filter((frame) => frame.channel === 'stderr')).toHaveLength(1024);
  expect(frames.filter((frame) => frame.channel === 'stderr' && frame.messages.length > 0)).toEqual([]);
});

test('the server sees the environment, folder and arguments that it would see directly', async () => {
  const args = ['--flag', '--', 'two words', '', '$HOME', "it's"];
  const options = { cwd: tempFolder(), env: { TAPEDECK_TEST: 'yes', EMPTY: '' } };
  const direct = await start(process.execPath, [fixture('surroundings.js'), ...args], options).ended;
  const bin = new URL('../../bin/tapedeck.js', import.meta.url).pathname;
  const command = [
    bin,
    'record',
    '--db',
    tempStore(),
    '--',
    process.execPath,
    fixture('surroundings.js'),
    ...args,
  ];
  const recorded = await start(process.execPath, command, options).ended;
  expect(JSON.parse(recorded.stdout.toString())).toEqual(JSON.parse(direct.stdout.toString()));
});

test('a client that does not read holds up the server, not the memory of tapedeck', async () => {
  const db = tempStore();
  const megabytes = scale(200, 40);
  const { child, ended } = record(db, ['flood.js', String(megabytes)]);
  child.stdout.pause();
  const residentBytes = async () => {
    const { stdout } = await start('ps', ['-o', 'rss=', '-p', String(child.pid)]).ended;
    return Number(stdout.toString()) * 1024;
  };
  await until(
    'the store holds what the pipe could take',
    async () => (await latestSession(db).catch(() => undefined))?.frames !== undefined,
  );
  const { frames } = await latestSession(db);
  expect(frames).toBeLessThan((megabytes / 2) * 1024);
  expect(await residentBytes()).toBeLessThan(250 * 1024 * 1024);
  child.stdout.resume();
  const { stdout } = await ended;
  expect(stdout.length).toBe(megabytes * 1024 * 1024);
  const { frames: stored, dropped } = await latestSession(db);
  expect(stored + dropped).toBe(megabytes * 1024);
});

test('the end of input reaches the server, and answers still come after it', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end('last words\n');
  const { code, stdout } = await ended;
  expect([code, stdout.toString()]).toEqual([0, 'last words\n']);
  expect((await latestSession(db)).endReason).toBe('client-closed');
});

inFull('a server that closes its stdout is seen to do so while it still reads', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['half-close.js']);
  await new Promise((resolve) => child.stdout.on('end', resolve));
  child.stdin.end('abc');
  expect((await ended).code).toBe(3);
});

inFull('what a server said on stderr before it ended waits for a client that reads late', async () => {
  const server = `require('node:fs').writeFileSync(2, Buffer.alloc(400_000, 'x'))`;
  const args = [BIN, 'record', '--db', tempStore(), '--', process.execPath, '-e', server];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  // Not read until tapedeck would have left, if it did not wait.
  const patience = new Promise((resolve) => setTimeout(resolve, 2500, 'still there'));
  expect(await Promise.race([once(child, 'exit'), patience])).toBe('still there');
  expect((await buffer(child.stderr)).length).toBe(400_000);
});

test('a client that closes its end of stdout ends a server that goes on writing', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['flood.js', '1000']);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  child.stdout.destroy();
  const { code } = await ended;
  expect(code).not.toBe(0);
  expect((await latestSession(db)).exitCode).toBe(code);
});

test('half a message before a crash passes and is recorded as it is', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['crash.js']);
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  const { code, stdout } = await ended;
  expect([code, stdout.toString()]).toEqual([7, '{"jsonrpc":"2.0","id":1,"resu']);
  const frames = await showFrames(db);
  expect(frames.map((frame) => [frame.channel, frame.text])).toEqual([
    ['stdin', '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
    ['stdout', '{"jsonrpc":"2.0","id":1,"resu'],
  ]);
  const { endReason, exitCode, unanswered } = await latestSession(db);
  expect({ endReason, exitCode, unanswered }).toEqual({
    endReason: 'server-exited',
    exitCode: 7,
    unanswered: 1,
  });
});

function rowsOf<T>(db: string, sql: string): T[] {
  const store = new Database(db, { readonly: true });
  const rows = store.prepare<[], T>(sql).all();
  store.close();
  return rows;
}

inFull('a process that keeps the server’s stdout open does not keep tapedeck from ending', async () => {
  const { child, stdout, ended } = record(tempStore(), ['leave-child.js']);
  child.stdout.on('data', () => {});
  await until('the server has told the pid of its child', () => stdout().includes('\n'));
  const left = Number(stdout().toString());
  try {
    const { code, stderr } = await ended;
    expect(code).toBe(5);
    expect(isRunning(left)).toBe(true);
    expect(stderr).toMatch(/^tapedeck: .*neither relayed nor recorded$/m);
  } finally {
    process.kill(left, 'SIGKILL');
  }
});

inFull('what a process says that outlives the server is relayed and recorded to its end', async () => {
  const db = tempStore();
  const script = '(sleep 2; echo late) & echo early; exit 2';
  const { child, ended } = tapedeck(['record', '--db', db, '--', 'sh', '-c', script]);
  const { code, stdout, stderr } = await ended;
  expect({ code, stdout: stdout.toString(), stderr }).toEqual({
    code: 2,
    stdout: 'early\nlate\n',
    stderr: '',
  });
  child.stdin.destroy();
  const frames = rowsOf<{ text: string }>(db, 'SELECT CAST(payload AS TEXT) AS text FROM frame ORDER BY seq');
  expect(frames.map(({ text }) => text)).toEqual(['early', 'late']);
});

inFull(
  'a client that has ended its input is not held up by a process that the server left behind',
  async () => {
    const db = tempStore();
    const { child, stdout, ended } = record(db, ['leave-child.js']);
    child.stdin.end();
    const { code, stderr } = await ended;
    process.kill(Number(stdout().toString()), 'SIGKILL');
    expect([code, stderr]).toEqual([5, expect.stringMatching(/neither relayed nor recorded/)]);
    const [{ waited } = { waited: Number.NaN }] = rowsOf<{ waited: number }>(
      db,
      'SELECT ended_at - server_closed_at AS waited FROM session',
    );
    expect(waited).toBeLessThan(5_000_000);
  },
);
