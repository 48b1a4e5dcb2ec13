import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSseStreams } from '../../src/replay/serve/stream.ts';
import { openMock, startHttpMock } from '../support/http-mock.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { modernMeta, parseOne } from '../support/messages.ts';
import { inFull, scale } from '../support/scale.ts';
import { type Answer, send } from '../support/send.ts';
import { startEverything } from '../support/servers.ts';
import { tapedeck, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
};
const INITIALIZED = '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}';

/** Records a stdio server that says `replies`, line by line: the first ones for the first line it gets, and so on. */
async function recordScripted(
  db: string,
  lines: readonly object[],
  replies: readonly string[],
): Promise<void> {
  const script = join(tempFolder(), 'server.mjs');
  const source = `
    import { createInterface } from 'node:readline';
    const replies = ${JSON.stringify(replies)};
    createInterface({ input: process.stdin })
      .on('line', () => process.stdout.write(replies.shift() ?? ''));`;
  writeFileSync(script, source);
  const { child, stdout, ended } = tapedeck(['record', '--db', db, '--', process.execPath, script]);
  let expected = 0;
  for (const [i, line] of lines.entries()) {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...line })}\n`);
    expected += Buffer.byteLength(replies[i] ?? '');
    await until('it replies', () => stdout().length >= expected);
  }
  child.stdin.end();
  await ended;
}

async function openSession(url: URL, capabilities: object = {}): Promise<Record<string, string>> {
  const body = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities } };
  const { headers, ended } = await send(url, { body });
  await ended;
  return { 'mcp-session-id': String(headers['mcp-session-id']) };
}

async function textOf(answer: Promise<Answer>): Promise<string> {
  const { text, ended } = await answer;
  await ended;
  return text();
}

test('what the server said by itself waits for the stream of its session', async () => {
  const db = tempStore();
  const note = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
  await recordScripted(db, [INITIALIZE], [`${INITIALIZED}\n${note}\n`]);
  const { url } = await startHttpMock(db);
  const headers = await openSession(url);
  const stream = await send(url, { method: 'GET', headers });
  await until('the notification comes', () => stream.text().includes('\n\n'));
  expect(stream.text()).toBe(`event: message\ndata: ${note}\n\n`);
});

test('a client that cannot be asked is not asked what no call depends on', async () => {
  const db = tempStore();
  const ask = '{"jsonrpc":"2.0","id":5,"method":"roots/list"}';
  const note = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}';
  const able = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { roots: {} } } };
  await recordScripted(db, [able], [`${INITIALIZED}\n${ask}\n${note}\n`]);

  const { recording, mock } = openMock(db);
  const handshake = JSON.stringify({ jsonrpc: '2.0', ...INITIALIZE });
  const heard = async (capabilities: object): Promise<string[]> => {
    const unasked: string[] = [];
    const player = mock.createClient((json) => unasked.push(json.toString()));
    const text = handshake.replace('"capabilities":{}', `"capabilities":${JSON.stringify(capabilities)}`);
    player.receive(parseOne(text), Buffer.from(text));
    await mock.idle();
    return unasked;
  };
  expect(recording.script.size).toBe(1);
  expect(await heard({ roots: {} })).toEqual([ask.replace('5', '1'), note]);
  expect(await heard({})).toEqual([note]);
});

inFull('a call with very many steps is played to its end', async () => {
  const db = tempStore();
  const steps = scale(20_000);
  const progress =
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}\n';
  const call = { id: 1, method: 'tools/call', params: { name: 'x', _meta: { progressToken: 't' } } };
  const end = '{"jsonrpc":"2.0","id":1,"result":{}}\n';
  await recordScripted(db, [INITIALIZE, call], [`${INITIALIZED}\n`, progress.repeat(steps) + end]);
  const { url } = await startHttpMock(db);
  const headers = await openSession(url);
  const live = { ...call, params: { name: 'x', _meta: { progressToken: 77 } } };
  const text = await textOf(send(url, { body: live, headers }));
  expect(text.split('"progressToken":77').length - 1).toBe(steps);
  expect(text.endsWith('data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n')).toBe(true);
  // Without a token there is no progress, and a client that takes no stream gets the answer alone.
  await recordScripted(db, [INITIALIZE, call], [`${INITIALIZED}\n`, progress + end]);
  const second = await startHttpMock(db);
  const json = { ...(await openSession(second.url)), Accept: 'application/json' };
  expect(await textOf(send(second.url, { body: live, headers: json }))).toBe(end.trim());
});

test('a message on several lines is one event of several data fields', () => {
  const written: Buffer[] = [];
  const response = { on() {}, end() {}, write: (bytes: Buffer) => written.push(bytes) };
  const stream = createSseStreams().open({ waits: false });
  stream.attach(response as never);
  stream.send(Buffer.from('{\n "ä": 1\r\n}'), false);
  expect(Buffer.concat(written).toString()).toBe('event: message\ndata: {\ndata:  "ä": 1\ndata: }\n\n');
});

inFull('two clients of the same name may use the same ids at once, and one may leave', async () => {
  const db = tempStore();
  const meta = { _meta: modernMeta() };
  const listen = { id: 1, method: 'subscriptions/listen', params: { ...meta, notifications: {} } };
  const acknowledged = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 1 } },
  });
  const tools = { id: 2, method: 'tools/list', params: meta };
  const listed = '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[]}}';
  await recordScripted(
    db,
    [listen, { ...listen, id: 3 }, tools],
    [`${acknowledged}\n`, `${acknowledged.replace(':1}', ':3}')}\n`, `${listed}\n`],
  );
  const { url } = await startHttpMock(db);
  const headers = (method: string) => ({ 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method });
  const open = () => send(url, { body: listen, headers: headers(listen.method) });
  const streams = [await open(), await open()];
  for (const { text } of streams) await until('it is acknowledged', () => text().includes('acknowledged'));
  streams[0]?.leave();
  await streams[0]?.ended;
  expect(await textOf(send(url, { body: tools, headers: headers(tools.method) }))).toContain('"tools":[]');
});

test('a client that begins anew cuts no stream of another one of its name', async () => {
  const db = tempStore();
  const meta = { _meta: modernMeta() };
  const discover = { id: 1, method: 'server/discover', params: meta };
  const listen = { id: 2, method: 'subscriptions/listen', params: { ...meta, notifications: {} } };
  const acknowledged = JSON.stringify({
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 2 } },
  });
  await recordScripted(
    db,
    [discover, listen],
    ['{"jsonrpc":"2.0","id":1,"result":{}}\n', `${acknowledged}\n`],
  );
  const { url } = await startHttpMock(db);
  const headers = (method: string) => ({ 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method });
  const stream = await send(url, { body: listen, headers: headers(listen.method) });
  let hasEnded = false;
  void stream.ended.then(() => {
    hasEnded = true;
  });
  await until('it is acknowledged', () => stream.text().includes('acknowledged'));
  for (let i = 0; i < 3; i += 1)
    await textOf(send(url, { body: discover, headers: headers(discover.method) }));
  expect(hasEnded).toBe(false);
  stream.leave();
  await stream.ended;
});

test('at recorded speed a stream begins at once, and a client that leaves it is answered afterwards', async () => {
  const db = tempStore();
  const call = {
    id: 1,
    method: 'tools/call',
    params: { name: 'x', _meta: { ...modernMeta(), progressToken: 't' } },
  };
  const progress =
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}';
  const end = '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}';
  const tools = { id: 2, method: 'tools/list', params: { _meta: modernMeta() } };
  const listed = '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[]}}';
  await recordScripted(db, [call, tools], [`${progress}\n${end}\n`, `${listed}\n`]);
  // As if it had taken minutes: the client does not wait for the answer.
  const { url } = await startHttpMock(db, { speed: 1e-6 });
  const headers = { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': call.method, 'Mcp-Name': 'x' };
  const stream = await send(url, { body: call, headers });
  expect(stream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } });
  expect(stream.text()).not.toContain('"result"');
  stream.leave();
  await stream.ended;
  const fast = await startHttpMock(db, { speed: 1e6 });
  expect(await textOf(send(fast.url, { body: call, headers }))).toContain('"result"');
});

test('legacy HTTP+SSE names where to post, takes messages there and drops who has left', async () => {
  const db = tempStore();
  const recorder = await recordUrlInProcess(await startEverything('sse'), { db });
  const get = { method: 'GET', headers: { Accept: 'text/event-stream' } };

  async function talk(url: URL): Promise<{ endpoint: URL; stream: Answer }> {
    const stream = await send(url, get);
    await until('the endpoint comes', () => stream.text().includes('\n\n'));
    const [, target = ''] = /^event: endpoint\ndata: (\/\S+)\n\n/.exec(stream.text()) ?? [];
    const endpoint = new URL(target, url);
    const posted = await send(endpoint, { body: INITIALIZE });
    await posted.ended;
    expect([posted.status, posted.text()]).toEqual([202, 'Accepted']);
    await until('the answer comes', () => stream.text().includes('"result"'));
    return { endpoint, stream };
  }

  const recorded = await talk(recorder.url);
  recorded.stream.leave();
  await recorded.stream.ended;
  await recorder.stop();
  const { url } = await startHttpMock(db);
  const { endpoint, stream } = await talk(url);
  expect(endpoint.pathname).toBe(recorded.endpoint.pathname);
  const post = (at: URL, body: string | object) => send(at, { body, headers: { Accept: '*/*' } });
  expect((await post(new URL('?sessionId=unknown', endpoint), INITIALIZE)).status).toBe(404);
  expect((await post(endpoint, '{')).status).toBe(400);
  expect((await post(url, INITIALIZE)).status).toBe(405);
  expect((await send(new URL('/elsewhere', url), get)).status).toBe(404);
  stream.leave();
  await until('it is dropped', async () => (await post(endpoint, INITIALIZE)).status === 404);
});

test('of two calls with one id, the one is abandoned that was asked over the closed connection', async () => {
  const db = tempStore();
  const able = { ...INITIALIZE, params: { ...INITIALIZE.params, capabilities: { roots: {} } } };
  const call = (id: number) => ({ id, method: 'tools/call', params: { name: 'x', arguments: { id } } });
  const roots = (id: number) => ({ id, result: { roots: [] } });
  const ask = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"roots/list"}\n`;
  const answer = (id: number) => `{"jsonrpc":"2.0","id":${id},"result":{"was":${id}}}\n`;
  await recordScripted(
    db,
    [able, call(1), roots(1), call(2), roots(2)],
    [`${INITIALIZED}\n`, ask(1), answer(1), ask(2), answer(2)],
  );
  const { mock } = openMock(db);
  const player = mock.createClient(() => {});
  const said: string[][] = [[], [], []];
  const askers = said.map((own) => ({ send: (json: Buffer) => void own.push(json.toString()) }));
  const receive = (message: object, asker = askers[2]) => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    const parsed = parseOne(text);
    player.receive(parsed, Buffer.from(text), asker);
    return parsed;
  };
  receive(able);
  const first = receive({ ...call(1), id: 7 }, askers[0]);
  receive({ ...call(2), id: 7 }, askers[1]);
  if (first.kind === 'request' && askers[0] !== undefined) player.abandon(first.id, askers[0]);
  receive(roots(1));
  receive(roots(2));
  await mock.idle();
  expect(said[0]).toEqual([ask(1).trim()]);
  expect(said[1]).toEqual([ask(2).trim(), '{"jsonrpc":"2.0","id":7,"result":{"was":2}}']);
});
