/** A connection that begins with the preface of HTTP/2 passes through the proxy unread, byte for byte. */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  createServer,
  type Http2Server,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { HTTP2_PREFACE, type HttpEvent } from '../../src/protocol/wire/http-event.ts';
import { makeCertificate } from '../support/certificate.ts';
import { bodyOf, listenOn, openSocket, startProxy, startServer, startTcpServer } from '../support/http.ts';
import { scale } from '../support/scale.ts';
import { until } from '../support/tapedeck.ts';

const MB = 1024 * 1024;

/** Node's own ends hold at most 10 MB by themselves. */
const ROOM = { maxSessionMemory: 100 };

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/** Answers each stream with what it got. */
function echo(stream: ServerHttp2Stream): void {
  stream.respond({ ':status': 200 });
  stream.on('error', () => {});
  stream.pipe(stream);
}

async function serve(server: Http2Server, scheme: 'http' | 'https' = 'http'): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `${scheme}://localhost:${await listenOn(server)}`;
}

async function startHttp2(): Promise<string> {
  const server = createServer(ROOM);
  server.on('stream', echo);
  server.on('sessionError', () => {});
  return serve(server);
}

function connectTo(url: URL): ClientHttp2Session {
  const session = connect(url.origin, ROOM);
  session.on('error', () => {});
  onTestFinished(() => void session.destroy());
  return session;
}

/** The checksum of what comes back for these bytes. */
async function send(session: ClientHttp2Session, bytes: Buffer): Promise<string> {
  const stream = session.request({ ':method': 'POST', ':path': '/mcp', authorization: 'Bearer abc' });
  stream.end(bytes);
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return sha256(Buffer.concat(pieces));
}

const closed = (session: ClientHttp2Session) => new Promise((resolve) => session.once('close', resolve));

function bytesOf(events: readonly HttpEvent[], type: 'request-body' | 'response-body'): number {
  return events.reduce((sum, event) => sum + (event.type === type ? event.bytes.length : 0), 0);
}

test('many streams at once pass both ways, unchanged, and are one HTTP exchange', async () => {
  const { capture, events, waitFor } = await startProxy(`${await startHttp2()}/mcp`);
  const session = connectTo(capture.url);
  const payloads = [scale(10 * MB), MB, 1, 70_000].map((size) => randomBytes(size));
  const answers = await Promise.all(payloads.map((bytes) => send(session, bytes)));
  expect(answers).toEqual(payloads.map(sha256));
  session.close();
  expect(await waitFor('end')).toMatchObject({ closedBy: 'client', error: null, isComplete: true });
  expect(capture.openHttpExchanges()).toBe(0);
  expect(events[0]).toMatchObject({
    type: 'request',
    method: 'PRI',
    path: '*',
    httpVersion: '2.0',
    rawHeaders: [],
  });
  expect(bodyOf(events, 'request-body').slice(0, 24)).toBe(HTTP2_PREFACE);
  const total = payloads.reduce((sum, { length }) => sum + length, 0);
  for (const type of ['request-body', 'response-body'] as const)
    expect(bytesOf(events, type)).toBeGreaterThan(total);
  expect(events.map(({ type }) => type).filter((type) => !type.endsWith('-body'))).toEqual([
    ...['request', 'request-end', 'end'],
  ]);
});

test('the preface may come in any pieces, and what follows it arrives as it was sent', async () => {
  const heard: Buffer[] = [];
  const upstream = await startTcpServer((socket) => {
    socket.on('data', (bytes) => {
      heard.push(bytes);
      if (Buffer.concat(heard).includes('\r\n\r\nGET / HTTP/1.1\r\n\r\n')) socket.end('bye');
    });
  });
  const { port, waitFor } = await startProxy(upstream);
  for (const at of [1, 15, 20, 23, 24, 30]) {
    heard.length = 0;
    const all = `${HTTP2_PREFACE}\0\0\0 what is no HTTP/2 \r\n\r\nGET / HTTP/1.1\r\n\r\n`;
    const client = openSocket(port, all.slice(0, at));
    await once(client.socket, 'connect');
    await new Promise(setImmediate);
    client.socket.end(all.slice(at));
    await until('all arrived', () => Buffer.concat(heard).length === all.length);
    expect(Buffer.concat(heard).toString()).toBe(all);
    await until('the answer is back', () => client.received() === 'bye');
  }
  expect(await waitFor('end')).toMatchObject({ closedBy: 'client', error: null });
});

test('requests of HTTP/1.1 are what they were, and what cannot be read is refused as before', async () => {
  const { url } = await startServer((request, response) => response.end(`got ${request.url}`));
  const { port } = await startProxy(url);
  const bad = openSocket(port, 'NONSENSE\r\n\r\n');
  await until('it is refused', () => bad.received() !== '');
  expect(bad.received()).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n');
  const almost = openSocket(port, 'PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n');
  await until('it is refused', () => almost.received() !== '');
  expect(almost.received()).toMatch(/^HTTP\/1\.1 400 /);
  const long = openSocket(port, `GET / HTTP/1.1\r\nHost: x\r\nA: ${'a'.repeat(2 * MB)}\r\n\r\n`);
  await until('it is refused', () => long.received() !== '');
  expect(long.received()).toMatch(/^HTTP\/1\.1 431 /);
});

