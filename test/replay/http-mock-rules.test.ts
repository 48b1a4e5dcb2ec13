import { request } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { openStore } from '../../src/store/file/open.ts';
import { startServer } from '../support/http.ts';
import { startHttpMock } from '../support/http-mock.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { modernMeta } from '../support/messages.ts';
import { storeOnce } from '../support/once.ts';
import { type Answer, send } from '../support/send.ts';
import { startDualEraServer } from '../support/servers.ts';
import { tempStore, until } from '../support/tapedeck.ts';

const INITIALIZE = {
  id: 0,
  method: 'initialize',
  params: {
    protocolVersion: '2025-11-25',
    capabilities: { sampling: {} },
    clientInfo: { name: 'raw', version: '1' },
  },
};

async function whole(
  answer: Promise<Answer>,
): Promise<{ status: number; text: string; headers: Answer['headers'] }> {
  const { status, headers, text, ended } = await answer;
  await ended;
  return { status, headers, text: text() };
}

/** Status and JSON-RPC error. */
async function refusal(answer: Promise<Answer>): Promise<unknown[]> {
  const { status, text } = await whole(answer);
  const { error, id } = JSON.parse(text);
  return [status, error.code, id];
}

async function openSession(url: URL): Promise<Record<string, string>> {
  const { headers, status } = await whole(send(url, { body: INITIALIZE }));
  expect(status).toBe(200);
  return { 'mcp-session-id': String(headers['mcp-session-id']), 'mcp-protocol-version': '2025-11-25' };
}

async function recordLegacy(db: string, talk = async (url: URL) => void (await openSession(url))) {
  const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
  await talk(recorder.url);
  await recorder.stop();
}

/** A session of a client that does no more than shake hands. */
const legacyStore = storeOnce((db) => recordLegacy(db));

test('each misuse of a session gets the status that servers give it', async () => {
  const db = await legacyStore();
  const { url } = await startHttpMock(db);
  const ping = { id: 1, method: 'ping' };
  expect(await refusal(send(url, { body: ping }))).toEqual([400, -32000, null]);
  const unknown = { 'mcp-session-id': 'unknown' };
  expect(await refusal(send(url, { body: ping, headers: unknown }))).toEqual([404, -32001, null]);

  const headers = await openSession(url);
  const other = await openSession(url);
  expect(other).not.toEqual(headers);
  expect(await refusal(send(url, { body: ping, headers: { ...headers, Accept: 'text/html' } }))).toEqual([
    406,
    -32000,
    null,
  ]);
  const type = { 'Content-Type': 'text/plain' };
  expect(await refusal(send(url, { body: ping, headers: { ...headers, ...type } }))).toEqual([
    415,
    -32000,
    null,
  ]);
  expect(await refusal(send(url, { body: '{"jsonrpc":', headers }))).toEqual([400, -32700, null]);
  expect(await refusal(send(url, { body: '{"jsonrpc":"2.0"}', headers }))).toEqual([400, -32700, null]);
  expect(await refusal(send(url, { body: INITIALIZE, headers }))).toEqual([400, -32600, null]);
  const version = { 'mcp-protocol-version': '1999-01-01' };
  expect(await refusal(send(url, { body: ping, headers: { ...headers, ...version } }))).toEqual([
    400,
    -32000,
    null,
  ]);
  const put = await whole(send(url, { method: 'PUT', headers }));
  expect([put.status, put.headers.allow]).toEqual([405, 'GET, POST, DELETE']);
  expect(
    (await whole(send(new URL('/.well-known/oauth-protected-resource', url), { method: 'GET' }))).status,
  ).toBe(404);

  expect(await whole(send(url, { body: { method: 'notifications/initialized' }, headers }))).toMatchObject({
    status: 202,
    text: '',
  });
  const answered = await whole(send(url, { body: ping, headers }));
  expect(answered).toMatchObject({ status: 200, text: '{"jsonrpc":"2.0","id":1,"result":{}}' });

  const stream = await send(url, { method: 'GET', headers });
  expect(stream).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream' } });
  expect(await refusal(send(url, { method: 'GET', headers }))).toEqual([409, -32000, null]);
  expect(await refusal(send(url, { method: 'GET', headers: { ...headers, Accept: 'text/html' } }))).toEqual([
    406,
    -32000,
    null,
  ]);
  expect((await whole(send(url, { method: 'DELETE', headers }))).status).toBe(200);
  await stream.ended;
  expect(await refusal(send(url, { body: ping, headers }))).toEqual([404, -32001, null]);
  expect((await whole(send(url, { body: ping, headers: other }))).status).toBe(200);
});

