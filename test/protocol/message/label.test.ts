import fc from 'fast-check';
import { expect, test } from 'vitest';
import { messagesOf } from '../../../src/protocol/message/conversation.ts';
import { bodyText, labelledBy, messageGist, messageLabel } from '../../../src/protocol/message/label.ts';
import { type Message, parseMessages } from '../../../src/protocol/message/message.ts';
import { brokenJson } from '../../support/json-text.ts';
import { bytesOf, frameOf, parseOne } from '../../support/messages.ts';
import { scale } from '../../support/scale.ts';

/** The label of a message that stands alone; a value gets its `jsonrpc` member. With what the index knows of it, it is the same. */
function label(message: object | string, asked: string | null = null): string {
  const payload = bytesOf(typeof message === 'string' ? message : { jsonrpc: '2.0', ...message });
  const read = parseOne(payload);
  const text = messageLabel(read, payload, 0, asked);
  const known = labelledBy(indexed(read));
  if (known !== null) expect(messageLabel(known, payload, 0, asked)).toBe(text);
  return text;
}

function indexed(message: Message) {
  const { kind } = message;
  const { method = null, canonical = null } = 'canonical' in message ? message : {};
  const target = 'details' in message ? message.details.target : null;
  return { kind, method, canonical, target, errorCode: kind === 'error' ? message.code : null };
}

const labelOfResult = (result: unknown, asked: string | null = null) => label({ id: 1, result }, asked);

test('a call is labelled by its method and its target', () => {
  expect(label({ id: 1, method: 'tools/call', params: { name: 'echo', arguments: {} } })).toBe(
    'tools/call echo',
  );
  expect(label({ id: 1, method: 'resources/read', params: { uri: 'file:///a' } })).toBe(
    'resources/read file:///a',
  );
  expect(label({ id: 1, method: 'tools/list' })).toBe('tools/list');
  expect(label({ id: 1, method: 'tools/call', params: { name: 7 } })).toBe('tools/call');
  expect(label({ method: 'notifications/initialized' })).toBe('notifications/initialized');
});

test('the gist of a call is what it is called with, as written, and of all else the label without its method', () => {
  const gist = (text: string) => messageGist(parseOne(bytesOf(text)), bytesOf(text), 0, null);
  const call = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  expect(gist(call('{"name":"add","arguments":{"a":1.0, "b":12345678901234567890}}'))).toBe(
    '{"a":1.0, "b":12345678901234567890}',
  );
  expect(gist(call('{"name":"add"}'))).toBe('');
  expect(gist('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"total":5}}')).toBe(
    '1/5',
  );
  expect(gist('{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}')).toBe('error -32601 no');
});

test('a variant of a method is labelled by the canonical name and the written one', () => {
  expect(label({ method: 'initialized' })).toBe('notifications/initialized (written initialized)');
});

test('initialize is labelled by the version and the client', () => {
  const params = { protocolVersion: '2025-11-25', clientInfo: { name: 'c', version: '1' } };
  expect(label({ id: 0, method: 'initialize', params })).toBe('initialize 2025-11-25 c 1');
  expect(label({ id: 0, method: 'initialize', params: { clientInfo: { name: 'c' } } })).toBe('initialize c');
  expect(label({ id: 0, method: 'initialize' })).toBe('initialize');
});

const labelOfProgress = (params: unknown) => label({ method: 'notifications/progress', params });

test('progress is labelled by its figures and its message', () => {
  expect(labelOfProgress({ progressToken: 1, progress: 3, total: 8, message: 'copying' })).toBe(
    'notifications/progress 3/8 copying',
  );
  expect(labelOfProgress({ progressToken: 1, progress: 0.5 })).toBe('notifications/progress 0.5');
  expect(labelOfProgress({ progressToken: 1 })).toBe('notifications/progress');
  expect(
    label({ method: '$/progress', params: { token: 1, value: { progress: 1, total: 2, message: 'x' } } }),
  ).toBe('notifications/progress (written $/progress) 1/2 x');
});

const labelOfLog = (params: unknown) => label({ method: 'notifications/message', params });

