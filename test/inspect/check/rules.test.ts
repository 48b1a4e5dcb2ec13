import { afterAll, describe, expect, test } from 'vitest';
import {
  type Finding,
  isOfProvider,
  RULE_IDS,
  RULES,
  type RuleId,
} from '../../../src/inspect/check/rules.ts';
import { BASE_CASES } from './cases-base.ts';
import { FEATURE_CASES } from './cases-features.ts';
import { MODERN_CASES } from './cases-modern.ts';
import { PROVIDER_CASES } from './cases-providers.ts';
import {
  ask,
  client,
  createSchemas,
  fail,
  findingsOf,
  give,
  HTTP,
  hello,
  helloHttp,
  modern,
  note,
  post,
  type Script,
  server,
} from './session.ts';

const CASES = { ...BASE_CASES, ...FEATURE_CASES, ...MODERN_CASES, ...PROVIDER_CASES };
const schemas = createSchemas();
afterAll(() => schemas.close());

describe.each(RULE_IDS)('%s', (id: RuleId) => {
  test('is found where it is broken', () => {
    const findings = findingsOf(CASES[id].breaks, schemas).filter(({ rule }) => rule === id);
    expect(findings.length).toBeGreaterThan(0);
    for (const { expected, seen } of findings) {
      expect(expected).not.toBe('');
      expect(seen).not.toBe('');
    }
  });

  test('is silent where all is well, as all other rules are', () => {
    // A provider may refuse what the protocol allows, such as a dot in a name. Nothing is wrong with what is deprecated.
    const isMeant = ({ rule }: Finding) =>
      rule === id || ((!isOfProvider(rule) || isOfProvider(id)) && rule !== 'deprecated');
    expect(findingsOf(CASES[id].keeps, schemas).filter(isMeant)).toEqual([]);
  });

  test('is a sentence with its place in a specification', () => {
    expect(RULES[id].text).toMatch(/^[A-Z`].*\.$/);
    expect(RULES[id].url).toMatch(
      isOfProvider(id)
        ? /^https:\/\//
        : /^https:\/\/(modelcontextprotocol\.io\/specification\/20\d\d-|www\.jsonrpc\.org|github\.com\/modelcontextprotocol\/ext-skills\/)/,
    );
  });
});

test("a question of the server is the client's to answer, unless it came as the client left", () => {
  const asked = server(ask(1, 'roots/list'));
  const start = hello('2025-11-25', { roots: {} });
  const left = findingsOf({ steps: [...start, asked] }, schemas);
  const ignored = findingsOf({ steps: [...start, asked, client(ask(2, 'ping')), server(give(2))] }, schemas);
  expect(left).toEqual([]);
  expect(ignored.map(({ rule, side }) => [rule, side])).toEqual([['unanswered', 'client']]);
});

test('names that every object of JavaScript has are names like any other', () => {
  const names = ['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'];
  const asked = names.flatMap((name) => [
    client(ask(name, name, { name })),
    server(give(name, { name })),
    server(ask(name, name)),
    client(give(name)),
    server(note(name)),
  ]);
  const all = { steps: [...hello('2025-11-25', { roots: {} }), ...asked] };
  expect(findingsOf(all, schemas)).toEqual([]);
  const modernNames = names.flatMap((name, i) =>
    post(i, ask(i, name, { name, _meta: modern() }), [give(i, { resultType: 'complete' })], {
      request: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': name },
    }),
  );
  expect(findingsOf({ steps: modernNames, facts: HTTP }, schemas)).toEqual([]);
});

test.each([
  [
    '$/cancelled as articles tell it',
    [client(note('$/cancelled', { id: 1 }))],
    ['method-variant', 'params-shape'],
  ],
  ['a cancellation of nothing, of a revision that allows it', [client(note('notifications/cancelled'))], []],
  [
    'a log level that MCP does not have, asked for in _meta',
    [
      client(ask(2, 'tools/list', { _meta: { 'io.modelcontextprotocol/logLevel': 'trace' } })),
      server(give(2, { tools: [] })),
    ],
    ['log-level'],
  ],
  [
    'a message to sample that nobody says',
    [
      server(ask(3, 'sampling/createMessage', { messages: [{ content: [] }], maxTokens: 1 })),
      client(give(3, { role: 'assistant', content: {}, model: 'm' })),
    ],
    ['params-shape'],
  ],
])('%s', (_, said, rules) => {
  const steps = [...hello('2025-11-25', { sampling: {} }), client(ask(1, 'ping')), ...said, server(give(1))];
  const found = findingsOf({ steps }, schemas).map(({ rule }) => rule);
  expect(found.filter((rule) => rule !== 'answer-cancelled')).toEqual(rules);
});

test('a cancellation names its request in revisions that require it', () => {
  const said = [...hello('2025-06-18'), client(note('notifications/cancelled', { reason: 'x' }))];
  expect(findingsOf({ steps: said }, schemas).map(({ rule, seen }) => [rule, seen])).toEqual([
    ['params-shape', 'nothing'],
  ]);
});

test('a schema that would take forever is left alone after a bounded time, and the rest is checked', async () => {
  const impatient = createSchemas(300);
  const pattern = { type: 'string', pattern: '^(a+)+$' };
  const slow = { name: 'slow', inputSchema: { type: 'object', properties: { a: pattern } } };
  const call = ask(2, 'tools/call', { name: 'slow', arguments: { a: `${'a'.repeat(40)}!` } });
  const steps = [...hello(), client(ask(1, 'tools/list')), server(give(1, { tools: [slow] }))];
  const findings = findingsOf(
    { steps: [...steps, client(call), server(give(2, { content: 'no list' }))] },
    impatient,
  );
  await impatient.close();
  expect(findings.map(({ rule, seen }) => [rule, seen])).toEqual([
    ['tool-schema-unchecked', 'no verdict within 0.3 s'],
    ['result-shape', '"no list"'],
  ]);
});

test('values of any depth and size are no trouble', () => {
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"d":${deep}}}}`;
  const large = give(1, { content: [{ type: 'text', text: '\u001b[2J\u202e'.repeat(1_000_000) }] });
  expect(findingsOf({ steps: [...hello(), client(text), server(large)] }, schemas)).toEqual([]);
});

test('nesting of a million levels is no trouble, wherever it stands', () => {
  const deep = (open: string, close: string) => `${open.repeat(1_000_000)}1${close.repeat(1_000_000)}`;
  for (const value of [deep('[', ']'), deep('{"a":', '}')]) {
    const said = [
      client(
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"d":${value}}}}`,
      ),
      server(`{"jsonrpc":"2.0","id":1,"result":{"content":${value}}}`),
      client(`{"jsonrpc":"2.0","id":2,"method":"tools/list","params":${value}}`),
      server(`{"jsonrpc":"2.0","id":2,"result":${value}}`),
      client(`{"jsonrpc":"2.0","id":${value},"method":"ping"}`),
      server(`{"jsonrpc":"2.0","method":${value},"params":{"_meta":${value}}}`),
      server(`{"jsonrpc":${value},"id":3,"error":${value}}`),
    ];
    expect(() => findingsOf({ steps: [...hello(), ...said] }, schemas)).not.toThrow();
  }
});

test('values of some hundred levels are looked into still', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const rulesAt = (levels: number) => {
    const said = server(
      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"loud","data":${deep(levels)}}}`,
    );
    return findingsOf({ steps: [...hello(), said] }, schemas).map(({ rule }) => rule);
  };
  expect(rulesAt(400)).toEqual(['log-level']);
  expect(rulesAt(600)).toEqual([]);
});

test('a call that its client takes back by closing the stream is nobody’s to answer, nor is a refused one', () => {
  const asked = ask(1, 'tools/call', { name: 'a', _meta: { ...modern(), progressToken: 't' } });
  const request = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'a' };
  const rulesOf = (options: object) =>
    findingsOf(
      { steps: post(1, asked, [], { request, isStream: true, ...options }), facts: HTTP },
      schemas,
    ).map(({ rule }) => rule);
  expect(rulesOf({ how: null })).toEqual(['unanswered']);
  expect(rulesOf({ how: 'left' })).toEqual([]);
  expect(rulesOf({ status: 401 })).toEqual([]);
});

test('a server refuses a GET with any content type, but no POST', () => {
  const refused = (method: string): Script['steps'] => [
    {
      ...{
        channel: 'response',
        text: JSON.stringify({ ...fail(0, -32000), id: null }),
        afterMs: 1,
        exchange: 3,
      },
      marks: ['wrong-type'],
    },
    { end: 3, method, status: 405, request: {}, response: {}, bytes: 9, how: 'refused' },
  ];
  const rulesOf = (method: string) =>
    findingsOf({ steps: [...helloHttp(), ...refused(method)], facts: HTTP }, schemas).map(({ rule }) => rule);
  expect(rulesOf('GET')).toEqual([]);
  expect(rulesOf('DELETE')).toEqual([]);
  expect(rulesOf('POST')).toEqual(['content-type']);
});

const picture = { type: 'image', data: 'AAAA', mimeType: 'image/png' };

test.each([
  ['a text without text', { type: 'text' }, 'content-block'],
  ['a resource without contents', { type: 'resource', resource: { uri: 'a:b' } }, 'resource-contents'],
  ['an image without a type', { type: 'image', data: 'AAAA' }, 'content-data'],
  ['base64 without its padding', { ...picture, data: 'AAA' }, 'content-data'],
  ['base64 for URLs', { ...picture, data: 'AA-_' }, 'content-data'],
  ['base64 in which a secret was redacted', { ...picture, data: 'AA[redacted:jwt:0123abcd]=' }, null],
  [
    'a block of another revision',
    { type: 'audio', data: '', mimeType: 'audio/wav' },
    'content-block',
    '2024-11-05',
  ],
  ['a block of a sampled message', { type: 'tool_use', id: '1', name: 'a', input: {} }, 'content-block'],
])('content is judged block by block: %s', (_, block, rule, version = '2025-11-25') => {
  const call = [client(ask(1, 'tools/call', { name: 'a' })), server(give(1, { content: [picture, block] }))];
  const rules = findingsOf({ steps: [...hello(version), ...call] }, schemas).map((found) => found.rule);
  // The picture itself is of all revisions.
  expect(rules).toEqual(rule === null ? [] : [rule]);
});

test('a form of the 2026-07-28 era is judged where it is asked for, and where it is filled in', () => {
  const call = (id: number, more: object = {}) =>
    client(ask(id, 'tools/call', { name: 'a', _meta: modern({ elicitation: {} }), ...more }));
  const form = {
    method: 'elicitation/create',
    params: { message: '?', requestedSchema: { type: 'object', properties: { n: { type: 'number' } } } },
  };
  const nested = {
    method: 'elicitation/create',
    params: { message: '?', requestedSchema: { type: 'object', properties: { n: { $ref: '#' } } } },
  };
  const steps = [
    call(1),
    server(give(1, { resultType: 'input_required', inputRequests: { good: form, bad: nested } })),
    call(2, {
      inputResponses: { good: { action: 'accept', content: { n: 'x' } }, bad: { action: 'decline' } },
    }),
    server(give(2, { resultType: 'complete', content: [] })),
  ];
  expect(findingsOf({ steps }, schemas).map(({ rule, side }) => [rule, side])).toEqual([
    ['elicitation-schema', 'server'],
    ['elicitation-content', 'client'],
  ]);
});

test('what was given before a recording began is not judged', () => {
  const steps = [
    client(ask(1, 'tools/list', { cursor: 'old' })),
    server(give(1, { tools: [] })),
    server(note('notifications/resources/updated', { uri: 'a:b' })),
    server(note('notifications/message', { level: 'debug', data: 1 })),
  ];
  expect(findingsOf({ steps, facts: HTTP }, schemas)).toEqual([]);
});

test('a rule of some revisions says nothing about another one', () => {
  const twice = [client(ask(1, 'ping')), server(give(1)), client(ask(1, 'ping')), server(give(1))];
  const rules = (version: string) =>
    findingsOf({ steps: [...hello(version), ...twice] }, schemas).map(({ rule }) => rule);
  expect(rules('2025-11-25')).toEqual(['id-reused']);
  expect(rules('2027-01-01')).not.toContain('id-reused');
});
