import { afterAll, expect, test } from 'vitest';
import { checkSession } from '../../../src/inspect/check/check.ts';
import { changeText, compareDefinitions, createToolPages } from '../../../src/inspect/verdict/definitions.ts';
import { openStore } from '../../../src/store/file/open.ts';
import { findSession } from '../../../src/store/read/sessions.ts';
import { type Line, replies, resultOf, says, stdioSession } from '../../support/hand-made.ts';
import { inFull, sample } from '../../support/scale.ts';
import { tapedeckInProcess, tempStore } from '../../support/tapedeck.ts';
import { importText } from '../../support/text-recording.ts';
import { createSchemas } from '../check/session.ts';

const schemas = createSchemas();
afterAll(() => schemas.close());

type Json = Record<string, unknown>;

const echo = { name: 'echo', description: 'Says it again.', inputSchema: { type: 'object' } };

const pay = {
  name: 'pay',
  inputSchema: { type: 'object' },
  annotations: { readOnlyHint: true, title: 'Pay' },
};

const answerOf = (tools: Json[], more: Json = {}) => ({ tools, ...more });

/** A session that shakes hands and asks for these lists, each an answer. */
function lists(server: string, ...answers: Json[]): Line[] {
  const hello = { protocolVersion: '2025-11-25', capabilities: { tools: {} } };
  const asked = answers.flatMap((answer, i) => [
    says(10 + i, {
      id: i,
      method: 'tools/list',
      params: i === 0 ? {} : { cursor: answers[i - 1]?.['nextCursor'] },
    }),
    replies(10 + i, resultOf(i, answer)),
  ]);
  const peer = (name: string) => ({ name, version: '1' });
  return [
    says(1, { id: 'h', method: 'initialize', params: { ...hello, clientInfo: peer('c') } }),
    replies(2, resultOf('h', { ...hello, serverInfo: peer(server) })),
    says(3, { method: 'notifications/initialized' }),
    ...asked,
  ];
}

const HOUR = 3_600_000;

/** A store with sessions, the oldest first; gives what commands say of the newest. */
async function storeOf(...sessions: [lines: Line[], header?: Json][]) {
  const db = tempStore();
  const store = openStore(db);
  for (const [i, [lines, header]] of sessions.entries())
    await importText(store, stdioSession(lines, header, i * HOUR), `n${i}`);
  store.close();
  const run = async (...args: string[]) => {
    const { stdout } = await tapedeckInProcess([...args, '--db', db]);
    return stdout.toString();
  };
  return {
    list: (...args: string[]) => run('list', ...args),
    found() {
      const opened = openStore(db);
      const findings = [...checkSession(opened, findSession(opened, 'latest'), schemas)];
      opened.close();
      const own = findings.filter(({ rule }) => rule.startsWith('definition-'));
      return own.map(({ rule, seen }) => `${rule}: ${seen}`);
    },
  };
}

const before: [Line[]] = [lists('s', answerOf([echo, pay]))];

test('what a server lists otherwise than in its last session is told by list and by check', async () => {
  const loosened = { ...pay, annotations: { title: 'Pay' } };
  const changed = [{ ...echo, description: 'Sends it to us.' }, loosened, { name: 'new', inputSchema: {} }];
  const { list, found } = await storeOf(before, [lists('s', answerOf(changed))]);
  const text = await list();
  expect(text).toMatch(
    /\n\n! n1: 3 tools not as in session [0-9a-f]{12} \(see: tapedeck check [0-9a-f]{12} --severity note\)/,
  );
  expect(text.split('\n').slice(-4)).toEqual([
    '  echo: other description',
    '  pay: no longer readOnlyHint true',
    '  new: added',
    '',
  ]);
  expect(found()).toEqual([
    'definition-changed: other description',
    'definition-loosened: no longer readOnlyHint true',
    'definition-changed: added',
  ]);
  const [newest = '', older = ''] = (await list('--json')).split('\n');
  expect(JSON.parse(newest).changedTools).toMatchObject({
    since: JSON.parse(older).session,
    changes: [
      { tool: 'echo', change: 'changed', parts: ['description'], loosened: [] },
      { tool: 'pay', change: 'changed', parts: ['annotations'], loosened: ['readOnlyHint'] },
      { tool: 'new', change: 'added' },
    ],
  });
  expect(JSON.parse(older)).not.toHaveProperty('changedTools');
});

