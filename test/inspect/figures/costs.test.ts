import { expect, test } from 'vitest';
import { addCosts, createClock, noCosts, type Wait } from '../../../src/inspect/figures/costs.ts';
import { prepareFigures } from '../../../src/inspect/figures/session-figures.ts';
import { parseFilter } from '../../../src/inspect/filter/filter.ts';
import { selectFrames } from '../../../src/inspect/filter/sql.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import { callOf, type Line, replies, resultOf, says, stdioSession } from '../../support/hand-made.ts';
import { tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';

async function storeOf(lines: readonly Line[]) {
  const db = tempStore();
  const store = openStore(db);
  await importText(store, stdioSession(lines, { serverClosedAt: 60_000 }), 'n');
  return { db, store, session: findSession(store, 'latest') };
}

async function figuresOf(lines: readonly Line[]) {
  const { store, session } = await storeOf(lines);
  const figures = prepareFigures(store)(session);
  store.close();
  return figures;
}

const asksPerson = (at: number, id: number) => replies(at, { id, method: 'elicitation/create', params: {} });

const MODERN = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } };

test('time is the server’s while it has a call, a person’s while it asks one, else the client’s', async () => {
  const lines = [
    says(1000, callOf(1, 'a')),
    asksPerson(1500, 1),
    says(4500, { id: 1, result: { action: 'accept' } }),
    replies(5000, resultOf(1)),
    says(9000, callOf(2, 'a')),
    replies(9100, resultOf(2)),
  ];
  const { times } = (await figuresOf(lines)).costs;
  expect(times).toEqual({ server: 1_100_000, person: 3_000_000, client: 4_000_000 });
});

test('between the rounds of a call it is a person’s; what never ends and streams that stay open are nobody’s', async () => {
  const lines = [
    says(1000, callOf(1, 'a', {}, MODERN)),
    replies(1200, resultOf(1, { resultType: 'input_required', requestState: 's', inputRequests: {} })),
    says(3200, callOf(2, 'a', {}, { ...MODERN, requestState: 's' })),
    replies(3300, resultOf(2)),
    says(4000, { id: 3, method: 'subscriptions/listen', params: { notifications: {}, ...MODERN } }),
    says(4000, callOf(4, 'never')),
    says(5000, { id: 5, method: 'ping' }),
    replies(5001, resultOf(5, {})),
  ];
  const { times, lost } = (await figuresOf(lines)).costs;
  expect(times).toEqual({ server: 301_000, person: 2_000_000, client: 1_700_000 });
  expect([...lost]).toEqual([['no-answer', 2]]);
});

test('however waits overlap, every microsecond is counted once', () => {
  const clock = createClock();
  const waits: Wait[] = Array.from({ length: 300 }, (_, i) => {
    const from = i * 7;
    return { who: i % 5 === 0 ? 'person' : 'server', from, until: from + ((i * 37) % 90) };
  });
  for (const wait of waits) clock.add([wait]);
  const expected = { server: 0, person: 0, client: 0 };
  const last = Math.max(...waits.map(({ until }) => until));
  for (let at = 0; at < last; at += 1) {
    const open = waits.filter(({ from, until }) => from <= at && at < until);
    const whose = open.some(({ who }) => who === 'person') ? 'person' : open.length > 0 ? 'server' : 'client';
    expected[whose] += 1;
  }
  expect(clock.end()).toEqual(expected);
});

const tool = (name: string, description: string) => ({ name, description, inputSchema: { type: 'object' } });

const [small, large] = [tool('small', 'x'), tool('large', 'x'.repeat(500))];

const listed = (at: number, ...tools: object[]) => [
  says(at, { id: `l${at}`, method: 'tools/list' }),
  replies(at, resultOf(`l${at}`, { tools })),
];

test('each tool weighs what its definition has in bytes, as it was listed last', async () => {
  const { costs, topics } = await figuresOf([
    ...listed(1, small, large),
    says(2, callOf(1, 'small')),
    replies(3, resultOf(1)),
    ...listed(4, small, { ...large, title: 'L' }),
  ]);
  expect([...costs.tools]).toEqual([
    ['small', JSON.stringify(small).length],
    ['large', JSON.stringify({ ...large, title: 'L' }).length],
  ]);
  expect(costs.lists).toBe(2);
  expect(costs.listBytes).toBe(JSON.stringify([small, large]).length * 2 + ',"title":"L"'.length);
  const answer = JSON.stringify({ jsonrpc: '2.0', ...resultOf(1) });
  expect(topics.find(({ target }) => target === 'small')?.answerBytes).toBe(answer.length);
});

test('of several sessions times, lists and losses add up, and a tool weighs the most it did', async () => {
  const one = (await figuresOf([...listed(1, small), says(2, callOf(1, 'small'))])).costs;
  const two = (await figuresOf([...listed(1, { ...small, title: 'S' }), says(2, callOf(1, 'small'))])).costs;
  const sum = noCosts();
  for (const costs of [two, one]) addCosts(sum, costs);
  expect(sum).toMatchObject({ lists: 2, lost: new Map([['no-answer', 2]]) });
  expect(sum.tools).toEqual(two.tools);
});

test('stats says it for people and for programs, but not of a choice of calls', async () => {
  const { db, store, session } = await storeOf([
    ...listed(1, small, large),
    says(1000, callOf(1, 'small')),
    replies(2000, resultOf(1)),
    says(3000, callOf(2, 'small')),
  ]);
  expect(prepareFigures(store, selectFrames(store, parseFilter('tool=none', 0)))(session).costs.lists).toBe(
    0,
  );
  store.close();
  const run = async (...args: string[]) => {
    const { stdout } = await tapedeckInProcess(['stats', '--db', db, ...args], { env: { COLUMNS: '140' } });
    return stdout.toString();
  };
  const text = await run();
  expect(text).toMatch(/^lost: 1 never answered\ntime: server 1\.0 s, client 999 ms\n/m);
  expect(text).toMatch(
    /^tools: 2 defined, 6\d\d B, 1 answer to tools\/list\nnever called: 1 tool, 5\d\d B: large 5\d\d B\n/m,
  );
  expect(text).toMatch(/tools\/call +small .* ANSWERS|DEFINED/);
  const lines = (await run('--json'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(lines.find(({ target }) => target === 'small')).toMatchObject({
    definitionBytes: JSON.stringify(small).length,
  });
  expect(lines.at(-1)).toMatchObject({
    kind: 'total',
    serverMs: 1000,
    personMs: 0,
    lost: { 'no-answer': 1 },
  });
  const [bySession] = (await run('--json', '--by', 'session')).split('\n');
  expect(JSON.parse(bySession ?? '')).toMatchObject({ toolLists: 1, serverMs: 1000 });
  const chosen = await run('--filter', 'tool=small');
  expect(chosen).not.toMatch(/^(?:time|tools|lost):/m);
});
