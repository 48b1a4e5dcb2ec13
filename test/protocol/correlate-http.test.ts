import { expect, test } from 'vitest';
import { createConversation, messagesOf } from '../../src/protocol/message/conversation.ts';
import type { HttpChannel } from '../../src/protocol/wire/frame.ts';
import { ERROR, httpFrameOf, modernMeta } from '../support/messages.ts';

/** A conversation over HTTP that numbers its frames itself: `say(exchange, channel, message)`. */
function createScript() {
  const { add, close, facts } = createConversation();
  let seq = 0;
  const say = (exchange: number, channel: HttpChannel, message: object) => {
    seq += 1;
    const json = JSON.stringify({ jsonrpc: '2.0', ...message });
    const payload = channel === 'sse' ? `data: ${json}\n\n` : json;
    const [indexed] = add(httpFrameOf(channel, payload, { exchange, at: seq * 1000 }), seq);
    return indexed?.correlation;
  };
  return { say, close, facts };
}

const call = (id: number, meta: object = {}) => ({
  id,
  method: 'tools/call',
  params: { name: 'x', _meta: meta },
});

test('an error without an id answers the one request of its exchange', () => {
  const { say, facts } = createScript();
  say(1, 'request', call(1));
  say(2, 'request', call(2));
  expect(say(1, 'response', { id: null, error: ERROR })).toMatchObject({
    relation: 'reply',
    to: { seq: 1, n: 0 },
    outcome: 'error',
  });
  expect(facts()).toMatchObject({ errors: 1, unanswered: 1 });
});

test('an error without an id on an exchange that asked nothing answers nothing', () => {
  const { say, facts } = createScript();
  say(1, 'request', call(1));
  expect(say(2, 'response', { error: ERROR })).toMatchObject({ relation: null });
  expect(facts()).toMatchObject({ errors: 0, unanswered: 1 });
});

test('closing an exchange cancels what was asked there in the 2026-07-28 era, and nothing in the legacy one', () => {
  const { say, close, facts } = createScript();
  say(1, 'request', call(1, modernMeta()));
  say(2, 'request', call(1));
  expect(close(1, 'left')).toEqual([{ place: { seq: 1, n: 0 }, outcome: 'cancelled' }]);
  expect(close(2, 'left')).toEqual([]);
  expect(facts()).toMatchObject({ errors: 0, unanswered: 1 });
  expect(close(1, 'left')).toEqual([]);
});

test('what was asked on an exchange that the server refused ended in an error, unless a message answered it', () => {
  const { say, close, facts } = createScript();
  say(1, 'request', call(1));
  expect(close(1, 'refused')).toEqual([{ place: { seq: 1, n: 0 }, outcome: 'error' }]);
  say(2, 'request', call(1));
  say(2, 'response', { id: 1, error: ERROR });
  expect(close(2, 'refused')).toEqual([]);
  expect(facts()).toMatchObject({ exchanges: 2, errors: 2, unanswered: 0 });
});

test('an answer prefers the request of its own exchange, and one elsewhere takes the latest', () => {
  const { say, facts } = createScript();
  for (const exchange of [1, 2, 3]) say(exchange, 'request', call(7));
  expect(say(2, 'response', { id: 7, result: {} })).toMatchObject({
    relation: 'reply',
    to: { seq: 2, n: 0 },
  });
  expect(say(1, 'sse', { id: 7, result: {} })).toMatchObject({ relation: 'reply', to: { seq: 1, n: 0 } });
  say(5, 'request', call(8));
  say(6, 'request', call(8));
  expect(say(9, 'sse', { id: 8, result: {} })).toMatchObject({ relation: 'reply', to: { seq: 7, n: 0 } });
  expect(say(9, 'sse', { id: 8, result: {} })).toMatchObject({ relation: 'reply', to: { seq: 6, n: 0 } });
  expect(say(9, 'sse', { id: 8, result: {} })).toMatchObject({ relation: null, remark: 'no-open-request' });
  expect(facts()).toMatchObject({ exchanges: 5, unanswered: 1 });
});

