/**
 * What texts about MCP tell that the specification does not say, or forbids: someone who builds by them is told. Each as
 * it is found in the wild, with the rules that it breaks.
 */
import { afterAll, expect, test } from 'vitest';
// Built, because its thread is a file beside it.
import type { RuleId } from '../../../src/inspect/check/rules.ts';
import {
  ask,
  cacheable,
  client,
  createSchemas,
  fail,
  findingsOf,
  give,
  hello,
  modern,
  note,
  type Step,
  server,
} from './session.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

const CLIENT_CAN = { sampling: {}, roots: { listChanged: true } };
const SERVER_CAN = {
  tools: { listChanged: true },
  logging: {},
  resources: { listChanged: true },
  prompts: {},
};

type Told = [what: string, said: Step[], rules: RuleId[], version?: string];

const sampled = { messages: [{ role: 'user', content: { type: 'text', text: 'x' } }], maxTokens: 1 };

const TOLD: Told[] = [
  // Names
  [
    'a log is a `logging/message`',
    [server(note('logging/message', { level: 'info', data: 1 }))],
    ['method-variant'],
  ],
  [
    '`logging/set_level`',
    [client(ask(1, 'logging/set_level', { level: 'info' })), server(give(1))],
    ['method-variant'],
  ],
  ['changes are `roots/list_changed`', [client(note('roots/list_changed'))], ['method-variant']],
  ['changes are `resources/list_changed`', [server(note('resources/list_changed'))], ['method-variant']],
  [
    'the client asks for `sampling/create_message`, with a `context`',
    [client(ask(1, 'sampling/create_message', { context: [] })), server(fail(1, -32601))],
    ['method-variant', 'method-direction', 'params-shape'],
  ],
  [
    'a cancellation is `$/cancelled` with an `id`',
    [client(ask(1, 'ping')), client(note('$/cancelled', { id: 1 }))],
    ['method-variant', 'params-shape'],
  ],
  [
    'progress is `$/progress` with a `token` and a `value`',
    [
      client(ask(1, 'tools/call', { name: 'a', _meta: { progressToken: 't' } })),
      server(note('$/progress', { token: 't', value: 1 })),
      server(give(1, { content: [] })),
    ],
    ['method-variant', 'params-shape'],
  ],

  // Params and results
  [
    'log levels are error, warn, info, debug and trace',
    [server(note('notifications/message', { level: 'trace', data: 1 }))],
    ['log-level'],
  ],
  [
    'a log has a `message`',
    [server(note('notifications/message', { level: 'info', message: 'x' }))],
    ['params-shape'],
  ],
  [
    'sampling gives a `message` and a `modelHint`',
    [server(ask(1, 'sampling/createMessage', sampled)), client(give(1, { message: {}, modelHint: {} }))],
    ['result-shape'],
  ],
  [
    'a root has a kind and a title',
    [server(ask(1, 'roots/list')), client(give(1, { roots: [{ kind: 'folder', title: 'x' }] }))],
    ['result-shape'],
  ],

  // The envelope
  ['an id may be null', [client(ask(null, 'ping'))], ['id-null']],
  ['params may be an array', [client(ask(1, 'ping', []))], ['params-type']],
  ['a batch may come in any revision', [client([ask(1, 'ping')]), server(give(1))], ['batch'], '2025-06-18'],
  [
    'a batch gives an answer for its notifications, too',
    [
      client([ask(1, 'ping'), note('notifications/roots/list_changed')]),
      server([give(1), { jsonrpc: '2.0', id: null, result: {} }]),
    ],
    ['id-null'],
    '2025-03-26',
  ],
  [
    'an id is unique in a session, whoever sends it: it is so for each sender',
    [client(ask(1, 'ping')), server(give(1)), server(ask(1, 'ping')), client(give(1))],
    [],
  ],
  [
    'an answer mirrors its id, as another type',
    [client(ask(1, 'ping')), server(give('1')), server(give(1))],
    ['id-changed-type'],
  ],
  [
    'an error is a text',
    [client(ask(1, 'ping')), server({ jsonrpc: '2.0', id: 1, error: 'no' })],
    ['error-shape'],
  ],
  [
    'a notification has an id, and is answered',
    [client(ask(1, 'notifications/roots/list_changed')), server(give(1))],
    ['method-kind'],
  ],

  // Codes and _meta
  ['own codes are -32000 to -32099', [client(ask(1, 'ping')), server(fail(1, -32000))], []],
  [
    'own codes are any that JSON-RPC reserves',
    [client(ask(1, 'ping')), server(fail(1, -32200))],
    ['code-reserved'],
  ],
  [
    'keys of `_meta` belong to MCP by `mcp/`: by the second label since 2025-11-25',
    [
      client(ask(1, 'ping', { _meta: { 'mcp/a': 1, 'com.example.mcp/a': 1, 'tools.mcp.com/a': 1 } })),
      server(give(1)),
    ],
    ['meta-reserved'],
  ],
  [
    'keys of `_meta` belong to MCP by `mcp` before another label, in 2025-06-18',
    [client(ask(1, 'ping', { _meta: { 'mcp.dev/a': 1, 'com.mcp/a': 1 } })), server(give(1))],
    ['meta-reserved'],
    '2025-06-18',
  ],
];

test.each(TOLD)('%s', (_, said, rules, version = '2025-11-25') => {
  const found = findingsOf({ steps: [...hello(version, CLIENT_CAN, SERVER_CAN), ...said] }, schemas);
  expect(found.map(({ rule }) => rule)).toEqual(rules);
});

test('the handshake ends with a notification called `initialized`', () => {
  const steps = [
    ...hello().slice(0, 2),
    client(note('initialized')),
    client(ask(1, 'ping')),
    server(give(1)),
  ];
  expect(findingsOf({ steps }, schemas).map(({ rule }) => rule)).toEqual(['method-variant']);
});

test('without a handshake nothing goes: from 2026-07-28 on each request speaks for itself', () => {
  const asked = client(ask(1, 'tools/list', { _meta: modern() }));
  const answered = (result: object) => server(give(1, { tools: [], ...result }));
  const rulesOf = (result: object) =>
    findingsOf({ steps: [asked, answered(result)] }, schemas).map(({ rule }) => rule);
  expect(rulesOf(cacheable())).toEqual([]);
  expect(rulesOf({})).toEqual(['result-type-missing']);
});

test('`logging/setLevel` and the code -32002 are gone from 2026-07-28', () => {
  const _meta = modern();
  const steps = [
    client(ask(1, 'logging/setLevel', { level: 'info', _meta })),
    server(fail(1, -32601)),
    client(ask(2, 'resources/read', { uri: 'x', _meta })),
    server(fail(2, -32002)),
  ];
  expect(findingsOf({ steps }, schemas).map(({ rule }) => rule)).toEqual([
    'method-revision',
    'code-revision',
  ]);
});
