import {
  appendFileSync,
  chmodSync,
  lstatSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { query } from '../support/http-record.ts';
import { connectByPost, HANDSHAKE, linesOf, listen, recordOnce, say, toolCall } from '../support/modes.ts';
import { inFull, scale } from '../support/scale.ts';
import {
  BIN,
  fixture,
  listSessions,
  record,
  showFrames,
  start,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const NODE = process.execPath;
const DIES = ['--', NODE, fixture('dies.js')];
const COUNTER = ['--', NODE, fixture('counter.js')];

const recordFine = recordOnce([...HANDSHAKE, toolCall(1, 'fine')], DIES);

const namesIn = (lines: readonly string[]) =>
  lines.flatMap((line) => JSON.parse(line).message?.params?.name ?? []);

test('all records everything anew, through a link and with the permissions that were there', async () => {
  const file = await recordFine();
  const link = join(dirname(file), 'link.ndjson');
  symlinkSync(file, link);
  chmodSync(file, 0o664);
  await say([link, '--mode', 'all', ...DIES], [...HANDSHAKE, toolCall(1, 'fails')]);
  expect(namesIn(linesOf(file))).toEqual(['fails']);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(statSync(file).mode & 0o777).toBe(0o664);
  expect(readdirSync(dirname(file)).toSorted()).toEqual(['it.ndjson', 'link.ndjson']);
});

test('all leaves the old recording where a call got no answer, and where none was asked', async () => {
  const file = await recordFine();
  const before = readFileSync(file, 'utf8');
  const lines = [...HANDSHAKE, toolCall(1, 'fails'), toolCall(2, 'exits')];
  const failed = await say([file, '--mode', 'all', ...DIES], lines);
  expect(failed.stderr).toContain('stays as it was');
  expect(failed.code).toBe(1);
  const unused = await say([file, '--mode', 'all', ...DIES], []);
  expect(unused.code).toBe(0);
  expect(readFileSync(file, 'utf8')).toBe(before);
  const asked = await say([file, '--mode', 'all', '--record-failures', ...DIES], lines);
  expect(asked.code).toBe(0);
  expect(namesIn(linesOf(file))).toEqual(['fails', 'exits']);
});

test('a stored session that is recorded anew keeps its id, its name and its labels', async () => {
  const db = tempStore();
  const { child, stdout, ended } = record(db, ['counter.js'], ['--name', 'it', '--label', 'a=b']);
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"old"}\n');
  await until('an answer', () => stdout().includes('\n'));
  child.stdin.end();
  await ended;
  const [old] = await listSessions(db);
  await say(['it', '--db', db, '--mode', 'all', ...COUNTER], [{ id: 1, method: 'new' }]);
  const sessions = await listSessions(db);
  expect(sessions.map(({ session, name }) => [session, name])).toEqual([[old?.session, 'it']]);
  expect((await showFrames(db)).map(({ messages }) => messages[0]?.method)).toEqual(['new', null]);
  expect(query(db, 'SELECT key, value FROM label')).toEqual([{ key: 'a', value: 'b' }]);
  expect(query(db, 'SELECT * FROM session WHERE indexed < frames')).toEqual([]);
});

test('once makes a session of a name that is not there, and plays it from then on', async () => {
  const db = tempStore();
  const args = ['fresh', '--db', db, '--mode', 'once', ...COUNTER];
  const made = await say(args, [{ id: 1, method: 'a' }]);
  expect(made.answers).toMatchObject([{ id: 1, result: { count: 1 } }]);
  const played = await say(args, [
    { id: 7, method: 'a' },
    { id: 8, method: 'b' },
  ]);
  expect(played.answers).toMatchObject([
    { id: 7, result: { count: 1 } },
    { id: 8, error: { code: 1404 } },
  ]);
  const latest = await say(['latest', '--db', tempStore(), '--mode', 'once', ...COUNTER], []);
  expect(latest.code).toBe(2);
});

test('what is added to a file stands behind what was there, whatever its form', async () => {
  const file = await recordFine();
  const [header = '', ...frames] = linesOf(file);
  const byHand = `${header}\r\n\n  ${frames.join('\n \n')}`;
  await tapedeckInProcess(['list', '--db', tempStore()]);
  appendFileSync(`${file}.ndjson`, byHand);
  await say([`${file}.ndjson`, '--mode', 'new_episodes', ...DIES], [...HANDSHAKE, toolCall(1, 'fails')]);
  const after = readFileSync(`${file}.ndjson`, 'utf8');
  expect(after.startsWith(`${byHand}\n{"ms":`)).toBe(true);
  const { answers } = await say([`${file}.ndjson`], [...HANDSHAKE, toolCall(1, 'fails')]);
  expect(answers[1]).toMatchObject({ result: { isError: true } });
});

inFull('several that add to one recording at once lose nothing of each other', async () => {
  const db = tempStore();
  const file = await recordFine();
  await say(['it', '--db', db, '--mode', 'once', ...COUNTER], [{ id: 1, method: 'first' }]);
  const names = ['a', 'b', 'c'];
  for (const [recording, server] of [
    [[file], DIES],
    [['it', '--db', db], COUNTER],
  ] as const) {
    const args = [...recording, '--mode', 'new_episodes', ...server];
    const added = names.map((name) =>
      say(args, [
        ...HANDSHAKE,
        { id: 1, method: 'tools/call', params: { name: 'fails', arguments: { name } } },
      ]),
    );
    await Promise.all(added);
    const { code } = await say(
      [...recording, '--fail-on-miss'],
      [
        ...HANDSHAKE,
        ...names.map((name, id) => ({
          id: id + 5,
          method: 'tools/call',
          params: { name: 'fails', arguments: { name } },
        })),
      ],
    );
    expect(code).toBe(0);
  }
});

inFull('new calls that are asked at once keep their answers apart', async () => {
  const file = await recordFine();
  const { run, url } = await listen([file, '--mode', 'new_episodes', ...DIES]);
  const post = await connectByPost(url);
  const names = ['fails', 'refuses', 'fails', 'refuses'];
  const asked = await Promise.all(names.map((name, i) => post(toolCall(i + 1, name))));
  const texts = await Promise.all(asked.map((response) => response.text()));
  run.child.kill('SIGTERM');
  await run.ended;
  for (const [i, text] of texts.entries()) {
    expect(text).toContain(`"id":${i + 1},`);
    expect(text).toContain(names[i] === 'fails' ? 'it failed' : 'no such argument');
  }
  expect(namesIn(linesOf(file))).toEqual(['fine', ...names]);
});

inFull('kill -9 while a file is rewritten leaves the old one whole', async () => {
  const file = join(tempFolder(), 'large.ndjson');
  await say([file, '--mode', 'once', ...COUNTER], [{ id: 1, method: 'a' }]);
  const [, asked = '', answer = ''] = linesOf(file);
  // Large enough for its copy to take a while.
  const big = 'x'.repeat(1024 * 1024);
  for (let i = 0; i < scale(30, 10); i += 1)
    appendFileSync(file, `${asked.replace('"a"', `"${i} ${big}"`)}\n${answer}\n`);
  const before = statSync(file);
  const run = start(NODE, [BIN, 'replay', file, '--mode', 'new_episodes', ...COUNTER]);
  run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"new"}\n');
  const names = () => readdirSync(dirname(file)).join(' ');
  const isReplaced = () => statSync(file).ino !== before.ino;
  while (!names().includes('.part') && !isReplaced()) await new Promise((resolve) => setImmediate(resolve));
  run.child.kill('SIGKILL');
  await run.ended;
  if (!isReplaced()) expect(statSync(file).size).toBe(before.size);
  const { answers } = await say([file], [{ id: 3, method: 'a' }]);
  expect(answers).toMatchObject([{ id: 3, result: { count: 1 } }]);
});

