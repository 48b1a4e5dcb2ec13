import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createConversation, messagesOf } from '../../../src/protocol/message/conversation.ts';
import type { Channel, Frame } from '../../../src/protocol/wire/frame.ts';
import { ERROR, frameOf, modernMeta } from '../../support/messages.ts';
import { scale } from '../../support/scale.ts';

const NO_FACTS = {
  era: null,
  protocolVersion: null,
  client: null,
  server: null,
  exchanges: 0,
  errors: 0,
  unanswered: 0,
};

/** A conversation that numbers its frames itself. */
function createScript() {
  const conversation = createConversation();
  let seq = 0;
  const say = (channel: Channel, message: object) => {
    seq += 1;
    return conversation.add(frameOf(channel, { jsonrpc: '2.0', ...message }, { at: seq * 1000 }), seq);
  };
  return {
    client: (message: object) => say('stdin', message),
    server: (message: object) => say('stdout', message),
    facts: conversation.facts,
  };
}

const initialize = (protocolVersion: string) => ({
  id: 0,
  method: 'initialize',
  params: { protocolVersion, clientInfo: { name: 'c', version: '1' }, capabilities: {} },
});
const initialized = (protocolVersion: string) => ({
  id: 0,
  result: { protocolVersion, serverInfo: { name: 's', version: '2' }, capabilities: {} },
});
const modern = (id: number, method: string, more: object = {}) => ({
  id,
  method,
  params: {
    ...more,
    _meta: modernMeta({ 'io.modelcontextprotocol/clientInfo': { name: 'm', version: '3' } }),
  },
});

test('a conversation without messages knows nothing of itself', () => {
  const { client, facts } = createScript();
  expect(facts()).toEqual(NO_FACTS);
  client({ method: 'notifications/initialized' });
  client({ id: 1, method: 'tools/list' });
  expect(facts()).toEqual({ ...NO_FACTS, exchanges: 1, unanswered: 1 });
});

test('a conversation that begins with initialize is of the legacy era', () => {
  const { client, server, facts } = createScript();
  client(initialize('2025-11-25'));
  expect(facts()).toMatchObject({
    era: 'legacy',
    protocolVersion: '2025-11-25',
    client: { name: 'c', version: '1' },
    server: null,
    unanswered: 1,
  });
  server(initialized('2025-11-25'));
  expect(facts()).toEqual({
    era: 'legacy',
    protocolVersion: '2025-11-25',
    client: { name: 'c', version: '1' },
    server: { name: 's', version: '2' },
    exchanges: 1,
    errors: 0,
    unanswered: 0,
  });
});

test('the server has the last word on the version', () => {
  const { client, server, facts } = createScript();
  client(initialize('2025-11-25'));
  server(initialized('2024-11-05'));
  expect(facts().protocolVersion).toBe('2024-11-05');
});

test('requests that tell their version in _meta are of the modern era', () => {
  const { client, server, facts } = createScript();
  client(modern(1, 'server/discover'));
  server({
    id: 1,
    result: {
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'ms', version: '4' } },
    },
  });
  expect(facts()).toMatchObject({
    era: 'modern',
    protocolVersion: '2026-07-28',
    client: { name: 'm', version: '3' },
    server: { name: 'ms', version: '4' },
  });
});

test('a refused modern probe before initialize makes both eras, and the version that was agreed on', () => {
  const { client, server, facts } = createScript();
  client(modern(1, 'server/discover'));
  server({ id: 1, error: ERROR });
  client(initialize('2025-06-18'));
  server(initialized('2025-06-18'));
  expect(facts()).toMatchObject({
    era: 'dual',
    protocolVersion: '2025-06-18',
    client: { name: 'c' },
    errors: 1,
  });
});

test('modern requests after initialize make both eras, and stay so', () => {
  const { client, facts } = createScript();
  client(initialize('2025-06-18'));
  client(modern(1, 'tools/list'));
  client(modern(2, 'tools/list'));
  expect(facts()).toMatchObject({ era: 'dual', protocolVersion: '2025-06-18' });
});

test('a request without its client does not make the client unknown', () => {
  const { client, facts } = createScript();
  client(modern(1, 'tools/list'));
  client({ id: 2, method: 'tools/list', params: { _meta: modernMeta() } });
  expect(facts()).toMatchObject({ era: 'modern', client: { name: 'm', version: '3' } });
});

test('an ordinary result does not change the server', () => {
  const { client, server, facts } = createScript();
  client(initialize('2025-06-18'));
  server(initialized('2025-06-18'));
  client({ id: 1, method: 'tools/list' });
  server({ id: 1, result: { tools: [], protocolVersion: 'x' } });
  expect(facts()).toMatchObject({ server: { name: 's' }, protocolVersion: '2025-06-18' });
});

test('requests of both sides are exchanges, and those that fail are errors', () => {
  const { client, server, facts } = createScript();
  client({ id: 1, method: 'tools/call', params: { name: 'x' } });
  client({ id: 2, method: 'tools/call', params: { name: 'x' } });
  client({ id: 3, method: 'tools/call', params: { name: 'x' } });
  server({ id: 1, method: 'roots/list' });
  server({ id: 1, result: { isError: true, content: [] } });
  server({ id: 2, error: ERROR });
  client({ id: 1, error: ERROR });
  expect(facts()).toMatchObject({ exchanges: 4, errors: 3, unanswered: 1 });
});

