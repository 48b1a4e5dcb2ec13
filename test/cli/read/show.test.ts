import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { widthOf } from '../../../src/inspect/view/text.ts';
import { storeOnce } from '../../support/once.ts';
import { inFull } from '../../support/scale.ts';
import {
  BIN,
  fixture,
  record,
  start,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const HOSTILE =
  '\u001b[31mred\u001b]0;title\u0007 \u202Ereversed\u2066 \u200Bhidden 日本語 🏳️‍🌈 \u0085\u009b2J';

/** A session with a bit of everything, hostile text included. */
const everything = storeOnce(async (db) => {
  const { child, stdout, ended } = record(db, ['echo.js'], ['--name', `evil${HOSTILE}`]);
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const clientInfo = { name: `client${HOSTILE}`, version: '1' };
  send({
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo },
  });
  send({ method: 'initialized' });
  send({
    id: 1,
    method: 'tools/call',
    params: { name: `echo${HOSTILE}`, arguments: { text: HOSTILE.repeat(40) } },
  });
  send({ id: 2, method: 'tools/call', params: { name: 'echo', arguments: { text: 'one\ntwo\nthree' } } });
  send({ id: 3, method: 'no/such' });
  await until('all is answered', () => stdout().toString().split('\n').length > 4);
  child.stdin.end();
  await ended;
});

