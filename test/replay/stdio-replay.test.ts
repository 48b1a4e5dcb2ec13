import { mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CreateMessageRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { startInProcess } from '../support/in-process.ts';
import { inFull } from '../support/scale.ts';
import { importSaid, replay, type SaidLine } from '../support/stdio-replay.ts';
import {
  BIN,
  type JsonFrame,
  ROOT,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const NODE = process.execPath;
const SERVER = [
  NODE,
  join(ROOT, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js'),
  'stdio',
];

/** Everything that one scenario gave, as the official client saw it. */
async function converse([command = '', ...args]: readonly string[]) {
  const client = new Client({ name: 'tester', version: '1.0.0' }, { capabilities: { sampling: {} } });
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    role: 'assistant',
    model: 'none',
    content: { type: 'text', text: `${params.messages.length} message` },
  }));
  await client.connect(new StdioClientTransport({ command, args, stderr: 'ignore' }));
  const call = (name: string, args: Record<string, unknown>) => client.callTool({ name, arguments: args });
  const seen = {
    server: client.getServerVersion(),
    capabilities: client.getServerCapabilities(),
    tools: await client.listTools(),
    echo: await call('echo', { message: 'héllo\n"wörld"' }),
    sums: await Promise.all([1, 2, 3].map((a) => call('get-sum', { a, b: 2 }))),
    failed: await call('get-sum', { a: 'x' }),
    unknown: await client.getPrompt({ name: 'no-such-prompt' }).catch((error) => String(error)),
    sampled: await call('trigger-sampling-request', { prompt: 'p', maxTokens: 5 }),
  };
  await client.close();
  return seen;
}

/** What was said, without the ids that each run chooses anew. */
function saidIn(frames: readonly JsonFrame[], channel: string): unknown[] {
  return frames
    .filter((frame) => frame.channel === channel && frame.messages.length > 0)
    .map(({ text = '' }) => ({ ...JSON.parse(text), id: null }));
}

test('a client sees the same of a replay as of the recorded server, and the replay recorded is the same recording', async () => {
  const db = tempStore();
  const tape = ['record', '--db', db, '--name'];
  const recorded = await converse([NODE, BIN, ...tape, 'first', '--', ...SERVER]);
  const replay = [NODE, BIN, 'replay', 'first', '--db', db, '--fail-on-miss'];
  const replayed = await converse([NODE, BIN, ...tape, 'second', '--', ...replay]);
  expect(replayed).toEqual(recorded);
  expect(JSON.stringify(replayed.sampled)).toContain('1 message');

  const [first, second] = [await showFrames(db, 'first'), await showFrames(db, 'second')];
  expect(saidIn(second, 'stdin')).toEqual(saidIn(first, 'stdin'));
  expect(saidIn(second, 'stdout')).toEqual(saidIn(first, 'stdout'));
});

const CALL = '"method":"tools/call","params":{"name":"say","arguments":';

/** Calls of a server that counts them, and so gives no answer twice. Returns the store. */
function recordCalls(...args: object[]): Promise<string> {
  const lines = args.flatMap((value, i): SaidLine[] => [
    ['stdin', `{"jsonrpc":"2.0","id":${i},${CALL}${JSON.stringify(value)}}}`],
    ['stdout', `{"jsonrpc":"2.0","id":${i},"result":{"count":${i + 1}}}`],
  ]);
  return importSaid('calls', lines);
}

const say = (id: string, args: string, meta = '') => `{"jsonrpc":"2.0","id":${id},${CALL}${args}${meta}}}`;

test('the live id stands in the answer as it was written, and all else as it was recorded', async () => {
  const db = await recordCalls({ n: 1 }, { n: 2 });
  const recorded = (await showFrames(db)).filter(({ channel }) => channel === 'stdout');
  const ids = ['12345678901234567890', '"a\\u0062"'];
  const { answers } = await replay(db, [say(ids[0] ?? '', '{"n":2}'), say(ids[1] ?? '', '{ "n" : 1.0 }')]);
  const expected = [recorded[1], recorded[0]].map((frame, i) =>
    frame?.text?.replace(/"id":\d+/, () => `"id":${ids[i]}`),
  );
  expect(answers).toEqual(expected);
});

