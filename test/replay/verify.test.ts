import { expect, test } from 'vitest';
import { jsonPointer } from '../../src/protocol/json/diff.ts';
import { parseMessages } from '../../src/protocol/message/message.ts';
import { type Answer, compareAnswers, readResultRules } from '../../src/replay/match/compare.ts';
import { collectTools, type Tools } from '../../src/replay/recording/recording.ts';
import type { ScriptLine } from '../../src/replay/recording/script.ts';
import { compareTools } from '../../src/replay/verify/offers.ts';
import { planOf } from '../../src/replay/verify/plan.ts';

function answer(value: object): Answer {
  const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, ...value }));
  const [message] = parseMessages(json);
  if (message === undefined) throw new Error('no message');
  return { json, message };
}

const compare = (method: string, recorded: object, live: object, ...ignore: string[]) =>
  compareAnswers({ method, target: 'a' }, answer(recorded), answer(live), readResultRules(ignore));

function toolsOf(...tools: object[]): Tools {
  const collected: Tools = new Map();
  collectTools(collected, answer({ result: { tools } }).json);
  return collected;
}

function changeOf(before: object, after: object) {
  const [change] = compareTools(toolsOf({ name: 'a', ...before }), toolsOf({ name: 'a', ...after }));
  return change;
}

const input = (properties: object, more: object = {}) => ({
  inputSchema: { type: 'object', properties, ...more },
});

test('the kind of an answer comes first', () => {
  const error = { error: { code: 1, message: 'm' } };
  expect(compare('x', { result: { a: 1 } }, error)).toMatchObject({
    isEqual: false,
    recorded: 'result',
    live: 'error',
    differences: [],
  });
  expect(compare('tools/call', { result: {} }, { result: { isError: true } })).toMatchObject({
    live: 'tool error',
  });
  expect(compare('x', error, { error: { code: 2, message: 'm' } }).differences).toHaveLength(1);
});

test('order of members and spelling of numbers do not count, big numbers do', () => {
  expect(compare('x', { result: { a: 1, b: 2 } }, { result: { b: 2, a: 1.0 } }).isEqual).toBe(true);
  const big = (digits: string): Answer => {
    const json = Buffer.from(`{"jsonrpc":"2.0","id":1,"result":{"n":${digits}}}`);
    const [message] = parseMessages(json);
    return { json, message: message as Answer['message'] };
  };
  const asked = { method: 'x', target: null };
  expect(compareAnswers(asked, big('9007199254740993'), big('9007199254740992')).isEqual).toBe(false);
});

test('what every run has anew does not count', () => {
  const meta = (n: number) => ({
    traceparent: `${n}`,
    'io.modelcontextprotocol/serverInfo': { version: `${n}` },
  });
  expect(compare('x', { result: { _meta: meta(1) } }, { result: { _meta: meta(2) } }).isEqual).toBe(true);
  expect(compare('x', { result: { _meta: { own: 1 } } }, { result: { _meta: { own: 2 } } }).isEqual).toBe(
    false,
  );
  const server = (name: string, version: string) => ({ result: { serverInfo: { name, version } } });
  expect(compare('initialize', server('a', '1'), server('a', '2')).isEqual).toBe(true);
  expect(compare('initialize', server('a', '1'), server('b', '1')).isEqual).toBe(false);
  const task = (at: string) => ({ result: { task: { status: 'working', createdAt: at } } });
  expect(compare('tools/call', task('1'), task('2')).isEqual).toBe(true);
});

test('ignored paths of all results, and of one target', () => {
  const [recorded, live] = [{ result: { a: { b: 1 }, c: 1 } }, { result: { a: { b: 2 }, c: 2 } }];
  const pointers = (...ignore: string[]) =>
    compare('x', recorded, live, ...ignore).differences.map(({ path }) => jsonPointer(path));
  expect(pointers()).toEqual(['/a/b', '/c']);
  expect(pointers('$.a')).toEqual(['/c']);
  expect(pointers('a:$.c')).toEqual(['/a/b']);
  expect(pointers('other:$.c')).toEqual(['/a/b', '/c']);
  expect(pointers('$')).toEqual([]);
  expect(() => readResultRules(['a'])).toThrow(/expected <json-path> or <tool>:<json-path>/);
});

