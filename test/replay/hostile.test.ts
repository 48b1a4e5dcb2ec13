/** Recordings that somebody else made, to break who replays them: a clear error or an answer, no crash, nothing executed. */

import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openMock } from '../support/http-mock.ts';
import { startInProcess } from '../support/in-process.ts';
import { parseOne } from '../support/messages.ts';
import { inFull, sample, scale } from '../support/scale.ts';
import { importSaid, replay, type SaidLine } from '../support/stdio-replay.ts';
import { ROOT, tapedeck, tapedeckInProcess, tempFolder } from '../support/tapedeck.ts';

const call = (id: number, name: string, args: unknown = {}) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } });
const answer = (id: number, result: unknown) => JSON.stringify({ jsonrpc: '2.0', id, result });

// Everything that a terminal or a log would take for more than text, but for the line end, which JSON never has.
const EVIL = '\u001b[2J\u001b]0;title\u0007\u009b31m\r\u2028\u202e\u0000';

test('control characters are answered as recorded, and reach no terminal', async () => {
  const db = await importSaid('calls', [
    ['stdin', call(1, EVIL, { [EVIL]: EVIL })],
    ['stdout', answer(1, { [EVIL]: EVIL })],
    ['stdin', `{"jsonrpc":"2.0","id":2,"method":${JSON.stringify(EVIL)}}`],
  ]);
  const report = join(tempFolder(), 'report.txt');
  const asked = [call(5, EVIL, { [EVIL]: EVIL }), call(6, EVIL, { [EVIL]: 'x' }), call(7, `${EVIL}?`)];
  const { answers, stderr } = await replay(db, asked, ['--report', report]);
  expect(answers[0]).toBe(answer(5, { [EVIL]: EVIL }));
  expect(answers.slice(1).map((line) => JSON.parse(line).error.code)).toEqual([1404, 1404]);
  for (const text of [stderr, readFileSync(report, 'utf8')]) {
    expect(text).toContain('the arguments differ');
    // biome-ignore lint/suspicious/noControlCharactersInRegex: what must not be there.
    expect(text.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u202e]/);
  }
});

inFull('a frame of 64 MB is answered, and is no trouble where it only is near', async () => {
  const large = 'x'.repeat(scale(64) * 1024 * 1024);
  const db = await importSaid('calls', [
    ['stdin', call(1, 'large')],
    ['stdout', answer(1, large)],
    ['stdin', call(2, 'asked', large)],
    ['stdout', answer(2, 'of the large question')],
  ]);
  const { answers, code } = await replay(db, [call(5, 'large'), call(6, 'asked', `${large}y`)]);
  expect(answers).toHaveLength(2);
  expect(answers[0] === answer(5, large)).toBe(true);
  expect(JSON.parse(answers[1] ?? '').error.data.reason).toBe('arguments-differ');
  expect(answers[1]?.length).toBeLessThan(10_000);
  expect(code).toBe(0);
});

