import { expect, test } from 'vitest';
import { ERROR, modernMeta } from '../../support/messages.ts';
import { createTalk } from '../../support/talk.ts';

const NOTHING = { relation: null, to: null, latency: null, outcome: null, remark: null };

const call = (id: unknown, more: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name: 'x', ...more },
});
const callWithToken = (id: unknown, progressToken: unknown) => call(id, { _meta: { progressToken } });
const progress = (progressToken: unknown) => ({
  method: 'notifications/progress',
  params: { progressToken, progress: 1 },
});
const cancelled = (requestId: unknown) => ({ method: 'notifications/cancelled', params: { requestId } });
const ok = (id: unknown) => ({ id, result: {} });

test('an answer belongs to the request with its id, and tells the latency', () => {
  const { client, server, unanswered } = createTalk();
  const asked = client(call(1));
  expect(asked).toMatchObject(NOTHING);
  expect(unanswered()).toBe(1);
  client(call(2));
  expect(server(ok(1))).toMatchObject({
    relation: 'reply',
    to: asked.place,
    latency: 2000,
    outcome: 'ok',
    remark: null,
  });
  expect(unanswered()).toBe(1);
});

test('answers may come in any order', () => {
  const { client, server, unanswered } = createTalk();
  const asked = [client(call(1)), client(call(2)), client(call('three'))];
  expect(server(ok('three')).to).toEqual(asked[2]?.place);
  expect(server(ok(1)).to).toEqual(asked[0]?.place);
  expect(server(ok(2)).to).toEqual(asked[1]?.place);
  expect(unanswered()).toBe(0);
});

test('an outcome tells a failed tool from an error of the protocol', () => {
  const { client, server } = createTalk();
  client(call(1));
  expect(server({ id: 1, result: { content: [], isError: true } }).outcome).toBe('tool-error');
  client(call(2));
  expect(server({ id: 2, error: ERROR }).outcome).toBe('error');
  client(call(3));
  expect(server({ id: 3, result: { content: [], isError: false } }).outcome).toBe('ok');
  client(call(4));
  expect(server({ id: 4, result: { resultType: 'input_required' } }).outcome).toBe('input-required');
});

test('both sides may use the same id at the same time', () => {
  const { client, server, unanswered } = createTalk();
  const fromClient = client(call(0));
  const fromServer = server({ id: 0, method: 'roots/list' });
  expect(fromServer.remark).toBeNull();
  expect(unanswered()).toBe(2);
  expect(client(ok(0))).toMatchObject({ relation: 'reply', to: fromServer.place, latency: 1000 });
  expect(server(ok(0))).toMatchObject({ relation: 'reply', to: fromClient.place, latency: 3000 });
});

test('an answer never belongs to a request of its own side', () => {
  const { client } = createTalk();
  client(call(1));
  expect(client(ok(1))).toMatchObject({ relation: null, to: null, outcome: 'ok', remark: 'no-open-request' });
});

test('the number 1 and the string "1" are different ids', () => {
  const { client, server } = createTalk();
  const number = client(call(1));
  const string = client(call('1'));
  expect(string.remark).toBeNull();
  expect(server(ok('1')).to).toEqual(string.place);
  expect(server(ok('1')).remark).toBe('no-open-request');
  expect(server(ok(1)).to).toEqual(number.place);
});

test('an id that is written in another way is the same id', () => {
  const { client, server } = createTalk();
  const asked = client(call('a/b'));
  expect(server('{"jsonrpc":"2.0","id":"a\\u002fb","result":{}}').to).toEqual(asked.place);
  const number = client(call(100));
  expect(server('{"jsonrpc":"2.0","id":1.0e2,"result":{}}').to).toEqual(number.place);
});

test('ids above 2^53 that differ in their last digit are different ids', () => {
  const { client, server } = createTalk();
  const one = client('{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}');
  client('{"jsonrpc":"2.0","id":9007199254740992,"method":"ping"}');
  expect(server('{"jsonrpc":"2.0","id":9007199254740993,"result":{}}').to).toEqual(one.place);
});

test('an id may be used again once it is answered', () => {
  const { client, server, unanswered } = createTalk();
  for (let round = 0; round < 3; round += 1) {
    const asked = client(call(500));
    expect(asked.remark).toBeNull();
    expect(server(ok(500)).to).toEqual(asked.place);
  }
  expect(unanswered()).toBe(0);
});

