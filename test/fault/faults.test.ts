/** Faults between the official client and a live server (`record`), and by the mock server (`replay`). */
import { existsSync } from 'node:fs';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, onTestFinished, test } from 'vitest';
import { callAll, casesOf, faultsFor, type Wire } from '../support/faults.ts';
import { query, recordUrlInProcess } from '../support/http-record.ts';
import { startInProcess } from '../support/in-process.ts';
import { inFull } from '../support/scale.ts';
import { startEverything } from '../support/servers.ts';
import {
  BIN,
  fixture,
  latestSession,
  listSessions,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const ECHO = [process.execPath, fixture('echo.js')];

const faultArgs = (faults: readonly string[]) => faults.flatMap((fault) => ['--fault', fault]);

function stdio(args: readonly string[]): StdioClientTransport {
  return new StdioClientTransport({ command: process.execPath, args: [BIN, ...args], stderr: 'ignore' });
}

function expectFates(fates: ReadonlyMap<string, string>, wire: Wire): void {
  for (const [word, , fate] of casesOf(wire)) {
    if (typeof fate === 'string') expect(fates.get(word), word).toBe(fate);
    else expect(fates.get(word), word).toMatch(fate);
  }
}

type Mark = {
  text?: string;
  base64?: string;
  original?: string;
  fault?: { number: number; rule: string; action: string };
};

/** What is stored of each fault, by the word of its rule; whatever the client got, the truth is beside it. */
async function expectMarks(db: string, wire: Wire): Promise<void> {
  const frames = (await showFrames(db)) as (Mark & Awaited<ReturnType<typeof showFrames>>[number])[];
  const faulted = frames.filter(({ fault }) => fault !== undefined);
  const words = faulted.map(({ fault }) => /"(\w+) word"/.exec(fault?.rule ?? '')?.[1]).sort();
  const expected = casesOf(wire).flatMap(([word, action]) => (action === '' ? [] : [word]));
  expect(words).toEqual(expected.sort());
  for (const { fault, text = '', original } of faulted) {
    const word = /"(\w+) word"/.exec(fault?.rule ?? '')?.[1];
    const isCopy = fault?.action === 'duplicate' && wire === 'stdio';
    const said = isCopy ? text : (original ?? text);
    expect(said, fault?.action).toContain(`${word} word`);
    expect(said).toContain('"result"');
    if (isCopy) expect(original).toBe('');
  }
}

/** A session with a call for each word, and no faults. */
async function recordPlainly(): Promise<string> {
  const db = tempStore();
  const fates = await callAll(stdio(['record', '--db', db, '--name', 'plain', '--', ...ECHO]), 'http');
  expect([...fates.values()].filter((fate) => fate !== 'ok')).toEqual([]);
  await untilStored(db);
  return db;
}

/** A recorder may be at work for a moment when its client has left. */
function untilStored(db: string): Promise<void> {
  return until('the session has ended', async () => {
    const [session] = existsSync(db) ? await listSessions(db) : [];
    return session !== undefined && session.endedAt !== null;
  });
}

async function listen(args: readonly string[]): Promise<URL> {
  const run = startInProcess([...args, '--listen', '127.0.0.1:0']);
  await until(`it listens: ${run.stderr()}`, () => /listening on \S+;/.test(run.stderr()));
  return new URL(/listening on (\S+);/.exec(run.stderr())?.[1] ?? '');
}

const http = (url: URL) => new StreamableHTTPClientTransport(url) as Transport;

test('over stdio, the client gets what each rule says, and the record has what the server said', async () => {
  const db = tempStore();
  const args = ['record', '--db', db, '--seed', '7', ...faultArgs(faultsFor('stdio'))];
  expectFates(await callAll(stdio([...args, '--', ...ECHO]), 'stdio'), 'stdio');
  await untilStored(db);
  await expectMarks(db, 'stdio');
  expect((await latestSession(db)).unanswered).toBe(0);
  const check = await tapedeckInProcess(['check', '--db', db]);
  expect(check.stdout.toString()).toContain('Nothing found.');
  const stats = await tapedeckInProcess(['stats', '--json', '--db', db]);
  const [calls] = stats.stdout
    .toString()
    .split('\n')
    .map((line) => line && JSON.parse(line));
  const put = casesOf('stdio').length - 1;
  expect(calls).toMatchObject({
    target: 'echo',
    ok: 3,
    errors: 0,
    toolErrors: 0,
    unanswered: 0,
    faults: put - 1,
  });
  const shown = (await tapedeckInProcess(['show', '--db', db])).stdout.toString();
  expect(shown).toMatch(/fault \d+: delay 60ms/);
  expect(shown).toContain('the client got {"jsonrpc":"2.0","id"');
  await expectSameElsewhere(db);
  await expectNotReplayed(db);
});

/** The text recording has the faults too, and makes the same session of them; so does the index, made anew. */
async function expectSameElsewhere(db: string): Promise<void> {
  const text = await tapedeckInProcess(['export', '--db', db]);
  const other = tempStore();
  const imported = await tapedeckInProcess(['import', '-', '--db', other], { stdin: text.stdout });
  expect(imported.code, imported.stderr).toBe(0);
  const marks = 'SELECT seq, number, rule, action FROM frame_fault ORDER BY seq';
  expect(query(other, marks)).toEqual(query(db, marks));
  const outcomes = 'SELECT method, outcome, count(*) AS count FROM exchange GROUP BY 1, 2 ORDER BY 1, 2';
  const before = query(db, outcomes);
  expect(query(other, outcomes)).toEqual(before);
  await tapedeckInProcess(['reindex', '--db', db]);
  expect(query(db, outcomes)).toEqual(before);
}

/** Only what no fault was put into is an answer of the server. */
async function expectNotReplayed(db: string): Promise<void> {
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(stdio(['replay', 'latest', '--db', db]));
  const call = (word: string) => client.callTool({ name: 'echo', arguments: { text: `${word} word` } });
  expect(await call('plain')).toMatchObject({ content: [{ text: 'plain word' }] });
  await expect(call('late')).rejects.toThrow(/tapedeck/);
  await expect(call('failed')).rejects.toThrow(/tapedeck/);
  await client.close();
}

inFull('the mock server puts in the same faults, over stdio and over HTTP', async () => {
  const db = await recordPlainly();
  const replay = ['replay', 'plain', '--db', db, '--seed', '7'];
  expectFates(await callAll(stdio([...replay, ...faultArgs(faultsFor('stdio'))]), 'stdio'), 'stdio');
  const url = await listen([...replay, ...faultArgs(faultsFor('http'))]);
  expectFates(await callAll(http(url), 'http'), 'http');
});

test('over HTTP, the client gets what each rule says, and the record has what the server said', async () => {
  const upstream = await listen(['replay', 'plain', '--db', await recordPlainly()]);
  const recording = await recordUrlInProcess(upstream, { args: faultArgs(faultsFor('http')) });
  expectFates(await callAll(http(recording.url), 'http'), 'http');
  await recording.stop();
  await expectMarks(recording.db, 'http');
  const check = await tapedeckInProcess(['check', '--db', recording.db]);
  expect(check.stdout.toString()).toContain('Nothing found.');
  expect(recording.rows('SELECT status FROM http_exchange WHERE status = 503')).toHaveLength(1);
  expect(
    recording.rows("SELECT error FROM http_exchange WHERE error LIKE '%on purpose' ORDER BY error"),
  ).toEqual([{ error: 'closed by a fault on purpose' }, { error: 'reset by a fault on purpose' }]);
});

/** What was put into each call, by what it asked for. */
async function plan(db: string, session: string): Promise<string[]> {
  const frames = (await showFrames(db, session)) as (Mark & Awaited<ReturnType<typeof showFrames>>[number])[];
  const rows = frames.flatMap(({ fault, messages: [message] }) => {
    const asked = frames.find(({ seq }) => seq === message?.replyTo);
    if (fault === undefined || asked === undefined) return [];
    return [`${JSON.parse(asked.text ?? '').params.arguments.text} ${fault.number} ${fault.action}`];
  });
  return rows.sort();
}

const RULES = ['tool=echo error(-32050) p=0.3', 'tool=echo delay=uniform(1ms,30ms) p=0.5'];

/** One run with twelve calls in flight. Returns the plan that it says it has followed. */
async function planOfRun(db: string, firstId: number): Promise<string> {
  const options = ['--seed', '11', '--fault-plan', ...faultArgs(RULES)];
  const run = tapedeck(['record', '--db', db, ...options, '--', ...ECHO]);
  const calls = Array.from({ length: 12 }, (_, n) => {
    const params = { name: 'echo', arguments: { text: `call ${n}` } };
    return JSON.stringify({ jsonrpc: '2.0', id: firstId + n, method: 'tools/call', params });
  });
  run.child.stdin.write(`${calls.join('\n')}\n`);
  await until('all are answered', () => run.stdout().toString().split('\n').length > 12);
  run.child.stdin.end();
  const { stderr } = await run.ended;
  expect(stderr).toContain('faults are put in on purpose: 2 rules, --seed 11');
  const lines = stderr.split('\n').filter((line) => line.includes('plan: '));
  return lines.join('\n');
}

const AT_ONCE = 5;

test('one seed gives the same faults in every run, with twelve calls in flight', {
  timeout: 120_000,
}, async () => {
  const db = tempStore();
  // Fifty, and by each transport: plans.test.ts.
  const runs = AT_ONCE;
  const plans = new Set<string>();
  for (let i = 0; i < runs; i += AT_ONCE) {
    const some = Array.from({ length: AT_ONCE }, (_, k) => planOfRun(db, 100 * (i + k)));
    for (const plan of await Promise.all(some)) plans.add(plan);
  }
  expect(plans.size).toBe(1);
  expect([...plans][0]).toMatch(/tools\/call echo [0-9a-f]{6} #1: fault 2: delay \d+ms/);
  await until('all are stored', async () => (await listSessions(db)).length === runs);
  const [first, ...others] = (await listSessions(db)).map(({ session }) => session);
  const expected = await plan(db, first ?? '');
  expect(expected.length).toBeGreaterThan(3);
  for (const other of others) expect(await plan(db, other)).toEqual(expected);
});

inFull('the plan of a recording can be had before anybody plays it', async () => {
  const db = await recordPlainly();
  const args = [
    'replay',
    'plain',
    '--db',
    db,
    '--fault-plan',
    '--seed',
    '11',
    '--fault',
    'tool=echo drop p=0.5',
  ];
  const [one, other] = [await tapedeckInProcess(args), await tapedeckInProcess(args)];
  expect(one.stdout.toString()).toMatch(/^plan: tools\/call echo [0-9a-f]{6} #1: fault 1: drop$/m);
  expect(other.stdout).toEqual(one.stdout);
});

inFull('exit ends the server in place of its answer, and tapedeck as the rule says', async () => {
  const db = tempStore();
  const run = tapedeck(['record', '--db', db, '--fault', 'tool=echo exit(7)', '--', ...ECHO]);
  run.child.stdin.write(
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}\n',
  );
  const { code, stdout } = await run.ended;
  expect([code, stdout.toString()]).toEqual([7, '']);
  expect(await latestSession(db)).toMatchObject({ endReason: 'stopped', unanswered: 0 });
  const check = await tapedeckInProcess(['check', '--db', db]);
  expect(check.stdout.toString()).not.toContain('unanswered');
  const frames = (await showFrames(db)) as Mark[];
  expect(frames[1]).toMatchObject({ text: '', fault: { number: 1, action: 'exit 7' } });
  expect(frames[1]?.original).toContain('"text":"a"');
});

inFull('a fault of an event stream leaves the events around it as they are', async () => {
  const upstream = await startEverything('streamableHttp');
  const rules = [
    'tool=echo text~"wrong" error(-32050)',
    'tool=echo text~"again" duplicate',
    'tool=echo text~"down" http(502)',
  ];
  const recording = await recordUrlInProcess(upstream, { args: faultArgs(rules) });
  const client = new Client({ name: 'tester', version: '1.0.0' });
  client.onerror = () => {};
  onTestFinished(() => client.close());
  await client.connect(http(recording.url));
  const call = (message: string) => client.callTool({ name: 'echo', arguments: { message } });
  expect(await call('right')).toMatchObject({ content: [{ text: 'Echo: right' }] });
  await expect(call('wrong')).rejects.toThrow(/-32050/);
  expect(await call('again')).toMatchObject({ content: [{ text: 'Echo: again' }] });
  await expect(call('down')).rejects.toThrow(/http 502/);
  await client.close();
  await recording.stop();
  const marks = recording.rows(
    'SELECT f.channel, x.action FROM frame_fault AS x JOIN frame AS f ON f.session = x.session AND f.seq = x.seq ORDER BY x.number',
  );
  expect(marks).toEqual([
    { channel: 'sse', action: 'error -32050' },
    { channel: 'sse', action: 'duplicate' },
    { channel: 'response', action: 'http 502' },
  ]);
});

test('faults are refused where nobody could have meant them', async () => {
  const refusal = async (...args: string[]) => {
    const { code, stderr } = await tapedeckInProcess(args);
    expect(code, stderr).toBe(2);
    return stderr;
  };
  const drop = ['--fault', 'drop'];
  expect(await refusal('record', '--strict', ...drop, '--', 'x')).toMatch(/either `--strict` or `--fault`/);
  expect(await refusal('record', '--wrapped', ...drop)).toMatch(/does not go with `--wrapped`/);
  expect(await refusal('record', 'http://127.0.0.1:9/mcp', '--fault', 'exit(1)')).toMatch(
    /cannot be done here/,
  );
  expect(await refusal('replay', 'x', '--seed', '1')).toMatch(/Expected `--fault` with `--seed`/);
  expect(await refusal('verify', 'x', ...drop, '--seed', '1', '--', 'y')).toMatch(
    /`--fault` does not go with `verify`, which compares what the server itself answers/,
  );
});
