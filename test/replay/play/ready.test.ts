/**
 * A call in the very text in which it was recorded, but for the id, is answered without being read. Whatever is sent, a client
 * must not see the difference.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createStdioMock } from '../../../src/replay/serve/stdio.ts';
import { openMock } from '../../support/http-mock.ts';
import { scale } from '../../support/scale.ts';
import { importSaid, type SaidLine } from '../../support/stdio-replay.ts';
import { tempStore } from '../../support/tapedeck.ts';

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}';

const HELLO: SaidLine[] = [
  ['stdin', INITIALIZE],
  ['stdout', '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'],
];

/** Calls to read before the first client comes. */
const ALL = 100;

/** Writes a request as clients do: with its id in front, or at the end. */
const WRITERS = [
  (id: string, params: string) => `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`,
  (id: string, params: string) => `{"method":"tools/call","params":${params},"jsonrpc":"2.0","id":${id}}`,
  (id: string, params: string) => `{"id":${id},"jsonrpc":"2.0","method":"tools/call","params":${params}}`,
] as const;

type Written = { writer: number; params: string };

/** The same few calls, in several writings. */
const written: fc.Arbitrary<Written> = fc.record({
  writer: fc.constantFrom(0, 0, 1, 1, 2),
  params: fc.oneof(
    { weight: 3, arbitrary: fc.nat({ max: 9 }).map((n) => `{"name":"a","arguments":{"n":${n}}}`) },
    {
      weight: 2,
      arbitrary: fc.constantFrom(
        '{"name":"a","arguments":{"x":1,"y":"é\\n"}}',
        '{"name":"a","arguments":{"y":"\\u00e9\\n","x":1.0}}',
        '{"name":"a","arguments":{"x":2,"id":3}}',
        '{"name":"a","arguments":{"x":1,"y":"é\\n"},"_meta":{"progressToken":7}}',
        '{"name":"b"}',
      ),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '{"name":"b","arguments":{"to":"ghp_000000000000000000000000000000000000"}}',
        '{"name":"b","arguments":{"to":"ghp_111111111111111111111111111111111111"}}',
        '{"name":"b","arguments":{"to":"[redacted:github-token:000000000001]"}}',
        '{"name":"b","arguments":{"to":"[redacted:github-token:000000000002]"}}',
      ),
    },
  ),
});

/** What the server does for a call: which of these it sends, before its answer or after it. */
const call = fc.record({
  written,
  tells: fc.oneof(
    fc.constant('nothing'),
    fc.constantFrom('nothing', 'progress', 'question', 'news', 'news after'),
  ),
  end: fc.constantFrom('result', 'result', 'error', 'none'),
});

/** As a session has it whose secrets stand as they were, have numbers, or digests by a key that is not at hand. */
const REDACTIONS = [{}, { redaction: { key: 'numbered' } }, { redaction: { key: 'elsewhere' } }];

const IDS = ['1', '42', '007', '-1', '1.5', '1e2', '"1"', '"é"', 'null', '12345678901234567890', '{}', ''];

/** `of`: written as this recorded call. */
const live = fc.record({
  written,
  of: fc.option(fc.nat({ max: 7 }), { freq: 4 }),
  id: fc.oneof(fc.constantFrom('1', '2', '3', '42'), fc.constantFrom(...IDS)),
  isBroken: fc.nat({ max: 9 }),
});

function textOf({ writer, params }: Written, id: string): string {
  return WRITERS[writer]?.(id, params) ?? '';
}

type Call = { written: Written; tells: string; end: string };

function saidFor({ written: one, tells, end }: Call, i: number): SaidLine[] {
  const news = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":${i}}}`;
  const progress = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":${i}}}`;
  const answer =
    end === 'result'
      ? `{"result":{"of":${i}},"jsonrpc":"2.0","id":${i}}`
      : `{"jsonrpc":"2.0","id":${i},"error":{"code":-32000,"message":"no ${i}"}}`;
  return [
    ['stdin', textOf(one, String(i))],
    ...(tells === 'progress' ? [['stdout', progress] as const] : []),
    ...(tells === 'question' ? [['stdout', '{"jsonrpc":"2.0","id":9,"method":"roots/list"}'] as const] : []),
    ...(tells === 'news' ? [['stdout', news] as const] : []),
    ...(end === 'none' ? [] : [['stdout', answer] as const]),
    ...(tells === 'news after' ? [['stdout', news] as const] : []),
  ];
}

