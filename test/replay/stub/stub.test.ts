import { afterAll, expect, test } from 'vitest';
import { type Message, parseMessages } from '../../../src/protocol/message/message.ts';
import type { EraOffer, ServerOffer } from '../../../src/replay/stub/ask.ts';
import { createStub } from '../../../src/replay/stub/stub.ts';
import { isOfTemplate } from '../../../src/replay/stub/things.ts';
import { createSchemas } from '../../inspect/check/session.ts';
import { modernMeta } from '../../support/messages.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

const INVENTED = 'mcp-tapedeck/invented';

type Lists = { tools?: object[]; prompts?: object[]; resources?: object[]; resourceTemplates?: object[] };

function offerOf(
  handshake: object,
  { tools = [], prompts = [], resources = [], resourceTemplates = [] }: Lists,
) {
  const page = (result: object) => [
    { cursor: null, member: 'result' as const, json: JSON.stringify(result) },
  ];
  const lists: EraOffer['lists'] = new Map([
    ['tools/list', page({ tools })],
    ['prompts/list', page({ prompts })],
    ['resources/list', page({ resources })],
    ['resources/templates/list', page({ resourceTemplates })],
  ]);
  return { handshake: JSON.stringify(handshake), lists };
}

function legacy(lists: Lists, protocolVersion = '2025-11-25'): ServerOffer {
  const capabilities = { tools: {}, completions: {} };
  return { legacy: offerOf({ protocolVersion, capabilities }, lists), modern: null };
}

function modern(lists: Lists): ServerOffer {
  const _meta = { 'io.modelcontextprotocol/serverInfo': { name: 's', version: '1' } };
  return {
    legacy: null,
    modern: offerOf({ supportedVersions: ['2026-07-28'], capabilities: {}, _meta }, lists),
  };
}

/** What the stub says; undefined where it leaves the request to others. */
function ask(offer: ServerOffer, method: string, params: object = {}) {
  const _meta = offer.legacy === null ? modernMeta() : undefined;
  const json = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta } }));
  const [message] = parseMessages(json) as [Message];
  const answer = message.kind === 'request' ? createStub(offer, schemas)(message, json) : null;
  if (answer === null) return undefined;
  return 'notification' in answer
    ? JSON.parse(answer.notification)
    : { [answer.member]: JSON.parse(answer.json) };
}

const call = (offer: ServerOffer, name: string, args?: object) =>
  ask(offer, 'tools/call', { name, ...(args && { arguments: args }) });

const SUM = {
  name: 'sum',
  inputSchema: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] },
  outputSchema: {
    type: 'object',
    properties: { sum: { type: 'number' }, of: { type: 'string' } },
    required: ['sum', 'of'],
  },
};

const withOutput = (outputSchema: object) => legacy({ tools: [{ ...SUM, outputSchema }] });

test('a tool with an outputSchema gets structured content that fits, its text, and a mark', () => {
  const { result } = call(legacy({ tools: [SUM] }), 'sum', { a: 1 });
  expect(schemas.validate(JSON.stringify(SUM.outputSchema), result.structuredContent)).toEqual({
    kind: 'fine',
  });
  expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
  expect(result.content[1].text).toContain('Invented by tapedeck');
  expect(result._meta).toEqual({ [INVENTED]: true });
});

test('a tool without one gets a text that says what it is', () => {
  const { result } = call(legacy({ tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }), 'echo', {
    a: 1,
  });
  expect(result.structuredContent).toBeUndefined();
  expect(result.content[0].text).toMatch(/^Invented by tapedeck.*"echo" was called with \{"a":1\}/);
  expect(result._meta).toEqual({ [INVENTED]: true });
});

test('the same call gets the same answer, however its arguments are written, and another one another', () => {
  const offer = legacy({ tools: [SUM] });
  expect(call(offer, 'sum', { a: 1, b: 2 })).toEqual(call(offer, 'sum', { b: 2, a: 1 }));
  expect(call(offer, 'sum', { a: 1 })).not.toEqual(call(offer, 'sum', { a: 2 }));
});

