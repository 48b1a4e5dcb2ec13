import { afterAll, describe, expect, test } from 'vitest';
// Built, because its thread is a file beside it.
import { RULE_IDS, RULES, type RuleId } from '../../../src/inspect/check/rules.ts';
import { BASE_CASES } from './cases-base.ts';
import { FEATURE_CASES } from './cases-features.ts';
import {
  ask,
  client,
  createSchemas,
  findingsOf,
  give,
  HTTP,
  hello,
  modern,
  note,
  post,
  server,
} from './session.ts';

const CASES = { ...BASE_CASES, ...FEATURE_CASES };
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
    expect(findingsOf(CASES[id].keeps, schemas)).toEqual([]);
  });

  test('is a sentence with its place in a specification', () => {
    expect(RULES[id].text).toMatch(/^[A-Z`].*\.$/);
    expect(RULES[id].url).toMatch(
      /^https:\/\/(modelcontextprotocol\.io\/specification\/20\d\d-|www\.jsonrpc\.org)/,
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

test('a rule of some revisions says nothing about another one', () => {
  const twice = [client(ask(1, 'ping')), server(give(1)), client(ask(1, 'ping')), server(give(1))];
  const rules = (version: string) =>
    findingsOf({ steps: [...hello(version), ...twice] }, schemas).map(({ rule }) => rule);
  expect(rules('2025-11-25')).toEqual(['id-reused']);
  expect(rules('2027-01-01')).not.toContain('id-reused');
});
