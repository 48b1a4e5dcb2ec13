import { expect, test } from 'vitest';
import { skipValue, typeAt } from '../../../src/protocol/json/read.ts';
import { type Details, NO_DETAILS, readParams, readResult } from '../../../src/protocol/message/details.ts';
import { bytesOf, modernMeta } from '../../support/messages.ts';

function paramsOf(canonical: string, params: string | object): Details {
  const bytes = bytesOf(params);
  return readParams(bytes, canonical, { start: 0, end: skipValue(bytes, 0), type: typeAt(bytes, 0) });
}

function resultOf(result: string | object): Details {
  const bytes = bytesOf(result);
  return readResult(bytes, { start: 0, end: skipValue(bytes, 0), type: typeAt(bytes, 0) });
}

test('a message without params, or with params of another type, has no details', () => {
  expect(readParams(Buffer.alloc(0), 'tools/call', undefined)).toEqual(NO_DETAILS);
  for (const params of ['[]', 'null', '5', '"name"', '{}']) {
    expect(paramsOf('tools/call', params)).toEqual(NO_DETAILS);
    expect(resultOf(params)).toEqual(NO_DETAILS);
  }
});

test('the target is read from the parameter that the method has for it', () => {
  expect(paramsOf('tools/call', { arguments: { name: 'no' }, name: 'echo', uri: 'no' })).toEqual({
    ...NO_DETAILS,
    target: 'echo',
  });
  expect(paramsOf('resources/read', { name: 'no', uri: 'file:///a' }).target).toBe('file:///a');
  expect(paramsOf('tasks/get', { taskId: 't' })).toMatchObject({ target: 't', taskId: 't' });
  expect(paramsOf('tools/call', { name: 5 }).target).toBeNull();
});

test('initialize tells the version that the client asks for, and the client', () => {
  const params = { protocolVersion: '2025-11-25', clientInfo: { name: 'c', version: '1', title: 'C' } };
  expect(paramsOf('initialize', { ...params, capabilities: {} })).toEqual({
    ...NO_DETAILS,
    protocolVersion: '2025-11-25',
    peer: { name: 'c', version: '1' },
  });
});

test('a peer without a version has none, and one without a name is nobody', () => {
  expect(paramsOf('initialize', { clientInfo: { name: 'c' } }).peer).toEqual({ name: 'c', version: null });
  expect(paramsOf('initialize', { clientInfo: { version: '1' } }).peer).toBeNull();
  expect(paramsOf('initialize', { clientInfo: 'c' }).peer).toBeNull();
});

test('a version in the params of another method is not the protocol version', () => {
  expect(paramsOf('vendor/thing', { protocolVersion: '9', clientInfo: { name: 'x' } })).toEqual(NO_DETAILS);
});

test('a 2026-07-28 request tells its version and its client in _meta', () => {
  const meta = modernMeta({ 'io.modelcontextprotocol/clientInfo': { name: 'c', version: '2' } });
  expect(paramsOf('tools/list', { _meta: meta })).toEqual({
    ...NO_DETAILS,
    protocolVersion: '2026-07-28',
    peer: { name: 'c', version: '2' },
    isModern: true,
  });
});

test('keys under another prefix, and a version that is no text, tell nothing', () => {
  const meta = {
    'com.example/protocolVersion': '1',
    protocolVersion: '1',
    'io.modelcontextprotocol/protocolVersion': 5,
  };
  expect(paramsOf('tools/list', { _meta: meta })).toEqual(NO_DETAILS);
  expect(paramsOf('tools/list', { _meta: [] })).toEqual(NO_DETAILS);
});

test('a progress token keeps its type, on the request and on the notification', () => {
  for (const [token, key] of [
    [7, 'n7'],
    ['7', 's7'],
    [0, 'n0'],
    ['', 's'],
  ] as const) {
    expect(paramsOf('tools/call', { _meta: { progressToken: token } }).progressToken).toBe(key);
    expect(paramsOf('notifications/progress', { progressToken: token, progress: 1 }).progressToken).toBe(key);
  }
  expect(paramsOf('tools/call', { _meta: { progressToken: null } }).progressToken).toBeNull();
  expect(paramsOf('tools/call', { progressToken: 7 }).progressToken).toBeNull();
});

test('progress may name its token as LSP does, but the name of MCP counts', () => {
  expect(paramsOf('notifications/progress', { token: 'a', value: {} }).progressToken).toBe('sa');
  expect(paramsOf('notifications/progress', { token: 'a', progressToken: 'b' }).progressToken).toBe('sb');
  expect(paramsOf('notifications/progress', { progressToken: 'b', token: 'a' }).progressToken).toBe('sb');
});