test('a result of 2026-07-28 has what that revision asks for', () => {
  const offer = modern({ tools: [SUM], resources: [{ uri: 'test://a', name: 'a' }] });
  const serverInfo = { name: 's', version: '1' };
  const _meta = { [INVENTED]: true, 'io.modelcontextprotocol/serverInfo': serverInfo };
  expect(call(offer, 'sum', { a: 1 }).result).toMatchObject({ resultType: 'complete', _meta });
  expect(ask(offer, 'resources/read', { uri: 'test://a' }).result).toMatchObject({
    ...{ resultType: 'complete', ttlMs: 0, cacheScope: 'private', _meta },
  });
});

test.each([
  ['2025-06-18', { error: { code: -32602 } }],
  ['2025-11-25', { result: { isError: true } }],
])('arguments that do not fit are refused as %s says', (version, refusal) => {
  const answer = call(legacy({ tools: [SUM] }, version), 'sum', { a: 'one' });
  expect(answer).toMatchObject(refusal);
  expect(JSON.stringify(answer)).toContain('/a must be number');
});

test('what the server never listed gets the error that servers give', () => {
  const [older, newer] = [legacy({}), modern({})];
  expect(call(older, 'none').error).toMatchObject({ code: -32602, message: 'Unknown tool: none' });
  expect(ask(older, 'prompts/get', { name: 'none' }).error).toMatchObject({ code: -32602 });
  expect(ask(older, 'resources/read', { uri: 'a:b' }).error).toMatchObject({
    code: -32002,
    data: { uri: 'a:b' },
  });
  expect(ask(newer, 'resources/read', { uri: 'a:b' }).error).toMatchObject({
    code: -32602,
    data: { uri: 'a:b' },
  });
  expect(ask(older, 'tools/list', { cursor: 'none' }).error).toMatchObject({ code: -32602 });
  expect(ask(older, 'tasks/list').error).toMatchObject({ code: -32601 });
  expect(ask(newer, 'ping').error).toMatchObject({ code: -32601 });
  expect(ask(older, 'ping').result).toEqual({});
});

test('a request of an era that the server does not speak is left to others', () => {
  expect(ask({ ...legacy({}), legacy: null }, 'server/discover')).toBeUndefined();
  const { modern: newer } = modern({});
  expect(createStub({ legacy: null, modern: newer }, schemas)).toBeTypeOf('function');
});

test('a revision that the server does not speak is refused with those that it does', () => {
  const { modern: newer } = modern({});
  const json = Buffer.from(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/list',
      params: { _meta: modernMeta({ 'io.modelcontextprotocol/protocolVersion': '2099-01-01' }) },
    }),
  );
  const [message] = parseMessages(json) as [Message];
  if (message.kind !== 'request') throw new Error('no request');
  const answer = createStub({ legacy: null, modern: newer }, schemas)(message, json);
  expect(answer).toMatchObject({ member: 'error' });
  expect(JSON.stringify(answer)).toMatch(/-32022.*2026-07-28.*2099-01-01/);
});

test.each<[what: string, schema: object, why: RegExp]>([
  [
    'contradicts itself',
    { type: 'object', properties: { a: { type: 'number', minimum: 2, maximum: 1 } }, required: ['a'] },
    /at most 1/,
  ],
  ['never ends', { type: 'object', properties: { a: { $ref: '#' } }, required: ['a'] }, /needs itself again/],
  ['leads elsewhere', { $ref: 'https://example.com/a.json' }, /a\.json/],
  ['is none', { type: 'objekt' }, /schema is invalid/],
  ['takes no object', { type: 'string' }, /structured content is an object/],
  ['nothing is found for', { type: 'object', not: {} }, /must NOT be valid/],
  ['is deeper than any', JSON.parse(`${'{"not":'.repeat(9000)}{}${'}'.repeat(9000)}`), /./],
])('a tool whose outputSchema %s gets an error that says why', (_, schema, why) => {
  const { result } = call(withOutput(schema), 'sum', { a: 1 });
  expect(result).toMatchObject({ isError: true, _meta: { [INVENTED]: true } });
  expect(result.content[0].text).toMatch(why);
  expect(result.structuredContent).toBeUndefined();
});

