/** Features that a later revision may be without. */
import { expect, test } from 'vitest';
import { asked, got, headersFor } from '../cases-modern.ts';
import {
  ask,
  cacheable,
  client,
  give,
  HTTP,
  hello,
  modern,
  note,
  post,
  type Step,
  server,
} from '../session.ts';
import { found, seenBy } from './found.ts';

const wants = (method: string, params: object = {}) =>
  got(
    1,
    'tools/call',
    { name: 'a' },
    { resultType: 'input_required', inputRequests: { q: { method, params } } },
  );
const logs = [
  client(
    ask(1, 'tools/call', { name: 'a', _meta: modern({}, { 'io.modelcontextprotocol/logLevel': 'info' }) }),
  ),
  server(note('notifications/message', { level: 'info', data: 1 })),
];
const sampling = { messages: [], maxTokens: 1 };

test.each<[string, Step[], string[]]>([
  ['roots', wants('roots/list'), ['roots (`roots/list`), deprecated in 2026-07-28 by SEP-2577']],
  [
    'sampling',
    wants('sampling/createMessage', { ...sampling, includeContext: 'none' }),
    [expect.stringMatching(/^sampling/)],
  ],
  [
    'context',
    wants('sampling/createMessage', { ...sampling, includeContext: 'thisServer' }),
    [
      'sampling (`sampling/createMessage`), deprecated in 2026-07-28 by SEP-2577',
      '`includeContext` other than "none", deprecated in 2025-11-25 by SEP-2596',
    ],
  ],
  ['logs, once', logs, ['logging (`logLevel`), deprecated in 2026-07-28 by SEP-2577']],
  ['forms', wants('elicitation/create'), []],
])('a session that uses %s is told what is deprecated of it', (_, steps, seen) => {
  expect(seenBy('deprecated', steps)).toEqual(seen);
});

test('what a client only declares it does not use', () => {
  const _meta = modern({ roots: {}, sampling: {} });
  const steps = [client(ask(1, 'tools/list', { _meta })), server(give(1, cacheable({ tools: [] })))];
  expect(seenBy('deprecated', steps)).toEqual([]);
});

test('a feature is deprecated from its revision on', () => {
  const asks = (version: string) => [
    ...hello(version, { sampling: {} }),
    server(ask(1, 'sampling/createMessage', { ...sampling, includeContext: 'allServers' })),
  ];
  expect(seenBy('deprecated', asks('2025-06-18'))).toEqual([]);
  expect(seenBy('deprecated', asks('2025-11-25'))).toEqual([expect.stringMatching(/^`includeContext`/)]);
});

test('the older transport is deprecated for who speaks a revision that has another', () => {
  const sse = (version: string) => {
    const [question, answer] = hello(version) as { text: string }[];
    const on = (channel: 'request' | 'sse', text: string, exchange: number): Step => ({
      channel,
      text,
      afterMs: 1,
      exchange,
    });
    return [
      on('sse', 'event: endpoint\ndata: /messages\n\n', 1),
      on('request', question?.text ?? '', 2),
      on('sse', `event: message\ndata: ${answer?.text}\n\n`, 1),
    ];
  };
  const facts = { transport: 'http', basis: 'sse-endpoint' } as const;
  expect(seenBy('deprecated', sse('2024-11-05'), facts)).toEqual([]);
  expect(seenBy('deprecated', sse('2025-11-25'), facts)).toEqual([
    'the HTTP+SSE transport, deprecated in 2025-03-26 by SEP-2596',
  ]);
});

test('a client that registers itself is told of it when it speaks', () => {
  const registers: Step = {
    channel: 'request',
    text: JSON.stringify({ client_name: 'c', redirect_uris: ['http://127.0.0.1:1/callback'] }),
    afterMs: 1,
    exchange: 1,
  };
  const says = (exchange: number) =>
    post(exchange, asked(1, 'tools/list'), [give(1, cacheable({ tools: [] }))], {
      request: headersFor('tools/list'),
    });
  const findings = found([registers, ...says(2)], HTTP);
  expect(findings.filter(({ rule }) => rule === 'deprecated')).toMatchObject([
    {
      side: 'client',
      place: { seq: 1 },
      http: 1,
      seen: /^dynamic client registration, deprecated in 2026-07-28/,
    },
  ]);
});
