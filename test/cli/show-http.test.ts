import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { widthOf } from '../../src/inspect/view/text.ts';
import { readBody, startServer } from '../support/http.ts';
import { recordUrl, recordUrlInProcess } from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { send } from '../support/send.ts';
import { latestSession, record, tapedeckInProcess, tempStore, until } from '../support/tapedeck.ts';

const SESSION = { 'Mcp-Session-Id': 'the-session' };
const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'tester', version: '9' } },
};
const INITIALIZED = {
  id: 0,
  result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'small', version: '1' } },
};

function event(message: object, fields = ''): string {
  return `${fields}data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`;
}

/** Answers a JSON-RPC request as the test wants, and the handshake by itself. */
type Answerer = (message: { id: number; method: string }, response: ServerResponse) => void;

async function startMcp(
  answer: Answerer,
  onOther?: (request: IncomingMessage, response: ServerResponse) => void,
) {
  return startServer(async (request, response) => {
    if (request.method !== 'POST' || request.url !== '/mcp') return onOther?.(request, response);
    const message = JSON.parse((await readBody(request)).toString());
    response.setHeader('Mcp-Session-Id', 'the-session');
    if (message.id === undefined) response.writeHead(202).end();
    else if (message.method === 'initialize') {
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ jsonrpc: '2.0', ...INITIALIZED }));
    } else answer(message, response);
  });
}

function streamHead(response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  response.flushHeaders();
}

async function show(db: string, options: readonly string[] = [], columns = 160): Promise<string> {
  const { code, stdout, stderr } = await tapedeckInProcess(['show', '--db', db, ...options], {
    env: { COLUMNS: String(columns) },
  });
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  return stdout.toString();
}

/** Waits until `show` says something: the recorder stores what passes a little later. */
async function untilShown(db: string, expected: RegExp, options: readonly string[] = []): Promise<void> {
  const shown = async () => (await tapedeckInProcess(['show', '--db', db, ...options])).stdout.toString();
  await until(`show tells ${expected}`, async () => expected.test(await shown()));
}

type Json = Record<string, unknown>;

async function showJson(db: string, options: readonly string[] = []): Promise<Json[]> {
  const text = await show(db, ['--json', ...options]);
  return text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Json);
}

/** A session with a stream of its own for one call, and a DELETE at its end. */
async function recordSession(db: string): Promise<string> {
  const { url: upstream } = await startMcp(
    ({ id }, response) => {
      streamHead(response);
      response.write('id: 1\nretry: 500\ndata:\n\n');
      for (let i = 0; i < 5; i += 1) response.write(': keepalive\n\n');
      response.end(event({ id, result: { content: [{ type: 'text', text: 'one\ntwo' }] } }, 'id: 2\n'));
    },
    (_request, response) => void response.writeHead(200).end(),
  );
  const recording = await recordUrlInProcess(`${upstream}/mcp`, { db });
  const call = { id: 1, method: 'tools/call', params: { name: 'echo' } };
  for (const [headers, body] of [
    [{}, INITIALIZE],
    [SESSION, { method: 'notifications/initialized' }],
    [SESSION, call],
  ]) {
    const { ended } = await send(recording.url, { headers: headers as object, body: body as object });
    await ended;
  }
  await (await send(recording.url, { method: 'DELETE', headers: SESSION })).ended;
  await recording.stop();
  return `${upstream}/mcp`;
}