test('a request that came by a foreign name or from a foreign page is refused', async () => {
  const db = await legacyStore();
  const { url } = await startHttpMock(db);
  expect((await whole(send(url, { body: INITIALIZE, headers: { Host: 'evil.example' } }))).status).toBe(403);
  const origin = { Origin: 'https://evil.example' };
  expect((await whole(send(url, { body: INITIALIZE, headers: origin }))).status).toBe(403);
  const allowing = await startHttpMock(db, { allowOrigins: ['https://evil.example'] });
  expect((await whole(send(allowing.url, { body: INITIALIZE, headers: origin }))).status).toBe(200);
});

test('a stream that was lost is resumed after the last event that came', async () => {
  const db = tempStore();
  const call = { method: 'tools/call', params: { name: 'test_sampling', arguments: { prompt: 'why' } } };
  const answer = { result: { role: 'assistant', model: 'none', content: { type: 'text', text: 'because' } } };

  async function talk(url: URL, isLost: boolean): Promise<string> {
    const headers = await openSession(url);
    const asked = await send(url, { body: { id: 'call', ...call }, headers });
    await until('the server asks', () => asked.text().includes('sampling/createMessage'));
    const id = JSON.parse(/data: (\{.*createMessage.*\})/.exec(asked.text())?.[1] ?? '').id;
    const [, eventId] = /id: (\S+)\ndata: .*createMessage/.exec(asked.text()) ?? [];
    if (isLost) asked.leave();
    expect((await whole(send(url, { body: { id, ...answer }, headers }))).status).toBe(202);
    if (!isLost) return (await whole(Promise.resolve(asked))).text;
    const resumed = await whole(
      send(url, { method: 'GET', headers: { ...headers, 'last-event-id': eventId } }),
    );
    return resumed.text;
  }

  await recordLegacy(db, async (url) => void (await talk(url, false)));
  const { url } = await startHttpMock(db);
  const uninterrupted = await talk(url, false);
  expect(uninterrupted).toMatch(/^id: \S+\nretry: 500\ndata: \n\nevent: message\nid: \S+\ndata: /);
  const resumed = await talk(url, true);
  expect(resumed).toMatch(/^event: message\nid: \S+\ndata: .*LLM response: because.*\n\n$/);
  const headers = await openSession(url);
  const nowhere = { ...headers, 'last-event-id': '77/7' };
  expect(await refusal(send(url, { method: 'GET', headers: nowhere }))).toEqual([400, -32000, null]);
});

test('a stream that the server ended before the answer ends there again, and is resumed', async () => {
  const db = tempStore();
  const body = { id: 7, method: 'tools/call', params: { name: 'test_reconnection', arguments: {} } };
  async function talk(url: URL): Promise<string[]> {
    const headers = await openSession(url);
    const { text: begun } = await whole(send(url, { body, headers }));
    const [, eventId] = /^id: (\S+)\n/.exec(begun) ?? [];
    const resume = { method: 'GET', headers: { ...headers, 'last-event-id': eventId } };
    const { text: resumed } = await whole(send(url, resume));
    return [begun, resumed].map((text) => text.replaceAll(/^id: \S+$/gm, 'id'));
  }

  const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
  const recorded = await talk(recorder.url);
  await recorder.stop();
  expect(recorded[0]).toBe('id\nretry: 500\ndata: \n\n');
  const { url } = await startHttpMock(db);
  expect(await talk(url)).toEqual(recorded);
});