test('a call that was used up, differs, or was never recorded is an error that explains itself', async () => {
  const db = await recordCalls({ city: 'Bern' });
  const report = join(tempFolder(), 'report.txt');
  const { code, answers, stderr } = await replay(
    db,
    [
      say('1', '{"city":"Bern"}'),
      say('2', '{"city":"Bern"}'),
      say('3', '{"city":"Basel"}'),
      '{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"x:y"}}',
    ],
    ['--fail-on-miss', '--report', report],
  );
  const errors = answers.slice(1).map((line) => JSON.parse(line));
  expect(errors.map(({ id, error }) => [id, error.code, error.data.reason])).toEqual([
    [2, 1404, 'used-up'],
    [3, 1404, 'arguments-differ'],
    [4, 1404, 'never-recorded'],
  ]);
  expect(errors[1].error.data.nearest[0].differences).toEqual([
    { change: 'changed', pointer: '/arguments/city', recorded: '"Bern"', live: '"Basel"' },
  ]);
  expect(code).toBe(1);
  expect(stderr.split('\n').filter((line) => line !== '')).toHaveLength(3);
  expect(stderr).toContain('--repeat last');
  expect(readFileSync(report, 'utf8')).toContain('recorded "Bern", live "Basel"');
});

test('of calls that had one id at one time, none gets what may be the answer of the other', async () => {
  const call = (id: number, name: string) =>
    JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } });
  const answer = (id: number, text: string) => JSON.stringify({ jsonrpc: '2.0', id, result: { text } });
  const db = await importSaid('calls', [
    ['stdin', call(1, 'a')],
    ['stdin', call(1, 'b')],
    ['stdout', answer(1, 'of a')],
    ['stdout', answer(1, 'of b')],
    ['stdin', call(1, 'c')],
    ['stdout', answer(1, 'of c')],
    ['stdin', call(2, 'd')],
    ['stdin', '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'],
    ['stdin', call(2, 'e')],
    ['stdout', answer(2, 'of d')],
  ]);
  const { answers } = await replay(db, [call(1, 'a'), call(2, 'b'), call(3, 'c'), call(4, 'e')]);
  const unknown = { error: { code: 1404, data: { reason: 'answer-unknown' } } };
  expect(answers.map((line) => JSON.parse(line))).toMatchObject([
    { id: 1, ...unknown },
    { id: 2, ...unknown },
    { id: 3, result: { text: 'of c' } },
    { id: 4, ...unknown },
  ]);
});

test('what comes after the last recorded call is chosen by --repeat', async () => {
  const db = await recordCalls({}, {});
  const lines = ['1', '2', '3', '4'].map((id) => say(id, '{}'));
  const last = await replay(db, lines, ['--repeat', 'last']);
  const cycle = await replay(db, lines, ['--repeat', 'cycle']);
  const counts = (answers: string[]) => answers.map((line) => JSON.parse(line).result.count);
  expect(counts(last.answers)).toEqual([1, 2, 2, 2]);
  expect(counts(cycle.answers)).toEqual([1, 2, 1, 2]);
  expect([last.code, cycle.code, last.stderr]).toEqual([0, 0, '']);
});

test('calls that come again and again get their own answers, however they are spelled, and others none', async () => {
  const numbers = Array.from({ length: 9 }, (_, n) => n);
  const db = await recordCalls(...numbers.map((n) => ({ n, text: 'é' })));
  const spelled = [
    (n: number) => `{"n":${n},"text":"é"}`,
    (n: number) => `{ "text":"\\u00e9", "n":${n}.0 }`,
    (n: number) => `{"n":${n},"text":"é"}`,
    (n: number) => `{"n":${n},"text":"e"}`,
  ];
  const rounds = [0, 0, 1, 0, 2, 3, 1, 0, 3];
  const lines = rounds.flatMap((way) => numbers.map((n) => say(`${n}`, spelled[way]?.(n) ?? '')));
  const { answers } = await replay(db, lines, ['--repeat', 'cycle']);
  const counts = answers.map((text) => JSON.parse(text).result?.count ?? null);
  expect(counts).toEqual(rounds.flatMap((way) => numbers.map((n) => (way === 3 ? null : n + 1))));
});