/** As a recorder would have stored it. */
function withoutSecrets([channel, text]: SaidLine): SaidLine {
  return [
    channel,
    text.replace(/ghp_([01])\1{35}/, (_, n) => `[redacted:github-token:00000000000${Number(n) + 1}]`),
  ];
}

/** All that a client gets for these lines; what is counted; and how many answers needed no reading. */
async function replayed(
  db: string,
  lines: readonly string[],
  readsAhead: number | null,
  repeat: 'error' | 'cycle',
) {
  const { mock, matching, misses, notices, unread } = openMock(db, { readsAhead, repeat });
  const said: string[] = [];
  // Two clients, as each of them begins anew.
  for (let client = 0; client < 2; client += 1) {
    const { feed, end } = createStdioMock(mock, (bytes) => said.push(bytes.toString('latin1')));
    for (const line of lines) {
      feed(Buffer.from(`${line}\n`));
      await mock.idle();
    }
    end();
  }
  const outcome = [said.join(''), matching.unasked(), misses.map(({ line }) => line), notices];
  // A secret that has no number gets digits that each mock makes up, and so some likeness to another.
  const text = JSON.stringify(outcome)
    .replaceAll(/github-token:(?!0{11})\w{12}/g, 'github-token:x')
    .replaceAll(/(similarity\W+)0\.\d+/g, '$1x');
  return { text, said: said.join(''), unasked: matching.unasked(), misses: misses.length, unread: unread() };
}

test('a client sees no difference between an answer that needed no reading and one that did', async () => {
  let unread = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 1, maxLength: 8, size: 'max' }),
      fc.array(live, { minLength: 1, maxLength: 12, size: 'max' }),
      fc.constantFrom(true, true, true, false),
      fc.constantFrom(ALL, ALL, 1, 3, 0, 0),
      fc.constantFrom('error' as const, 'cycle' as const),
      fc.constantFrom(...REDACTIONS),
      async (calls, asked, isGreeted, readsAhead, repeat, redaction) => {
        const said = [...HELLO, ...calls.flatMap((one, i) => saidFor(one, i + 1))];
        const recorded = 'redaction' in redaction ? said.map(withoutSecrets) : said;
        const db = await importSaid('calls', recorded, tempStore(), redaction);
        const texts = asked.map(({ written: other, of, id, isBroken }) => {
          const text = textOf((of === null ? undefined : calls[of % calls.length]?.written) ?? other, id);
          return isBroken === 0 ? text.slice(0, -1) : text;
        });
        const lines = isGreeted ? [INITIALIZE, ...texts] : texts;
        const plain = await replayed(db, lines, null, repeat);
        const ahead = await replayed(db, lines, readsAhead, repeat);
        expect(ahead.text).toBe(plain.text);
        expect(plain.unread).toBe(0);
        unread += ahead.unread;
      },
    ),
    { numRuns: scale(200, 60) },
  );
  expect(unread).toBeGreaterThan(0);
});

test.each([
  ['in front', 0],
  ['at the end', 1],
])(
  'each client gets the answer of a call that comes as it was recorded, with its own id %s',
  async (_where, writer) => {
    const params = '{"name":"b"}';
    const recorded: Call[] = ['result', 'error'].map((end) => ({
      written: { writer, params: `{"name":"${end}"}` },
      tells: 'nothing',
      end,
    }));
    const db = await importSaid('calls', [...HELLO, ...recorded.flatMap((one, i) => saidFor(one, i + 1))]);
    const lines = [INITIALIZE, ...recorded.map(({ written: one }, i) => textOf(one, String(70 + i)))];
    const { said, unread, unasked, misses } = await replayed(
      db,
      [...lines, textOf({ writer, params }, '9')],
      ALL,
      'error',
    );
    expect(unread).toBe(4);
    expect(unasked).toEqual([]);
    expect(misses).toBe(2);
    for (const answer of [
      '{"result":{"of":1},"jsonrpc":"2.0","id":70}',
      '{"jsonrpc":"2.0","id":71,"error":{"code":-32000,"message":"no 2"}}',
    ])
      expect(said.split('\n').filter((line) => line === answer)).toHaveLength(2);
  },
);

const SAID: Call = { written: { writer: 0, params: '{"name":"b"}' }, tells: 'nothing', end: 'result' };