test('show sets HTTP exchanges between the messages, and tells whose each message is', async () => {
  const db = tempStore();
  const target = await recordSession(db);
  const text = await show(db);
  expect(text).toContain(`url       ${target}\n`);
  expect(text).toMatch(/client +tester 9\n/);
  expect(text).toMatch(/transport Streamable HTTP, a session by its Mcp-Session-Id\n/);
  expect(text).toMatch(/ended +DELETE by the client, after /);
  expect(text).toMatch(/recorded +2 exchanges, 0 errors, nothing lost, \d+ frames, .*, 4 HTTP exchanges\n/);
  const [, conversation = ''] = text.split('\n\n');
  const shape = conversation.replaceAll(/[\d.]+ m?s\b/g, 'TIME').replaceAll(/^ *\d+\.\d{3} {2}/gm, '');
  expect(shape.split('\n').filter((line) => !/^ *\{/.test(line))).toEqual([
    '   #1  POST /mcp  200 application/json  TIME',
    '→  #1  initialize 2025-11-25 tester 9',
    '←  #1  result 2025-11-25 small 1  TIME  ok  initialize',
    '   #2  POST /mcp  202  TIME',
    '→  #2  notifications/initialized',
    '   #3  POST /mcp  200 text/event-stream  TIME',
    '→  #3  tools/call echo',
    '┊  #3  event stream: id 1, retry 500',
    '┊  #3  comment keepalive',
    expect.stringMatching(/^ {14}#3 {2}and 4 more of these, the last at \d+\.\d{3}$/),
    '←  #3  result 2 lines of text  TIME  ok  tools/call echo',
    '   #4  DELETE /mcp  200  TIME',
    '',
  ]);
  expect(text).toContain('              {"content":[{"type":"text","text":"one\\ntwo"}]}\n');
});

test('show --full leaves nothing out: every comment, and all headers, credentials masked', async () => {
  const db = tempStore();
  await recordSession(db);
  const text = await show(db, ['--full']);
  expect(text.match(/comment keepalive/g)).toHaveLength(5);
  expect(text).toMatch(/> Accept: application\/json, text\/event-stream\n/);
  expect(text).toMatch(/< Mcp-Session-Id: masked-[0-9a-f]{12}\n/);
  expect(text).not.toContain('the-session');
});

test('show gives exchanges without MCP the headers that people debug with, their bodies and the edits', async () => {
  const db = tempStore();
  const { url: upstream } = await startServer(async (request, response) => {
    const self = `http://${request.headers.host}`;
    await readBody(request);
    if (request.method === 'OPTIONS') response.writeHead(204, { 'Access-Control-Allow-Origin': '*' }).end();
    else if (request.method === 'GET')
      response.writeHead(302, { Location: `${upstream}/login?code=abc` }).end();
    else {
      response.writeHead(401, { 'WWW-Authenticate': `Bearer realm="${self}"`, 'X-Other': 'not told' });
      response.end('{"error":"invalid_token"}');
    }
  });
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp`, { db });
  await (await send(url, { method: 'OPTIONS', headers: { Origin: 'http://localhost:1' } })).ended;
  await (await send(url, { headers: { Authorization: 'Bearer secret' }, body: INITIALIZE })).ended;
  await (await send(new URL('/authorize', url), { method: 'GET' })).ended;
  await stop();

  const text = await show(db);
  expect(text).toMatch(
    /#1 {2}OPTIONS \/mcp {2}204 {2}[\d.]+ m?s\n +> Origin: http:\/\/localhost:1\n +< Access-Control/,
  );
  expect(text).toMatch(/#2 {2}POST \/mcp {2}401 {2}/);
  expect(text).toMatch(/> Authorization: Bearer masked-[0-9a-f]{12}\n/);
  expect(text).toMatch(/< WWW-Authenticate: Bearer realm=/);
  expect(text).toMatch(/→ {2}#2 {2}initialize 2025-11-25 tester 9 {2}refused\n/);
  expect(text).toMatch(/← {2}#2 {2}body, 25 B\n {14}\{"error":"invalid_token"\}\n/);
  expect(text).toMatch(/#3 {2}GET \/authorize {2}302 /);
  expect(text).toContain(`! edited: Location, was ${upstream}/login?code=masked-`);
  expect(text).toMatch(new RegExp(`< Location: ${url.origin}/login\\?code=masked-`));
  expect(text).not.toMatch(/not told|secret/);
});

test('show tells which streams are open, were left, broke off or ended', async () => {
  const db = tempStore();
  const streams: ServerResponse[] = [];
  const { url: upstream } = await startMcp(
    (_message, response) => {
      streamHead(response);
      streams.push(response);
    },
    (_request, response) => {
      streamHead(response);
      streams.push(response);
    },
  );
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp`, { db, args: ['--grace', '0'] });
  await (await send(url, { body: INITIALIZE })).ended;
  const open = () => send(url, { method: 'GET', headers: SESSION });
  const left = await open();
  left.leave();
  await left.ended;
  const ended = await open();
  streams[1]?.end();
  await ended.ended;
  const broken = await send(url, { headers: SESSION, body: { id: 7, method: 'tools/list' } });
  streams[2]?.destroy();
  await broken.ended;
  await open();
  await untilShown(db, /#5 {2}GET \/mcp {2}200/);
  await untilShown(db, /#4 {2}the server broke/);
  // The recorder reads messages a little after their frames are stored.
  await untilShown(db, /tools\/list {2}unanswered/);

  const text = await show(db);
  expect(text).toMatch(/ended +open\n/);
  expect(text).toMatch(/ {5}#2 {2}the client closed it after [\d.]+ m?s\n/);
  expect(text).toMatch(/ {5}#3 {2}the server ended the stream after [\d.]+ m?s\n/);
  expect(text).toMatch(/ {5}#4 {2}the server broke it off after [\d.]+ m?s: /);
  expect(text).toMatch(/tools\/list {2}unanswered\n/);
  expect(text).not.toMatch(/#5 {2}the/);
  await stop();
  expect(await show(db)).toMatch(/ended +stopped, after /);
});

test('show tells where tapedeck answered in place of a server that it cannot reach', async () => {
  const db = tempStore();
  const { url: upstream, server } = await startServer(() => {});
  await new Promise((resolve) => server.close(resolve));
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp`, { db });
  await (await send(url, { body: INITIALIZE })).ended;
  await untilShown(db, /tapedeck closed it/);
  await stop();
  const text = await show(db);
  expect(text).toMatch(/#1 {2}POST \/mcp {2}502 text\/plain {2}/);
  expect(text).toMatch(/ {5}#1 {2}tapedeck closed it after [\d.]+ m?s: .*ECONNREFUSED/);
  expect(text).toMatch(/← {2}#1 {2}body, \d+ B\n {14}tapedeck: /);
});

test('show says where nothing answered, and that what a kill cut off is unfinished', async () => {
  const db = tempStore();
  let hasGet = false;
  const { url: upstream } = await startMcp(
    (_message, response) => {
      streamHead(response);
      response.write('data: {"jsonrpc":"2.0","id":1,"resu');
    },
    () => {
      hasGet = true;
    },
  );
  const { url, run } = await recordUrl(`${upstream}/mcp`, { db });
  await (await send(url, { body: INITIALIZE })).ended;
  send(url, { method: 'GET', headers: SESSION }).catch(() => {});
  await until('the server has the GET', () => hasGet);
  await send(url, { headers: SESSION, body: { id: 1, method: 'tools/list' } });
  await untilShown(db, /resu \(unfinished event\)/);
  await untilShown(db, /GET \/mcp {2}no answer yet\n/);
  run.child.kill('SIGKILL');
  await run.ended;

  const text = await show(db);
  expect(text).toMatch(/ended +cut off\n/);
  expect(text).toMatch(/GET \/mcp {2}no answer\n/);
  expect(text).toMatch(/┊ {2}#3 {2}data: \{"jsonrpc":"2\.0","id":1,"resu \(unfinished event\)\n$/);
  expect((await showJson(db)).at(-1)).toMatchObject({ channel: 'sse', unfinished: true, messages: [] });
});

test('a request that its client gave up by closing is shown as cancelled', async () => {
  const db = tempStore();
  const { url: upstream } = await startMcp((_message, response) => streamHead(response));
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp`, { db });
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const call = await send(url, { body: { id: 1, method: 'tools/call', params: { name: 'slow', _meta } } });
  call.leave();
  await call.ended;
  await untilShown(db, /"closedBy":"client"/, ['--http', '--json']);
  await stop();
  const text = await show(db);
  expect(text).toMatch(/→ {2}#1 {2}tools\/call slow {2}cancelled\n/);
  expect(text).toMatch(/#1 {2}the client closed it after /);
});

test('show --json tells of each frame which HTTP exchange it came on, and of each event its fields', async () => {
  const db = tempStore();
  await recordSession(db);
  const frames = await showJson(db);
  expect(Object.keys(frames[0] ?? {})).toEqual([
    ...['session', 'seq', 'at', 'direction', 'channel', 'size', 'text'],
    ...['edited', 'redacted', 'http', 'sse', 'messages'],
  ]);
  const http = { exchange: 3, method: 'POST', path: '/mcp', status: 200, closedBy: 'server', error: null };
  const events = frames.filter(({ channel }) => channel === 'sse');
  expect(events[0]).toMatchObject({
    http,
    sse: { event: null, id: '1', retry: '500', data: '' },
    messages: [],
  });
  expect(events[1]).toMatchObject({ sse: { event: null, id: null, retry: null, data: null } });
  const answer = events.at(-1) as { sse: { data: string } } & Json;
  expect(answer).toMatchObject({ http, edited: false, messages: [{ kind: 'result', id: '1' }] });
  expect(JSON.parse(answer.sse.data)).toMatchObject({ id: 1, result: {} });
  expect(frames[0]).toMatchObject({ channel: 'request', http: { exchange: 1, status: 200 }, sse: null });
});

test('show --json keeps the original of an edited event, the digest of a cut one, and bytes that are no text', async () => {
  const db = tempStore();
  const long = `data: ${'x'.repeat(5000)}\n\n`;
  const { url: upstream } = await startServer((_request, response) => {
    streamHead(response);
    response.write(`event: endpoint\ndata: ${upstream}/messages?sessionId=1\n\n`);
    response.write(Buffer.from([...Buffer.from('data: '), 0xff, 0xfe, 0x0a, 0x0a]));
    response.end(long);
  });
  const { url, stop } = await recordUrlInProcess(`${upstream}/sse`, {
    db,
    args: ['--max-frame', '1kb', '--no-redact'],
  });
  await (await send(url, { method: 'GET' })).ended;
  await stop();
  const [endpoint, bytes, cut] = await showJson(db);
  expect(endpoint).toMatchObject({
    edited: true,
    original: `event: endpoint\ndata: ${upstream}/messages?sessionId=1\n\n`,
    sse: { event: 'endpoint', data: `${url.origin}/messages?sessionId=1` },
  });
  expect(bytes).toMatchObject({
    edited: false,
    sse: { dataBase64: Buffer.from([0xff, 0xfe]).toString('base64') },
  });
  expect(bytes).not.toHaveProperty('original');
  expect(bytes).not.toHaveProperty('sha256');
  const sha256 = createHash('sha256').update(long).digest('hex');
  expect(cut).toMatchObject({ size: long.length, truncated: true, sha256 });
  const text = await show(db);
  expect(text).toContain(`┊  #1  endpoint ${url.origin}/messages?sessionId=1\n`);
  expect(text).toContain(`! edited, was event: endpoint\\ndata: ${upstream}/messages?sessionId=1\n`);
});

inFull('show --json gives the data of an event whole, however large', async () => {
  const db = tempStore();
  const text = '€"\\'.repeat(3_000_000);
  const { url: upstream } = await startMcp(({ id }, response) => {
    streamHead(response);
    response.end(event({ id, result: { content: [{ type: 'text', text }] } }));
  });
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp`, { db });
  await (await send(url, { body: { id: 5, method: 'tools/call', params: { name: 'much' } } })).ended;
  await stop();
  const { stdout } = await tapedeckInProcess(['show', '--json', '--db', db]);
  const [, line = ''] = stdout.toString().split('\n');
  expect(JSON.parse(JSON.parse(line).sse.data).result.content[0].text === text).toBe(true);
});

test('show --http lists the HTTP exchanges, those without a body too', async () => {
  const db = tempStore();
  const { url: upstream } = await startServer((_request, response) => {
    response.writeHead(401, { 'WWW-Authenticate': 'Bearer', 'X-Other': 'other' }).end();
  });
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp?key=secret`, { db });
  await (await send(url, { method: 'GET', headers: { Authorization: 'Bearer secret' } })).ended;
  await stop();

  expect(await showJson(db)).toEqual([]);
  const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const [exchange] = await showJson(db, ['--http']);
  expect(exchange).toMatchObject({
    session: (await latestSession(db)).session,
    ...{ http: 1, method: 'GET', httpVersion: '1.1', client: expect.stringMatching(/^127\.0\.0\.1:\d+$/) },
    ...{ status: 401, statusText: 'Unauthorized', requestBytes: 0, responseBytes: 0 },
    ...{ at: iso, requestEndedAt: iso, responseAt: iso, endedAt: iso, closedBy: 'server', error: null },
    ...{ requestTrailers: [], responseTrailers: [], informations: [] },
    edits: [{ side: 'request', header: 'Host', original: url.host }],
  });
  expect(exchange?.['requestHeaders']).toContainEqual([
    'Authorization',
    expect.stringMatching(/^Bearer masked-/),
  ]);
  expect(exchange?.['responseHeaders']).toContainEqual(['WWW-Authenticate', 'Bearer']);

  const short = await show(db, ['--http']);
  expect(short).toMatch(
    /#1 {2}GET \S+ {2}401 {2}[\d.]+ m?s\n {14}> Authorization: Bearer masked-\w+\n {14}< WWW-Auth/,
  );
  expect(short).not.toContain('X-Other');
  expect(await show(db, ['--http', '--full'])).toContain('< X-Other: other\n');
});

test('show --http of a stdio session says that there is none', async () => {
  const db = tempStore();
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end();
  await ended;
  expect(await show(db, ['--http'])).toContain('This session has no HTTP exchanges.\n');
  expect(await show(db, ['--http', '--json'])).toBe('');
});

test('list shows sessions by HTTP with their URL, how many exchanges they had and how they ended', async () => {
  const db = tempStore();
  const target = await recordSession(db);
  const options = { env: { COLUMNS: '200' } };
  const first = (await tapedeckInProcess(['list', '--db', db], options)).stdout.toString();
  expect(first).toMatch(/ HTTP {2}EXCHANGES /);
  expect(first).toMatch(new RegExp(`${target} .* tester 9 +small 1 +4 +2 +0 +0 +0 +DELETE\n`));
  const { child, ended } = record(db, ['cat.js']);
  child.stdin.end();
  await ended;
  expect(first).not.toMatch(/exit/);
  const both = (await tapedeckInProcess(['list', '--db', db], options)).stdout.toString();
  expect(both).toMatch(/ exit 0\n[\s\S]* DELETE\n/);
});

const HOSTILE =
  '\u001b[31mred\u001b]0;title\u0007 \u202Ereversed\u2066 \u200Bhidden 日本語 🏳️‍🌈 \u0085\u009b2J';
/** What must never reach a terminal from a recording. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u;

test('show escapes what came by HTTP, and stays within the terminal', async () => {
  const db = tempStore();
  const { url: upstream } = await startMcp(
    ({ id }, response) => {
      streamHead(response);
      response.write(`: ${HOSTILE}\nevent: ${HOSTILE}\nid: ${HOSTILE}\n\n: ${HOSTILE.repeat(9)}\n\n`);
      response.end(event({ id, error: { code: 1, message: HOSTILE } }));
    },
    (_request, response) => {
      response
        .writeHead(403, { 'WWW-Authenticate': `Bearer "${'\u0085\u009b'.repeat(200)}"` })
        .end(HOSTILE.repeat(50));
    },
  );
  const { url, stop } = await recordUrlInProcess(`${upstream}/mcp`, { db });
  await (await send(url, { body: INITIALIZE })).ended;
  await (await send(url, { headers: SESSION, body: { id: 1, method: HOSTILE } })).ended;
  await (await send(new URL(`/${'long/'.repeat(100)}`, url), { method: 'GET', headers: SESSION })).ended;
  await stop();
  for (const columns of [40, 80, 133]) {
    for (const options of [[], ['--full'], ['--http'], ['--http', '--full']]) {
      const lines = (await show(db, options, columns)).split('\n');
      for (const line of lines) {
        expect(line).not.toMatch(UNSAFE);
        expect(widthOf(line)).toBeLessThanOrEqual(columns);
      }
    }
  }
});