test('a log message is labelled by its level and its data', () => {
  expect(labelOfLog({ level: 'info', data: 'hello' })).toBe('notifications/message info: hello');
  expect(labelOfLog({ level: 'error', data: { a: [1] } })).toBe('notifications/message error: {"a":[1]}');
  expect(labelOfLog({ level: 'error', message: 'old text' })).toBe('notifications/message error: old text');
  expect(labelOfLog({ level: 'error', data: null, message: 'old text' })).toBe(
    'notifications/message error: old text',
  );
  expect(labelOfLog({ level: 'error' })).toBe('notifications/message error:');
  expect(labelOfLog({ data: 'hello' })).toBe('notifications/message hello');
  expect(labelOfLog({})).toBe('notifications/message');
});

const labelOfCancel = (params: unknown) => label({ method: 'notifications/cancelled', params });

test('a cancellation is labelled by the request and the reason', () => {
  expect(labelOfCancel({ requestId: 3, reason: 'took too long' })).toBe(
    'notifications/cancelled 3 took too long',
  );
  expect(labelOfCancel({ requestId: 'r-1' })).toBe('notifications/cancelled r-1');
  expect(labelOfCancel({ id: 0 })).toBe('notifications/cancelled 0');
  expect(labelOfCancel({})).toBe('notifications/cancelled');
});

test('numbers in a label are exact', () => {
  const id = '12345678901234567890';
  expect(label(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`)).toBe(
    `notifications/cancelled ${id}`,
  );
  expect(
    label(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":[${id}]}}`),
  ).toBe(`notifications/message info: [${id}]`);
  expect(
    label('{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1.0,"total":1E3}}'),
  ).toBe('notifications/progress 1.0/1E3');
});

test('an elicitation is labelled by its question', () => {
  expect(label({ id: 1, method: 'elicitation/create', params: { message: 'Your name?' } })).toBe(
    'elicitation/create Your name?',
  );
  expect(label({ id: 1, method: 'elicitation/create', params: { message: {} } })).toBe('elicitation/create');
});

test('an error is labelled by its code and its message', () => {
  expect(label({ id: 1, error: { code: -32601, message: 'Method not found' } })).toBe(
    'error -32601 Method not found',
  );
  expect(label({ id: null, error: { code: -32700 } })).toBe('error -32700');
  expect(label({ id: 1, error: 'broken' })).toBe('error');
});

test('an invalid message is labelled by what is wrong with it', () => {
  expect(label('starting…')).toBe('invalid: is not JSON');
  expect(label('{"id":1,"method":"ping"}')).toBe('invalid: has no `jsonrpc` member (ping)');
  const frame = frameOf('stdin', '{"jsonrpc":', { truncated: true });
  const labels = messagesOf(frame).map((message) => messageLabel(message, frame.payload, 0, null));
  expect(labels).toEqual(['invalid: was not recorded whole, so it cannot be read']);
});

test('the content of a result is labelled by what it consists of', () => {
  const text = (lines: string) => ({ type: 'text', text: lines });
  expect(labelOfResult({ content: [text('a\nb\nc')] })).toBe('result 3 lines of text');
  expect(labelOfResult({ content: [text('a'), { type: 'image' }] })).toBe('result 1 line of text, 1 image');
  expect(labelOfResult({ content: [text('a'), text('b'), { type: 'image' }, { type: 'image' }] })).toBe(
    'result 2 lines of text, 2 images',
  );
  expect(labelOfResult({ content: text('sampled'), role: 'assistant' })).toBe('result 1 line of text');
  expect(labelOfResult({ content: [] })).toBe('result no content');
  expect(labelOfResult({ content: 'text' })).toBe('result no content');
  expect(labelOfResult({ content: [{}, 5] })).toBe('result 1 block');
});

test('a failed tool is labelled as one', () => {
  expect(labelOfResult({ isError: true, content: [{ type: 'text', text: 'no' }] })).toBe(
    'result tool error: 1 line of text',
  );
});