test('the newer era is held to its rules', async () => {
  const db = tempStore();
  const version = { 'MCP-Protocol-Version': '2026-07-28' };
  const ask = (url: URL, method: string, params: object = {}, headers: object = {}) =>
    send(url, {
      body: { id: 7, method, params: { ...params, _meta: modernMeta() } },
      headers: { ...version, 'Mcp-Method': method, ...headers },
    });
  const call = { name: 'test_simple_text', arguments: {} };
  const encoded = `=?base64?${Buffer.from(call.name).toString('base64')}?=`;
  const listen = (url: URL) =>
    ask(url, 'subscriptions/listen', { notifications: { toolsListChanged: true } });

  const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
  await whole(ask(recorder.url, 'server/discover'));
  const listed = await whole(ask(recorder.url, 'tools/list'));
  const called = await whole(ask(recorder.url, 'tools/call', call, { 'Mcp-Name': call.name }));
  const unknown = await whole(ask(recorder.url, 'no/such'));
  const listening = await listen(recorder.url);
  await until('it is acknowledged', () => listening.text().includes('acknowledged'));
  listening.leave();
  await recorder.stop();

  const { url } = await startHttpMock(db);
  expect((await whole(ask(url, 'server/discover'))).status).toBe(200);
  expect((await whole(ask(url, 'tools/list'))).text).toBe(listed.text);
  expect(unknown.status).toBe(404);
  expect(await whole(ask(url, 'no/such'))).toMatchObject({ status: 404, text: unknown.text });
  const streaming = await listen(url);
  await until('it is acknowledged', () => streaming.text().includes('acknowledged'));
  expect(streaming.text()).toContain('"io.modelcontextprotocol/subscriptionId":7');
  streaming.leave();
  // What was asked before is not answered again, unless the client begins anew.
  const named = { 'Mcp-Name': call.name };
  expect((await whole(ask(url, 'tools/call', call, named))).text).toBe(called.text);
  const usedUp = await whole(ask(url, 'tools/call', call, named));
  expect(usedUp.status).toBe(200);
  expect(JSON.parse(usedUp.text).error.message).toContain('no recorded answer');
  await whole(ask(url, 'server/discover'));
  expect((await whole(ask(url, 'tools/call', call, { 'Mcp-Name': encoded }))).text).toBe(called.text);

  const get = await whole(send(url, { method: 'GET' }));
  expect([get.status, get.headers.allow]).toEqual([405, 'POST']);
  expect(await refusal(ask(url, 'tools/list', {}, { 'Mcp-Method': 'tools/call' }))).toEqual([400, -32020, 7]);
  const older = { 'MCP-Protocol-Version': '2025-11-25' };
  expect(await refusal(ask(url, 'tools/list', {}, older))).toEqual([400, -32020, 7]);
  expect(await refusal(ask(url, 'tools/call', call))).toEqual([400, -32020, 7]);
  expect(await refusal(ask(url, 'tools/call', call, { 'Mcp-Name': 'other' }))).toEqual([400, -32020, 7]);
  expect(await refusal(send(url, { body: { id: 7, method: 'tools/list' }, headers: version }))).toEqual([
    400, -32602, 7,
  ]);
  // It has no more what the older one has.
  for (const method of ['initialize', 'ping', 'logging/setLevel', 'resources/subscribe']) {
    expect(await refusal(ask(url, method))).toEqual([404, -32601, 7]);
  }
  const future = { 'io.modelcontextprotocol/protocolVersion': '2099-01-01' };
  const body = { id: 7, method: 'tools/list', params: { _meta: modernMeta(future) } };
  const headers = { 'MCP-Protocol-Version': '2099-01-01', 'Mcp-Method': 'tools/list' };
  expect(await refusal(send(url, { body, headers }))).toEqual([400, -32022, 7]);
  expect(await refusal(send(url, { body: INITIALIZE }))).toEqual([400, -32022, 0]);
  expect(await refusal(send(url, { body: '[]' }))).toEqual([400, -32600, null]);
  expect(await refusal(send(url, { body: { id: 7, result: {} } }))).toEqual([400, -32600, null]);
  expect((await whole(send(url, { body: { method: 'notifications/initialized' } }))).status).toBe(202);
});

test('what was refused for its headers answers no request with the right ones', async () => {
  const db = tempStore();
  const ask = (url: URL, header: object) =>
    send(url, {
      body: { id: 7, method: 'tools/list', params: { _meta: modernMeta() } },
      headers: { 'MCP-Protocol-Version': '2026-07-28', ...header },
    });
  const right = { 'Mcp-Method': 'tools/list' };
  const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
  for (const wrong of [{}, { 'Mcp-Method': 'prompts/list' }])
    expect(await refusal(ask(recorder.url, wrong))).toEqual([400, -32020, 7]);
  const listed = await whole(ask(recorder.url, right));
  await recorder.stop();

  const { url } = await startHttpMock(db);
  expect((await whole(ask(url, right))).text).toBe(listed.text);
  expect(await refusal(ask(url, {}))).toEqual([400, -32020, 7]);
  expect((await whole(ask(url, right))).text).toBe(listed.text);
});