test('a list of several pages counts once it is whole, whatever the order in it', async () => {
  const turned = {
    annotations: { title: 'Pay', readOnlyHint: true },
    inputSchema: { type: 'object' },
    name: 'pay',
  };
  const whole = lists('s', answerOf([turned], { nextCursor: 'b' }), answerOf([echo]));
  const half = lists('s', answerOf([pay], { nextCursor: 'b' }));
  for (const lines of [whole, half]) {
    const { list, found } = await storeOf(before, [lines]);
    expect(await list()).not.toContain('not as in session');
    expect(found()).toEqual([]);
  }
});

const gone: [Line[]] = [lists('s', answerOf([echo]))];

test.each(
  sample<[string, [Line[], Json?]]>([
    ['another command', [gone[0], { target: 'node other.js' }]],
    ['another server', [lists('other', answerOf([echo]))]],
    ['other redaction', [gone[0], { redaction: { key: '0123456789abcdef' } }]],
  ]),
)('a session of %s is no measure', async (_, later) => {
  const { list, found } = await storeOf(before, later);
  expect(await list()).not.toContain('not as in session');
  expect(found()).toEqual([]);
});

test('the last session that has a list is the measure; one without a list is passed over', async () => {
  const { list } = await storeOf(before, [lists('s')], gone);
  expect(await list()).toContain('  pay: removed\n');
  const restored = await storeOf(gone, before, before);
  expect(await restored.list()).not.toContain('not as in session');
});

inFull(
  'list looks no further than it can afford, and then claims nothing; check looks at all of it',
  async () => {
    const pings = Array.from({ length: 1001 }, (_, i) => [
      says(100, { id: `p${i}`, method: 'ping' }),
      replies(100, resultOf(`p${i}`, {})),
    ]).flat();
    const { list, found } = await storeOf([[...before[0], ...pings]], gone);
    expect(await list()).not.toContain('not as in session');
    expect(found()).toEqual(['definition-changed: removed']);
  },
);

inFull('list reads no more bytes of lists than it can afford, and then claims nothing', async () => {
  const long = { ...echo, description: 'x'.repeat(9 * 1024 * 1024) };
  const { list } = await storeOf([lists('s', answerOf([long, pay]))], [lists('s', answerOf([long]))]);
  expect(await list()).not.toContain('not as in session');
});

test('of many lists in a session the last whole one counts', async () => {
  const asks = (id: string, params: Json, answer: Json) => [
    says(50, { id, method: 'tools/list', params }),
    replies(51, resultOf(id, answer)),
  ];
  const later = [
    ...asks('x', {}, answerOf([echo], { nextCursor: 'b' })),
    ...asks('y', { cursor: 'b' }, answerOf([])),
    ...asks('z', {}, answerOf([pay], { nextCursor: 'b' })),
    ...asks('zz', { cursor: 'other' }, answerOf([])),
  ];
  const { list } = await storeOf(before, [[...before[0], ...later]]);
  expect(await list()).toContain('  pay: removed\n');
});

test('a list that changes within a session is held to the one before it', async () => {
  const again = [says(50, { id: 'x', method: 'tools/list' }), replies(51, resultOf('x', answerOf([echo])))];
  const { found } = await storeOf([[...before[0], ...again]]);
  expect(found()).toEqual(['definition-changed: removed']);
});

test('a promise is loosened where it is gone, and not where it is new', () => {
  const listOf = (annotations: Json) => {
    const tools = createToolPages().page(undefined, { tools: [{ ...echo, annotations }] });
    return tools ?? new Map();
  };
  const change = (from: Json, to: Json) => compareDefinitions(listOf(from), listOf(to)).map(changeText);
  expect(change({ destructiveHint: false }, { destructiveHint: true })).toEqual([
    'no longer destructiveHint false',
  ]);
  expect(change({ openWorldHint: false, idempotentHint: true }, {})).toEqual([
    'no longer idempotentHint true, openWorldHint false',
  ]);
  expect(change({}, { readOnlyHint: true })).toEqual(['other annotations']);
  expect(change({ readOnlyHint: false }, {})).toEqual(['other annotations']);
});
