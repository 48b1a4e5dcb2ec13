/** Clients and servers over HTTP that record themselves, beside a proxy on the same traffic. */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { serve } from '@hono/node-server';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstHttp } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
// @ts-expect-error It comes without types.
import untyped from 'express';
import { Hono } from 'hono';
import { expect, onTestFinished, test } from 'vitest';
import { recordedFetch, recordedHandler } from '../../src/record/record.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { talkToDualEra } from '../support/official-clients.ts';
import { exchangesOf, framesOf, sessionsOf } from '../support/recorded.ts';
import { inFull, sample } from '../support/scale.ts';
import { startDualEra } from '../support/servers.ts';
import { tempStore, until } from '../support/tapedeck.ts';

type Parsed = IncomingMessage & { body?: unknown };

type App = Listener & Record<'use' | 'post', (...args: unknown[]) => void>;

const express: { (): App; json(): unknown } = untyped;

type Listener = (request: IncomingMessage, response: ServerResponse) => void;

/** Gives its URL. */
async function listen(listener: Listener): Promise<URL> {
  const server: Server = createServer(listener);
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.closeAllConnections());
  onTestFinished(() => void server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`);
}

const CONNECTION = new Set(['connection', 'keep-alive', 'host', 'transfer-encoding', 'accept-encoding']);

/** Heads without what each connection has of its own. */
function comparable(db: string) {
  const own = ([name]: [string, string]) => !CONNECTION.has(name.toLowerCase());
  return exchangesOf(db)
    .map(({ requestHeaders, responseHeaders, ...exchange }) => ({
      ...exchange,
      requestHeaders: requestHeaders.filter(own),
      responseHeaders: responseHeaders.filter(own),
    }))
    .toSorted(byText);
}

function bodiesOf(db: string) {
  const exchanges = exchangesOf(db);
  return exchanges
    .map(({ method, path, status, frames }) => ({ method, path, status, frames }))
    .toSorted(byText);
}

function byText(a: object, b: object): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

const factsOf = (db: string) =>
  sessionsOf(db).map(({ basis, transport, era, end_reason, frames, dropped }) => ({
    ...{ basis, transport, era, end_reason, frames, dropped },
  }));

inFull.each(['legacy', 'auto'] as const)(
  'client and server of the SDK 2.x that record themselves have what a proxy between them records (%s)',
  async (mode) => {
    const [ofServer, ofClient] = [tempStore(), tempStore()];
    const server = await startDualEra({ RECORD_DB: ofServer });
    const proxy = await recordUrlInProcess(server.url);
    const fetchIt = recordedFetch(fetch, { db: ofClient });
    await talkToDualEra(new StreamableHTTPClientTransport(proxy.url, { fetch: fetchIt }), mode);
    await fetchIt.close();
    await proxy.stop();
    const ended = (db: string) => exchangesOf(db).filter(({ closedBy }) => closedBy !== null).length;
    await until('the server has stored all', () => ended(ofServer) === ended(proxy.db));
    expect(ended(proxy.db)).toBeGreaterThan(10);
    expect(comparable(ofServer)).toEqual(comparable(proxy.db));
    expect(bodiesOf(ofClient)).toEqual(bodiesOf(proxy.db));
    for (const db of [ofServer, ofClient])
      expect(factsOf(db).map(({ end_reason: _, ...facts }) => facts)).toEqual(
        factsOf(proxy.db).map(({ end_reason: _, ...facts }) => facts),
      );
  },
);

async function answerWithSdk(
  incoming: IncomingMessage,
  response: ServerResponse,
  body?: unknown,
): Promise<void> {
  const server = new McpServer({ name: 'first', version: '1' });
  server.registerTool('hi', {}, () => ({ content: [{ type: 'text', text: 'hällo' }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined } as never);
  await server.connect(transport as never);
  await transport.handleRequest(incoming, response, body);
}

const HOSTS: Record<string, (db: string) => Promise<{ url: URL; close: () => Promise<void> }>> = {
  'node:http': async (db) => {
    const recorded = recordedHandler(answerWithSdk, { db });
    return { url: await listen(recorded), close: recorded.close };
  },
  Express: async (db) => {
    const app = express();
    app.use(express.json());
    app.post(
      '/mcp',
      (incoming: Parsed, response: ServerResponse) => void answerWithSdk(incoming, response, incoming.body),
    );
    app.use((_: Parsed, response: ServerResponse) => void response.writeHead(405).end('no'));
    const recorded = recordedHandler(app, { db });
    return { url: await listen(recorded), close: recorded.close };
  },
  'the adapter of Hono': async (db) => {
    const app = new Hono<{ Bindings: { incoming: IncomingMessage; outgoing: ServerResponse } }>();
    app.post('/mcp', async (context) => {
      const { method, params, id } = await context.req.json();
      if (id === undefined) return context.body(null, 202);
      const info = {
        protocolVersion: params?.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: 'hono', version: '1' },
      };
      const result = method === 'initialize' ? info : { content: [{ type: 'text', text: 'hällo' }] };
      return context.json({ jsonrpc: '2.0', id, result });
    });
    app.all('*', (context) => context.text('no', 405));
    let close = async () => {};
    const server = serve({
      ...{ fetch: app.fetch, port: 0, hostname: '127.0.0.1' },
      createServer: ((options: object, listener: Listener) => {
        const recorded = recordedHandler(listener, { db });
        close = recorded.close;
        return createServer(options, recorded);
      }) as typeof createServer,
    });
    onTestFinished(() => void server.close());
    await until('it listens', () => server.listening);
    const { port } = server.address() as AddressInfo;
    return { url: new URL(`http://127.0.0.1:${port}/mcp`), close: () => close() };
  },
};