test('a list is labelled by its length, and whether there is more', () => {
  const lists: [result: object, text: string][] = [
    [{ tools: [{}, {}] }, 'result 2 tools'],
    [{ tools: [{}], nextCursor: 'x' }, 'result 1 tool and more'],
    [{ resources: [] }, 'result 0 resources'],
    [{ resourceTemplates: [{}] }, 'result 1 resource template'],
    [{ prompts: [{}] }, 'result 1 prompt'],
    [{ roots: [{}] }, 'result 1 root'],
    [{ tasks: [{}] }, 'result 1 task'],
    [{ contents: [{}, {}] }, 'result 2 contents'],
    [{ messages: [{}] }, 'result 1 message'],
    [{ tools: 'none' }, 'result'],
  ];
  expect(lists.map(([result]) => [result, labelOfResult(result)])).toEqual(lists);
});

test('the answer to initialize is labelled by the version and the server', () => {
  const result = { protocolVersion: '2025-11-25', serverInfo: { name: 's', version: '2' }, capabilities: {} };
  expect(labelOfResult(result, 'initialize')).toBe('result 2025-11-25 s 2');
});

test('skills are labelled by their number, and one by its name and its files', () => {
  const label = (result: object) =>
    messageLabel({ kind: 'result' }, Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, result })), 0, null);
  const skill = { uri: 'skill://a/SKILL.md', frontmatter: { name: 'a' }, resources: [{}, {}] };
  expect(label({ skills: [skill] })).toBe('result 1 skill');
  expect(label({ skill })).toBe('result skill a, 2 files');
  expect(label({ skill: { ...skill, resources: 'dynamic' } })).toBe('result skill a');
  expect(label({ skill: {} })).toBe('result skill');
});

test('a result that requires input is labelled by what it asks for', () => {
  const result = { resultType: 'input_required', inputRequests: { who: {}, when: {} } };
  expect(labelOfResult(result)).toBe('result input required: who, when');
  expect(labelOfResult({ resultType: 'input_required', requestState: 'x' })).toBe('result input required');
  expect(labelOfResult({ resultType: 'input_required', inputRequests: 'who' })).toBe('result input required');
});

test('an action and a task are labelled by themselves', () => {
  expect(labelOfResult({ action: 'decline' })).toBe('result decline');
  expect(labelOfResult({ task: { taskId: 't1', status: 'working' } })).toBe('result task t1 working');
});

test('an empty result says so, unless it answers a ping', () => {
  expect(labelOfResult({}, 'tools/call')).toBe('result empty');
  expect(labelOfResult({ resultType: 'complete', _meta: {} }, 'tools/call')).toBe('result empty');
  expect(labelOfResult({}, 'ping')).toBe('result');
  expect(labelOfResult({}, null)).toBe('result');
  expect(labelOfResult({ other: 1 }, 'tools/call')).toBe('result');
  expect(labelOfResult('text', 'tools/call')).toBe('result');
});

test('each message of a batch has its own label and its own body', () => {
  const payload = bytesOf([
    { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a' } },
    5,
    { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'b' } },
  ]);
  const messages = parseMessages(payload);
  expect(messages.map((message, n) => messageLabel(message, payload, n, null))).toEqual([
    'tools/call a',
    'invalid: is JSON, but neither an object nor a batch of objects',
    'error 1 b',
  ]);
  expect([0, 2].map((n) => bodyText(messages[n] ?? parseOne('5'), payload, n))).toEqual([
    '{"name":"a"}',
    '{"code":1,"message":"b"}',
  ]);
});

function body(payload: string): string {
  return bodyText(parseOne(payload), bytesOf(payload), 0);
}

test('the body is the part that carries the meaning, as it is written', () => {
  expect(body('{"jsonrpc":"2.0","id":1,"method":"x","params":{ "a" : 1.0 }}')).toBe('{ "a" : 1.0 }');
  expect(body('\uFEFF {"jsonrpc":"2.0","id":1,"result":[1E3]}')).toBe('[1E3]');
  expect(body('{"jsonrpc":"2.0","id":1,"error":{"code":1}}')).toBe('{"code":1}');
  expect(body('{"jsonrpc":"2.0","id":1,"method":"ping"}')).toBe('');
  expect(body('{"jsonrpc":"2.0","id":1,"params":{"b":2},"result":{"a":1}}')).toBe('{"a":1}');
});

