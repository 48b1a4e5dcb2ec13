import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseMessages } from '../../../src/protocol/message/message.ts';
import { readIgnoreRules } from '../../../src/replay/match/ignore.ts';
import { findParams, requestKey } from '../../../src/replay/match/key.ts';
import { respelled, sortedText } from '../../support/json-text.ts';
import { call, keyOf, smallArguments } from '../../support/replay.ts';
import { scale } from '../../support/scale.ts';

const IO = 'io.modelcontextprotocol/';

const noise = fc.record(
  {
    progressToken: fc.oneof(fc.integer(), fc.string()),
    traceparent: fc.string(),
    tracestate: fc.string(),
    baggage: fc.string(),
    [`${IO}protocolVersion`]: fc.string(),
    [`${IO}clientInfo`]: fc.jsonValue({ maxDepth: 2 }),
    [`${IO}clientCapabilities`]: fc.jsonValue({ maxDepth: 2 }),
    [`${IO}logLevel`]: fc.string(),
  },
  { requiredKeys: [] },
);

test('spelling and volatile metadata do not change the key of a request', () => {
  fc.assert(
    fc.property(smallArguments, noise, noise, fc.infiniteStream(fc.nat()), (args, a, b, chance) => {
      const recorded = keyOf('tools/call', { name: 't', arguments: args, _meta: a });
      const live = keyOf('tools/call', respelled({ _meta: b, arguments: args, name: 't' }, chance));
      expect(live.digest).toEqual(recorded.digest);
      expect(live.params).toEqual(recorded.params);
      expect(live.digest).toEqual(keyOf('tools/call', { name: 't', arguments: args }).digest);
    }),
    { numRuns: scale(300) },
  );
});

test('keys are equal exactly if the params are', () => {
  fc.assert(
    fc.property(smallArguments, smallArguments, (a, b) => {
      expect(call('t', a).digest === call('t', b).digest).toBe(sortedText(a) === sortedText(b));
    }),
    { numRuns: scale(500) },
  );
});

test.each([
  ['{"v":1}', '{"v":"1"}'],
  ['{"v":9007199254740993}', '{"v":9007199254740992}'],
  ['{"v":1e400}', '{"v":1e401}'],
  ['{"v":null}', '{}'],
  ['{"v":[]}', '{"v":{}}'],
  ['{"v":false}', '{"v":0}'],
  ['{"v":[1,2]}', '{"v":[2,1]}'],
  ['{"_meta":{"com.example/tenant":"a"}}', '{"_meta":{"com.example/tenant":"b"}}'],
  ['{"_meta":{"progressToken":1,"com.example/x":1}}', '{"_meta":{"progressToken":1}}'],
  ['{"requestState":"a"}', '{"requestState":"b"}'],
  ['{"inputResponses":{"k":{"action":"accept"}}}', '{}'],
  ['{"arguments":{}}', '{}'],
  ['{"_meta":null}', '{}'],
  ['{"arguments":{"_meta":{"progressToken":1}}}', '{"arguments":{"_meta":{"progressToken":2}}}'],
])('%s is another request than %s', (a, b) => {
  expect(keyOf('tools/call', a).digest).not.toEqual(keyOf('tools/call', b).digest);
});

test('no params, empty params and params with nothing but noise are the same', () => {
  const none = keyOf('tools/list').digest;
  expect(keyOf('tools/list', {}).digest).toEqual(none);
  expect(keyOf('tools/list', { _meta: {} }).digest).toEqual(none);
  expect(keyOf('tools/list', { _meta: { progressToken: 3 } }).digest).toEqual(none);
  expect(keyOf('tools/list', { cursor: 'a' }).digest).not.toEqual(none);
});

test('of initialize the method alone counts, and methods are told apart', () => {
  const a = keyOf('initialize', { protocolVersion: '2025-11-25', clientInfo: { name: 'a', version: '1' } });
  const b = keyOf('initialize', { protocolVersion: '2024-11-05', capabilities: { roots: {} } });
  expect(a.digest).toEqual(b.digest);
  expect(a.digest).not.toEqual(keyOf('ping').digest);
  expect(keyOf('prompts/list').digest).not.toEqual(keyOf('tools/list').digest);
});

test('what is ignored does not count, everywhere else it does', () => {
  const rules = readIgnoreRules(['$._meta', '$..stamp'], ['now:$.tz', 'all:$', 'deep:$.list[*].id']);
  const same = (tool: string, a: unknown, b: unknown) =>
    call(tool, a, rules).digest === call(tool, b, rules).digest;
  expect(same('now', { tz: 1, q: 1 }, { q: 1 })).toBe(true);
  expect(same('now', { tz: 1, q: 1 }, { q: 2 })).toBe(false);
  expect(same('other', { tz: 1 }, { tz: 2 })).toBe(false);
  expect(same('all', { tz: 1 }, { q: 2 })).toBe(true);
  expect(same('deep', { list: [{ id: 1 }, { id: 2 }] }, { list: [{ id: 3 }, {}] })).toBe(true);
  expect(same('deep', { list: [{ id: 1 }] }, { list: [{ id: 1 }, { id: 2 }] })).toBe(false);
  expect(same('x', { a: { stamp: 1 } }, { a: {} })).toBe(true);
  expect(keyOf('ping', { _meta: { v: 1 } }, rules).digest).toEqual(keyOf('ping').digest);
});

test('no ignored path makes one tool, prompt or resource another', () => {
  const rules = readIgnoreRules(['$', '$.*', '$..name', '$..*'], ['a:$']);
  expect(call('a', {}, rules).digest).not.toEqual(call('b', {}, rules).digest);
  expect(call('a', { x: 1 }, rules).digest).toEqual(call('a', { y: 1 }, rules).digest);
  const read = (uri: string) => keyOf('resources/read', { uri }, rules).digest;
  expect(read('file:///a')).not.toEqual(read('file:///b'));
});

test('params are found where the message reader finds them', () => {
  const payload = Buffer.from(
    '\ufeff [{"jsonrpc":"2.0","id":1,"method":"a"}, 7, {"params":{"x":1},"method":"tools/call","params":{"name":"t"}}]',
  );
  expect(findParams(payload, 0)).toBeNull();
  expect(findParams(payload, 1)).toBeNull();
  const span = findParams(payload, 2);
  expect(span && payload.toString('utf8', span.start, span.end)).toBe('{"name":"t"}');
  expect(findParams(payload, 3)).toBeNull();
  expect(parseMessages(payload)[2]?.details.target).toBe('t');
});

test('params without a canonical form have no key but a reason', () => {
  const payload = Buffer.from(`{"a":${'['.repeat(600)}${']'.repeat(600)}}`);
  const asked = { method: 'tools/call', target: null };
  expect(requestKey(asked, payload, { start: 0, end: payload.length, type: 'object' })).toBe('too-deep');
});