test('ids that go in circles are followed once', async () => {
  const circles: SaidLine[] = [
    ['stdin', call(1, 'a')],
    ['stdout', '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'],
    ['stdout', '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'],
    ['stdin', '{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}'],
    ['stdin', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    ['stdout', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    ['stdout', answer(1, { resultType: 'input_required', requestState: 's', task: { taskId: 's' } })],
    ['stdin', '{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"s"}}'],
    [
      'stdout',
      answer(2, { taskId: 's', _meta: { 'io.modelcontextprotocol/related-task': { taskId: 's' } } }),
    ],
  ];
  const db = await importSaid('calls', circles);
  // Nor does an index that was tampered with make it turn for ever.
  const store = new Database(db);
  store.exec("UPDATE message SET relation = 'reply', to_seq = seq, to_n = n WHERE seq = 1");
  store.exec("UPDATE message SET relation = 'progress', to_seq = 9, to_n = 0 WHERE seq = 2");
  store.exec("UPDATE message SET relation = 'round', to_seq = 8, to_n = 0 WHERE seq = 8");
  store.close();
  const ask = '{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"s"}}';
  const { answers, code, stderr } = await replay(db, [call(5, 'a'), ask]);
  expect(code).toBe(0);
  expect(answers.filter((line) => line.includes('"id":7'))).toHaveLength(1);
  expect(stderr).not.toContain('Error');
});

test('a file that breaks off is refused with its line, wherever it does', async () => {
  const whole = readFileSync(join(ROOT, 'recordings/everything-http.ndjson'));
  const lineEnds = [...whole.keys()].filter((i) => whole[i] === 0x0a);
  const folder = tempFolder();
  const middle = lineEnds[4] ?? 0;
  for (const length of sample([middle + 2, 0, 1, 100, middle - 1, whole.length - 3])) {
    const file = join(folder, `${length}.ndjson`);
    writeFileSync(file, whole.subarray(0, length));
    const { code, stdout, stderr } = await tapedeck(['replay', file], { env: { TMPDIR: folder } }).ended;
    expect([code, stdout.toString()]).toEqual([2, '']);
    expect(stderr).toMatch(new RegExp(`^tapedeck: .*${length}\\.ndjson.*(line \\d+|empty|header)`));
    expect(stderr).not.toMatch(/\n\s+at /);
  }
  expect(readdirSync(folder).filter((name) => !name.endsWith('.ndjson'))).toEqual([]);
});

test('a store that breaks off, or is none, is refused', async () => {
  const db = await importSaid(
    'calls',
    [...Array(2000).keys()].map((i) => ['stdin', call(i, 'a', { i })]),
  );
  const cut = join(tempFolder(), 'cut.db');
  copyFileSync(db, cut);
  truncateSync(cut, Math.floor(statSync(cut).size / 2));
  const none = join(tempFolder(), 'none.db');
  writeFileSync(none, 'not a store\n'.repeat(100));
  for (const file of [cut, none]) {
    const { code, stdout, stderr } = await tapedeckInProcess(['replay', 'calls', '--db', file]);
    expect([code, stdout.toString()]).toEqual([2, '']);
    expect(stderr).toMatch(/^tapedeck: .+\n$/);
  }
});

test('JSON of any depth is read to its end', async () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = call(1, 'deep', 0).replace(':0}', `:${deep}}`);
  const db = await importSaid('calls', [
    ['stdin', call(1, 'flat')],
    ['stdout', answer(1, 'of flat')],
  ]);
  const { answers, code } = await replay(db, [text, call(2, 'flat')]);
  expect(answers.map((line) => JSON.parse(line).error?.code)).toEqual([1404, undefined]);
  expect(code).toBe(0);
});

test('nothing that a recording names is executed or reached', async () => {
  const folder = tempFolder();
  const trap = join(folder, 'trap');
  const file = join(folder, 'evil.ndjson');
  const command = ['sh', '-c', `touch ${trap}`];
  const named = `$(touch ${trap})\`touch ${trap}\`; touch ${trap}`;
  const session = {
    name: named,
    basis: 'stdio-process',
    transport: 'stdio',
    target: command.join(' '),
    command,
  };
  const lines = [
    { tapedeck: 1, session: { ...session, startedAt: '2026-01-01T00:00:00.000000Z' } },
    { ms: 1, channel: 'stdin', message: JSON.parse(call(1, named, { a: named })) },
    { ms: 1, channel: 'stdout', message: JSON.parse(answer(1, { command: named })) },
  ];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  const { child, ended } = startInProcess(['replay', file], { cwd: folder });
  child.stdin.end(`${call(5, named, { a: 'b' })}\n${call(6, named, { a: named })}\n`);
  const { code, stdout } = await ended;
  expect([code, stdout.toString().split('\n').length]).toEqual([0, 3]);
  expect(existsSync(trap)).toBe(false);
});

test('a recording whose frames are gone costs errors, not the mock', async () => {
  const db = await importSaid('calls', [
    ['stdin', call(1, 'a')],
    ['stdout', '{"jsonrpc":"2.0","id":9,"method":"ping"}'],
    ['stdin', '{"jsonrpc":"2.0","id":9,"result":{}}'],
    // Too large to be read before it is needed.
    ['stdout', answer(1, 'x'.repeat(2_000_000))],
  ]);
  const { mock } = openMock(db);
  const said: string[] = [];
  const player = mock.createClient((json) => void said.push(json.toString()));
  const receive = (text: string) =>
    player.receive(parseOne(text), Buffer.from(text), { send: (json) => void said.push(json.toString()) });
  receive(call(5, 'a'));
  const store = new Database(db);
  store.exec('DELETE FROM frame WHERE seq > 1');
  store.close();
  receive('{"jsonrpc":"2.0","id":1,"result":{}}');
  await mock.idle();
  expect(said.map((text) => JSON.parse(text))).toMatchObject([
    { id: 1, method: 'ping' },
    { id: 5, error: { code: 1404, data: { reason: 'recording-unreadable' } } },
  ]);
});