test('tools that come in another order are the same tools', () => {
  const [a, b] = [{ name: 'a' }, { name: 'b' }];
  expect(compareTools(toolsOf(a, b), toolsOf(b, a))).toEqual([]);
  const changes = compareTools(toolsOf(a), toolsOf(b));
  expect(changes.map(({ tool, change, breaking }) => [tool, change, breaking.length])).toEqual([
    ['a', 'removed', 1],
    ['b', 'added', 0],
  ]);
});

test.each([
  ['an argument is gone', input({ x: {} }), input({})],
  ['an argument is newly required', input({ x: {} }), input({ x: {} }, { required: ['x'] })],
  ['a type is narrowed', input({ x: { type: ['string', 'null'] } }), input({ x: { type: 'string' } })],
  ['a number must be an integer', input({ x: { type: 'number' } }), input({ x: { type: 'integer' } })],
  ['a type is new', input({ x: {} }), input({ x: { type: 'string' } })],
  ['a value is gone', input({ x: { enum: ['a', 'b'] } }), input({ x: { enum: ['a'] } })],
  ['values are new', input({ x: {} }), input({ x: { enum: ['a'] } })],
  ['it is deep inside', input({ x: { items: { enum: [1, 2] } } }), input({ x: { items: { enum: [1] } } })],
  ['others are refused', input({}), input({}, { additionalProperties: false })],
  ['a promised part is gone', { outputSchema: { properties: { x: {} } } }, { outputSchema: {} }],
])('callers break where %s', (_name, before, after) => {
  expect(changeOf(before, after)?.breaking).toHaveLength(1);
});

test.each([
  ['a description', { description: 'a' }, { description: 'b' }],
  ['an optional argument', input({}), input({ x: {} })],
  ['one required no more', input({ x: {} }, { required: ['x'] }), input({ x: {} })],
  ['a wider type', input({ x: { type: 'integer' } }), input({ x: { type: 'number' } })],
  ['a wider enum', input({ x: { enum: ['a'] } }), input({ x: { enum: ['a', 'b'] } })],
  ['a new output', {}, { outputSchema: { properties: {} } }],
])('callers do not break by %s', (_name, before, after) => {
  expect(changeOf(before, after)).toMatchObject({ change: 'changed', breaking: [] });
});

test('the plan asks at once what was asked at once, and waits where the client had waited', () => {
  const line = (
    seq: number,
    from: 'client' | 'server',
    kind: string,
    to: number | null = null,
  ): ScriptLine => ({
    place: { seq, n: 0 },
    direction: from === 'client' ? 'client-to-server' : 'server-to-client',
    kind,
    id: String(to ?? seq),
    method: kind === 'notification' ? 'notifications/cancelled' : kind === 'request' ? 'm' : null,
    target: null,
    at: seq,
    httpExchange: null,
    relation: to === null ? null : kind === 'notification' ? 'cancel' : 'reply',
    to: to === null ? null : { seq: to, n: 0 },
    client: 1,
    errorCode: null,
  });
  const { acts, calls } = planOf([
    line(1, 'client', 'request'),
    line(2, 'client', 'request'),
    line(3, 'server', 'request'),
    line(4, 'client', 'result', 3),
    line(5, 'server', 'result', 2),
    line(6, 'client', 'notification', 1),
    line(7, 'client', 'request'),
    line(8, 'server', 'error', 7),
  ]);
  expect(acts).toEqual([
    { act: 'ask', call: 0 },
    { act: 'ask', call: 1 },
    { act: 'be asked', question: { seq: 3, n: 0 } },
    { act: 'await', call: 1 },
    { act: 'notify', place: { seq: 6, n: 0 }, method: 'notifications/cancelled', cancels: 0 },
    { act: 'ask', call: 2 },
    { act: 'await', call: 2 },
  ]);
  expect(calls.map(({ answer }) => answer?.seq ?? null)).toEqual([null, 5, 8]);
});
