/** What live clients answer to the server's own questions, compared with what was recorded. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { capabilityFor, isDeclared } from '../../src/replay/play/questions.ts';
import { startInProcess } from '../support/in-process.ts';
import { modernMeta } from '../support/messages.ts';
import { importSaid, replay, type SaidLine } from '../support/stdio-replay.ts';
import { tempFolder, until } from '../support/tapedeck.ts';

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: { roots: {}, sampling: {} } },
});
const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count"}}';
const COUNTED = '{"jsonrpc":"2.0","id":1,"result":{"text":"2 roots"}}';
const roots = (...uris: string[]) =>
  JSON.stringify({ jsonrpc: '2.0', id: 'q', result: { roots: uris.map((uri) => ({ uri })) } });

/** The store of a session in which the server asked for roots and got these. */
const recorded = (answer: string) =>
  importSaid('calls', [
    ['stdin', INITIALIZE],
    ['stdout', '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}'],
    ['stdin', CALL],
    ['stdout', '{"jsonrpc":"2.0","id":"q","method":"roots/list"}'],
    ['stdin', answer],
    ['stdout', COUNTED],
  ]);

/** Answers the question, and gives how it ended. */
async function answerWith(db: string, answer: string, ...options: string[]) {
  const { child, stdout, ended } = startInProcess(['replay', 'calls', '--db', db, ...options]);
  child.stdin.write(`${INITIALIZE}\n${CALL}\n`);
  await until('it asks', () => stdout().includes('roots/list'));
  child.stdin.end(`${answer.replace('"q"', '1')}\n`);
  const { code, stderr } = await ended;
  return { code, stderr, isAnswered: stdout().includes(COUNTED) };
}

test('another answer than the recorded one is told and counts as a miss, and the call goes on', async () => {
  const db = await recorded(roots('file:///a', 'file:///b'));
  const report = join(tempFolder(), 'report.txt');
  const live = roots('file:///a', 'file:///c\u001b[31m');
  const { code, stderr, isAnswered } = await answerWith(db, live, '--report', report, '--fail-on-miss');
  expect([code, isAnswered]).toEqual([1, true]);
  expect(stderr).toContain(
    'roots/list: the client’s answer is not the recorded one (to frame 4); what follows was recorded for that: ' +
      '/roots/1/uri changed: recorded "file:///b", live "file:///c\\u001b[31m"',
  );
  expect(readFileSync(report, 'utf8')).toContain('/roots/1/uri changed');
  expect((await answerWith(db, live)).code).toBe(0);
});

test('the same answer, written otherwise, is not told', async () => {
  const db = await recorded(
    '{"jsonrpc":"2.0","id":"q","result":{"roots":[],"n":1,"_meta":{"traceparent":"x"}}}',
  );
  const live = '{ "result": {"n": 1.0, "roots": []}, "id": "q", "jsonrpc": "2.0" }';
  expect(await answerWith(db, live, '--fail-on-miss')).toEqual({ code: 0, stderr: '', isAnswered: true });
});

test('an error in place of a result is told as such', async () => {
  const db = await recorded(roots());
  const refused = '{"jsonrpc":"2.0","id":"q","error":{"code":-1,"message":"no"}}';
  expect((await answerWith(db, refused)).stderr).toContain('recorded result, live error');
});

const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const ROOTS = '{"jsonrpc":"2.0","id":"q","method":"roots/list"}';
const SAMPLE = '{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage"}';
const ANSWERED = '{"jsonrpc":"2.0","id":"q","result":{}}';

