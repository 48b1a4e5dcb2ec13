import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { widthOf } from '../../../src/inspect/view/text.ts';
import { inFull } from '../../support/scale.ts';
import {
  BIN,
  showFrames,
  start,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
} from '../../support/tapedeck.ts';

const HOSTILE =
  '\u001b[31mred\u001b]0;title\u0007 \u202Ereversed\u2066 \u200Bhidden 日本語 🏳️‍🌈 \u0085\u009b2J';
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

/** A store with one session of these frames, `ms` apart. Gives the store. */
async function storeOf(name: string, frames: readonly object[], db = tempStore()): Promise<string> {
  const file = join(tempFolder(), 'a.ndjson');
  const session = { name, basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] };
  const startedAt = '2026-11-20T10:00:00.000000Z';
  // Without an end it would be open for as long as the process that imported it.
  const end = { endedAt: '2026-11-20T10:00:01.000000Z', endReason: 'client-closed' };
  const lines = [
    { tapedeck: 1, session: { ...session, startedAt, ...end } },
    ...frames.map((frame) => ({ ms: 1, ...frame })),
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  expect((await tapedeckInProcess(['import', file, '--db', db])).code).toBe(0);
  return db;
}

const call = (id: number, text: string) => ({
  channel: 'stdin',
  message: { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { text } } },
});
const answer = (id: number, text: string) => ({
  channel: 'stdout',
  message: { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } },
});

test('search finds in all sessions, and shows the text around', async () => {
  const db = await storeOf('first', [call(1, 'hay'), answer(1, 'a needle here')]);
  await storeOf('second', [{ channel: 'stderr', text: 'Needle on stderr' }, call(1, 'hay')], db);
  const { code, stdout, stderr } = await tapedeckInProcess(['search', 'NEEDLE', '--db', db]);
  expect(code).toBe(0);
  expect(stderr).toBe('');
  expect(stdout.toString()).toMatch(
    /^[0-9a-f]{12} {2}(second|first) {2}2026.*\n( {4}.*\n)+\n[0-9a-f]{12} {2}(second|first) .*\n( {4}.*\n)+$/,
  );
  expect(stdout.toString()).toMatch(/┊ {2}Needle on stderr\n/);
  expect(stdout.toString()).toMatch(
    /← {2}result 1 line of text .* ok {2}tools\/call echo\n {14}.*"text":"a needle here"/,
  );
});

test('all texts must be there, a phrase is one text, and a filter narrows it', async () => {
  const db = await storeOf('one', [call(1, 'not found'), answer(1, 'found, not'), call(2, 'tool=echo')]);
  const found = async (...args: string[]) => {
    const { stdout } = await tapedeckInProcess(['search', '--json', '--db', db, ...args]);
    const lines = stdout.toString().split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line).seq);
  };
  expect(await found('not', 'found')).toEqual([1, 2]);
  expect(await found('not found')).toEqual([1]);
  expect(await found('found', '--filter', 'kind=result')).toEqual([2]);
  expect(await found('--filter', 'kind=request')).toEqual([1, 3]);
  expect(await found('tool=echo')).toEqual([3]);
  expect(await found('--', '--json')).toEqual([]);
  expect(await found('--', 'found', 'not')).toEqual([1, 2]);
});

test('search --json prints the frames as show --json does', async () => {
  const db = await storeOf('one', [call(1, 'needle'), answer(1, 'hay'), answer(1, 'needle')]);
  const { stdout } = await tapedeckInProcess(['search', 'needle', '--json', '--db', db]);
  const [first, , third] = await showFrames(db);
  expect(
    stdout
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual([first, third]);
});

test('more than the limit is said, on stderr', async () => {
  const db = await storeOf(
    'one',
    Array.from({ length: 30 }, (_, i) => call(i, 'needle')),
  );
  const some = await tapedeckInProcess(['search', 'needle', '--json', '--db', db]);
  expect(some.stdout.toString().trim().split('\n')).toHaveLength(20);
  expect(some.stderr).toMatch(/^tapedeck: there is more; .*--limit 100.*\n$/);
  const all = await tapedeckInProcess(['search', 'needle', '--limit', '0', '--json', '--db', db]);
  expect(all.stdout.toString().trim().split('\n')).toHaveLength(30);
  expect(all.stderr).toBe('');
});

test('nothing found is said to people, and is no error', async () => {
  const db = await storeOf('one', [call(1, 'hay')]);
  expect(await tapedeckInProcess(['search', 'needle', '--db', db])).toMatchObject({
    code: 0,
    stdout: Buffer.from('Nothing was found.\n'),
  });
  expect((await tapedeckInProcess(['search', 'needle', '--json', '--db', db])).stdout.toString()).toBe('');
});

test.each([40, 80, 200])('within %i columns search and stats escape what they show', async (columns) => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const method = JSON.stringify(`m${HOSTILE}`);
  const frames = [
    call(1, HOSTILE.repeat(50)),
    answer(1, `${HOSTILE}needle${HOSTILE}`),
    { channel: 'stderr', text: `${'\u202E'.repeat(300)}needle${'\u001b[2J'.repeat(300)}` },
    { channel: 'stdin', text: `{"jsonrpc":"2.0","id":2,"method":${method},"params":{"needle":${deep}}}` },
    {
      channel: 'stdin',
      message: { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: HOSTILE.repeat(99) } },
    },
    { channel: 'stdout', message: { jsonrpc: '2.0', id: 3, result: { isError: true, content: [] } } },
    { channel: 'stderr', text: `${'🏳️‍🌈'.repeat(200)}needle${'日本語'.repeat(200)}` },
  ];
  const db = await storeOf(`evil${HOSTILE}`, frames);
  const env = { COLUMNS: String(columns) };
  for (const args of [
    ['search', 'needle'],
    ['search', '--filter', 'text~/needle.*/s'],
    ['stats'],
    ['stats', '--all', '--by', 'session'],
  ]) {
    const { code, stdout, stderr } = await tapedeckInProcess([...args, '--db', db], { env });
    expect(stderr).toBe('');
    expect(code).toBe(0);
    const lines = stdout.toString().split('\n');
    for (const line of lines) expect(line).not.toMatch(UNSAFE);
    for (const line of lines)
      expect(widthOf(line), line).toBeLessThanOrEqual(args[0] === 'stats' ? Math.max(columns, 64) : columns);
  }
});

