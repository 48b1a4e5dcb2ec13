/** Faults in what a client says over HTTP: what its server gets, what it gets itself, and what is recorded. */
import { request as openRequest } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { readBody, startServer } from '../support/http.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { send } from '../support/send.ts';
import { showFrames, tapedeckInProcess, until } from '../support/tapedeck.ts';

type Got = { body: string; length: string | undefined; coding: string | undefined; pieces: number };

/** Answers each request with its word, and knows what it got, in order. */
async function startWordServer() {
  const got: Got[] = [];
  const { url } = await startServer(async (request, response) => {
    let pieces = 0;
    request.on('data', () => {
      pieces += 1;
    });
    const body = (await readBody(request)).toString('latin1');
    const { 'content-length': length, 'content-encoding': coding } = request.headers;
    got.push({ body, length, coding, pieces });
    const [, id] = /"id":(\d+)/.exec(body) ?? [];
    const type = { 'Content-Type': 'application/json' };
    if (/"method":"notifications/.test(body)) response.writeHead(202).end();
    else if (id === undefined) response.writeHead(400, type).end(NOT_READ);
    else response.writeHead(200, type).end(`{"jsonrpc":"2.0","id":${id},"result":{"content":[]}}`);
  });
  return { url: `${url}/mcp`, got, gotOf: (word: string) => got.filter(({ body }) => body.includes(word)) };
}

const NOT_READ = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}';

let lastId = 0;

function callOf(word: string): { id: number; method: string; params: object } {
  lastId += 1;
  return { id: lastId, method: 'tools/call', params: { name: 'echo', arguments: { text: word } } };
}

const bytesOf = (message: object) => Buffer.from(JSON.stringify({ jsonrpc: '2.0', ...message }));

const ruleArgs = (rules: Record<string, string>) =>
  Object.entries(rules).flatMap(([word, action]) => ['--fault', `dir=client text~"${word}" ${action}`]);

async function recordWith(rules: Record<string, string>) {
  const server = await startWordServer();
  const recording = await recordUrlInProcess(server.url, { args: ruleArgs(rules) });
  onTestFinished(() => void recording.run.child.kill('SIGTERM'));
  return { server, recording, url: recording.url };
}

type Stored = Awaited<ReturnType<typeof showFrames>>[number] & {
  original?: string;
  fault?: { rule: string; action: string };
};

test('a client’s request is late, broken, cut, twice, lost or refused on its way; the record has what was said', async () => {
  const { server, recording, url } = await recordWith({
    plain: 'drop p=0',
    late: 'delay=30ms',
    cut: 'truncate(12)',
    noise: 'garbage',
    split: 'split(9)',
    twice: 'duplicate',
    lost: 'drop',
    closed: 'close',
    broken: 'reset',
  });
  const call = async (word: string, headers = {}) => {
    const answer = await send(url, { body: callOf(word), headers });
    await answer.ended;
    return answer;
  };
  const late = call('late');
  expect((await call('plain')).text()).toContain('"result"');
  expect((await late).status).toBe(200);
  expect(server.got.map(({ body }) => /plain|late/.exec(body)?.[0])).toEqual(['plain', 'late']);

  for (const word of ['cut', 'noise']) expect((await call(word)).status).toBe(400);
  for (const word of ['split', 'twice']) expect((await call(word)).status).toBe(200);
  expect(server.got[2]).toMatchObject({ body: '{"jsonrpc":"', length: '12' });
  expect(server.got[3]?.body.charCodeAt(0)).toBe(0xff);
  expect(server.got[3]?.length).toBe(String(server.got[3]?.body.length));
  expect(server.gotOf('split')).toMatchObject([{ length: String(bytesOf(callOf('split')).length) }]);
  await until('the copy is there', () => server.gotOf('twice').length === 2);
  expect(new Set(server.gotOf('twice').map(({ body }) => body)).size).toBe(1);

  await expect(call('closed')).rejects.toThrow(/socket hang up|ECONNRESET/);
  await expect(call('broken')).rejects.toThrow(/ECONNRESET|socket hang up/);
  expect((await send(url, { body: { method: 'notifications/lost', params: {} } })).status).toBe(202);
  const lost = openRequest(url, { method: 'POST', agent: false });
  let isAnswered = false;
  lost.on('response', () => {
    isAnswered = true;
  });
  lost.on('error', () => {});
  lost.end(bytesOf(callOf('lost')));
  expect((await call('plain')).status).toBe(200);
  lost.destroy();
  expect(isAnswered).toBe(false);
  for (const word of ['lost', 'closed', 'broken']) expect(server.gotOf(word), word).toEqual([]);
  await recording.stop();
  await expectRecorded(recording.db);
});