test.each(sample(Object.keys(HOSTS)))(
  'a server on %s and a client of the SDK 1.x record the same bodies',
  async (name) => {
    const [db, ofClient] = [tempStore(), tempStore()];
    const { url, close } = (await HOSTS[name]?.(db)) ?? {
      url: new URL('about:blank'),
      close: async () => {},
    };
    const recorded = recordedFetch(fetch, { db: ofClient, name: 'client' });
    const client = new Client({ name: 'first', version: '1' });
    await client.connect(new FirstHttp(url, { fetch: recorded }) as never);
    expect((await client.callTool({ name: 'hi' })).content).toEqual([{ type: 'text', text: 'hällo' }]);
    await client.close();
    await Promise.all([close(), recorded.close()]);
    const messages = (file: string) => framesOf(file).filter(({ flags }) => flags === null);
    expect(messages(db).length).toBe(5);
    expect(messages(ofClient)).toEqual(messages(db));
    expect(sessionsOf(db)).toMatchObject([{ target: url.href, dropped: 0, client_name: 'first' }]);
    expect(sessionsOf(ofClient)).toMatchObject([
      { target: url.href, name: 'client', client_pid: process.pid },
    ]);
  },
);

/** Sends one request as it stands; gives what came back, or the failure. */
function send(url: URL, options: object, body: string | Buffer = ''): Promise<string> {
  return new Promise((resolve) => {
    const sent = request(url, options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk) => chunks.push(chunk));
      answer.on('end', () => resolve(Buffer.concat(chunks).toString('latin1')));
      answer.on('error', ({ message }) => resolve(message));
    });
    sent.on('error', ({ message }) => resolve(message));
    sent.end(body);
  });
}

const ODD: Record<string, Listener> = {
  '1xx before the answer, trailers after it': (_, response) => {
    response.writeEarlyHints({ link: '</a>; rel=preload' });
    response.writeProcessing();
    response.setHeader('Trailer', 'X-After');
    response.writeHead(200, 'Fine', [
      'X-Twice',
      'a',
      'X-Twice',
      'b',
      'Transfer-Encoding',
      'chunked',
      'Trailer',
      'X-After',
    ]);
    response.write('{"jsonrpc":');
    response.addTrailers({ 'X-After': 'yes' });
    response.end('"2.0","id":1,"result":{}}', 'latin1');
  },
  'an answer to HEAD, and a status without a body': (incoming, response) => {
    response.writeHead(incoming.method === 'HEAD' ? 200 : 204);
    response.end('nobody gets this');
  },
  'a coded body': (_, response) => {
    response.setHeader('Content-Encoding', 'gzip');
    response.end(gzipSync('{"jsonrpc":"2.0","id":1,"result":{}}'));
  },
  'a body that arrives after the answer': (_, response) => void response.end('done'),
  'an answer that the server breaks off': (incoming, response) => {
    incoming.resume();
    response.write('begun');
    setImmediate(() => setImmediate(() => response.destroy()));
  },
};

test.each(sample(Object.keys(ODD)))('%s: as a proxy sees it', async (name) => {
  const db = tempStore();
  const recorded = recordedHandler(ODD[name] as Listener, { db });
  const proxy = await recordUrlInProcess(await listen(recorded));
  const json = { 'content-type': 'application/json' };
  await send(proxy.url, { method: 'POST', headers: json }, '{"jsonrpc":"2.0","id":1,"method":"ping"}');
  await send(proxy.url, { method: 'HEAD' });
  await proxy.stop();
  await until('both have ended', async () => {
    await recorded.flush();
    return exchangesOf(db).filter(({ closedBy }) => closedBy !== null).length === 2;
  });
  await recorded.close();
  const withoutErrors = (file: string) =>
    comparable(file).map(({ error, ...rest }) => ({ ...rest, failed: error !== null }));
  expect(withoutErrors(db)).toEqual(withoutErrors(proxy.db));
});

