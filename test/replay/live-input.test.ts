import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startHttpMock } from '../support/http-mock.ts';
import { modernMeta } from '../support/messages.ts';
import { inFull } from '../support/scale.ts';
import { send } from '../support/send.ts';
import { importSaid, replay } from '../support/stdio-replay.ts';
import { tempFolder, until } from '../support/tapedeck.ts';

const call = (id: number | string, name: string) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id,
    method: 'tools/call',
    params: { name, _meta: { progressToken: id } },
  });
const answer = (id: number, text: string) => JSON.stringify({ jsonrpc: '2.0', id, result: { text } });
const progress = (token: number) =>
  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":1}}`;

test('malformed input gets the error that JSON-RPC has for it, and is told', async () => {
  const db = await importSaid('calls', [
    ['stdin', call(1, 'a')],
    ['stdout', answer(1, 'of a')],
  ]);
  const report = join(tempFolder(), 'report.txt');
  const { answers, stderr, code } = await replay(
    db,
    [
      '{"jsonrpc":"2.0","id":1,\u001b[31m',
      '',
      '"text"',
      '{"jsonrpc":"1.0","id":"x\\"y","method":"ping"}',
      '{"jsonrpc":"2.0","id":7}',
      '{"jsonrpc":"2.0","id":null,"method":"ping"}',
      '{"jsonrpc":"2.0","id":8,"result":1,"error":2}',
      '[]',
      call(2, 'a'),
    ],
    ['--fail-on-miss', '--report', report],
  );
  const said = answers.map((line) => JSON.parse(line)).map(({ id, error }) => [id, error?.code]);
  expect(said).toEqual([
    [null, -32700],
    [null, -32600],
    ['x"y', -32600],
    [7, -32600],
    [null, -32600],
    // Nobody waits for an answer to an answer.
    [null, -32600],
    [2, undefined],
  ]);
  const lines = stderr.split('\n').filter((line) => line.includes('malformed input'));
  expect(lines).toHaveLength(7);
  expect(lines[0]).toContain('is not JSON: {"jsonrpc":"2.0","id":1,\\x1b[31m');
  expect(lines[5]).toContain('both `result` and `error`');
  expect(readFileSync(report, 'utf8').match(/malformed input/g)).toHaveLength(7);
  expect(code).toBe(1);
});

const BATCHED = [
  ['stdin', `[${call(1, 'a')},${call(2, 'b')}]`],
  ['stdout', progress(1)],
  ['stdout', `[${answer(2, 'of b')},${answer(1, 'of a')}]`],
  ['stdin', call(3, 'c')],
  ['stdout', answer(3, 'of c')],
] as const;

test('a batch is answered by a batch, in which every message has its answer', async () => {
  const db = await importSaid('calls', BATCHED);
  const note = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
  const batch = `\ufeff [${call(8, 'b')},${note},${call(9, 'never')},1,${call('x', 'a')}]`;
  const { answers, stderr } = await replay(db, [batch, call(5, 'c'), `[${note}]`]);
  const [news, ...others] = answers.map((line) => JSON.parse(line));
  expect(news.params).toEqual({ progressToken: 'x', progress: 1 });
  const [single, together] = others.toSorted((a, b) => Number(Array.isArray(a)) - Number(Array.isArray(b)));
  expect(single).toMatchObject({ id: 5, result: { text: 'of c' } });
  const byId = new Map(together.map((one: { id: unknown }) => [one.id, one]));
  expect(byId.get(8)).toMatchObject({ result: { text: 'of b' } });
  expect(byId.get('x')).toMatchObject({ result: { text: 'of a' } });
  expect(byId.get(9)).toMatchObject({ error: { code: 1404 } });
  expect(byId.get(null)).toMatchObject({ error: { code: -32600 } });
  expect([together.length, others.length]).toEqual([4, 2]);
  expect(stderr).toContain('neither an object nor a batch');
});

