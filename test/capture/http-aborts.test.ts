import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { expect, test } from 'vitest';
import { openSocket, startProxy, startServer, startTcpServer } from '../support/http.ts';

const POST = 'POST / HTTP/1.1\r\nHost: localhost\r\n';
const WHOLE = `${POST}Content-Length: 2\r\n\r\n{}`;
const STREAM = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n';

/** An upstream that never ends its answer by itself, and the first exchange that it sees. */
async function startOpenEnded(onRequest: (res: ServerResponse) => void) {
  let seen = (_pair: [IncomingMessage, ServerResponse]) => {};
  const first = new Promise<[IncomingMessage, ServerResponse]>((resolve) => {
    seen = resolve;
  });
  const { url } = await startServer((req, res) => {
    req.resume();
    onRequest(res);
    seen([req, res]);
  });
  return { url, first };
}

const before = (_res: ServerResponse) => {};
const within = (res: ServerResponse) => void res.write('data: 1\n\n');

for (const [when, onRequest] of [
  ['before the headers', before],
  ['within the answer', within],
] as const) {
  for (const how of ['end', 'resetAndDestroy'] as const) {
    test(`a client that leaves ${when} (${how}) is gone for the upstream at once`, async () => {
      const { url, first } = await startOpenEnded(onRequest);
      const { port, waitFor } = await startProxy(url);
      const client = openSocket(port, WHOLE);
      const [, res] = await first;
      if (onRequest === within) await client.until('data: 1');
      const leftAt = performance.now();
      client.socket[how]();
      await once(res, 'close');
      expect(performance.now() - leftAt).toBeLessThan(500);
      expect(res.writableFinished).toBe(false);
      expect(await waitFor('end')).toMatchObject({ closedBy: 'client', error: expect.any(String) });
    });
  }
}

test('a client that closes its side after its request gets its answer from a server that still gives one', async () => {
  const url = await startTcpServer((socket) => {
    socket.on('error', () => {});
    // As servers do that take the end of what the client says for no more than that.
    socket.once('data', () => {
      socket.once('end', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello'));
    });
  });
  const { port, waitFor } = await startProxy(url);
  const client = openSocket(port, WHOLE);
  await waitFor('request-end');
  client.socket.end();
  expect(await client.closed).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*hello$/);
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server', error: null, isComplete: true });
});

test('a client that leaves within its request body breaks the upstream request', async () => {
  const { url, first } = await startOpenEnded(before);
  const { port, waitFor } = await startProxy(url);
  const client = openSocket(port, `${POST}Content-Length: 10\r\n\r\n{"a"`);
  const [req] = await first;
  await waitFor('request-body');
  client.socket.destroy();
  // It is destroyed with an error, which is the point.
  await once(req, 'close').catch(() => {});
  expect(req.complete).toBe(false);
  expect(await waitFor('request-end')).toMatchObject({ isComplete: false });
  expect(await waitFor('end')).toMatchObject({ closedBy: 'client' });
});

test('clients that leave with several requests on one connection leave nothing open', async () => {
  const closed: Promise<unknown>[] = [];
  let seen = () => {};
  const bothSeen = new Promise<void>((resolve) => {
    seen = () => closed.length === 2 && resolve();
  });
  const { url } = await startServer((_req, res) => {
    closed.push(once(res, 'close'));
    seen();
  });
  const { port, waitFor } = await startProxy(url);
  const client = openSocket(port, WHOLE + WHOLE);
  await bothSeen;
  client.socket.destroy();
  await Promise.all(closed);
  expect(await waitFor('end', 1)).toMatchObject({ closedBy: 'client' });
  expect(await waitFor('end', 2)).toMatchObject({ closedBy: 'client' });
});

for (const how of ['end', 'resetAndDestroy'] as const) {
  for (const [when, request, answer] of [
    ['before the headers', WHOLE, ''],
    ['within the headers', WHOLE, 'HTTP/1.1 200 OK\r\nX-A'],
    ['within the answer', WHOLE, `${STREAM}9\r\ndata: 1\n\n\r\n`],
    ['within a body of known length', WHOLE, 'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc'],
    ['within the request body', `${POST}Content-Length: 10\r\n\r\n{"a"`, ''],
  ] as const) {
    test(`an upstream that dies ${when} (${how}) breaks the client's connection at once`, async () => {
      let seen = (_socket: Socket) => {};
      const upstream = new Promise<Socket>((resolve) => {
        seen = resolve;
      });
      const url = await startTcpServer((socket) => {
        socket.once('data', () => socket.write(answer, () => seen(socket)));
        socket.on('data', () => {});
      });
      const { port, waitFor } = await startProxy(url);
      const client = openSocket(port, request);
      const socket = await upstream;
      if (answer.includes('data: 1')) await client.until('data: 1');
      else if (answer.includes('abc')) await client.until('abc');
      else if (request !== WHOLE) await waitFor('request-body');
      const diedAt = performance.now();
      socket[how]();
      const received = await client.closed;
      expect(performance.now() - diedAt).toBeLessThan(500);
      expect(received).not.toContain('0\r\n\r\n');
      expect(received).not.toMatch(/^HTTP\/1.1 5/);
      expect(await waitFor('end')).toMatchObject({ closedBy: 'server', error: expect.any(String) });
    });
  }
}

test('an upstream that answers before it has read the request is heard', async () => {
  const url = await startTcpServer((socket) => {
    socket.once('data', () => {
      socket.end('HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig');
    });
    socket.resume();
  });
  const { port, waitFor } = await startProxy(url);
  const client = openSocket(port, `${POST}Content-Length: 1000000\r\n\r\n${'x'.repeat(1000)}`);
  expect(await client.until('big')).toMatch(/^HTTP\/1.1 413 Too Large/);
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server', error: null });
  expect(await waitFor('request-end')).toMatchObject({ isComplete: false });
});

test('an upstream that talks no HTTP breaks the connection', async () => {
  const url = await startTcpServer((socket) => {
    socket.once('data', () => socket.write('SSH-2.0-nothing\r\n'));
  });
  const { port, waitFor } = await startProxy(url);
  expect(await openSocket(port, WHOLE).closed).toBe('');
  expect(await waitFor('end')).toMatchObject({
    closedBy: 'server',
    error: expect.stringMatching(/Parse Error/),
  });
});