test('arguments that headers repeat must agree with them, wherever the recording has the schema of the tool', async () => {
  const db = tempStore();
  const ask = (url: URL, method: string, params: object, header: object = {}) =>
    send(url, {
      body: { id: 7, method, params: { ...params, _meta: modernMeta() } },
      headers: { 'MCP-Protocol-Version': '2026-07-28', 'Mcp-Method': method, ...header },
    });
  const call = (url: URL, region: string | null, header: object) => {
    const params = { name: 'test_x_mcp_header', arguments: { region, level: 1 } };
    return ask(url, 'tools/call', params, { 'Mcp-Name': params.name, ...header });
  };
  const region = (text: string) => ({ 'Mcp-Param-Region': text });
  const encoded = region(`=?base64?${Buffer.from('süd').toString('base64')}?=`);

  async function talk(url: URL): Promise<unknown[]> {
    const seen = [
      await refusal(call(url, 'süd', {})),
      await refusal(call(url, 'süd', region('nord'))),
      (await whole(call(url, 'süd', encoded))).text,
      (await whole(call(url, null, region('ignored')))).text,
      (await whole(call(url, 'nord', { ...region('nord'), 'Mcp-Param-Other': 'x' }))).text,
    ];
    expect(seen.slice(0, 2)).toEqual([
      [400, -32020, 7],
      [400, -32020, 7],
    ]);
    return seen;
  }

  const recorder = await recordUrlInProcess(await startDualEraServer(), { db });
  await whole(ask(recorder.url, 'tools/list', {}));
  const recorded = await talk(recorder.url);
  await recorder.stop();
  const { url, misses } = await startHttpMock(db);
  expect(await talk(url)).toEqual(recorded);
  expect(misses).toEqual([]);
});

/** A server without sessions, which answers in JSON. */
function startPlainServer() {
  return startServer(async (request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(405, { Allow: 'POST' }).end();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const said = JSON.parse(Buffer.concat(chunks).toString());
    const first = [said].flat()[0];
    if (first.method === 'initialize' && request.headers.authorization === undefined) {
      response.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end('who are you?');
      return;
    }
    if (first.method === 'server/discover') {
      response.writeHead(404, { 'Content-Type': 'text/html' }).end('<h1>no</h1>');
      return;
    }
    const result = (one: { id: number }) =>
      `{"result": {"big": 12345678901234567890}, "id": ${one.id}, "jsonrpc": "2.0"}`;
    const text = Array.isArray(said) ? `[${said.map(result).join(',')}]` : result(said);
    const bad = `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`;
    const headers = {
      'Content-Type': 'application/json; charset=utf-8',
      'X-Kept': 'yes',
      'Set-Cookie': 'a=b',
    };
    response.writeHead(first.method === 'bad' ? 400 : 200, headers).end(first.method === 'bad' ? bad : text);
  });
}

