import { afterAll, expect, test } from 'vitest';
import {
  ask,
  client,
  createSchemas,
  fail,
  findingsOf,
  give,
  HTTP,
  headersOf,
  hello,
  helloHttp,
  modern,
  note,
  post,
  type Script,
  server,
} from './session.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

const pay = (id: unknown, params: object = {}) =>
  ask(id, 'tools/call', { name: 'pay', arguments: { to: 'a', sum: 1 }, ...params });

const paid = { content: [{ type: 'text', text: 'paid' }] };

const tools = (annotations?: object) => [
  client(ask('t', 'tools/list')),
  server(
    give('t', {
      tools: [{ name: 'pay', inputSchema: { type: 'object' }, ...(annotations && { annotations }) }],
    }),
  ),
];

function repeatsIn(steps: Script['steps'], facts: Script['facts'] = {}) {
  const found = findingsOf({ steps, facts }, schemas).filter(({ rule }) => rule.startsWith('call-repeated'));
  return found.map(({ rule, place, seen }) => ({ rule, seq: place?.seq, seen }));
}

const again = (first: Script['steps'], then: unknown = pay(2)) => [...hello(), ...first, client(then)];

test('a call that is made again while the first is open may run twice', () => {
  expect(repeatsIn(again([...tools(), client(pay(1), 5)], pay(2)))).toEqual([
    {
      rule: 'call-repeated',
      seq: 7,
      seen: '"pay" again with the same arguments, 1.00 ms after #6; its tool does not say that this is harmless',
    },
  ]);
});

test('so does one after the first was cancelled: it may have run all the same', () => {
  const cancelled = [client(pay(1)), client(note('notifications/cancelled', { requestId: 1 }), 30_000)];
  expect(repeatsIn(again(cancelled))).toMatchObject([{ rule: 'call-repeated', seen: /30\.0 s after #4/ }]);
});

test.each([
  ['reads only', { readOnlyHint: true }, 'call-repeated-safe'],
  ['is idempotent', { idempotentHint: true }, 'call-repeated-safe'],
  ['says neither', { destructiveHint: false }, 'call-repeated'],
  ['says that it is not', { readOnlyHint: false, idempotentHint: false }, 'call-repeated'],
])('what the tool says of itself weighs: one that %s', (_, hints, rule) => {
  expect(repeatsIn(again([...tools(hints), client(pay(1))]))).toMatchObject([{ rule }]);
});

test.each([
  ['was answered', [client(pay(1)), server(give(1, paid))]],
  ['failed', [client(pay(1)), server(fail(1, -32603))]],
  ['had other arguments', [client(pay(1, { arguments: { to: 'b', sum: 1 } }))]],
  ['was of another tool', [client(pay(1, { name: 'refund' }))]],
  [
    'was no call of a tool',
    [client(ask(1, 'prompts/get', { name: 'pay', arguments: { to: 'a', sum: '1' } }))],
  ],
])('a call is none again where the one before %s', (_, first) => {
  expect(repeatsIn(again(first))).toEqual([]);
});

test('order of members and progress tokens make no other call, digits do', () => {
  const turned = ask(2, 'tools/call', {
    arguments: { sum: 1, to: 'a' },
    name: 'pay',
    _meta: { progressToken: 9 },
  });
  expect(repeatsIn(again([client(pay(1))], turned))).toHaveLength(1);
  const long = (id: number, last: number) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"pay","arguments":{"to":1234567890123456789${last}}}}`;
  expect(repeatsIn([...hello(), client(long(1, 1)), client(long(2, 2))])).toEqual([]);
});

test('the next round of a call is no repeat', () => {
  const meta = { _meta: modern({ elicitation: {} }) };
  const asks = { resultType: 'input_required', requestState: 's' };
  const next = client(pay(2, { ...meta, requestState: 's' }));
  expect(repeatsIn([client(pay(1, meta)), server(give(1, asks)), next])).toEqual([]);
});

test('over HTTP a call is repeated after its client has left, not after its status refused it', () => {
  const request = headersOf();
  const rest = (status: number, how: 'left' | 'refused') => [
    ...helloHttp(),
    ...post(3, pay(1), [], { status, how, request }),
    ...post(4, pay(2), [give(2, paid)], { request }),
  ];
  expect(repeatsIn(rest(200, 'left'), HTTP)).toMatchObject([{ rule: 'call-repeated' }]);
  expect(repeatsIn(rest(404, 'refused'), HTTP)).toEqual([]);
  const loose = { transport: 'http', basis: 'stateless' } as const;
  expect(repeatsIn(rest(200, 'left'), loose)).toMatchObject([{ seen: /perhaps by another client/ }]);
});

test('what a resumed stream brings again is no call again', () => {
  const request = { ...headersOf(), 'last-event-id': '1' };
  const [asked, ...others] = post(3, pay(1), [give(1, paid)], { request: headersOf(), isStream: true });
  const replayed = { ...others[0], marks: ['replayed'], exchange: 4 } as Script['steps'][number];
  const end = { end: 4, method: 'GET', status: 200, request, response: {}, bytes: 9, how: null } as const;
  expect(repeatsIn([...helloHttp(), asked, ...others, replayed, end] as Script['steps'], HTTP)).toEqual([]);
});

test('where frames were lost, only an answer that came later proves that the first call was open', () => {
  const lost = { mayMissFrames: true };
  expect(repeatsIn(again([client(pay(1))]), lost)).toEqual([]);
  expect(repeatsIn([...again([client(pay(1))]), server(give(1, paid))], lost)).toMatchObject([{ seq: 5 }]);
});
