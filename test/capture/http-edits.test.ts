import type { RequestListener } from 'node:http';
import zlib from 'node:zlib';
import { expect, test } from 'vitest';
import { bodyOf, openSocket, startProxy, startServer } from '../support/http.ts';

const PATH = '/.well-known/oauth-protected-resource/mcp';
const metadata = (origin: string) => JSON.stringify({ resource: `${origin}/mcp`, scopes_supported: [] });

test('what a server says of its own address leads through the proxy', async () => {
  const upstream = await startServer((req, res) => {
    if (req.url === '/mcp') {
      const challenge = `Bearer resource_metadata="${upstream.url}/meta", scope="x"`;
      res.writeHead(401, { 'WWW-Authenticate': challenge }).end();
    } else if (req.url === '/old') res.writeHead(307, { Location: `${upstream.url}/mcp` }).end();
    else if (req.url === '/meta') res.end(metadata(upstream.url));
    else res.end('?');
  });
  const { capture, waitFor } = await startProxy(`${upstream.url}/mcp`);
  const { origin } = capture.url;

  const challenged = await fetch(capture.url);
  expect(challenged.headers.get('www-authenticate')).toBe(
    `Bearer resource_metadata="${origin}/meta", scope="x"`,
  );
  const original = `Bearer resource_metadata="${upstream.url}/meta", scope="x"`;
  expect(await waitFor('response', 1)).toMatchObject({ edits: [{ header: 'WWW-Authenticate', original }] });

  const moved = await fetch(`${origin}/old`, { redirect: 'manual' });
  expect(moved.headers.get('location')).toBe(`${origin}/mcp`);
  // The path that the challenge has named is one of metadata, whatever it looks like.
  expect(await (await fetch(`${origin}/meta`)).json()).toMatchObject({ resource: `${origin}/mcp` });
});

const answers: readonly (readonly [string, (body: string) => RequestListener])[] = [
  [
    'with a length',
    (body) => (_req, res) => res.setHeader('Content-Length', Buffer.byteLength(body)).end(body),
  ],
  ['in chunks', (body) => (_req, res) => [...body].every((c) => res.write(c)) && res.end()],
  [
    'compressed',
    (body) => (_req, res) => {
      const bytes = zlib.gzipSync(body);
      res.writeHead(200, { 'Content-Encoding': 'gzip', 'content-length': bytes.length }).end(bytes);
    },
  ],
];
for (const [how, answer] of answers) {
  test(`the resource of metadata is the proxy's: ${how}`, async () => {
    const upstream = await startServer((req, res) => answer(metadata(upstream.url))(req, res));
    const { capture, events, waitFor } = await startProxy(upstream.url);
    const { origin } = capture.url;
    const response = await fetch(origin + PATH);
    expect(await response.text()).toBe(metadata(origin));
    await waitFor('end');
    const body = events.find((event) => event.type === 'response-body');
    expect(body).toMatchObject({ original: expect.anything() });
    if (how === 'in chunks') return;
    const { rawHeaders, edits } = await waitFor('response');
    expect(rawHeaders).toContain(String(body?.bytes.length));
    // The length is an edit only where it has changed.
    for (const { header, original } of edits) {
      expect(header).toMatch(/^content-length$/i);
      expect(rawHeaders).not.toContain(original);
    }
  });
}

