import { join } from 'node:path';
import { expect, test } from 'vitest';
import { storeOnce } from '../support/once.ts';
import { ROOT, record, showFrames, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

/** Two sessions, `one` with a call of `echo` and one that fails, `two` with a ping. */
const two = storeOnce(async (db) => {
  const calls = [
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"needle"}}}',
    '{"jsonrpc":"2.0","id":2,"method":"no/such"}',
  ];
  await talk(db, 'one', calls);
  await talk(db, 'two', ['{"jsonrpc":"2.0","id":1,"method":"ping"}']);
});

async function talk(db: string, name: string, lines: readonly string[]): Promise<void> {
  const { child, stdout, ended } = record(db, ['echo.js'], ['--name', name]);
  child.stdin.write(lines.map((line) => `${line}\n`).join(''));
  await until('all is answered', () => stdout().toString().split('\n').length > lines.length);
  child.stdin.end();
  await ended;
}

test('show --filter shows a call with its answer, and nothing else', async () => {
  const db = await two();
  const shown = await tapedeckInProcess(['show', 'one', '--filter', 'tool=echo', '--db', db]);
  expect(shown.code).toBe(0);
  expect(shown.stdout.toString()).toMatch(/→ {2}tools\/call echo\n[\s\S]*← {2}result/);
  expect(shown.stdout.toString()).not.toContain('no/such');

  const json = await tapedeckInProcess(['show', 'one', '--filter', 'tool=echo', '--json', '--db', db]);
  const all = (await showFrames(db, 'one')).filter((frame) => frame.messages.some(({ id }) => id === '1'));
  expect(all).toHaveLength(2);
  expect(
    json.stdout
      .toString()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ).toEqual(all);
});

test('a filter that holds for nothing says so to people, and gives machines nothing', async () => {
  const db = await two();
  const people = await tapedeckInProcess(['show', '--filter', 'tool=nope', '--db', db]);
  expect(people.stdout.toString()).toMatch(/The filter holds for no frame of this session\.\n$/);
  const machines = await tapedeckInProcess(['show', '--filter', 'tool=nope', '--json', '--db', db]);
  expect(machines).toMatchObject({ code: 0, stdout: Buffer.from('') });
});

test.each([
  ['needle', ['one']],
  ['status=error', ['one']],
  ['method=ping', ['two']],
  ['name~/^(one|two)$/', ['two', 'one']],
  ['not name=one', ['two']],
  ['session=latest', ['two']],
  ['since=1h', ['two', 'one']],
  ['until=1h', []],
  ['tool=nope', []],
])('list --filter %s lists %j', async (filter, names) => {
  const db = await two();
  const { stdout } = await tapedeckInProcess(['list', '--filter', filter, '--json', '--db', db]);
  const lines = stdout.toString().split('\n').slice(0, -1);
  expect(lines.map((line) => JSON.parse(line).name)).toEqual(names);
});

test('by HTTP, the exchanges of the selected frames come with them', async () => {
  const db = tempStore();
  await tapedeckInProcess(['import', join(ROOT, 'recordings/everything-http.ndjson'), '--db', db]);
  const options = ['--filter', 'tool=echo', '--db', db];
  const shown = (await tapedeckInProcess(['show', ...options])).stdout.toString();
  const exchanges = (await tapedeckInProcess(['show', '--http', '--json', ...options])).stdout.toString();
  const [line = '', ...others] = exchanges.trim().split('\n');
  expect(others).toEqual([]);
  expect(shown.match(/#\d+ {2}POST/g)).toEqual([`#${JSON.parse(line).http}  POST`]);
});

test('a wrong filter is one line that says where and what, and exit code 2', async () => {
  for (const command of ['show', 'list']) {
    const wrong = await tapedeckInProcess([command, '--filter', 'a tol=echo', '--db', tempStore()]);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toMatch(/^tapedeck: Expected a field at column 3 .*Nearest: `tool`.*\n$/);
  }
});

test('a filter that holds for nothing is said to, and programs get nothing', async () => {
  const db = await two();
  const say = async (...args: string[]) =>
    (await tapedeckInProcess([...args, '--filter', 'client=nobody', '--db', db])).stdout.toString();
  expect(await say('list')).toBe('The filter holds for no session.\n');
  expect(await say('show')).toMatch(/\nThe filter holds for no frame of this session\.\n$/);
  expect(await say('list', '--json')).toBe('');
  expect(await say('show', '--json')).toBe('');
});