test('a server that speaks no HTTP/2 is heard as it answers, and the client learns of its end', async () => {
  const { url } = await startServer((_request, response) => response.end('never'));
  const { capture, events, waitFor } = await startProxy(url);
  const session = connectTo(capture.url);
  const stream = session.request({ ':path': '/' });
  stream.on('error', () => {});
  await closed(session);
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server' });
  expect(bodyOf(events, 'response-body')).toMatch(/^HTTP\/1\.1 /);
});

test('a server that is not there costs the client its connection, and is told of once', async () => {
  const gone = await startTcpServer(() => {});
  const notices: string[] = [];
  const dead = new URL(gone);
  dead.port = '1';
  const { capture, waitFor } = await startProxy(dead.href, { onNotice: (said) => void notices.push(said) });
  for (const exchange of [1, 2]) {
    const session = connectTo(capture.url);
    await closed(session);
    expect(await waitFor('end', exchange)).toMatchObject({ closedBy: 'proxy', isComplete: false });
  }
  expect(notices).toEqual([
    expect.stringMatching(/^a connection of HTTP\/2 was closed: cannot speak HTTP\/2 with /),
  ]);
});

test('over TLS it is offered to the server for such a connection alone, which then speaks it', async () => {
  const certificate = makeCertificate();
  const offered: unknown[] = [];
  const server = createSecureServer({ ...certificate, allowHTTP1: true }, (request, response) => {
    offered.push(request.httpVersion);
    request.pipe(response);
  });
  const upstream = await serve(server, 'https');
  const { capture } = await startProxy(upstream, { isInsecure: true });
  expect(await (await fetch(capture.url, { method: 'POST', body: 'plain' })).text()).toBe('plain');
  const bytes = randomBytes(MB);
  expect(await send(connectTo(capture.url), bytes)).toBe(sha256(bytes));
  expect(offered).toEqual(['1.1', '2.0']);
});

test('where a server over TLS does not choose it, the client is closed cleanly, and that is told', async () => {
  const server = createHttpsServer(makeCertificate(), (_request, response) => response.end('never'));
  onTestFinished(() => void server.close());
  const notices: string[] = [];
  const upstream = `https://localhost:${await listenOn(server)}`;
  const { port, waitFor } = await startProxy(upstream, {
    ...{ isInsecure: true, onNotice: (said: string) => void notices.push(said) },
  });
  const client = openSocket(port, HTTP2_PREFACE);
  expect(await text(client.socket)).toBe('');
  client.socket.end();
  expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy', error: expect.stringContaining('HTTP/2') });
  expect(notices).toEqual([expect.stringContaining(`HTTP/2`)]);
});

test('whichever end breaks, the other learns it', async () => {
  const sockets: Socket[] = [];
  const upstream = await startTcpServer((socket) => void sockets.push(socket.resume()));
  const { port, waitFor } = await startProxy(upstream);
  const first = openSocket(port, HTTP2_PREFACE);
  await until('it is connected', () => sockets.length === 1);
  first.socket.destroy();
  await until('the server has lost it', () => sockets[0]?.closed === true);
  expect(await waitFor('end', 1)).toMatchObject({ closedBy: 'client' });
  const second = openSocket(port, HTTP2_PREFACE);
  await until('it is connected', () => sockets.length === 2);
  sockets[1]?.resetAndDestroy();
  await until('the client has lost it', () => second.socket.closed);
  expect(await waitFor('end', 2)).toMatchObject({ closedBy: 'server', isComplete: false });
});

test('the slower end sets the pace', async () => {
  const held: Socket[] = [];
  const upstream = await startTcpServer((socket) => {
    socket.pause();
    held.push(socket);
  });
  const { port, events } = await startProxy(upstream);
  const { socket } = openSocket(port, HTTP2_PREFACE);
  await until('it is connected', () => held.length === 1);
  const whole = 32 * MB;
  socket.write(Buffer.alloc(whole));
  let [before, calm] = [0, 0];
  await until('nothing moves any more', () => {
    const now = bytesOf(events, 'request-body');
    calm = now === before ? calm + 1 : 0;
    before = now;
    return calm >= 20 && now > HTTP2_PREFACE.length;
  });
  expect(before).toBeLessThan(whole / 2);
  let got = 0;
  held[0]?.on('data', (bytes) => (got += bytes.length)).resume();
  await until('all of it arrives', () => got === whole + HTTP2_PREFACE.length);
});

test('a stop lets it go on within the time of grace', async () => {
  const { capture, waitFor } = await startProxy(await startHttp2(), { graceMs: 60_000 });
  const session = connectTo(capture.url);
  await send(session, randomBytes(10));
  const stopped = capture.stop();
  const bytes = randomBytes(1000);
  expect(await send(session, bytes)).toBe(sha256(bytes));
  session.close();
  await stopped;
  expect(await waitFor('end')).toMatchObject({ closedBy: 'client', error: null });
});

test('a stop without grace cuts it', async () => {
  const { capture, waitFor } = await startProxy(await startHttp2());
  const session = connectTo(capture.url);
  await send(session, randomBytes(10));
  await capture.stop();
  expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy', error: 'tapedeck stopped' });
});