/** What must never reach a terminal from a recording. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

test.each([40, 60, 80, 133, 400])(
  'show and list stay within %i columns and escape what they show',
  async (columns) => {
    const db = await everything();
    for (const argv of [
      ['show', '--db', db],
      ['show', '--full', '--db', db],
      ['list', '--db', db],
    ]) {
      const { code, stdout } = await tapedeckInProcess(argv, { env: { COLUMNS: String(columns) } });
      expect(code).toBe(0);
      const lines = stdout.toString().split('\n');
      for (const line of lines) expect(line).not.toMatch(UNSAFE);
      // The figures of a session need some 60 columns; with fewer they wrap.
      const most = argv[0] === 'list' ? Math.max(columns, 64) : columns;
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(most);
    }
  },
);

test('show tells who said what, how long it took and how it ended', async () => {
  const db = await everything();
  const { stdout } = await tapedeckInProcess(['show', '--db', db], { env: { COLUMNS: '200' } });
  const text = stdout.toString();
  expect(text).toMatch(/→ {2}initialize 2025-11-25 client/);
  expect(text).toMatch(/← {2}result 2025-11-25 echo 1\.0\.0 {2}[\d.]+ m?s {2}ok {2}initialize/);
  expect(text).toMatch(/→ {2}notifications\/initialized \(written initialized\)/);
  expect(text).toMatch(
    /→ {2}tools\/call echo\n {14}\{"name":"echo","arguments":\{"text":"one\\ntwo\\nthree"\}\}/,
  );
  expect(text).toMatch(/← {2}result 3 lines of text {2}[\d.]+ m?s {2}ok {2}tools\/call echo\n/);
  expect(text).toMatch(/← {2}error -32601 Method not found {2}[\d.]+ m?s {2}error {2}no\/such/);
  expect(text).toMatch(/recorded +4 exchanges, 1 error, nothing lost, 9 frames/);
});

test('payloads are folded and cut, or whole with --full', async () => {
  const db = await everything();
  const options = { env: { COLUMNS: '80' } };
  const short = (await tapedeckInProcess(['show', '--db', db], options)).stdout.toString();
  const full = (await tapedeckInProcess(['show', '--full', '--db', db], options)).stdout.toString();
  expect(short).toMatch(/[^…]… [\d.]+ kB more\n/);
  expect(full).not.toMatch(/more\n/);
  expect(full.length).toBeGreaterThan(short.length + 2000);
});

test('show --json has the promised members in the promised order', async () => {
  const db = await everything();
  const { stdout } = await tapedeckInProcess(['show', '--json', '--db', db]);
  const frames = stdout
    .toString()
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  expect(Object.keys(frames[0])).toEqual([
    ...['session', 'seq', 'at', 'direction', 'channel', 'size', 'text'],
    ...['edited', 'redacted', 'http', 'sse', 'messages'],
  ]);
  expect(frames[0]).toMatchObject({
    session: expect.stringMatching(/^[0-9a-f]{12}$/),
    seq: 1,
    at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/),
    direction: 'client-to-server',
    channel: 'stdin',
    edited: false,
    redacted: false,
    http: null,
    sse: null,
  });
  expect(frames[0].size).toBe(Buffer.byteLength(frames[0].text));
  expect(frames.map(({ seq }) => seq)).toEqual(frames.map((_, i) => i + 1));
  const answer = frames.find(({ channel, messages }) => channel === 'stdout' && messages[0]?.id === '3');
  expect(answer.messages).toEqual([
    {
      kind: 'error',
      id: '3',
      idType: 'number',
      method: null,
      replyTo: expect.any(Number),
      latencyMs: expect.any(Number),
      problem: null,
    },
  ]);
});

test('show --json gives bytes that are no UTF-8 as base64, exactly', async () => {
  const db = tempStore();
  const bytes = Buffer.from([0x7b, 0xff, 0x00, 0xc3, 0x28, 0x7d]);
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end(Buffer.concat([bytes, Buffer.from('\n')]));
  await ended;
  const { stdout } = await tapedeckInProcess(['show', '--json', '--db', db]);
  const [frame] = stdout
    .toString()
    .split('\n')
    .map((line) => line && JSON.parse(line));
  expect(frame.text).toBeUndefined();
  expect(Buffer.from(frame.base64, 'base64').equals(bytes)).toBe(true);
});

test('list --json has the promised members', async () => {
  const db = await everything();
  const { stdout } = await tapedeckInProcess(['list', '--json', '--db', db]);
  const session = JSON.parse(stdout.toString());
  expect(Object.keys(session)).toEqual([
    ...[
      'session',
      'name',
      'basis',
      'transport',
      'startedAt',
      'endedAt',
      'target',
      'client',
      'server',
      'protocolVersion',
      'capture',
    ],
    ...['frames', 'dropped', 'exchanges', 'errors', 'unanswered', 'exitCode', 'signal', 'endReason', 'run'],
  ]);
  expect(session).toMatchObject({
    basis: 'stdio-process',
    transport: 'stdio',
    target: `${process.execPath} ${fixture('echo.js')}`,
    server: { name: 'echo', version: '1.0.0' },
    protocolVersion: '2025-11-25',
    ...{
      frames: 9,
      dropped: 0,
      exchanges: 4,
      errors: 1,
      unanswered: 0,
      exitCode: 0,
      signal: null,
      endReason: 'client-closed',
    },
  });
});

test('list shows the newest sessions first, and no more than wanted', async () => {
  const db = tempStore();
  for (const name of ['first', 'second', 'third']) {
    const { child, ended } = record(db, ['cat.js'], ['--name', name]);
    child.stdin.end();
    await ended;
  }
  const { stdout } = await tapedeckInProcess(['list', '--limit', '2', '--db', db]);
  expect(stdout.toString()).toMatch(/third[\s\S]*second/);
  expect(stdout.toString()).not.toMatch(/first/);
});

inFull('a reader that leaves early is no error', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'x'.repeat(1000) })}\n`.repeat(5000));
  await ended;
  const bin = new URL('../../../bin/tapedeck.js', import.meta.url).pathname;
  const pipeline = `'${process.execPath}' '${bin}' show --json --db '${db}' | head -n 1; exit \${PIPESTATUS[0]}`;
  const { code, stderr } = await start('bash', ['-c', pipeline]).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test('colour is for terminals only, and never against NO_COLOR', async () => {
  const db = await everything();
  const { stdout: piped } = await tapedeckInProcess(['show', '--db', db], {
    env: { FORCE_COLOR: '1', CI: 'true' },
  });
  expect(piped.toString()).not.toContain('\u001b');
  const bin = new URL('../../../bin/tapedeck.js', import.meta.url).pathname;
  const onTerminal = (env: Record<string, string>) =>
    start('script', ['-qec', `'${process.execPath}' '${bin}' show --db '${db}'`, '/dev/null'], { env }).ended;
  expect((await onTerminal({ TERM: 'xterm' })).stdout.toString()).toContain('\u001b[');
  expect((await onTerminal({ TERM: 'xterm', NO_COLOR: '1' })).stdout.toString()).not.toContain('\u001b[');
  expect((await onTerminal({ TERM: 'dumb' })).stdout.toString()).not.toContain('\u001b[');
});

test.skipIf(process.platform !== 'linux')(
  'output that cannot be written is one clear line and exit 2',
  async () => {
    const db = await everything();
    const { code, stderr } = await start('sh', [
      '-c',
      '"$@" >/dev/full',
      'sh',
      process.execPath,
      BIN,
      'show',
      '--db',
      db,
    ]).ended;
    expect(code).toBe(2);
    expect(stderr).toMatch(/^tapedeck: The output cannot be written: ENOSPC[^\n]*\n$/);
  },
);

test('a line that was left unfinished has one number, whatever else is selected', async () => {
  const [db, folder] = [tempStore(), tempFolder()];
  const file = join(folder, 'cut.ndjson');
  const header = {
    tapedeck: 1,
    session: {
      basis: 'stdio-process',
      transport: 'stdio',
      target: 'a',
      startedAt: '2026-11-21T05:02:34.937594Z',
    },
  };
  const pings = [1, 2, 3].map(
    (id) => `{"ms":1,"channel":"stdin","message":{"jsonrpc":"2.0","id":${id},"method":"ping"}}`,
  );
  writeFileSync(
    file,
    [JSON.stringify(header), ...pings, '{"channel":"stdin","unfinished":true,"text":"{ rest"}', ''].join(
      '\n',
    ),
  );
  await tapedeckInProcess(['import', file, '--db', db]);
  const seqs = async (...filter: string[]) => {
    const { stdout } = await tapedeckInProcess(['show', '--json', '--db', db, ...filter]);
    const frames = stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    return frames.map(({ seq, unfinished }) => [seq, unfinished === true]);
  };
  expect((await seqs()).at(-1)).toEqual([4, true]);
  expect(await seqs('--filter', 'id=1 or rest')).toEqual([
    [1, false],
    [4, true],
  ]);
  expect(await seqs('--filter', 'rest')).toEqual([[4, true]]);
});