test('of several open requests with one id, the latest gets the first answer', () => {
  const { client, server, unanswered } = createTalk();
  const first = client(call(1));
  const second = client(call(1));
  expect([first.remark, second.remark]).toEqual([null, 'id-in-use']);
  expect(unanswered()).toBe(2);
  expect(server(ok(1)).to).toEqual(second.place);
  expect(server(ok(1)).to).toEqual(first.place);
  expect(server(ok(1)).remark).toBe('no-open-request');
  expect(unanswered()).toBe(0);
});

test('an answer to an unknown id, or a second answer, is told and linked to nothing', () => {
  const { client, server, unanswered } = createTalk();
  expect(server(ok(9))).toMatchObject({ ...NOTHING, outcome: 'ok', remark: 'no-open-request' });
  client(call(1));
  server(ok(1));
  expect(server({ id: 1, error: ERROR })).toMatchObject({
    ...NOTHING,
    outcome: 'error',
    remark: 'no-open-request',
  });
  expect(unanswered()).toBe(0);
});

test('an error that names no request is linked to nothing and answers nothing', () => {
  const { client, server, unanswered } = createTalk();
  client(call(1));
  expect(server({ id: null, error: ERROR })).toMatchObject(NOTHING);
  expect(server({ error: ERROR })).toMatchObject(NOTHING);
  expect(unanswered()).toBe(1);
});

test('the answer to an invalid request is linked, though the request is not counted', () => {
  const { client, server, unanswered } = createTalk();
  const asked = client({ id: 1, method: 'tools/list', params: [] });
  expect(unanswered()).toBe(0);
  expect(server({ id: 1, error: ERROR })).toMatchObject({
    relation: 'reply',
    to: asked.place,
    outcome: 'error',
  });
  expect(unanswered()).toBe(0);
});

test('an invalid message without an id or a method is linked to nothing', () => {
  const { client, server } = createTalk();
  expect(client({ id: 1 })).toMatchObject(NOTHING);
  expect(client({ id: null, method: 'ping' })).toMatchObject(NOTHING);
  expect(server(ok(1)).remark).toBe('no-open-request');
});

test('progress belongs to the open request with its token', () => {
  const { client, server } = createTalk();
  const one = client(callWithToken(1, 'tok'));
  const two = client(callWithToken(2, 7));
  expect(server(progress(7))).toMatchObject({ ...NOTHING, relation: 'progress', to: two.place });
  expect(server(progress('tok'))).toMatchObject({ ...NOTHING, relation: 'progress', to: one.place });
  expect(server(progress('7'))).toMatchObject(NOTHING);
  expect(server(progress('unknown'))).toMatchObject(NOTHING);
  expect(server({ method: 'notifications/progress', params: {} })).toMatchObject(NOTHING);
});

test('a token is over with the answer, and may be used again', () => {
  const { client, server } = createTalk();
  client(callWithToken(1, 1));
  server(ok(1));
  expect(server(progress(1))).toMatchObject(NOTHING);
  const again = client(callWithToken(2, 1));
  expect(server(progress(1)).to).toEqual(again.place);
});

test('both sides may use the same token at the same time', () => {
  const { client, server } = createTalk();
  const fromClient = client(callWithToken(1, 0));
  const fromServer = server({
    id: 1,
    method: 'sampling/createMessage',
    params: { _meta: { progressToken: 0 } },
  });
  expect(server(progress(0)).to).toEqual(fromClient.place);
  expect(client(progress(0)).to).toEqual(fromServer.place);
  client(ok(1));
  expect(client(progress(0))).toMatchObject(NOTHING);
  expect(server(progress(0)).to).toEqual(fromClient.place);
});

test('an answer does not end a token that a later request has taken', () => {
  const { client, server } = createTalk();
  client(callWithToken(1, 'tok'));
  const later = client(callWithToken(2, 'tok'));
  server(ok(1));
  expect(server(progress('tok')).to).toEqual(later.place);
});

test('the token of a task lives on after the answer that began the task', () => {
  for (const begun of [{ task: { taskId: 't' } }, { resultType: 'task', taskId: 't' }]) {
    const { client, server } = createTalk();
    const asked = client(callWithToken(1, 'tok'));
    server({ id: 1, result: begun });
    expect(server(progress('tok'))).toMatchObject({ relation: 'progress', to: asked.place });
  }
});

test('a cancellation belongs to the request of its own side', () => {
  const { client, server, unanswered } = createTalk();
  const fromServer = server({ id: 1, method: 'sampling/createMessage', params: {} });
  const fromClient = client(call(1));
  expect(unanswered()).toBe(2);
  expect(client(cancelled(1))).toMatchObject({ ...NOTHING, relation: 'cancel', to: fromClient.place });
  expect(unanswered()).toBe(1);
  expect(server(cancelled(1))).toMatchObject({ ...NOTHING, relation: 'cancel', to: fromServer.place });
  expect(unanswered()).toBe(0);
});