test.each<[string, boolean, SaidLine[]]>([
  [
    'long before its call goes on',
    true,
    [
      ['stdin', CALL],
      ['stdout', ROOTS],
      ['stdin', ANSWERED],
      ['stdout', COUNTED, 900],
    ],
  ],
  [
    'just before its call goes on',
    false,
    [
      ['stdin', CALL],
      ['stdout', ROOTS, 900],
      ['stdin', ANSWERED],
      ['stdout', COUNTED],
    ],
  ],
  [
    'while a list is asked for',
    true,
    [
      ['stdin', LIST],
      ['stdout', ROOTS],
      ['stdin', ANSWERED],
      ['stdout', COUNTED],
    ],
  ],
  [
    'and answered after its call',
    true,
    [
      ['stdin', CALL],
      ['stdout', SAMPLE],
      ['stdout', COUNTED],
      ['stdin', ANSWERED],
    ],
  ],
  [
    'and never answered',
    true,
    [
      ['stdin', CALL],
      ['stdout', SAMPLE],
      ['stdout', COUNTED],
    ],
  ],
  [
    'for a model that takes its time',
    false,
    [
      ['stdin', CALL],
      ['stdout', SAMPLE],
      ['stdin', ANSWERED],
      ['stdout', COUNTED, 900],
    ],
  ],
])(
  'a question asked %s is left out for a client that cannot answer it: %s',
  async (_when, isAnswered, lines) => {
    const db = await importSaid('calls', lines);
    const asked = lines[0]?.[1] ?? '';
    const { answers, stderr } = await replay(db, [asked]);
    expect([answers, stderr.includes('has not declared')]).toEqual([
      isAnswered ? [COUNTED] : [expect.stringContaining('client-incapable')],
      !isAnswered,
    ]);
  },
);

test.each([
  ['roots/list', {}, 'roots', { roots: {} }, {}],
  ['sampling/createMessage', {}, 'sampling', { sampling: {} }, { roots: {} }],
  ['sampling/createMessage', { tools: [] }, 'sampling.tools', { sampling: { tools: {} } }, { sampling: {} }],
  ['elicitation/create', {}, 'elicitation.form', { elicitation: {} }, { elicitation: { url: {} } }],
  [
    'elicitation/create',
    { mode: 'url' },
    'elicitation.url',
    { elicitation: { url: {} } },
    { elicitation: {} },
  ],
  ['tasks/get', {}, 'tasks', { tasks: {} }, { tasks: null }],
])('%s with %j asks for the capability %s', (method, params, capability, able, unable) => {
  expect(capabilityFor(method, params)).toBe(capability);
  expect([isDeclared(capability, able), isDeclared(capability, unable)]).toEqual([true, false]);
});

test('everybody may be asked for a sign of life, and for what is not of MCP', () => {
  expect(['ping', 'acme/ask'].map((method) => capabilityFor(method, undefined))).toEqual([null, null]);
});

test('a client that cannot answer what a result asks is not given it', async () => {
  const ask = (id: number, capabilities: object) => {
    const meta = { ...modernMeta(), 'io.modelcontextprotocol/clientCapabilities': capabilities };
    return JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'a', _meta: meta } });
  };
  const inputRequests = { q: { method: 'elicitation/create', params: { message: 'Who?' } } };
  const asked = { jsonrpc: '2.0', id: 1, result: { resultType: 'input_required', inputRequests } };
  const db = await importSaid('calls', [
    ['stdin', ask(1, { elicitation: {} })],
    ['stdout', JSON.stringify(asked)],
  ]);
  const { answers } = await replay(db, [ask(5, { elicitation: { form: {} } })]);
  expect(answers).toEqual([JSON.stringify({ ...asked, id: 5 })]);
  const refused = await replay(db, [ask(5, { sampling: {} })]);
  expect(JSON.parse(refused.answers[0] ?? '').error.data).toMatchObject({
    reason: 'client-incapable',
    capability: 'elicitation.form',
  });
});

test('the order is the recorded one at any speed', async () => {
  const news = (text: string) =>
    JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/message',
      params: { level: 'info', data: text },
    });
  const lines = [news('one'), news('two'), COUNTED, news('three'), news('four'), news('five')];
  const db = await importSaid('calls', [
    ['stdin', CALL],
    ...lines.map((line, i) => ['stdout', line, i % 3] as const),
  ]);
  for (const speed of ['fast', 'recorded', '0.5', '1e9']) {
    const { child, stdout, ended } = startInProcess(['replay', 'calls', '--db', db, '--speed', speed]);
    child.stdin.write(`${CALL}\n`);
    await until('all is said', () => stdout().includes('five'));
    child.stdin.end();
    await ended;
    expect(stdout().toString()).toBe(`${lines.join('\n')}\n`);
  }
});