test('what is nested too deeply for Node is an error of its call, and not the end of the stub', () => {
  const json = (text: string) =>
    Buffer.from(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${text}}`);
  const nested = `{"name":"sum","arguments":{"a":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`;
  const [message] = parseMessages(json(nested)) as [Message];
  if (message.kind !== 'request') throw new Error('no request');
  const stub = createStub(legacy({ tools: [SUM] }), schemas);
  expect(JSON.stringify(stub(message, json(nested)))).toMatch(/-32603|isError/);
});

test('a pattern that takes forever holds nobody up', () => {
  const evil = { type: 'string', pattern: '^(a|a)*$', minLength: 30 };
  const output = { type: 'object', properties: { a: evil }, required: ['a'] };
  expect(call(withOutput(output), 'sum', { a: 1 }).result.structuredContent.a).toMatch(/^a{30}/);
  const impatient = createSchemas(300);
  const tool = { name: 'evil', inputSchema: output };
  const json = Buffer.from(
    JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'evil', arguments: { a: `${'a'.repeat(60)}!` } },
    }),
  );
  const [message] = parseMessages(json) as [Message];
  if (message.kind !== 'request') throw new Error('no request');
  const answer = createStub(legacy({ tools: [tool] }), impatient)(message, json);
  expect(JSON.stringify(answer)).toContain('The arguments were not checked: no verdict within 0.3 s');
  return impatient.close();
});

test('a prompt is answered by what it declares', () => {
  const offer = legacy({
    prompts: [{ name: 'p', description: 'd', arguments: [{ name: 'a', required: true }] }],
  });
  expect(ask(offer, 'prompts/get', { name: 'p' }).error).toMatchObject({
    code: -32602,
    message: 'Missing required arguments: a',
  });
  const { result } = ask(offer, 'prompts/get', { name: 'p', arguments: { a: 'x' } });
  expect(result).toMatchObject({
    description: 'd',
    messages: [{ role: 'user', content: { type: 'text' } }],
    _meta: { [INVENTED]: true },
  });
});

test('a resource is answered by its type, one of a template too', () => {
  const offer = legacy({
    resources: [
      { uri: 'test://json', mimeType: 'application/json' },
      { uri: 'test://png', mimeType: 'image/png' },
    ],
    resourceTemplates: [{ uriTemplate: 'test://{id}/text', mimeType: 'text/plain' }],
  });
  const read = (uri: string) => ask(offer, 'resources/read', { uri }).result.contents[0];
  expect(JSON.parse(read('test://json').text)).toHaveProperty(INVENTED);
  expect(Buffer.from(read('test://png').blob, 'base64').toString()).toContain('Invented by tapedeck');
  expect(read('test://7/text')).toMatchObject({ uri: 'test://7/text', mimeType: 'text/plain' });
});

test.each([
  ['test://{id}/text', 'test://7/text', true],
  ['test://{id}/text', 'test://7/8/text', false],
  ['test://{+path}', 'test://7/8', true],
  ['test://{id}{?q,r}', 'test://7?q=1', true],
  ['test://{id}', 'test:/7', false],
  ['test://{id}.json', 'test://a.json.json', true],
  ['test://a', 'test://ab', false],
  [`test://${'{a}x'.repeat(5000)}`, `test://${'x'.repeat(5000)}y`, false],
])('whether a URI is of a template: %#', (template, uri, is) => {
  expect(isOfTemplate(uri, template)).toBe(is);
});

test('a completion begins with what was typed', () => {
  const { result } = ask(legacy({}), 'completion/complete', { argument: { name: 'a', value: 'pa' } });
  expect(result.completion.values).toEqual(['painvented']);
});

test('a tool that runs as a task alone is refused', () => {
  const tool = { ...SUM, execution: { taskSupport: 'required' } };
  expect(call(legacy({ tools: [tool] }), 'sum', { a: 1 }).error).toMatchObject({ code: -32601 });
});

test('a subscription is acknowledged and stays open', () => {
  const answer = ask(modern({}), 'subscriptions/listen', { notifications: { toolsListChanged: true } });
  expect(answer).toMatchObject({
    method: 'notifications/subscriptions/acknowledged',
    params: {
      notifications: { toolsListChanged: true },
      _meta: { 'io.modelcontextprotocol/subscriptionId': 1 },
    },
  });
});