test('a batch that was taken back in part is answered for the rest', async () => {
  const db = await importSaid('calls', [
    ['stdin', call(1, 'a')],
    ['stdin', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'],
    ['stdin', call(2, 'b')],
    ['stdout', answer(2, 'of b')],
  ]);
  const cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}';
  const { answers } = await replay(db, [`[${call(8, 'a')},${call(9, 'b')}]`, cancel]);
  expect(answers.map((line) => JSON.parse(line))).toEqual([
    [{ jsonrpc: '2.0', id: 9, result: { text: 'of b' } }],
  ]);
});

test('a batch is answered by a batch over HTTP too', async () => {
  const db = await importSaid('calls', BATCHED);
  const { url } = await startHttpMock(db);
  const initialize = { id: 0, method: 'initialize', params: { protocolVersion: '2025-03-26' } };
  const opened = await send(url, { body: initialize });
  await opened.ended;
  const headers = { 'mcp-session-id': String(opened.headers['mcp-session-id']), Accept: 'application/json' };
  const answered = await send(url, { body: `[${call(8, 'b')},${call(9, 'a')}]`, headers });
  await answered.ended;
  expect(JSON.parse(answered.text())).toEqual([
    { jsonrpc: '2.0', id: 8, result: { text: 'of b' } },
    { jsonrpc: '2.0', id: 9, result: { text: 'of a' } },
  ]);
});

test('the 2026-07-28 era has no batches: one error, and nothing of it is played', async () => {
  const modern = (id: number) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'a', _meta: modernMeta() } });
  const db = await importSaid('calls', [
    ['stdin', modern(1)],
    ['stdout', answer(1, 'of a')],
  ]);
  const { answers, stderr } = await replay(db, [`[${modern(1)},${modern(2)}]`, modern(3)]);
  expect(answers.map((line) => JSON.parse(line))).toMatchObject([
    { id: null, error: { code: -32600 } },
    { id: 3, result: { text: 'of a' } },
  ]);
  expect(stderr).toContain('has a batch');
});

inFull('a line of 64 MB that is no JSON costs one error', async () => {
  const db = await importSaid('calls', BATCHED);
  const { answers, code } = await replay(db, [`{"${'x'.repeat(64 * 1024 * 1024)}`, call(3, 'c')]);
  expect(answers.map((line) => JSON.parse(line).error?.code)).toEqual([-32700, undefined]);
  expect(code).toBe(0);
});

test('what 2026-07-28 has no more is unknown to a recording of both eras, where it is asked in the newer one', async () => {
  const ask = (id: number, method: string, meta: object) =>
    JSON.stringify({ jsonrpc: '2.0', id, method, params: { _meta: meta } });
  const initialize = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25' },
  };
  const db = await importSaid('calls', [
    ['stdin', ask(9, 'server/discover', modernMeta())],
    ['stdout', answer(9, 'discovered')],
    ['stdin', JSON.stringify(initialize)],
    ['stdout', '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'],
  ]);
  const { answers } = await replay(db, [ask(1, 'ping', modernMeta()), ask(2, 'ping', {})]);
  expect(answers.map((line) => JSON.parse(line))).toMatchObject([
    { id: 1, error: { code: -32601 } },
    { id: 2, result: {} },
  ]);
  const { url } = await startHttpMock(db);
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': 'ping' };
  const asked = await send(url, { body: ask(3, 'ping', modernMeta()), headers });
  await asked.ended;
  expect([asked.status, JSON.parse(asked.text()).error.code]).toEqual([404, -32601]);
  await until('it is read', () => asked.text() !== '');
});

test('a server of both eras answers each era with what was recorded in it', async () => {
  const ask = (id: number, meta: object) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list', params: { _meta: meta } });
  const initialize =
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}';
  const db = await importSaid('calls', [
    ['stdin', ask(1, modernMeta())],
    ['stdout', answer(1, 'of the newer')],
    ['stdin', initialize],
    ['stdout', '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'],
    ['stdin', ask(2, {})],
    ['stdout', answer(2, 'of the older')],
  ]);
  const { answers, stderr } = await replay(db, [initialize, ask(5, {}), ask(6, modernMeta()), ask(7, {})]);
  expect(answers.slice(1)).toEqual([
    answer(5, 'of the older'),
    answer(6, 'of the newer'),
    answer(7, 'of the older'),
  ]);
  expect(stderr).toBe('');
});