test('a cancellation may name its request as LSP does, but the name of MCP counts', () => {
  expect(paramsOf('notifications/cancelled', { requestId: 1 }).cancels).toBe('n1');
  expect(paramsOf('notifications/cancelled', { id: '1' }).cancels).toBe('s1');
  expect(paramsOf('notifications/cancelled', { id: 1, requestId: 2 }).cancels).toBe('n2');
  expect(paramsOf('notifications/cancelled', { requestId: 2, id: 1 }).cancels).toBe('n2');
  expect(paramsOf('notifications/cancelled', { reason: 'tired' }).cancels).toBeNull();
});

test('a notification of a subscription names the listen request by the id with its type', () => {
  const subscription = (id: unknown) => ({ _meta: { 'io.modelcontextprotocol/subscriptionId': id } });
  expect(paramsOf('notifications/tools/list_changed', subscription(3)).subscription).toBe('n3');
  expect(paramsOf('notifications/tools/list_changed', subscription('3')).subscription).toBe('s3');
  expect(resultOf(subscription('3')).subscription).toBe('s3');
});

test('a task is named by a parameter or by the related-task key', () => {
  const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't' } } };
  expect(paramsOf('notifications/tasks', { taskId: 't', status: 'working' }).taskId).toBe('t');
  expect(paramsOf('elicitation/create', related).taskId).toBe('t');
  expect(
    paramsOf('elicitation/create', { _meta: { 'io.modelcontextprotocol/related-task': 't' } }).taskId,
  ).toBeNull();
  expect(paramsOf('tasks/get', { taskId: 5 }).taskId).toBeNull();
});

test('a result begins a task where it holds the task, in either kind', () => {
  const task = { taskId: 't', status: 'working' };
  expect(resultOf({ task })).toMatchObject({ taskId: 't', beginsTask: true });
  expect(resultOf({ resultType: 'task', ...task })).toMatchObject({ taskId: 't', beginsTask: true });
  expect(resultOf({ ...task, resultType: 'task' })).toMatchObject({ taskId: 't', beginsTask: true });
});

test('a result that only names a task does not begin it', () => {
  const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't' } } };
  expect(resultOf({ content: [], ...related })).toMatchObject({ taskId: 't', beginsTask: false });
  expect(resultOf({ taskId: 't', status: 'completed' })).toMatchObject({ taskId: 't', beginsTask: false });
  expect(resultOf({ task: null, resultType: 'task' })).toMatchObject({ taskId: null, beginsTask: false });
});

test('the result of initialize tells the version that counts, and the server', () => {
  const result = { protocolVersion: '2025-06-18', serverInfo: { name: 's', version: '3' }, capabilities: {} };
  expect(resultOf(result)).toEqual({
    ...NO_DETAILS,
    protocolVersion: '2025-06-18',
    peer: { name: 's', version: '3' },
  });
});

test('a 2026-07-28 result tells the server in _meta', () => {
  const result = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': { name: 's' } } };
  expect(resultOf(result)).toMatchObject({ resultType: 'complete', peer: { name: 's', version: null } });
});

test('only the value true says that a tool failed', () => {
  expect(resultOf({ isError: true }).isToolError).toBe(true);
  for (const isError of [false, 'true', 1, null, {}]) expect(resultOf({ isError }).isToolError).toBe(false);
});

test('the rounds of a request have the same fingerprint of params', () => {
  const call = { name: 'book', arguments: { seat: 4 } };
  const first = paramsOf('tools/call', { ...call, _meta: modernMeta({ progressToken: 1 }) }).round;
  const retry = paramsOf('tools/call', {
    requestState: 'opaque',
    _meta: modernMeta({ progressToken: 2 }),
    inputResponses: { who: { action: 'accept' }, when: {} },
    ...call,
  }).round;
  expect(first).toMatchObject({ state: 0, keys: [] });
  expect(retry?.params).toBe(first?.params);
  expect(retry?.keys).toEqual(['who', 'when']);
  const other = paramsOf('tools/call', { ...call, arguments: { seat: 5 }, _meta: modernMeta() }).round;
  expect(other?.params).not.toBe(first?.params);
});

test('equal request states have equal fingerprints in the answer and in the retry', () => {
  const answer = resultOf({
    resultType: 'input_required',
    inputRequests: { who: {} },
    requestState: 'abc',
  }).round;
  const retry = paramsOf('tools/call', { name: 'x', requestState: 'abc', _meta: modernMeta() }).round;
  const other = paramsOf('tools/call', { name: 'x', requestState: 'abd', _meta: modernMeta() }).round;
  expect(answer?.keys).toEqual(['who']);
  expect(answer?.state).toBe(retry?.state);
  expect(answer?.state).not.toBe(other?.state);
  expect(answer?.state).not.toBe(0);
});

test('only requests that may take rounds have one', () => {
  for (const method of ['tools/call', 'prompts/get', 'resources/read']) {
    expect(paramsOf(method, { _meta: modernMeta() }).round).not.toBeNull();
    expect(paramsOf(method, { inputResponses: {} }).round).toBeNull();
  }
  expect(paramsOf('tools/list', { _meta: modernMeta() }).round).toBeNull();
  expect(resultOf({ resultType: 'complete', inputRequests: {} }).round).toBeNull();
});