async function expectRecorded(db: string): Promise<void> {
  const frames = (await showFrames(db)) as Stored[];
  const faulted = frames.flatMap(({ fault, text = '', original, messages }) =>
    fault === undefined ? [] : [{ action: fault.action, text, original, messages }],
  );
  const actions = ['close', 'delay 30ms', 'drop', 'drop', 'duplicate', 'garbage', 'reset', 'split 9'];
  expect(faulted.map(({ action }) => action).sort()).toEqual([...actions, 'truncate 12']);
  for (const { action, text, original } of faulted) {
    const said = /^(?:delay|split|duplicate)/.test(action) ? text : original;
    expect(said, action).toMatch(
      /^\{"jsonrpc":"2.0".*(?:word|late|split|twice|cut|noise|lost|closed|broken)/,
    );
    if (action === 'truncate 12') expect(text).toBe('{"jsonrpc":"');
    if (/^(?:drop|close|reset)/.test(action)) expect(text).toBe('');
    if (action === 'duplicate') expect(original).toBe('');
  }
  const check = (await tapedeckInProcess(['check', '--db', db])).stdout.toString();
  expect(check).not.toMatch(/#\d+ server:/);
  expect(check).not.toMatch(/unanswered|answer-twice|id-reused|invalid/);
}

test('a request goes behind others of its client, whatever connections they come on', async () => {
  const { server, url } = await recordWith({ first: 'reorder(2)' });
  const first = send(url, { body: callOf('first') });
  for (const word of ['second', 'third', 'fourth']) await (await send(url, { body: callOf(word) })).ended;
  await (await first).ended;
  expect(server.got.map(({ body }) => /first|second|third|fourth/.exec(body)?.[0])).toEqual([
    'second',
    'third',
    'first',
    'fourth',
  ]);
});

test('a compressed request is looked into; it stays compressed unless something else goes on', async () => {
  const { server, url } = await recordWith({ late: 'delay=1ms', cut: 'truncate(12)', other: 'drop p=0' });
  const said = async (word: string) => {
    const body = gzipSync(bytesOf(callOf(word)));
    await post(url, body, { 'Content-Encoding': 'gzip' });
    return { body: body.toString('latin1'), coding: 'gzip', length: String(body.length) };
  };
  for (const word of ['other', 'late'])
    expect(await said(word)).toMatchObject(withoutPieces(server.got.at(-1)));
  await said('cut');
  expect(server.got.at(-1)).toMatchObject({ body: '{"jsonrpc":"', coding: undefined, length: '12' });
  const broken = Buffer.from('no gzip at all');
  await post(url, broken, { 'Content-Encoding': 'gzip' });
  expect(server.got.at(-1)).toMatchObject({ body: 'no gzip at all', coding: 'gzip' });
});

function withoutPieces(got: Got | undefined): object {
  const { pieces: _, ...rest } = got ?? { pieces: 0 };
  return rest;
}

function post(url: URL, body: Buffer, headers: Record<string, string>): Promise<number> {
  return new Promise((resolve, reject) => {
    const all = { 'Content-Type': 'application/json', 'Content-Length': String(body.length), ...headers };
    const sent = openRequest(url, { method: 'POST', agent: false, headers: all }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
    });
    sent.on('error', reject);
    sent.once('continue', () => sent.end(body));
    if (headers['Expect'] === undefined) sent.end(body);
    else sent.flushHeaders();
  });
}

test('a client that waits to be told to go on is told so', async () => {
  const { server, url } = await recordWith({ word: 'truncate(12)' });
  expect(await post(url, bytesOf(callOf('word')), { Expect: '100-continue' })).toBe(400);
  expect(server.got).toMatchObject([{ body: '{"jsonrpc":"' }]);
});

test('a client that leaves in the middle of its request leaves nothing behind', async () => {
  const { server, recording, url } = await recordWith({ word: 'drop' });
  const leaving = async (text: string, length: number) => {
    const headers = { 'Content-Type': 'application/json', 'Content-Length': String(length) };
    const sent = openRequest(url, { method: 'POST', agent: false, headers });
    sent.on('error', () => {});
    await new Promise<void>((resolve) => sent.write(text, () => resolve()));
    // Those that come behind on another connection are there when this one is.
    await (await send(url, { body: callOf('plain') })).ended;
    sent.destroy();
  };
  const whole = bytesOf(callOf('word')).toString();
  await leaving(whole.slice(0, 30), whole.length);
  await leaving(whole, whole.length);
  await until('both are recorded', () => {
    const ended = recording.rows('SELECT error FROM http_exchange WHERE ended_at IS NOT NULL');
    return ended.length === 4;
  });
  await recording.stop();
  expect(server.got.every(({ body }) => body.includes('plain'))).toBe(true);
  const errors = recording.rows('SELECT error FROM http_exchange WHERE error IS NOT NULL ORDER BY error');
  expect(errors).toEqual([
    { error: 'kept back by a fault on purpose' },
    { error: 'the client closed the connection' },
  ]);
});

inFull('a body that is too large for a fault passes as it is, and that is said', async () => {
  const { server, recording, url } = await recordWith({ word: 'drop' });
  const large = bytesOf({ ...callOf('word'), more: 'x'.repeat(17 * 1024 * 1024) });
  expect(await post(url, large, {})).toBe(200);
  expect(await post(url, large, {})).toBe(200);
  expect(server.got.map(({ length }) => length)).toEqual([String(large.length), String(large.length)]);
  expect(server.got[0]?.body).toBe(large.toString('latin1'));
  await recording.stop();
  const said = recording.run.stderr();
  expect(said.match(/a body, or an event, is too large for a fault, and passes as it is/g)).toHaveLength(1);
  expect(said).toContain('2 bodies or events were too large for a fault');
  expect(said).toContain('0 faults were put in');
});