/** Each client asks this call once. */
test.each<[string, Call[]]>([
  ['tells of its progress', [{ ...SAID, tells: 'progress' }]],
  ['has other news before its answer', [{ ...SAID, tells: 'news' }]],
  ['has news behind its answer', [{ ...SAID, tells: 'news after' }]],
  ['asks its client something before', [{ ...SAID, tells: 'question' }]],
  ['only asks its client something', [{ ...SAID, tells: 'question', end: 'none' }]],
  ['was never answered', [{ ...SAID, end: 'none' }]],
])('a call is read that %s', async (_what, calls) => {
  const db = await importSaid('calls', [...HELLO, ...calls.flatMap((one, i) => saidFor(one, i + 1))]);
  const lines = [INITIALIZE, textOf(SAID.written, '5')];
  const [plain, ahead] = [await replayed(db, lines, null, 'error'), await replayed(db, lines, ALL, 'error')];
  expect([ahead.text, ahead.unread]).toEqual([plain.text, 0]);
});

test.each<['error' | 'cycle', number[], number]>([
  ['error', [1, 2], 1],
  ['cycle', [1, 2, 1, 2], 0],
])(
  'a call that is repeated needs no reading, whatever it was written as before: with --repeat %s',
  async (repeat, answers, misses) => {
    const calls: Call[] = [{ ...SAID, written: { writer: 1, params: '{ "name":"b"}' } }, SAID];
    const db = await importSaid('calls', [...HELLO, ...calls.flatMap((one, i) => saidFor(one, i + 1))]);
    const asked = [5, 6, 7, 8].map((id) => textOf(SAID.written, String(id)));
    const lines = [INITIALIZE, ...asked.slice(0, answers.length + misses)];
    const plain = await replayed(db, lines, null, repeat);
    expect(await replayed(db, lines, ALL, repeat)).toEqual({ ...plain, unread: 2 * answers.length });
    expect(plain.misses).toBe(2 * misses);
    for (const [i, of] of answers.entries())
      expect(plain.said).toContain(`{"result":{"of":${of}},"jsonrpc":"2.0","id":${5 + i}}`);
  },
);

test('at recorded speed a call is read, as its answer has to wait', async () => {
  const db = await importSaid('calls', [...HELLO, ...saidFor(SAID, 1)]);
  const { mock, unread } = openMock(db, { readsAhead: ALL, speed: 1000 });
  const said: string[] = [];
  const { feed } = createStdioMock(mock, (bytes) => said.push(bytes.toString('latin1')));
  feed(Buffer.from(`${INITIALIZE}\n${textOf(SAID.written, '5')}\n`));
  await mock.idle();
  expect(said.join('')).toContain('{"result":{"of":1},"jsonrpc":"2.0","id":5}');
  expect(unread()).toBe(0);
});

test('where paths are ignored every call is read, for what is said of them is about all', async () => {
  const params = '{"name":"b","arguments":{"at":1}}';
  const db = await importSaid('calls', [
    ...HELLO,
    ...saidFor({ ...SAID, written: { writer: 0, params } }, 1),
  ]);
  const { mock, matching, unread } = openMock(db, { readsAhead: 0, ignoreTool: ['b:$.now'] });
  const { feed } = createStdioMock(mock, () => {});
  feed(Buffer.from(`${INITIALIZE}\n${textOf({ writer: 0, params }, '5')}\n`));
  await mock.idle();
  expect(matching.idlePaths()).toHaveLength(1);
  expect(unread()).toBe(0);
});

test('a handshake is read that comes after a probe, for what it says of its client', async () => {
  const handshake = INITIALIZE.replace('"id":0', '"id":8').replace(
    '"capabilities":{}',
    '"capabilities":{"roots":{}}',
  );
  const probe = '{"jsonrpc":"2.0","id":7,"method":"server/discover"}';
  const said: SaidLine[] = [
    ['stdin', probe],
    ['stdout', '{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found"}}'],
    ['stdin', handshake],
    ['stdout', '{"jsonrpc":"2.0","id":8,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}'],
    ...saidFor({ ...SAID, tells: 'question' }, 1),
  ];
  const db = await importSaid('calls', said);
  const lines = [probe, handshake, textOf(SAID.written, '5')];
  const [plain, inStep] = [await replayed(db, lines, null, 'error'), await replayed(db, lines, 0, 'error')];
  expect(plain.said).toContain('roots/list');
  expect(inStep).toEqual({ ...plain, unread: 0 });
});