test('progress belongs to the request of its own exchange, and elsewhere to the latest with its token', () => {
  const { say } = createScript();
  const progress = { method: 'notifications/progress', params: { progressToken: 'p', progress: 1 } };
  say(1, 'request', call(1, { progressToken: 'p' }));
  say(2, 'request', call(2, { progressToken: 'p' }));
  expect(say(1, 'sse', progress)).toMatchObject({ relation: 'progress', to: { seq: 1, n: 0 } });
  expect(say(2, 'sse', progress)).toMatchObject({ relation: 'progress', to: { seq: 2, n: 0 } });
  expect(say(9, 'sse', progress)).toMatchObject({ relation: 'progress', to: { seq: 2, n: 0 } });
  expect(say(9, 'sse', { ...progress, params: { progressToken: 'q' } })).toMatchObject({ relation: null });
});

test('what the server asks on a stream is answered on an exchange of its own', () => {
  const { say, facts } = createScript();
  say(1, 'request', call(0));
  say(1, 'sse', { id: 0, method: 'roots/list' });
  expect(say(2, 'request', { id: 0, result: {} })).toMatchObject({ relation: 'reply', to: { seq: 2, n: 0 } });
  expect(say(1, 'sse', { id: 0, result: {} })).toMatchObject({ relation: 'reply', to: { seq: 1, n: 0 } });
  expect(facts()).toMatchObject({ exchanges: 2, unanswered: 0 });
});

test('closing an exchange leaves what the server asked there open', () => {
  const { say, close, facts } = createScript();
  say(1, 'sse', { id: 0, method: 'roots/list' });
  expect(close(1, 'left')).toEqual([]);
  expect(close(1, 'refused')).toEqual([]);
  expect(facts()).toMatchObject({ exchanges: 1, unanswered: 1 });
});

test('an event that came again is read, but neither counted nor linked', () => {
  const conversation = createConversation();
  const asking = JSON.stringify({ jsonrpc: '2.0', ...call(1) });
  const answer = 'id: 5\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n';
  const again = { exchange: 2, marks: ['replayed'] as const };
  conversation.add(httpFrameOf('request', asking), 1);
  conversation.add(httpFrameOf('sse', answer), 2);
  conversation.add(httpFrameOf('request', asking), 3);
  const [replayed] = conversation.add(httpFrameOf('sse', answer, again), 4);
  expect(replayed).toMatchObject({ message: { kind: 'result', remarks: ['replayed'] } });
  expect(replayed?.correlation).toMatchObject({ relation: null, outcome: null });
  conversation.add(httpFrameOf('sse', 'data: {"jsonrpc":"2.0","id":9,"method":"roots/list"}\n\n', again), 5);
  expect(conversation.facts()).toMatchObject({ exchanges: 2, unanswered: 1 });
});

test('bodies and events hold messages; foreign bodies and blocks hold none', () => {
  const json = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  expect(messagesOf(httpFrameOf('request', json))).toMatchObject([{ kind: 'request', remarks: [] }]);
  expect(messagesOf(httpFrameOf('response', `[${json},${json}]`))).toHaveLength(2);
  expect(messagesOf(httpFrameOf('sse', `data: ${json}\n\n`))).toMatchObject([{ kind: 'request' }]);
  expect(messagesOf(httpFrameOf('sse', json))).toEqual([]);
  expect(messagesOf(httpFrameOf('response', json, { part: 'foreign-body' }))).toEqual([]);
  expect(messagesOf(httpFrameOf('sse', `data: ${json}\n\n`, { part: 'block' }))).toEqual([]);
  expect(messagesOf(httpFrameOf('response', json, { part: 'foreign-body', truncated: true }))).toEqual([]);
  expect(messagesOf(httpFrameOf('request', json, { truncated: true }))).toMatchObject([
    { kind: 'invalid', reason: 'truncated' },
  ]);
});

test.each(['undecoded', 'wrong-type', 'incomplete'] as const)(
  'what is %s says so on its messages',
  (mark) => {
    const frame = httpFrameOf('response', '{"jsonrpc":"2.0","id":1,"result":{}}', { marks: [mark] });
    expect(messagesOf(frame)).toMatchObject([{ kind: 'result', remarks: [mark] }]);
  },
);