test('the body of an invalid message is all of it', () => {
  expect(body('not json')).toBe('not json');
  expect(body('{"id":1,"method":"x","params":{}}')).toBe('{"id":1,"method":"x","params":{}}');
});

test('a body of more than a megabyte is not built for its label', () => {
  const text = 'x'.repeat(1024 * 1024);
  expect(labelOfResult({ content: [{ type: 'text', text }] })).toBe('result');
  expect(labelOfLog({ level: 'info', data: text })).toBe('notifications/message');
});

test('values that JavaScript cannot turn into text are labelled too', () => {
  const odd = { toString: 1, valueOf: null };
  expect(labelOfProgress({ progress: odd, total: odd })).toContain('notifications/progress {');
  expect(labelOfCancel({ requestId: odd })).toContain('notifications/cancelled {');
  expect(labelOfResult({ content: [odd], task: odd, action: odd })).toBe('result 1 block');
});

test('deep nesting does not make a label throw', () => {
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  for (const [method, params] of [
    ['notifications/message', `{"level":"info","data":${deep}}`],
    ['notifications/progress', `{"progress":${deep},"total":${deep}}`],
    ['notifications/cancelled', `{"requestId":${deep}}`],
    ['elicitation/create', `{"message":${deep}}`],
  ] as const) {
    expect(label(`{"jsonrpc":"2.0","id":1,"method":"${method}","params":${params}}`)).toMatch(method);
  }
  expect(label(`{"jsonrpc":"2.0","id":1,"result":{"content":${deep}}}`)).toBe('result no content');
  expect(label(`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":${deep}}}`)).toBe('error 1');
});

test('no message whatever makes a label or a body throw', () => {
  const methods = fc.constantFrom(
    'initialize',
    'notifications/progress',
    '$/progress',
    'notifications/message',
    'notifications/cancelled',
    'elicitation/create',
    'tools/call',
  );
  const keys = fc.constantFrom(
    ...[
      'progress',
      'total',
      'message',
      'value',
      'level',
      'data',
      'requestId',
      'reason',
      'content',
      'type',
      'text',
    ],
    ...[
      'tools',
      'task',
      'action',
      'resultType',
      'inputRequests',
      'serverInfo',
      'isError',
      'code',
      'name',
      'toString',
    ],
  );
  const { part } = fc.letrec((tie) => ({
    part: fc.dictionary(keys, tie('value'), { maxKeys: 5 }),
    value: fc.oneof(
      { depthSize: 'small', maxDepth: 3 },
      fc.constantFrom<unknown>(null, true, 0, -1.5, '', 'text', 'input_required'),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('part'),
    ),
  }));
  const shapes = fc.oneof(
    fc.record({ jsonrpc: fc.constant('2.0'), method: methods, params: part }),
    fc.record({ jsonrpc: fc.constant('2.0'), id: fc.integer(), result: part }),
    fc.record({ jsonrpc: fc.constant('2.0'), id: fc.integer(), error: part }),
  );
  const payloads = fc.oneof(
    { weight: 4, arbitrary: shapes.map((shape) => JSON.stringify(shape)) },
    fc.array(shapes, { maxLength: 3 }).map((batch) => JSON.stringify(batch)),
    fc.uint8Array(),
    brokenJson,
  );
  fc.assert(
    fc.property(payloads, fc.option(methods), (payload, asked) => {
      const bytes = bytesOf(payload);
      for (const [n, message] of parseMessages(bytes).entries()) {
        expect(messageLabel(message, bytes, n, asked)).toMatch(
          /^(?:[\w$]+\/|initialize|result|error|invalid: )/,
        );
        expect(typeof bodyText(message, bytes, n)).toBe('string');
      }
    }),
    { numRuns: scale(1000) },
  );
});