test('a call is read whose answer may be that of another one', async () => {
  const asked = ['{"name":"a"}', '{"name":"b"}'].map((params) => textOf({ writer: 0, params }, '1'));
  const answers = ['a', 'b'].map((of) => `{"jsonrpc":"2.0","id":1,"result":{"of":"${of}"}}`);
  const said: SaidLine[] = [
    ...asked.map((text) => ['stdin', text] as const),
    ...answers.map((text) => ['stdout', text] as const),
  ];
  const db = await importSaid('calls', [...HELLO, ...said]);
  const lines = [INITIALIZE, ...asked];
  const [plain, ahead] = [await replayed(db, lines, null, 'error'), await replayed(db, lines, ALL, 'error')];
  expect([ahead.text, ahead.unread]).toEqual([plain.text, 0]);
});

test('an id that is none, stands twice or is no plain number is answered as ever', async () => {
  const params = '{"name":"b"}';
  const twice = (id: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params},"id":1,"x":null}`;
  for (const write of [
    twice,
    ...WRITERS.map((_, writer) => (id: string) => textOf({ writer, params }, id)),
  ]) {
    const answered: SaidLine[] = [
      ['stdin', write('1')],
      ['stdout', '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ];
    const db = await importSaid('calls', [...HELLO, ...answered]);
    for (const id of [...IDS, ' 2', '2 ', '1.', '0x1', '0', '00', '9'.repeat(15), '9'.repeat(16)]) {
      const lines = [INITIALIZE, write(id)];
      const [plain, ahead] = [
        await replayed(db, lines, null, 'error'),
        await replayed(db, lines, ALL, 'error'),
      ];
      expect(ahead.text).toBe(plain.text);
    }
  }
});

test.each([
  ['is nested too deep', `{"name":"a","arguments":${'{"a":'.repeat(300)}1${'}'.repeat(300)}}`],
  ['has a number with too long an exponent', `{"name":"a","arguments":{"a":1e${'9'.repeat(2000)}}}`],
])('a call that equals none, not even itself, is read: it %s', async (_what, params) => {
  const one = textOf({ writer: 0, params }, '1');
  const answered: SaidLine[] = [
    ['stdin', one],
    ['stdout', '{"jsonrpc":"2.0","id":1,"result":{}}'],
  ];
  const db = await importSaid('calls', [...HELLO, ...answered]);
  const lines = [INITIALIZE, one];
  const plain = await replayed(db, lines, null, 'error');
  expect(plain.misses).toBe(2);
  for (const readsAhead of [0, ALL])
    expect(await replayed(db, lines, readsAhead, 'error')).toEqual({ ...plain, unread: 0 });
});

test('calls that come in their order need no reading, however many are alike, and whatever else is asked', async () => {
  const names = ['a', 'b', 'a', 'a', 'c'];
  const calls = names.map(
    (name): Call => ({ ...SAID, written: { writer: 1, params: `{"name":"${name}"}` } }),
  );
  const db = await importSaid('calls', [...HELLO, ...calls.flatMap((one, i) => saidFor(one, i + 1))]);
  const asked = calls.map(({ written: one }, i) => textOf(one, String(50 + i)));
  const others = ['{"name":"a"}', '{"name":"x"}'].map((params) => textOf({ writer: 0, params }, '9'));
  const lines = [INITIALIZE, ...asked.slice(0, 3), others[1] ?? '', ...asked.slice(3), others[0] ?? ''];
  const plain = await replayed(db, lines, null, 'cycle');
  const inStep = await replayed(db, lines, 0, 'cycle');
  expect(inStep).toEqual({ ...plain, unread: 2 * names.length });
  for (const [i, answer] of [1, 2, 3, 4, 5].entries())
    expect(plain.said).toContain(`{"result":{"of":${answer}},"jsonrpc":"2.0","id":${50 + i}}`);
});

test.each(REDACTIONS.slice(1))(
  'a text with a secret in it is read, whether redaction would find it or has: %o',
  async (redaction) => {
    for (const to of ['ghp_000000000000000000000000000000000000', '[redacted:github-token:000000000001]']) {
      const one: Written = { writer: 0, params: `{"name":"b","arguments":{"to":"${to}"}}` };
      const recorded = saidFor({ written: one, tells: 'nothing', end: 'result' }, 1);
      const db = await importSaid('calls', [...HELLO, ...recorded], tempStore(), redaction);
      // As it is compared where its digits say nothing.
      const other = textOf(one, '6').replace(/(github-token:)\d+/, '$1');
      const { unread } = await replayed(db, [INITIALIZE, other, textOf(one, '5')], ALL, 'error');
      expect(unread).toBe(0);
    }
  },
);
