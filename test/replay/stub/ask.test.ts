import { expect, test } from 'vitest';
import { askOffer } from '../../../src/replay/stub/ask.ts';
import type { Connect } from '../../../src/talk/server.ts';

type Asked = {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: unknown;
};

/** A server that says these lines to each message; the messages are kept in `heard`. */
function serverOf(answer: (asked: Asked) => readonly (object | string)[], heard: Asked[] = []): Connect {
  return ({ onPayload }) => ({
    async send({ json }) {
      const asked = JSON.parse(json.toString()) as Asked;
      heard.push(asked);
      for (const line of answer(asked)) {
        const text =
          typeof line === 'string' ? line : JSON.stringify({ jsonrpc: '2.0', id: asked.id, ...line });
        queueMicrotask(() => onPayload(Buffer.from(text)));
      }
    },
    transport: () => 'stdio',
    agreed() {},
    close: async () => {},
  });
}

const ask = (connect: Connect, timeoutMs = 20) =>
  askOffer(connect, { timeoutMs, client: { name: 'c', version: '1' } });

const NOT_FOUND = { error: { code: -32601, message: 'Method not found' } };

const initialized = (capabilities: object) => ({ result: { protocolVersion: '2025-06-18', capabilities } });

/** A server of the older era that offers what `lists` answers. */
const older =
  (capabilities: object, lists: (asked: Asked) => readonly (object | string)[]) => (asked: Asked) => {
    if (asked.method === 'initialize') return [initialized(capabilities)];
    return asked.method?.endsWith('/list') === true
      ? lists(asked)
      : asked.id === undefined
        ? []
        : [NOT_FOUND];
  };

test('all pages of each list that the server has are asked for, tools in any case', async () => {
  const heard: Asked[] = [];
  const connect = serverOf(
    older({ prompts: {} }, ({ method, params }) => {
      if (method !== 'prompts/list') return [NOT_FOUND];
      return [{ result: { prompts: [], ...(params?.['cursor'] === undefined ? { nextCursor: 'b' } : {}) } }];
    }),
    heard,
  );
  const { legacy, modern } = await ask(connect);
  expect(modern).toBeNull();
  expect([...(legacy?.lists ?? [])]).toEqual([
    ['tools/list', [{ cursor: null, member: 'error', json: JSON.stringify(NOT_FOUND.error) }]],
    [
      'prompts/list',
      [
        { cursor: null, member: 'result', json: '{"prompts":[],"nextCursor":"b"}' },
        { cursor: '"b"', member: 'result', json: '{"prompts":[]}' },
      ],
    ],
  ]);
  expect(heard.map(({ method }) => method)).toEqual([
    ...['initialize', 'notifications/initialized', 'tools/list', 'prompts/list', 'prompts/list'],
    'server/discover',
  ]);
});

test('pages that lead in a circle are asked for once', async () => {
  const { legacy } = await ask(
    serverOf(
      older({}, ({ params }) => [
        { result: { tools: [], nextCursor: params?.['cursor'] === 'a' ? 'b' : 'a' } },
      ]),
    ),
  );
  expect(legacy?.lists.get('tools/list')?.map(({ cursor }) => cursor)).toEqual([null, '"a"', '"b"']);
});

test('a server of 2026-07-28 alone is asked in that era', async () => {
  const discovered = { result: { supportedVersions: ['2026-07-28'], capabilities: {} } };
  const heard: Asked[] = [];
  const connect = serverOf(({ method, id }) => {
    if (method === 'server/discover') return [discovered];
    return method === 'tools/list' ? [{ result: { tools: [] } }] : id === undefined ? [] : [NOT_FOUND];
  }, heard);
  const { legacy, modern } = await ask(connect);
  expect(legacy).toBeNull();
  expect(modern?.handshake).toBe(JSON.stringify(discovered.result));
  expect(heard.at(-1)?.params?.['_meta']).toMatchObject({
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  });
});

test('a server that keeps silent about the newer era is one of the older', async () => {
  const answer = older({}, () => [{ result: { tools: [] } }]);
  const { legacy, modern } = await ask(
    serverOf((asked) => (asked.method === 'server/discover' ? [] : answer(asked))),
  );
  expect(legacy?.lists.size).toBe(1);
  expect(modern).toBeNull();
});

test('a server that asks us is answered', async () => {
  const heard: Asked[] = [];
  const answer = older({}, () => [
    '{"jsonrpc":"2.0","id":"p","method":"ping"}',
    '{"jsonrpc":"2.0","id":7,"method":"roots/list"}',
    { result: { tools: [] } },
  ]);
  await ask(serverOf(answer, heard));
  expect(heard.filter(({ method }) => method === undefined)).toEqual([
    { jsonrpc: '2.0', id: 'p', result: {} },
    { jsonrpc: '2.0', id: 7, ...NOT_FOUND },
  ]);
});

test.each<[what: string, answer: (asked: Asked) => readonly (object | string)[], why: RegExp]>([
  ['nonsense', () => ['hello \u001b[2J'], /no answer within 0\.02 s; it said what is no message: hello \\/],
  ['no version', () => [{ result: {} }], /names no `protocolVersion`.*do not have 2026-07-28/],
  ['no object', () => [{ result: [] }], /its result is no object/],
  ['errors', () => [NOT_FOUND], /error "Method not found"/],
  [
    'no list',
    (asked) => (asked.method === 'initialize' ? [initialized({})] : []),
    /has not answered tools\/list: no answer/,
  ],
])('a server that says %s is refused with the reason', async (_, answer, why) => {
  await expect(ask(serverOf(answer))).rejects.toThrow(why);
});