test('a text of ten megabytes is found and shown in no time', async () => {
  const text = `${'lorem ipsum '.repeat(500_000)}NEEDLE${'dolor '.repeat(800_000)}`;
  const db = await storeOf('large', [answer(1, text)]);
  const { stdout } = await tapedeckInProcess(['search', 'needle', '--db', db]);
  expect(stdout.toString()).toMatch(/lorem ipsum NEEDLEdolor /);
});

inFull('two searches at once, both the first, find the same', async () => {
  const db = await storeOf(
    'one',
    Array.from({ length: 2000 }, (_, i) => call(i, `needle ${i}`)),
  );
  const runs = [1, 2].map(() => tapedeck(['search', 'needle', '--limit', '0', '--json', '--db', db]).ended);
  const [first, second] = await Promise.all(runs);
  expect(first?.stdout.toString().trim().split('\n')).toHaveLength(2000);
  expect(second?.stdout.equals(first?.stdout ?? Buffer.alloc(0))).toBe(true);
});

test('where no index can be kept, every frame is read, and that is said', async () => {
  const db = await storeOf('one', [call(1, 'needle')]);
  // In the index's place, which works for root too.
  mkdirSync(`${db}.index`);
  const { code, stdout, stderr } = await tapedeckInProcess(['search', 'needle', '--json', '--db', db]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout.toString()).seq).toBe(1);
  expect(stderr).toMatch(/^tapedeck: the index beside the store cannot be kept: .*\n$/);
});

inFull('a search whose reader leaves ends', async () => {
  const db = await storeOf(
    'one',
    Array.from({ length: 3000 }, (_, i) => call(i, `needle ${'x'.repeat(500)}`)),
  );
  const shell = `'${process.execPath}' '${BIN}' search needle --limit 0 --db '${db}' | head -n 2; exit "\${PIPESTATUS[0]}"`;
  const { code, stderr } = await start('bash', ['-c', shell]).ended;
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});

test.each([
  [['search'], /Expected a text to search for/],
  [['search', ''], /Expected a text to search for/],
  [['search', 'x', '--limit', '-1'], /Expected a whole number after `--limit`/],
  [['search', '--filter', 'tol=x'], /Nearest: `tool`/],
  [['stats', 'latest', '--all'], /Expected a session or `--all`, got both/],
  [['stats', '--by', 'colour'], /Choices/],
  [['stats', '--filter', '('], /at column 2/],
])('%j is refused', async (args, message) => {
  const { code, stderr } = await tapedeckInProcess([...args, '--db', tempStore()]);
  expect(code).toBe(2);
  expect(stderr).toMatch(message);
  expect(stderr.trim().split('\n')).toHaveLength(1);
});

test('of what is pruned or redacted nothing stays in the index', async () => {
  const secret = `ghp_${'FAKE'.padEnd(36, 'zqjx')}`;
  const db = await storeOf('one', [call(1, 'kept')]);
  await storeOf('two', [{ channel: 'stderr', text: 'gone: wvz' }], db);
  await storeOf('three', [call(1, secret)], db);
  const found = async (text: string) =>
    (await tapedeckInProcess(['search', text, '--json', '--db', db])).stdout.toString() !== '';
  const grams = () => {
    const side = new Database(`${db}.index`, { readonly: true });
    const all = side.prepare<[], string>('SELECT term FROM gram_list').pluck().all();
    side.close();
    return all;
  };
  expect([await found('wvz'), await found(secret)]).toEqual([true, true]);
  expect(grams()).toEqual(expect.arrayContaining(['wvz', 'zqj']));
  expect((await tapedeckInProcess(['prune', 'two', '--db', db])).code).toBe(0);
  expect(await tapedeckInProcess(['redact', 'three', '--db', db])).toMatchObject({ code: 0, stderr: '' });
  expect(grams().filter((gram) => gram === 'wvz' || gram === 'zqj')).toEqual([]);
  expect([await found('wvz'), await found(secret), await found('kept')]).toEqual([false, false, true]);
});