test('a cancellation before its request, after the answer, or of an unknown request is linked to nothing', () => {
  const { client, server, unanswered } = createTalk();
  expect(client(cancelled(1))).toMatchObject(NOTHING);
  client(call(1));
  expect(unanswered()).toBe(1);
  expect(client(cancelled('1'))).toMatchObject(NOTHING);
  expect(client({ method: 'notifications/cancelled', params: { reason: 'x' } })).toMatchObject(NOTHING);
  server(ok(1));
  expect(client(cancelled(1))).toMatchObject(NOTHING);
  expect(unanswered()).toBe(0);
});

test('the server cannot cancel an ordinary request of the client', () => {
  const { client, server, unanswered } = createTalk();
  client(call(1));
  expect(server(cancelled(1))).toMatchObject(NOTHING);
  expect(unanswered()).toBe(1);
});

test('a second cancellation is linked and counts once', () => {
  const { client, unanswered } = createTalk();
  client(call(2));
  const asked = client(call(1));
  client(cancelled(1));
  expect(client(cancelled(1))).toMatchObject({ relation: 'cancel', to: asked.place });
  expect(unanswered()).toBe(1);
});

test('a late answer to a cancelled request stays linked and does not change that it was cancelled', () => {
  const { client, server, unanswered } = createTalk();
  const asked = client(call(1));
  client(cancelled(1));
  expect(server({ id: 1, result: { isError: true } })).toMatchObject({
    relation: 'reply',
    to: asked.place,
    latency: 2000,
    outcome: 'cancelled',
    remark: null,
  });
  expect(unanswered()).toBe(0);
  expect(server(ok(1)).remark).toBe('no-open-request');
});

test('the id of a cancelled request may be used again', () => {
  const { client, server, unanswered } = createTalk();
  client(call(1));
  client(cancelled(1));
  const again = client(call(1));
  expect(again.remark).toBeNull();
  expect(server(ok(1))).toMatchObject({ to: again.place, outcome: 'ok' });
  expect(unanswered()).toBe(0);
});