test('a list that is asked for again comes without the news that it has changed', async () => {
  const changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
  const db = await importSaid('calls', [
    ['stdin', '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'],
    ['stdout', changed],
    ['stdout', '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'],
    ['stdout', changed],
  ]);
  const { answers } = await replay(
    db,
    [1, 2, 3].map((id) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`),
  );
  expect(answers.filter((line) => line === changed)).toHaveLength(2);
  expect(answers.filter((line) => line.includes('"tools":[]'))).toHaveLength(3);
});

test('a server that takes back what this client was never asked takes back nothing', async () => {
  const cancelled = (id: number) =>
    `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id}}}`;
  const db = await importSaid('calls', [
    ['stdin', LIST],
    ['stdout', cancelled(1)],
    ['stdout', LISTED],
    ['stdout', cancelled(2)],
  ]);
  expect((await replay(db, [LIST])).answers).toEqual([LISTED]);
});

test('arguments that --ignore and --ignore-tool name do not count', async () => {
  const db = await recordCalls({ q: 'x', now: 1 });
  const asked = [say('1', '{"q":"x","now":2}')];
  expect((await replay(db, asked)).stderr).toContain('/arguments/now');
  expect((await replay(db, asked, ['--ignore', '$.arguments.now'])).stderr).toBe('');
  expect((await replay(db, asked, ['--ignore-tool', 'say:$.now'])).stderr).toBe('');
});

test('in whatever order calls come, each gets what was recorded for it', async () => {
  const args = [...Array(20).keys()].map((n) => ({ n, pair: [n, String(n)] }));
  const db = await recordCalls(...args);
  const shuffled = [...args.keys()].toSorted((a, b) => ((a * 7) % 20) - ((b * 7) % 20));
  const lines = shuffled.map((n) =>
    say(String(n), `{"pair":[${n},"${n}"],"n":${n}.0}`, ',"_meta":{"progressToken":9}'),
  );
  const { answers, stderr } = await replay(db, lines);
  expect(answers.map((line) => JSON.parse(line))).toEqual(
    shuffled.map((n) => ({ jsonrpc: '2.0', id: n, result: { count: n + 1 } })),
  );
  expect(stderr).toBe('');
});

test('what was never asked for is said at the end', async () => {
  const db = await recordCalls({ n: 1 }, { n: 2 }, { n: 3 });
  const { stderr, code } = await replay(db, [say('1', '{"n":2}')]);
  expect(stderr).toBe('tapedeck: 2 of 3 recorded calls were never asked for\n');
  expect(code).toBe(0);
});

test('a server that asks back is not replayed to a client that cannot answer', async () => {
  // At known times: a call that goes on long after its question has not waited for roots.
  const db = await importSaid('calls', [
    ['stdin', say('0', '{}').replace('say', 'count')],
    ['stdout', '{"jsonrpc":"2.0","id":0,"method":"roots/list"}'],
    ['stdin', '{"jsonrpc":"2.0","id":0,"result":{"roots":[1,2]}}'],
    ['stdout', '{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"2 roots"}]}}'],
  ]);
  const { answers, stderr } = await replay(db, [say('7', '{}').replace('say', 'count')]);
  expect(answers.map((line) => JSON.parse(line).error.data.reason)).toEqual(['client-incapable']);
  expect(stderr).toContain('asked its client for roots');
});

test('a harmless request gets its way though it was never recorded, and a probe is told to fall back', async () => {
  const db = await recordCalls({});
  const ask = (id: number, method: string) => `{"jsonrpc":"2.0","id":${id},"method":"${method}"}`;
  const { answers, stderr } = await replay(db, [ask(1, 'ping'), ask(2, 'server/discover'), say('3', '{}')]);
  expect(JSON.parse(answers[0] ?? '')).toEqual({ jsonrpc: '2.0', id: 1, result: {} });
  expect(JSON.parse(answers[1] ?? '').error.code).toBe(-32601);
  expect(stderr).toBe('');
});

inFull('a text recording is replayed as it stands in a repository', async () => {
  const { child, ended } = tapedeck(['replay', join(ROOT, 'recordings/everything-http.ndjson')]);
  child.stdin.end('{"jsonrpc":"2.0","id":"x","method":"tools/list"}\n');
  const { code, stdout } = await ended;
  const { id, result } = JSON.parse(stdout.toString());
  expect([code, id, result.tools[0].name]).toEqual([0, 'x', 'echo']);
});

test('a text recording that is broken is refused with its line', async () => {
  const file = join(tempFolder(), 'broken.ndjson');
  writeFileSync(file, '{"tapedeck":1,"session":{}}\n{"ms":0,"channel":"stdni"}\n');
  const { code, stdout, stderr } = await tapedeckInProcess(['replay', file]);
  expect([code, stdout.toString()]).toEqual([2, '']);
  expect(stderr).toMatch(/broken\.ndjson.*line \d/);
});

inFull('a recording is replayed over HTTP too, until it is stopped', async () => {
  const db = await recordCalls({ n: 1 });
  const { child, stderr, ended } = tapedeck(['replay', 'calls', '--db', db, '--listen', '127.0.0.1:0']);
  await expect.poll(stderr, { timeout: 20_000 }).toContain('listening on');
  const [url = ''] = /http:\S+\/mcp/.exec(stderr()) ?? [];
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await fetch(url, { method: 'POST', headers, body: say('1', '{"n":1}') });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({ error: { code: -32000 }, id: null });
  child.kill('SIGTERM');
  expect((await ended).code).toBe(0);
});

const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const LISTED = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}';

test('a replay that is stopped has written its report, and leaves nothing behind', async () => {
  const years = 9e9;
  const db = await importSaid('calls', [
    ['stdin', LIST],
    ['stdout', LISTED, years],
  ]);
  const folder = tempFolder();
  const [file, report] = [join(folder, 'calls.ndjson'), join(folder, 'report.txt')];
  await tapedeckInProcess(['export', 'calls', '--db', db, '--output', file]);
  const { child, stderr, ended } = tapedeck(
    ['replay', file, '--speed', 'recorded', '--report', report, '--fail-on-miss'],
    { env: { TMPDIR: folder } },
  );
  child.stdin.write(`${LIST}\n${say('2', '{}')}\n`);
  await expect.poll(stderr, { timeout: 20_000 }).toContain('never recorded');
  child.kill('SIGTERM');
  const { code, stdout } = await ended;
  expect([code, stdout.toString().includes('"tools":[]')]).toEqual([1, false]);
  expect(stderr()).not.toContain('Warning');
  expect(readFileSync(report, 'utf8')).toContain('never recorded');
  expect(readdirSync(folder).toSorted()).toEqual(['calls.ndjson', 'report.txt']);
});

test.each([
  ['loses frames', 'DELETE FROM frame', 2, 'arguments-differ'],
  // Small frames lie in memory by then, and the answer to this call is large.
  ['cannot be read any more', 'ALTER TABLE frame RENAME TO gone', 1, 'recording-unreadable'],
])(
  'a recording that %s while it is replayed costs an explanation, not the replay',
  async (_what, sql, asked, reason) => {
    const answer = { jsonrpc: '2.0', id: 0, result: { text: 'x'.repeat(20_000) } };
    const db = await importSaid('calls', [
      ['stdin', say('0', '{"n":1}')],
      ['stdout', JSON.stringify(answer)],
    ]);
    const { child, stdout, ended } = startInProcess(['replay', 'calls', '--db', db]);
    child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
    await expect.poll(() => stdout().length, { timeout: 20_000 }).toBeGreaterThan(0);
    const store = openStore(db);
    store.exec(sql);
    store.close();
    child.stdin.end(`${say('2', `{"n":${asked}}`)}\n`);
    const { code, stdout: said } = await ended;
    expect([code, said.toString()]).toEqual([0, expect.stringContaining(`"reason":"${reason}"`)]);
  },
);

test('a replay ends with its client, whatever was recorded after that', async () => {
  const db = await importSaid('calls', [
    ['stdin', LIST],
    ['stdout', LISTED],
    ['stdout', '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}', 3_600_000],
  ]);
  const { answers } = await replay(db, [LIST], ['--speed', 'recorded']);
  expect(answers).toEqual([LISTED]);

  const { child, stdout, ended } = tapedeck(['replay', 'calls', '--db', db]);
  child.stdin.write(`${LIST}\n`);
  await expect.poll(() => stdout().length, { timeout: 20_000 }).toBeGreaterThan(0);
  child.stdout.destroy();
  child.stdin.on('error', () => {});
  const asking = setInterval(() => child.stdin.write(`${LIST}\n`), 20);
  expect((await ended).code).toBe(0);
  clearInterval(asking);
});

/** What a process has open, as Linux tells it. */
function openFiles(pid: number | undefined): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).map((fd) => {
    try {
      return readlinkSync(join(folder, fd));
    } catch {
      return '';
    }
  });
}

test.runIf(process.platform === 'linux')(
  'a signal ends the reading of a large recording at once, and nothing is left behind',
  async () => {
    const folder = tempFolder();
    const file = join(folder, 'large.ndjson');
    const session = { basis: 'stdio-process', transport: 'stdio', target: 'x', command: ['x'] };
    const header = { tapedeck: 1, session: { ...session, startedAt: '2026-01-01T00:00:00.000000Z' } };
    const calls = [...Array(60_000).keys()].map(
      (n) => `{"channel":"stdin","message":${say(String(n), `{"n":${n}}`)}}\n`,
    );
    writeFileSync(file, `${JSON.stringify(header)}\n${calls.join('')}`);
    const temporary = join(folder, 'tmp');
    mkdirSync(temporary);
    const { child, ended } = tapedeck(['replay', file], { env: { TMPDIR: temporary } });
    const own = () => readdirSync(temporary).length;
    await until('it reads the file', () => openFiles(child.pid).includes(file));
    child.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 2, stderr: expect.stringContaining('Stopped before') });
    expect(own()).toBe(0);
  },
);