test('an answer has the recorded bytes, whatever they are, and however many', async () => {
  const db = tempStore();
  const texts = [
    Buffer.from('é, 👍, \u2028 and ÿ'),
    Buffer.from([0xc3, 0x28, 0xff]),
    Buffer.alloc(200_000, 'é'),
  ];
  const answers = texts.map((text, id) =>
    Buffer.concat([Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":"`), text, Buffer.from('"}')]),
  );
  const upstream = await startServer(async (incoming, response) => {
    const [body] = await incoming.toArray();
    const answer = answers[JSON.parse(String(body)).id];
    response.writeHead(200, { 'Content-Type': 'application/json' }).end(answer);
  });
  const ask = async (url: URL | string, id: number) => {
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'acme/bytes', params: { id } });
    return Buffer.from(await (await fetch(url, { method: 'POST', headers, body })).arrayBuffer());
  };
  const recorder = await recordUrlInProcess(`${upstream.url}/mcp`, { db });
  for (const id of answers.keys()) await ask(recorder.url, id);
  await recorder.stop();

  const { url, misses } = await startHttpMock(db);
  for (const [id, answer] of answers.entries()) expect((await ask(url, id)).equals(answer)).toBe(true);
  expect(misses).toEqual([]);
});

test('answers come in the recorded form, with the recorded status and headers', async () => {
  const db = tempStore();
  const headers = { Authorization: 'Bearer me' };
  const batch = JSON.stringify(
    [1, 2].map((id) => ({ jsonrpc: '2.0', id, method: 'tools/list', params: { id } })),
  );
  const discover = { id: 9, method: 'server/discover', params: { _meta: modernMeta() } };

  async function talk(url: URL) {
    return [
      await whole(send(url, { body: INITIALIZE, headers })),
      await whole(send(url, { body: { id: 3, method: 'bad' }, headers })),
      await whole(send(url, { body: batch, headers })),
    ].map(
      ({
        status,
        text,
        headers: {
          date,
          connection,
          'set-cookie': cookie,
          'content-length': length,
          'transfer-encoding': coding,
          ...kept
        },
      }) => ({ status, text, kept }),
    );
  }

  const upstream = await startPlainServer();
  const recorder = await recordUrlInProcess(`${upstream.url}/deep/mcp`, { db });
  expect((await whole(send(recorder.url, { body: discover }))).status).toBe(404);
  expect((await whole(send(recorder.url, { body: INITIALIZE }))).status).toBe(401);
  const recorded = await talk(recorder.url);
  expect((await whole(send(recorder.url, { method: 'GET', headers }))).status).toBe(405);
  await recorder.stop();

  const { url, misses } = await startHttpMock(db);
  expect(url.pathname).toBe('/deep/mcp');
  expect(await talk(url)).toEqual(recorded);
  expect(recorded[1]).toMatchObject({ status: 400, kept: { 'x-kept': 'yes' } });
  expect(recorded[2]?.text).toContain('[{"result": {"big": 12345678901234567890}, "id": 1');
  const again = await whole(send(url, { body: INITIALIZE, headers }));
  expect(again.headers['set-cookie']).toBeUndefined();
  expect(again.headers['mcp-session-id']).toBeUndefined();
  expect((await whole(send(url, { method: 'GET', headers }))).status).toBe(405);
  const events = { ...headers, Accept: 'text/event-stream', 'Content-Type': 'application/json' };
  const streamed = await whole(send(url, { body: INITIALIZE, headers: events }));
  expect(streamed.headers['content-type']).toBe('text/event-stream');
  expect(streamed.text).toMatch(/^event: message\ndata: .*12345678901234567890.*\n\n$/);
  expect(misses).toEqual([]);
});

test('a recorded status that no answer can have is replaced', async () => {
  const db = tempStore();
  const upstream = await startPlainServer();
  const recorder = await recordUrlInProcess(`${upstream.url}/mcp`, { db });
  const headers = { Authorization: 'Bearer me' };
  await whole(send(recorder.url, { body: INITIALIZE, headers }));
  await recorder.stop();
  for (const status of [0, 101, 150, 204, 304, 1000]) {
    const store = openStore(db);
    store.prepare('UPDATE http_exchange SET status = ?').run(status);
    store.close();
    const { url } = await startHttpMock(db);
    const answer = await whole(send(url, { body: INITIALIZE, headers }));
    expect([answer.status, answer.text.includes('12345678901234567890')]).toEqual([200, true]);
  }
});

test('a client that leaves in the middle breaks nothing', async () => {
  const db = await legacyStore();
  const { url } = await startHttpMock(db);
  const half = request(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json', 'Content-Length': 100 },
  });
  half.on('error', () => {});
  half.write('{"jsonrpc"');
  await new Promise((resolve) => half.on('socket', (socket) => socket.once('connect', resolve)));
  half.destroy();
  const socket = connect(Number(url.port), '127.0.0.1', () => socket.end('POST /mcp HT'));
  socket.resume();
  await new Promise((resolve) => socket.once('close', resolve));
  await openSession(url);
});

test('a mock that is stopped ends its streams and listens no more', async () => {
  const db = await legacyStore();
  const { url, stop } = await startHttpMock(db);
  const headers = await openSession(url);
  const stream = await send(url, { method: 'GET', headers });
  await stop(10_000);
  await stream.ended;
  await expect(send(url, { body: INITIALIZE })).rejects.toThrow('ECONNREFUSED');
});