const listen = (id: unknown) => ({
  id,
  method: 'subscriptions/listen',
  params: { notifications: { toolsListChanged: true }, _meta: modernMeta() },
});
const onSubscription = (id: unknown, method: string, more: object = {}) => ({
  method,
  params: { ...more, _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
});

test('the server may cancel the subscription of the client', () => {
  const { client, server, unanswered } = createTalk();
  const asked = client(listen('sub'));
  expect(server(cancelled('sub'))).toMatchObject({ relation: 'cancel', to: asked.place });
  expect(unanswered()).toBe(0);
});

test('the client may cancel its subscription', () => {
  const { client, unanswered } = createTalk();
  const asked = client(listen(1));
  expect(client(cancelled(1))).toMatchObject({ relation: 'cancel', to: asked.place });
  expect(unanswered()).toBe(0);
});

test('notifications of a subscription belong to the request that began it', () => {
  const { client, server } = createTalk();
  const number = client(listen(1));
  const string = client(listen('1'));
  expect(server(onSubscription(1, 'notifications/subscriptions/acknowledged'))).toMatchObject({
    ...NOTHING,
    relation: 'subscription',
    to: number.place,
  });
  expect(server(onSubscription('1', 'notifications/tools/list_changed')).to).toEqual(string.place);
  expect(server(ok(1))).toMatchObject({ relation: 'reply', to: number.place, outcome: 'ok' });
  expect(server(onSubscription(1, 'notifications/tools/list_changed'))).toMatchObject(NOTHING);
});

test('a notification of a subscription never belongs to a request of another kind', () => {
  const { client, server } = createTalk();
  client(listen(1));
  server(ok(1));
  client(call(1));
  expect(server(onSubscription(1, 'notifications/tools/list_changed'))).toMatchObject(NOTHING);
});

const modernCall = (id: unknown, more: object = {}) =>
  call(id, { arguments: { seat: 4 }, ...more, _meta: modernMeta({ progressToken: id }) });
const inputRequired = (id: unknown, more: object) => ({
  id,
  result: { resultType: 'input_required', ...more },
});
const askName = { inputRequests: { name: { method: 'elicitation/create', params: {} } } };
const giveName = { inputResponses: { name: { action: 'accept' } } };

test('each retry continues the round before it', () => {
  const { client, server, unanswered } = createTalk();
  const first = client(modernCall(1));
  expect(first.relation).toBeNull();
  expect(server(inputRequired(1, { ...askName, requestState: 'a' })).outcome).toBe('input-required');
  const second = client(modernCall(2, { ...giveName, requestState: 'a' }));
  expect(second).toMatchObject({ ...NOTHING, relation: 'round', to: first.place });
  server(inputRequired(2, { inputRequests: { age: {} }, requestState: 'b' }));
  const third = client(modernCall(3, { inputResponses: { age: {} }, requestState: 'b' }));
  expect(third).toMatchObject({ relation: 'round', to: second.place });
  expect(server(ok(3))).toMatchObject({ relation: 'reply', to: third.place, outcome: 'ok' });
  expect(unanswered()).toBe(0);
});

test('rounds may go by the request state alone', () => {
  const { client, server } = createTalk();
  const first = client(modernCall(1));
  server(inputRequired(1, { requestState: 'a' }));
  expect(client(modernCall(2, { requestState: 'b' })).relation).toBeNull();
  expect(client(modernCall(3, { requestState: 'a' }))).toMatchObject({ relation: 'round', to: first.place });
});

test('rounds may go by the responses alone', () => {
  const { client, server } = createTalk();
  const first = client(modernCall(1));
  server(inputRequired(1, askName));
  expect(client(modernCall(2, { inputResponses: { other: {} } })).relation).toBeNull();
  expect(client(modernCall(3, giveName))).toMatchObject({ relation: 'round', to: first.place });
});

test('parallel calls that are alike are told apart by their request state', () => {
  const { client, server } = createTalk();
  const one = client(modernCall(1));
  const two = client(modernCall(2));
  server(inputRequired(1, { ...askName, requestState: 'one' }));
  server(inputRequired(2, { ...askName, requestState: 'two' }));
  expect(client(modernCall(3, { ...giveName, requestState: 'two' })).to).toEqual(two.place);
  expect(client(modernCall(4, { ...giveName, requestState: 'one' })).to).toEqual(one.place);
});

test('parallel calls that are alike without a state are continued in the order of their answers', () => {
  const { client, server } = createTalk();
  const one = client(modernCall(1));
  const two = client(modernCall(2));
  server(inputRequired(2, askName));
  server(inputRequired(1, askName));
  expect(client(modernCall(3, giveName)).to).toEqual(two.place);
  expect(client(modernCall(4, giveName)).to).toEqual(one.place);
  expect(client(modernCall(5, giveName))).toMatchObject(NOTHING);
});

test('a call with other params, another method, or without responses continues no round', () => {
  const { client, server } = createTalk();
  client(modernCall(1));
  server(inputRequired(1, askName));
  expect(client(modernCall(2)).relation).toBeNull();
  expect(client(modernCall(3, { ...giveName, arguments: { seat: 5 } })).relation).toBeNull();
  expect(client({ ...modernCall(4, giveName), method: 'prompts/get' }).relation).toBeNull();
});

test('requests and notifications that name a task belong to the request that began it', () => {
  for (const begun of [{ task: { taskId: 't', status: 'working' } }, { resultType: 'task', taskId: 't' }]) {
    const { client, server } = createTalk();
    const asked = client(call(1, { task: { ttl: 60 } }));
    expect(server({ id: 1, result: begun })).toMatchObject({
      relation: 'reply',
      to: asked.place,
      outcome: 'ok',
    });
    const link = { ...NOTHING, relation: 'task', to: asked.place };
    const get = client({ id: 2, method: 'tasks/get', params: { taskId: 't' } });
    expect(get).toMatchObject(link);
    expect(server({ id: 2, result: { taskId: 't', status: 'working' } })).toMatchObject({
      relation: 'reply',
      to: get.place,
    });
    expect(server({ method: 'notifications/tasks/status', params: { taskId: 't' } })).toMatchObject(link);
    expect(server({ method: 'notifications/tasks', params: { taskId: 't' } })).toMatchObject(link);
    expect(client({ id: 3, method: 'tasks/result', params: { taskId: 't' } })).toMatchObject(link);
    expect(client({ id: 4, method: 'tasks/cancel', params: { taskId: 'other' } })).toMatchObject(NOTHING);
  }
});

const related = { _meta: { 'io.modelcontextprotocol/related-task': { taskId: 't' } } };

test('what happens inside a task belongs to the request that began it, answers in between included', () => {
  const { client, server } = createTalk();
  const asked = client(callWithToken(1, 'tok'));
  server({ id: 1, result: { task: { taskId: 't' } } });
  const question = server({ id: 1, method: 'elicitation/create', params: { message: '?', ...related } });
  expect(question).toMatchObject({ relation: 'task', to: asked.place });
  const answer = client({ id: 1, result: { action: 'accept', ...related } });
  expect(answer).toMatchObject({ relation: 'reply', to: question.place });
  expect(client({ id: 2, method: 'tasks/get', params: { taskId: 't' } }).to).toEqual(asked.place);
  const fetch = client({ id: 3, method: 'tasks/result', params: { taskId: 't' } });
  expect(server({ id: 3, result: { content: [], ...related } }).to).toEqual(fetch.place);
  expect(server(progress('tok')).to).toEqual(asked.place);
});

test('a result that only names its task ends its own token', () => {
  const { client, server } = createTalk();
  client(callWithToken(1, 'tok'));
  server({ id: 1, result: { content: [], ...related } });
  expect(server(progress('tok'))).toMatchObject(NOTHING);
});

test('both sides may run tasks with the same id at the same time', () => {
  const { client, server } = createTalk();
  const fromClient = client(call(1));
  const fromServer = server({ id: 1, method: 'sampling/createMessage', params: { task: {} } });
  server({ id: 1, result: { task: { taskId: 't' } } });
  client({ id: 1, result: { task: { taskId: 't' } } });
  const get = { id: 2, method: 'tasks/get', params: { taskId: 't' } };
  expect(client(get).to).toEqual(fromClient.place);
  expect(server(get).to).toEqual(fromServer.place);
  const status = { method: 'notifications/tasks/status', params: { taskId: 't' } };
  expect(server(status).to).toEqual(fromClient.place);
  expect(client(status).to).toEqual(fromServer.place);
});

test('of too many open requests the oldest are forgotten, and stay unanswered', () => {
  const { client, server, unanswered } = createTalk(2);
  client(call(1));
  const second = client(call(2));
  const third = client(call(3));
  expect(server(ok(1)).remark).toBe('no-open-request');
  expect(server(ok(2)).to).toEqual(second.place);
  expect(server(ok(3)).to).toEqual(third.place);
  expect(unanswered()).toBe(1);
});

test('the bound holds for open requests under one id too', () => {
  const { client, server } = createTalk(2);
  const asked = [client(call(1)), client(call(1)), client(call(1))];
  expect(server(ok(1)).to).toEqual(asked[2]?.place);
  expect(server(ok(1)).to).toEqual(asked[1]?.place);
  expect(server(ok(1)).remark).toBe('no-open-request');
});

test('each side has its own bound', () => {
  const { client, server } = createTalk(1);
  const fromClient = client(call(1));
  server({ id: 1, method: 'roots/list' });
  expect(server(ok(1)).to).toEqual(fromClient.place);
});

test('of too many tokens and tasks the oldest are forgotten', () => {
  const { client, server } = createTalk(2);
  for (const id of [1, 2, 3]) {
    client(callWithToken(id, id));
    server({ id, result: { task: { taskId: `t${id}` } } });
  }
  expect(server(progress(1)).relation).toBeNull();
  expect(server(progress(2)).relation).toBe('progress');
  expect(client({ id: 4, method: 'tasks/get', params: { taskId: 't1' } }).relation).toBeNull();
  expect(client({ id: 5, method: 'tasks/get', params: { taskId: 't2' } }).relation).toBe('task');
});

test('of too many rounds the oldest are forgotten, alike or not', () => {
  for (const stateOf of [(id: number) => `state ${id}`, () => 'same state']) {
    const { client, server } = createTalk(2);
    const asked = [1, 2, 3].map((id) => {
      const request = client(modernCall(id));
      server(inputRequired(id, { requestState: stateOf(id) }));
      return request.place;
    });
    const retries = [3, 2, 1].map((id) => client(modernCall(10 + id, { requestState: stateOf(id) })).to);
    const found = retries.filter((to) => to !== null).map(({ seq }) => seq);
    expect(found.sort((a, b) => a - b)).toEqual(asked.slice(1).map(({ seq }) => seq));
  }
});

test('only requests without an answer and without a cancellation are unanswered', () => {
  const { client, server, unanswered } = createTalk();
  expect(unanswered()).toBe(0);
  client({ method: 'notifications/initialized' });
  client(call(1));
  client(call(2));
  client(call(3));
  server({ id: 1, method: 'ping' });
  expect(unanswered()).toBe(4);
  server(ok(1));
  client(cancelled(2));
  client({ id: 1, error: ERROR });
  expect(unanswered()).toBe(1);
});

test('an answer that is malformed still ends the request it names, as an error', () => {
  const talk = createTalk();
  const { place } = talk.client({ id: 1, method: 'ping' });
  expect(talk.server({ id: 1, result: {}, error: {} })).toMatchObject({
    relation: 'reply',
    to: place,
    outcome: 'error',
  });
  expect(talk.unanswered()).toBe(0);
});