test('metadata of another length have another Content-Length, which is an edit too', async () => {
  const upstream = await startServer((_req, res) => {
    const body = metadata(upstream.url);
    res.setHeader('Content-Length', body.length).end(body);
  });
  const { port, waitFor } = await startProxy(upstream.url, { allowHosts: ['*'] });
  const host = 'a-name-that-is-longer.example';
  const client = openSocket(port, `GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(await client.closed).toContain(metadata(`http://${host}`));
  const original = String(metadata(upstream.url).length);
  expect(await waitFor('response')).toMatchObject({ edits: [{ header: 'Content-Length', original }] });
});

test('metadata beyond any reason goes through as they are', async () => {
  const big = (origin: string) => metadata(origin) + ' '.repeat(3_000_000);
  const upstream = await startServer((_req, res) => void res.end(big(upstream.url)));
  const { capture, events, waitFor } = await startProxy(upstream.url);
  expect(await (await fetch(capture.url.origin + PATH)).text()).toBe(big(upstream.url));
  await waitFor('end');
  expect(bodyOf(events, 'response-body')).toBe(big(upstream.url));
});

test('the endpoint of a legacy stream is at the proxy, and the stream goes on', async () => {
  const upstream = await startServer((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream; charset=utf-8' });
    res.write('event: endp');
    setImmediate(() => res.write(`oint\ndata: ${upstream.url}/messages?sessionId=1\n\n: on\n`));
  });
  const { capture, port, events } = await startProxy(upstream.url);
  const client = openSocket(port, `GET /sse HTTP/1.1\r\nHost: ${capture.url.host}\r\n\r\n`);
  const received = await client.until(': on');
  expect(received).toContain(`data: ${capture.url.origin}/messages?sessionId=1\n\n`);
  const body = events.find((event) => event.type === 'response-body');
  const original = `event: endpoint\ndata: ${upstream.url}/messages?sessionId=1\n\n: on\n`;
  expect(Buffer.from(body?.original ?? []).toString()).toBe(original);
});

test('without edits nothing is changed', async () => {
  const upstream = await startServer((req, res) => {
    res.setHeader('Location', `${upstream.url}/x`);
    res.writeHead(req.url === PATH ? 200 : 302);
    res.end(metadata(upstream.url) + req.headers.host);
  });
  const elsewhere = upstream.url.replace('127.0.0.1', '0.0.0.0');
  const { capture, port } = await startProxy(elsewhere, { hasEdits: false });
  const host = `localhost:${port}`;
  const client = openSocket(port, `GET ${PATH} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  expect(await client.closed).toContain(metadata(upstream.url) + host);
  const moved = await fetch(capture.url, { redirect: 'manual' });
  expect(moved.headers.get('location')).toBe(`${upstream.url}/x`);
});

test.for(['127.0.0.1', 'localhost', '0.0.0.0'])(
  'the Host is the upstream’s, on this host too: %s',
  async (name) => {
    const upstream = await startServer((req, res) => res.end(req.headers.host));
    const url = upstream.url.replace('127.0.0.1', name);
    const { capture, waitFor } = await startProxy(url);
    expect(await (await fetch(capture.url)).text()).toBe(new URL(url).host);
    const { edits, rawHeaders } = await waitFor('request');
    expect(edits).toEqual([{ header: 'host', original: capture.url.host }]);
    expect(rawHeaders).toContain(new URL(url).host);
  },
);

test.for([
  [403, 'Invalid Host: 127.0.0.1:1', 1],
  [403, 'Access is only allowed at localhost:8931', 1],
  [403, 'You may not do that', 0],
  [401, 'Invalid Host', 0],
] as const)('a %i that says %j is explained once where it speaks of hosts', async ([status, text, times]) => {
  const upstream = await startServer((_req, res) => res.writeHead(status).end(text));
  const notices: string[] = [];
  const { capture } = await startProxy(upstream.url, { onNotice: (notice) => notices.push(notice) });
  for (const _ of [1, 2]) expect(await (await fetch(capture.url)).text()).toBe(text);
  expect(notices.length).toBe(times);
  for (const notice of notices) expect(notice).toContain(new URL(upstream.url).host);
});

test('an event stream where a challenge has named metadata comes as it comes', async () => {
  let hear = () => {};
  const heard = new Promise<void>((resolve) => {
    hear = resolve;
  });
  const upstream = await startServer((req, res) => {
    if (req.url === '/mcp' && req.headers.authorization === undefined) {
      res.setHeader('WWW-Authenticate', `Bearer resource_metadata="${upstream.url}/mcp"`);
      res.writeHead(401).end();
      return;
    }
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    res.write('data: 1\n\n');
    void heard.then(() => res.end());
  });
  const { capture } = await startProxy(upstream.url);
  const url = new URL('/mcp', capture.url);
  await fetch(url);
  const stream = await fetch(url, { headers: { Authorization: 'Bearer x' } });
  const reader = stream.body?.getReader();
  expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: 1\n\n');
  hear();
  expect((await reader?.read())?.done).toBe(true);
});

test.for([
  ['Host: evil.example\r\n', '--allow-host'],
  ['Host: localhost\r\nOrigin: https://evil.example\r\n', '--allow-origin'],
  ['Host: localhost\r\nOrigin: null\r\n', '--allow-origin'],
  ['Host: localhost\r\nOrigin: http://localhost\r\nOrigin: https://evil.example\r\n', '--allow-origin'],
])('a request that another site may have sent is refused: %j', async ([headers, help = '']) => {
  let count = 0;
  const upstream = await startServer((_req, res) => {
    count += 1;
    res.end();
  });
  const { port, waitFor } = await startProxy(upstream.url);
  const client = openSocket(port, `POST / HTTP/1.1\r\n${headers}Content-Length: 2\r\n\r\n{}`);
  const received = await client.until(help);
  expect(received).toMatch(/^HTTP\/1.1 403 Forbidden\r\nContent-Type: text\/plain/);
  expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy' });
  expect(count).toBe(0);
});

test('allowed hosts and origins pass', async () => {
  const upstream = await startServer((_req, res) => res.end());
  const { port } = await startProxy(upstream.url, {
    allowHosts: ['a.example'],
    allowOrigins: ['https://b.example'],
  });
  const client = openSocket(port, 'GET / HTTP/1.1\r\nHost: a.example:1\r\nOrigin: https://b.example\r\n\r\n');
  await client.until('200 OK');
});

test('an absolute request target is taken as a path if it is ours, and refused if not', async () => {
  const seen: unknown[] = [];
  const upstream = await startServer((req, res) => {
    seen.push(req.url);
    res.end();
  });
  const { port } = await startProxy(upstream.url);
  const ask = (target: string) =>
    openSocket(port, `GET ${target} HTTP/1.1\r\nHost: localhost:1\r\nConnection: close\r\n\r\n`).closed;
  expect(await ask('http://localhost:1/x?y')).toMatch(/^HTTP\/1.1 200/);
  expect(await ask('http://localhost:1')).toMatch(/^HTTP\/1.1 200/);
  expect(await ask('http://169.254.169.254/latest')).toMatch(/^HTTP\/1.1 403 [\s\S]+only http:\/\/127.0.0.1/);
  expect(await ask('http://localhost:2/x')).toMatch(/^HTTP\/1.1 403 /);
  expect(seen).toEqual(['/x?y', '/']);
});