test('errors that answer nothing, and late errors after a cancellation, are not counted', () => {
  const { client, server, facts } = createScript();
  server({ error: ERROR });
  server({ id: 9, error: ERROR });
  client({ id: 1, method: 'ping' });
  client({ method: 'notifications/cancelled', params: { requestId: 1 } });
  server({ id: 1, error: ERROR });
  expect(facts()).toMatchObject({ exchanges: 1, errors: 0, unanswered: 0 });
});

test('an invalid request is no exchange', () => {
  const { client, facts } = createScript();
  client({ id: null, method: 'ping' });
  client({ id: 1, method: 'ping', params: [] });
  expect(facts()).toEqual(NO_FACTS);
});

test('each message of a batch has its own number, and an answer may come in another frame', () => {
  const conversation = createConversation();
  const requests = [
    { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    { jsonrpc: '2.0', id: 2, method: 'ping' },
  ];
  const asked = conversation.add(frameOf('stdin', requests, { at: 100 }), 5);
  expect(asked.map(({ seq, n }) => [seq, n])).toEqual([
    [5, 0],
    [5, 1],
  ]);
  const [answer] = conversation.add(frameOf('stdout', { jsonrpc: '2.0', id: 2, result: {} }, { at: 350 }), 6);
  expect(answer?.correlation).toMatchObject({ relation: 'reply', to: { seq: 5, n: 1 }, latency: 250 });
});

test('stdin is the client and stdout the server', () => {
  const { client, server } = createScript();
  client({ id: 1, method: 'ping' });
  const [answer] = server({ id: 1, result: {} });
  expect(answer?.correlation).toMatchObject({ relation: 'reply', outcome: 'ok' });
});

test('stderr, header lines and blank lines hold no messages', () => {
  const text = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  expect(messagesOf(frameOf('stderr', text))).toEqual([]);
  expect(messagesOf(frameOf('stderr', text, { truncated: true }))).toEqual([]);
  expect(messagesOf(frameOf('stdin', 'Content-Length: 2', { part: 'lsp-header' }))).toEqual([]);
  expect(messagesOf(frameOf('stdout', ' \r'))).toEqual([]);
});

test('a body that is framed by length is read and remarked upon', () => {
  const frame = frameOf('stdin', '\uFEFF{"jsonrpc":"2.0","id":1,"method":"ping"}', { part: 'lsp-body' });
  expect(messagesOf(frame)).toMatchObject([{ kind: 'request', remarks: ['bom', 'lsp-framing'] }]);
});

test('a frame that was not kept whole is not read', () => {
  const frame = frameOf('stdin', '{"jsonrpc":"2.0","id":1,"method":"ping"}', { truncated: true });
  expect(messagesOf(frame)).toMatchObject([{ kind: 'invalid', reason: 'truncated' }]);
});

test('facts that were asked for earlier do not change later', () => {
  const { client, facts } = createScript();
  const before = facts();
  client(initialize('2025-06-18'));
  expect(before).toEqual(NO_FACTS);
});

test('feeding the same frames again gives the same index and the same facts', () => {
  const id = fc.constantFrom<unknown>(0, 1, '1', null);
  const message = fc.oneof(
    id.map((it) => ({ id: it, method: 'tools/call', params: { name: 'x', _meta: { progressToken: it } } })),
    id.map((it) => ({ id: it, method: 'tools/call', params: { name: 'x', _meta: modernMeta() } })),
    id.map((it) => ({ id: it, method: 'tools/call', params: { requestState: 's', _meta: modernMeta() } })),
    id.map((it) => ({ id: it, result: { resultType: 'input_required', requestState: 's' } })),
    id.map((it) => ({ id: it, result: { task: { taskId: 't' } } })),
    id.map((it) => ({ id: it, error: ERROR })),
    id.map((it) => ({ method: 'notifications/cancelled', params: { requestId: it } })),
    id.map((it) => ({ method: 'notifications/progress', params: { progressToken: it } })),
    fc.constant({ id: 0, method: 'tasks/get', params: { taskId: 't' } }),
    fc.constant(initialize('2025-06-18')),
    fc.constant(initialized('2025-03-26')),
  );
  const payload = fc.oneof(
    { weight: 8, arbitrary: message.map((it) => JSON.stringify({ jsonrpc: '2.0', ...it })) },
    fc.array(message, { maxLength: 3 }).map((batch) => JSON.stringify(batch)),
    fc.string(),
  );
  const frame = fc
    .record({
      channel: fc.constantFrom<Channel>('stdin', 'stdout', 'stderr'),
      payload,
      at: fc.nat(),
      part: fc.constantFrom('line' as const, 'lsp-body' as const),
    })
    .map(({ channel, payload: text, at, part }): Frame => frameOf(channel, text, { at, part }));
  fc.assert(
    fc.property(fc.array(frame, { maxLength: 30 }), (frames) => {
      const once = createConversation();
      const again = createConversation();
      const index = frames.map((it, i) => once.add(it, i + 1));
      expect(frames.map((it, i) => again.add(it, i + 1))).toEqual(index);
      expect(again.facts()).toEqual(once.facts());
      const links = index.flat().map(({ seq, correlation }) => ({ seq, to: correlation.to?.seq ?? 0 }));
      for (const { seq, to } of links) expect(to).toBeLessThanOrEqual(seq);
      expect(once.facts().unanswered).toBeGreaterThanOrEqual(0);
      expect(once.facts().unanswered).toBeLessThanOrEqual(once.facts().exchanges);
    }),
    { numRuns: scale(200) },
  );
});