test('a client that leaves in the middle, and one that sends several requests at once', async () => {
  const db = tempStore();
  const seen: { answer?: ServerResponse } = {};
  const recorded = recordedHandler(
    (_, response) => {
      response.write('begun');
      seen.answer = response;
    },
    { db },
  );
  const url = await listen(recorded);
  const leaving = request(url, (answer) => void answer.once('data', () => leaving.destroy()));
  leaving.on('error', () => {});
  leaving.end();
  await until('it has left', () => seen.answer?.destroyed === true);
  await recorded.close();
  expect(exchangesOf(db)).toMatchObject([
    {
      status: 200,
      closedBy: 'client',
      error: 'the client closed the connection',
      frames: [{ text: 'begun' }],
    },
  ]);
});

test('a body that was read before the recorder came is counted as lost, and that is told', async () => {
  const told: string[] = [];
  const db = tempStore();
  const app = express();
  app.use(express.json());
  const recorded = recordedHandler(
    (incoming, response) => void answerWithSdk(incoming, response, (incoming as Parsed).body),
    {
      db,
      onTrouble: (text) => told.push(text),
    },
  );
  app.post('/mcp', recorded);
  const url = await listen(app);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  await send(url, { method: 'POST', headers }, '{"jsonrpc":"2.0","id":1,"method":"ping"}');
  await recorded.close();
  expect(told).toEqual([expect.stringContaining('createServer(recordedHandler(app))')]);
  expect(sessionsOf(db)).toMatchObject([{ dropped: 1, dropped_bytes: 40 }]);
});

test('what fetch gives stays what it is: address, class, copies, streams, failures', async () => {
  const db = tempStore();
  const url = await listen((incoming, response) => {
    if (incoming.url === '/moved') response.writeHead(302, { location: '/mcp' }).end();
    else if (incoming.url === '/never') response.write(': waiting\n\n');
    else response.writeHead(418, 'Teapot', { 'content-encoding': 'gzip' }).end(gzipSync('{"a":1}'));
  });
  const recorded = recordedFetch(fetch, { db });
  const moved = await recorded(new URL('/moved', url));
  expect(moved.constructor).toBe((await fetch(url)).constructor);
  expect([moved.url, moved.redirected, moved.status, moved.statusText]).toEqual([
    url.href,
    true,
    418,
    'Teapot',
  ]);
  const copy = moved.clone();
  expect([moved.bodyUsed, await moved.json(), moved.bodyUsed]).toEqual([false, { a: 1 }, true]);
  expect([copy.url, await copy.text()]).toEqual([url.href, '{"a":1}']);
  await expect(moved.text()).rejects.toThrow(TypeError);
  await expect(recorded('not a url')).rejects.toThrow(TypeError);
  await expect(recorded('http://127.0.0.1:1/')).rejects.toThrow('fetch failed');

  const abort = new AbortController();
  const waiting = await recorded(new URL('/never', url), { signal: abort.signal });
  const reader = waiting.body?.getReader({ mode: 'byob' });
  const { value } = (await reader?.read(new Uint8Array(100))) ?? {};
  expect(Buffer.from(value ?? []).toString()).toBe(': waiting\n\n');
  const next = reader?.read(new Uint8Array(100));
  abort.abort(new Error('enough'));
  await expect(next).rejects.toThrow('enough');

  const sent = await recorded(url, {
    method: 'POST',
    duplex: 'half',
    body: new ReadableStream({
      start(controller) {
        controller.enqueue(Buffer.from('{"jsonrpc":"2.0",'));
        controller.enqueue(Buffer.from('"id":1,"method":"ping"}'));
        controller.close();
      },
    }),
  } as RequestInit);
  await sent.body?.cancel();
  await recorded.close();
  expect(framesOf(db).map(({ text }) => text)).toEqual(
    expect.arrayContaining(['{"a":1}', ': waiting\n\n', '{"jsonrpc":"2.0","id":1,"method":"ping"}']),
  );
  expect(exchangesOf(db).map(({ path, status, closedBy, error }) => [path, status, closedBy, error])).toEqual(
    expect.arrayContaining([
      ['/moved', 418, 'server', null],
      ['/never', 200, 'client', 'the client gave the call up'],
      ['/', null, 'server', expect.stringMatching(/ECONNREFUSED|bad port/)],
    ]),
  );
});