test('kill -9 costs a stored session nothing of what was answered before', async () => {
  const db = tempStore();
  const args = ['it', '--db', db, '--mode', 'new_episodes', ...COUNTER];
  await say(args, [{ id: 1, method: 'a' }]);
  const run = start(NODE, [BIN, 'replay', ...args]);
  run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"b"}\n');
  await until('it is stored', () => query(db, 'SELECT * FROM frame').length === 4);
  run.child.kill('SIGKILL');
  await run.ended;
  const { answers } = await say(
    ['it', '--db', db],
    [
      { id: 1, method: 'a' },
      { id: 2, method: 'b' },
    ],
  );
  expect(answers).toMatchObject([{ result: { count: 1 } }, { result: { count: 1 } }]);
});

test('a file that cannot be written is said before anything is asked', async () => {
  const file = join(tempFolder(), 'no-such-folder', 'it.ndjson');
  const { code, stdout, stderr } = await tapedeckInProcess(['replay', file, '--mode', 'once', ...COUNTER]);
  expect([code, stdout.toString()]).toEqual([2, '']);
  expect(stderr).toContain('it.ndjson cannot be written: ENOENT');
});

test('--prune-unused removes what nobody has asked for, and nothing where nobody has asked', async () => {
  const file = await recordFine();
  const call = HANDSHAKE.length + 1;
  const added = [...HANDSHAKE, toolCall(1, 'fails'), toolCall(2, 'fails', { x: 'more' })];
  await say([file, '--mode', 'new_episodes', ...DIES], added);
  const before = linesOf(file);
  expect(await say([file, '--prune-unused'], [])).toMatchObject({ code: 0 });
  expect(linesOf(file)).toEqual(before);
  const { stderr } = await say([file, '--prune-unused'], added.slice(0, call));
  expect(stderr).toMatch(/\d of them removed/);
  const after = linesOf(file);
  expect(after.some((line) => line.includes('more'))).toBe(false);
  expect(before).toEqual(expect.arrayContaining(after));
  for (const args of [
    [file, '--mode', 'all', '--prune-unused', ...DIES],
    [file, file, '--prune-unused'],
    ['demo', '--prune-unused'],
  ])
    expect((await say(args, [])).code).toBe(2);
});

test('the report has all of it as JSON lines', async () => {
  const file = await recordFine();
  const report = join(tempFolder(), 'report.jsonl');
  await say(
    [file, '--mode', 'new_episodes', '--report', report, ...DIES],
    [...HANDSHAKE, toolCall(1, 'fails'), toolCall(2, 'exits')],
  );
  expect(linesOf(report).map((line) => JSON.parse(line))).toMatchObject([
    { type: 'added', method: 'tools/call', target: 'fails', outcome: 'tool-error', why: null },
    { type: 'miss', code: 1404, data: { target: 'exits' } },
    { type: 'withheld', target: 'exits', outcome: 'unanswered', why: 'the server has ended (exit 7)' },
  ]);
});
