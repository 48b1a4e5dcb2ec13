import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { bodyOf, openSocket, readBody, startProxy, startServer } from '../../support/http.ts';
import { until } from '../../support/tapedeck.ts';

test('any method and path reaches the upstream as the client wrote it', async () => {
  const seen: string[] = [];
  const upstream = await startServer((req, res) => {
    seen.push(`${req.method} ${req.url}`);
    res.end();
  });
  const { port } = await startProxy(`${upstream.url}/mcp`);
  const lines = [
    'GET /.well-known/oauth-protected-resource/mcp',
    'POST /messages?sessionId=a%2Fb&x=//..',
    'PUT /a//b/../c?',
    'PATCH /%E2%82%AC',
    'DELETE /mcp',
    'OPTIONS *',
    'PROPFIND /x;y=z',
  ];
  for (const line of lines) {
    const client = openSocket(port, `${line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
    expect(await client.closed).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  }
  expect(seen).toEqual(lines);
});

test('names, case, order and duplicates of headers stay, both ways', async () => {
  const answered = [
    'X-Two',
    '1',
    'x-one',
    'ä',
    'X-Two',
    '2',
    'SET-cookie',
    'a=1',
    'Set-Cookie',
    'b=2',
    'Content-Length',
    '0',
  ];
  let asked: string[] = [];
  const upstream = await startServer((req, res) => {
    asked = req.rawHeaders;
    res.writeHead(299, 'Quite Fine', answered);
    res.end();
  });
  const { port, waitFor } = await startProxy(upstream.url);
  const own =
    'B-b: 1\r\na-A: 2\r\nHOST: localhost:1\r\nB-B: 3\r\nCookie: x\r\nx-empty:\r\nMcp-Param-Größe: é\r\n';
  const client = openSocket(
    port,
    `GET / HTTP/1.1\r\n${own.replace('Größe', 'Size')}Connection: close, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\r\n`,
  );
  const received = await client.closed;
  expect(asked).toEqual([
    'B-b',
    '1',
    'a-A',
    '2',
    'HOST',
    new URL(upstream.url).host,
    'B-B',
    '3',
    'Cookie',
    'x',
    'x-empty',
    '',
    'Mcp-Param-Size',
    'é',
    'Connection',
    'keep-alive',
  ]);
  const lines = [
    'X-Two: 1',
    'x-one: ä',
    'X-Two: 2',
    'SET-cookie: a=1',
    'Set-Cookie: b=2',
    'Content-Length: 0',
  ];
  expect(received).toBe(`HTTP/1.1 299 Quite Fine\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`);
  const shown = await waitFor('request');
  expect(shown.rawHeaders.slice(-6)).toEqual(['Connection', 'close, X-Hop', 'X-Hop', '1', 'Keep-Alive', '5']);
  expect((await waitFor('response')).rawHeaders.slice(0, 12)).toEqual(answered);
});

test('an exchange is shown piece by piece, in order, with its bytes', async () => {
  const upstream = await startServer(async (req, res) => {
    await readBody(req);
    res.write('one ');
    setImmediate(() => res.end('two'));
  });
  const { capture, events, waitFor } = await startProxy(`${upstream.url}/mcp`);
  expect(capture.url.pathname).toBe('/mcp');
  const answer = await fetch(capture.url, { method: 'POST', body: '{"a":1}' });
  expect(await answer.text()).toBe('one two');
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server', error: null });
  expect(bodyOf(events, 'request-body')).toBe('{"a":1}');
  expect(bodyOf(events, 'response-body')).toBe('one two');
  expect(events[0]).toMatchObject({
    type: 'request',
    exchange: 1,
    method: 'POST',
    path: '/mcp',
    httpVersion: '1.1',
  });
  expect(events.findLast((event) => event.type === 'request-end')).toMatchObject({ isComplete: true });
  expect(events.at(-1)?.type).toBe('end');
  const times = events.map((event) => event.at);
  expect(times).toEqual([...times].sort((a, b) => a - b));
});

test('the headers of a stream that stays quiet go out at once, and each event as it comes', async () => {
  const streams: import('node:http').ServerResponse[] = [];
  const upstream = await startServer((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.flushHeaders();
    streams.push(res);
  });
  const { port } = await startProxy(upstream.url);
  const client = openSocket(port, 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n');
  await client.until('\r\n\r\n');
  for (const text of ['data: 1\n\n', ': comment\n', 'data: 2\n\n']) {
    streams[0]?.write(text);
    await client.until(`${text}\r\n`);
  }
});

test('the headers of a request whose body is slow to come go out at once', async () => {
  const upstream = await startServer((_req, res) => res.writeHead(200).flushHeaders());
  const { port } = await startProxy(upstream.url);
  const client = openSocket(port, 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n');
  await client.until('200 OK');
});

test('Expect: 100-continue is for the upstream to answer', async () => {
  const upstream = await startServer((_req, res) => res.end());
  upstream.server.on('checkContinue', async (req, res) => {
    if (req.url === '/no') {
      res.writeHead(401).end();
      return;
    }
    res.writeContinue();
    res.end(await readBody(req));
  });
  upstream.server.on('checkExpectation', (_req, res) => res.writeHead(417, 'Never Heard').end());
  const { port, events } = await startProxy(upstream.url);
  const head = (path: string, expectation: string) =>
    `POST ${path} HTTP/1.1\r\nHost: localhost\r\nExpect: ${expectation}\r\nContent-Length: 3\r\n\r\n`;
  const client = openSocket(port, head('/yes', '100-continue'));
  expect(await client.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
  client.socket.write('abc');
  await client.until('\r\n\r\nabc');
  expect(events.find((event) => event.type === 'information')).toMatchObject({ status: 100 });

  const refused = openSocket(port, head('/no', '100-continue'));
  expect(await refused.until('\r\n\r\n')).toMatch(/^HTTP\/1.1 401 /);
  const unknown = openSocket(port, head('/', 'miracles'));
  expect(await unknown.until('\r\n\r\n')).toMatch(/^HTTP\/1.1 417 Never Heard/);
});

test('early hints come through before the answer', async () => {
  const upstream = await startServer((_req, res) => {
    res.writeEarlyHints({ link: '</a>; rel=preload', 'X-Hint': 'yes' });
    res.end('done');
  });
  const { port, waitFor } = await startProxy(upstream.url);
  const client = openSocket(port, 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  expect(await client.closed).toMatch(
    /^HTTP\/1.1 103 Early Hints\r\nLink: <\/a>; rel=preload\r\nX-Hint: yes\r\n\r\nHTTP\/1.1 200 OK\r\n/,
  );
  expect(await waitFor('information')).toMatchObject({ status: 103 });
});

test('trailers come through, both ways', async () => {
  const upstream = await startServer(async (req, res) => {
    await readBody(req);
    res.writeHead(200, { Trailer: 'X-Sum' });
    res.write('body');
    res.addTrailers({ 'X-Sum': req.rawTrailers.join('=') });
    res.end();
  });
  const { port, waitFor } = await startProxy(upstream.url);
  const client = openSocket(
    port,
    'POST / HTTP/1.1\r\nHost: localhost\r\nTrailer: X-Req\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Req: r\r\n\r\n',
  );
  await client.until('0\r\nX-Sum: X-Req=r\r\n\r\n');
  expect((await waitFor('request-end')).rawTrailers).toEqual(['X-Req', 'r']);
  expect((await waitFor('end')).rawTrailers).toEqual(['X-Sum', 'X-Req=r']);
});

test('answers without a body leave the connection usable', async () => {
  const upstream = await startServer((req, res) => {
    if (req.url === '/204') res.writeHead(204).end();
    else if (req.url === '/304') res.writeHead(304, { ETag: '"x"', 'Content-Length': '77' }).end();
    else if (req.url === '/202') res.writeHead(202).end();
    else res.writeHead(200, { 'Content-Length': '1234' }).end();
  });
  const { port } = await startProxy(upstream.url);
  const client = openSocket(port);
  for (const [line, status] of [
    ['HEAD /', '200 OK\r\nContent-Length: 1234\r\n'],
    ['GET /204', '204 No Content\r\n'],
    ['GET /304', '304 Not Modified\r\nETag: "x"\r\nContent-Length: 77\r\n'],
    ['POST /202', '202 Accepted\r\n'],
    ['DELETE /204', '204 No Content\r\n'],
    ['OPTIONS /204', '204 No Content\r\n'],
  ]) {
    const before = client.received().length;
    client.socket.write(`${line} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await client.until(`HTTP/1.1 ${status}`);
    while (!client.received().slice(before).includes('\r\n\r\n')) await once(client.socket, 'data');
    expect(client.received().slice(before)).toMatch(/Connection: keep-alive/);
  }
});

test('a client of HTTP/1.0 gets an answer without chunks', async () => {
  let host: string | undefined;
  const upstream = await startServer((req, res) => {
    host = req.headers.host;
    res.write('a');
    setImmediate(() => res.end('b'));
  });
  const { port } = await startProxy(upstream.url);
  const received = await openSocket(port, 'GET / HTTP/1.0\r\n\r\n').closed;
  expect(received).toMatch(/\r\n\r\nab$/);
  expect(received).not.toMatch(/chunked/i);
  expect(host).toBe(new URL(upstream.url).host);
});

test('connections to the upstream are kept for the next request', async () => {
  const upstream = await startServer((_req, res) => res.end('x'));
  let connections = 0;
  upstream.server.on('connection', () => {
    connections += 1;
  });
  const { capture } = await startProxy(upstream.url);
  for (let i = 0; i < 5; i += 1) await (await fetch(capture.url)).text();
  expect(connections).toBe(1);
});

test('an upstream that cannot be reached is a 502 that says why', async () => {
  const { url, server } = await startServer(() => {});
  server.close();
  const { capture, waitFor, events } = await startProxy(url);
  for (const init of [{}, { method: 'POST', body: 'x'.repeat(100_000) }]) {
    const answer = await fetch(capture.url, init);
    expect(answer.status).toBe(502);
    expect(answer.headers.get('content-type')).toMatch(/^text\/plain/);
    expect(await answer.text()).toMatch(
      new RegExp(`^tapedeck: cannot reach ${url}: connect ECONNREFUSED [^\n]+\n$`),
    );
  }
  expect(await waitFor('end')).toMatchObject({
    closedBy: 'proxy',
    error: expect.stringMatching(/ECONNREFUSED/),
  });
  expect(
    bodyOf(
      events.filter((event) => event.exchange === 1),
      'response-body',
    ),
  ).toMatch(/^tapedeck: cannot reach/);
});

test('a recorder that throws costs the traffic nothing', async () => {
  const upstream = await startServer((_req, res) => res.end('fine'));
  const { capture } = await startProxy(upstream.url, {
    onEvent: () => {
      throw new Error('no');
    },
  });
  expect(await (await fetch(capture.url)).text()).toBe('fine');
  expect(capture.failedEvents()).toBeGreaterThan(3);
});

test('a wish to upgrade is left aside, as HTTP allows, and a tunnel is refused', async () => {
  let headers: string[] = [];
  const upstream = await startServer((req, res) => {
    headers = req.rawHeaders;
    res.writeHead(426).end();
  });
  const { port } = await startProxy(upstream.url);
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
  const client = openSocket(port, `GET / HTTP/1.1\r\nHost: localhost\r\n${upgrade}\r\n`);
  await client.until('HTTP/1.1 426 ');
  expect(headers.map((text) => text.toLowerCase())).not.toContain('upgrade');
  const tunnel = openSocket(port, 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n');
  expect(await tunnel.closed).toMatch(/^HTTP\/1.1 405 /);
});

test('headers as large as tokens can be come through', async () => {
  const token = 'x'.repeat(200_000);
  const upstream = await startServer(
    (req, res) => res.setHeader('X-Echo', String(req.headers.authorization)).end(),
    {
      maxHeaderSize: 400_000,
    },
  );
  const { port } = await startProxy(upstream.url);
  const agent = new Agent();
  onTestFinished(() => agent.destroy());
  const call = request({ port, agent, headers: { Authorization: token }, maxHeaderSize: 400_000 }).end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  expect(answer.headers['x-echo']).toBe(token);
});

/** Reads from a port in a thread of its own, and says in `seen` when there was something. */
const READER = `
  const { workerData } = require('node:worker_threads');
  const socket = require('node:net').connect(workerData.port, '127.0.0.1');
  socket.on('data', () => {
    Atomics.add(workerData.seen, 0, 1);
    Atomics.notify(workerData.seen, 0);
  });
  socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n');
`;

test('what passes has reached the other side before it is shown', async () => {
  const upstream = await startServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write('data: 1\n\n');
  });
  const seen = new Int32Array(new SharedArrayBuffer(4));
  const waits: string[] = [];
  const { port } = await startProxy(upstream.url, {
    onEvent({ type }) {
      // Nothing else can happen in this thread meanwhile.
      if (type === 'response-body') waits.push(Atomics.wait(seen, 0, 0, 10_000));
      return undefined;
    },
  });
  const reader = new Worker(READER, { eval: true, workerData: { port, seen } });
  onTestFinished(async () => void (await reader.terminate()));
  await until('it is shown', () => waits.length > 0);
  expect(waits).not.toContain('timed-out');
});
