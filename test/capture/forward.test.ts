import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { dirname, join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { connectThrough, type Forward, fetchThrough, startForward } from '../support/forward.ts';
import { listenOn, openSocket, readBody, startServer, startTcpServer } from '../support/http.ts';
import { inFull, scale } from '../support/scale.ts';
import { start, until } from '../support/tapedeck.ts';

/** What a server was asked, and a server that says so. */
async function startEcho(): Promise<string> {
  const { url } = await startServer(async (request, response) => {
    const body = await readBody(request);
    response.end(JSON.stringify({ url: request.url, raw: request.rawHeaders, body: body.toString() }));
  });
  return url;
}

async function startTlsEcho(host = 'localhost') {
  const certificate = makeCertificate();
  const server = createTlsServer(certificate, (request, response) => {
    response.end(`${request.headers.host} ${request.url}`);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `https://${host}:${await listenOn(server)}`, certificate };
}

/** Sends one request in absolute form. */
async function getThrough(port: number, url: string, headers: Record<string, string> = {}) {
  const call = httpRequest({
    host: '127.0.0.1',
    port,
    path: url,
    headers: { Host: new URL(url).host, ...headers },
  });
  call.end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, text: (await readBody(answer)).toString() };
}

function typesOf({ events }: Forward): string[] {
  return events.map(({ type }) => type);
}

const WHOLE = ['request', 'request-end', 'response', 'response-body', 'end'];

test('what a client asks of a named origin with TLS is shown, and nothing of it is edited', async () => {
  const { url } = await startTlsEcho();
  const forward = await startForward([url], { isInsecure: true });
  const answer = await fetchThrough(forward.port, forward.ca)(`${url}/mcp?a=1`);
  expect(await answer.text()).toBe(`${new URL(url).host} /mcp?a=1`);
  await until('it has ended', () => typesOf(forward).includes('end'));
  expect(typesOf(forward)).toEqual(WHOLE);
  expect(forward.events[0]).toMatchObject({ method: 'GET', path: '/mcp?a=1', edits: [] });
  expect(forward.capture.passed()).toMatchObject({ named: 1, others: 0, bytes: 0 });
});

test('an address as an origin gets a certificate that names it', async () => {
  const { url } = await startTlsEcho('127.0.0.1');
  const { port, ca } = await startForward([url], { isInsecure: true });
  expect((await fetchThrough(port, ca)(url)).status).toBe(200);
});

test('clients are offered HTTP/1.1 alone', async () => {
  const { url } = await startTlsEcho();
  const { port, ca } = await startForward([url], { isInsecure: true });
  const { socket } = await connectThrough(port, new URL(url).host);
  const tls = connectTls({ socket, ca, host: 'localhost', ALPNProtocols: ['h2', 'http/1.1'] });
  await once(tls, 'secureConnect');
  expect(tls.alpnProtocol).toBe('http/1.1');
  tls.destroy();
});

test('one that speaks nothing but HTTP/2 is told of, with what to do', async () => {
  const { url } = await startTlsEcho();
  const { port, ca, notices } = await startForward([url], { isInsecure: true });
  const { socket } = await connectThrough(port, new URL(url).host);
  const tls = connectTls({ socket, ca, host: 'localhost', ALPNProtocols: ['h2'] });
  await once(tls, 'error');
  await until('it is told', () => notices.length > 0);
  expect(notices).toEqual([expect.stringMatching(/nothing but HTTP\/2.*--tunnel localhost$/)]);
});

test('a server that nobody vouches for is answered for with 502', async () => {
  const { url } = await startTlsEcho();
  const { port, ca } = await startForward([url]);
  const answer = await fetchThrough(port, ca)(url);
  expect(answer.status).toBe(502);
  expect(await answer.text()).toMatch(/cannot reach https:\/\/localhost:\d+: self-signed certificate/);
});

test('a client that does not trust the certificate is told of once, with advice for its kind', async () => {
  const { url } = await startTlsEcho();
  const { port, notices } = await startForward([url], { isInsecure: true });
  for (const agent of ['curl/8.0', 'curl/8.0']) {
    const { socket } = await connectThrough(port, new URL(url).host, [`User-Agent: ${agent}`]);
    const tls = connectTls({ socket, host: 'localhost' });
    await once(tls, 'error');
    socket.destroy();
  }
  await until('it is told', () => notices.length > 0);
  const origin = new URL(url).origin;
  expect(notices).toEqual([
    `a client does not trust tapedeck’s certificate for ${origin}: advice for curl/8.0`,
  ]);
});

test('a server that wants to know the client by its certificate is told of', async () => {
  const certificate = makeCertificate();
  const key = join(dirname(certificate.file), 'key.pem');
  // Node's own server only hangs up.
  const args = ['s_server', '-accept', '127.0.0.1:0', '-cert', certificate.file, '-key', key];
  const server = start('openssl', [...args, '-Verify', '1', '-verify_return_error', '-www']);
  await until('it listens', () => /ACCEPT \S+:\d+/.test(server.stdout().toString()));
  const url = `https://localhost:${/ACCEPT \S+:(\d+)/.exec(server.stdout().toString())?.[1]}`;
  const { port, ca, notices } = await startForward([url], { isInsecure: true });
  await fetchThrough(port, ca)(url).catch(() => {});
  await until('it is told', () => notices.length > 0);
  expect(notices).toEqual([expect.stringMatching(/certificate of the client.*--tunnel localhost$/)]);
});

test('a named origin of plain HTTP is shown, by CONNECT and by absolute URL, as the server gets it', async () => {
  const url = await startEcho();
  const forward = await startForward([url]);
  expect((await fetchThrough(forward.port)(`${url}/a`)).status).toBe(200);
  const credentials = { 'Proxy-Authorization': 'Basic eDp5' };
  const { text } = await getThrough(forward.port, `${url}/b?c`, credentials);
  expect(JSON.parse(text)).toMatchObject({ url: '/b?c' });
  expect(text).not.toMatch(/proxy/i);
  await until('both have ended', () => typesOf(forward).filter((type) => type === 'end').length === 2);
  const asked = forward.events.filter(({ type }) => type === 'request');
  expect(asked).toMatchObject([{ path: '/a' }, { path: '/b?c' }]);
  expect(JSON.stringify(asked)).not.toContain('eDp5');
});

test('everything else passes and is not shown: tunnels to the byte, and requests of plain HTTP', async () => {
  const said = randomBytes(scale(1_000_000));
  const other = await startTcpServer((socket) => socket.pipe(socket));
  const forward = await startForward([await startEcho()]);
  const { socket } = await connectThrough(forward.port, new URL(other).host);
  socket.end(said);
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  expect(Buffer.concat(chunks).equals(said)).toBe(true);

  const plain = await startEcho();
  expect((await getThrough(forward.port, `${plain}/x`)).status).toBe(200);
  expect(forward.events).toEqual([]);
  await until('it is counted', () => forward.capture.passed().bytes === 2 * said.length);
  expect(forward.capture.passed()).toMatchObject({ named: 0, others: 2 });
});

inFull('100 MB through a tunnel arrive unchanged, however slowly they are read', async () => {
  const sent = createHash('sha256');
  const other = await startTcpServer((socket) => {
    let left = 1600;
    const write = () => {
      for (; left > 0; left -= 1) {
        const bytes = randomBytes(65_536);
        sent.update(bytes);
        if (!socket.write(bytes)) {
          left -= 1;
          socket.once('drain', write);
          return;
        }
      }
      socket.end();
    };
    write();
  });
  const { port, capture } = await startForward([await startEcho()]);
  const { socket } = await connectThrough(port, new URL(other).host);
  const received = createHash('sha256');
  let size = 0;
  for await (const chunk of socket) {
    received.update(chunk as Buffer);
    size += (chunk as Buffer).length;
    if (size % 50 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(size).toBe(1600 * 65_536);
  expect(received.digest('hex')).toBe(sent.digest('hex'));
  await until('it is counted', () => capture.passed().bytes === size);
});

test('bytes that come right behind a CONNECT are not lost', async () => {
  const other = await startTcpServer((socket) => socket.pipe(socket));
  const url = await startEcho();
  const { port } = await startForward([url]);
  const tunnel = openSocket(port, `CONNECT ${new URL(other).host} HTTP/1.1\r\n\r\nhello`);
  await tunnel.until('hello');
  const { host } = new URL(url);
  const own = openSocket(
    port,
    `CONNECT ${host} HTTP/1.1\r\n\r\nGET /early HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  );
  await own.until('/early');
});

test('a tunnel breaks where either end breaks', async () => {
  const sockets: { destroy(): unknown; closed: boolean; resetAndDestroy(): unknown }[] = [];
  const other = await startTcpServer((socket) => {
    sockets.push(socket);
    socket.resume();
  });
  const { port } = await startForward([await startEcho()]);
  const first = await connectThrough(port, new URL(other).host);
  await until('it is connected', () => sockets.length === 1);
  sockets[0]?.resetAndDestroy();
  first.socket.resume();
  await until('the client sees it', () => first.socket.closed);
  const second = await connectThrough(port, new URL(other).host);
  await until('it is connected', () => sockets.length === 2);
  second.socket.resetAndDestroy();
  await until('the server sees it', () => sockets[1]?.closed === true);
});

const HOSTILE: readonly [target: string, status: number][] = [
  ['127.0.0.1', 400],
  ['127.0.0.1:', 400],
  ['127.0.0.1:0', 400],
  ['127.0.0.1:65536', 400],
  ['127.0.0.1:080', 400],
  ['127.1:80', 400],
  ['2130706433:80', 400],
  ['0x7f.0.0.1:80', 400],
  ['me@127.0.0.1:80', 400],
  ['0177.0.0.1:80', 400],
  ['127.0.0.1.:80', 400],
  ['127.0.0.1:80@a.example:443', 400],
  ['a.example:443/x', 400],
  ['a.example:443?x', 400],
  ['bücher.example:443', 400],
  ['a.example\t:443', 400],
  ['a%2eexample:443', 400],
  ['a.example:+443', 400],
  ['a.example:99999', 400],
  ['a.example:443:443', 400],
  ['a,b:443', 400],
  ['[fe80::1%lo]:80', 400],
  ['[127.0.0.1]:80', 400],
  ['[fe80::1%25lo]:80', 400],
  ['[::1:80', 400],
  ['::1:80', 400],
  ['*:443', 400],
  ['a..b:443', 400],
  ['-a:443', 400],
  [`${'a'.repeat(300)}.example:443`, 400],
  ['/etc/passwd', 400],
  ['http://127.0.0.1:80', 400],
];

test.each(HOSTILE)('CONNECT %s is refused', async (target, status) => {
  const { port, capture } = await startForward(['http://127.0.0.1:9']);
  expect(await connectThrough(port, target)).toMatchObject({ status });
  expect(capture.passed().others).toBe(0);
});

test('its own port is refused, by address and by name', async () => {
  const { port } = await startForward(['http://127.0.0.1:9']);
  expect(await connectThrough(port, `127.0.0.1:${port}`)).toMatchObject({ status: 403 });
  expect(await connectThrough(port, `[::ffff:127.0.0.1]:${port}`)).toMatchObject({ status: 403 });
  const byName = await connectThrough(port, `localhost:${port}`);
  expect(byName.status).toBe(502);
  expect(byName.head).toContain('own port');
});

test('a CONNECT with a body is refused, and what comes behind it is not read as a request', async () => {
  const url = await startEcho();
  const forward = await startForward([url]);
  const { host } = new URL(url);
  for (const line of ['Content-Length: 5', 'Transfer-Encoding: chunked'])
    expect(await connectThrough(forward.port, host, [line])).toMatchObject({ status: 400 });
  const hidden = openSocket(
    forward.port,
    `CONNECT ${host} HTTP/1.1\r\nContent-Length: 40\r\n\r\nGET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  );
  expect(await hidden.closed).toMatch(/^HTTP\/1.1 400 .*a CONNECT has no body\n$/s);
  expect(forward.events).toEqual([]);
});

test('requests that are for no proxy, or whose Host is another one, are refused', async () => {
  const url = await startEcho();
  const { port } = await startForward([url]);
  const answers = [
    ['GET / HTTP/1.1', 'localhost', 400],
    [`GET ${url}/ HTTP/1.1`, 'elsewhere.example', 400],
    ['GET http://me:you@127.0.0.1/ HTTP/1.1', '127.0.0.1', 400],
    ['GET ftp://127.0.0.1/ HTTP/1.1', '127.0.0.1', 400],
    ['GET http://127.1/ HTTP/1.1', '127.1', 400],
    ['GET https://127.0.0.1/ HTTP/1.1', '127.0.0.1', 400],
    ['GET //127.0.0.1/ HTTP/1.1', '127.0.0.1', 400],
    ['GET http://127.0.0.1:0x50/ HTTP/1.1', '127.0.0.1', 400],
    ['GET http://[::1%25lo]/ HTTP/1.1', '[::1]', 400],
    ['GET http:/127.0.0.1/ HTTP/1.1', '127.0.0.1', 400],
  ] as const;
  for (const [line, host, status] of answers) {
    const { closed } = openSocket(port, `${line}\r\nHost: ${host}\r\n\r\n`);
    expect(await closed, line).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  }
});

test('a head of megabytes is refused', async () => {
  const { port } = await startForward(['http://127.0.0.1:9']);
  const { closed } = openSocket(port, `CONNECT a.example:443 HTTP/1.1\r\nX: ${'x'.repeat(2_000_000)}`);
  expect(await closed).toMatch(/^HTTP\/1.1 431 /);
});

test('with a password, nothing passes without it', async () => {
  const url = await startEcho();
  const { port, events } = await startForward([url], { password: 'a-long-password' });
  const { host } = new URL(url);
  const wrong = `Basic ${Buffer.from('tapedeck:another').toString('base64')}`;
  const right = `Basic ${Buffer.from('tapedeck:a-long-password').toString('base64')}`;
  for (const lines of [[], [`Proxy-Authorization: ${wrong}`], ['Proxy-Authorization: Bearer x']]) {
    const { status, head } = await connectThrough(port, host, lines);
    expect([status, head]).toEqual([407, expect.stringContaining('Proxy-Authenticate: Basic')]);
  }
  expect((await getThrough(port, url)).status).toBe(407);
  expect(events).toEqual([]);
  expect(await connectThrough(port, host, [`Proxy-Authorization: ${right}`])).toMatchObject({ status: 200 });
  expect((await getThrough(port, url, { 'Proxy-Authorization': right })).status).toBe(200);
});

test('a WebSocket to a named origin passes, and is shown as one HTTP exchange', async () => {
  const { url, server } = await startServer(() => {});
  server.on('upgrade', (request, socket) => {
    socket.write(
      'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst',
    );
    socket.pipe(socket);
    expect(request.headers['sec-websocket-key']).toBe('abc');
  });
  const forward = await startForward([url]);
  const { socket } = await connectThrough(forward.port, new URL(url).host);
  const asks = ['Upgrade: websocket', 'Connection: Upgrade', 'Sec-WebSocket-Key: abc'];
  socket.write([`GET /ws HTTP/1.1`, `Host: ${new URL(url).host}`, ...asks, '', ''].join('\r\n'));
  let received = '';
  socket.on('data', (bytes) => {
    received += bytes;
  });
  await until('the first bytes', () => received.endsWith('first'));
  expect(received).toMatch(/^HTTP\/1.1 101 /);
  socket.end('ping');
  await until('they come back', () => received.endsWith('firstping'));
  await until('it has ended', () => typesOf(forward).includes('end'));
  const bodies = (type: string) =>
    Buffer.concat(
      forward.events.flatMap((event) => (event.type === type && 'bytes' in event ? [event.bytes] : [])),
    ).toString();
  expect(bodies('request-body')).toBe('ping');
  expect(bodies('response-body')).toBe('firstping');
  expect(forward.events.find(({ type }) => type === 'response')).toMatchObject({ status: 101 });
  expect(forward.events.at(-1)).toMatchObject({ type: 'end', isComplete: true, error: null });
});

test('a server that refuses a WebSocket is heard', async () => {
  const { url, server } = await startServer(() => {});
  server.on('upgrade', (_, socket) => {
    socket.end('HTTP/1.1 401 Unauthorized\r\nContent-Length: 4\r\nWWW-Authenticate: Bearer\r\n\r\nnono');
  });
  const { port } = await startForward([url]);
  const { host } = new URL(url);
  const asks = `GET ${url}/ws HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
  expect(await openSocket(port, asks).closed).toMatch(/^HTTP\/1.1 401 .*WWW-Authenticate: Bearer.*nono$/s);
});

test('another Upgrade is left out, and its request passes with its body', async () => {
  const url = await startEcho();
  const forward = await startForward([url]);
  const { host } = new URL(url);
  const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA';
  for (const start of [`CONNECT ${host} HTTP/1.1\r\n\r\nPOST /up`, `POST ${url}/up`]) {
    const text = `${start} HTTP/1.1\r\nHost: ${host}\r\n${upgrade}\r\nContent-Length: 4\r\n\r\nbody`;
    expect(await openSocket(forward.port, text).until('"body":"body"')).not.toContain('h2c');
  }
  expect(forward.events.filter(({ type }) => type === 'request')).toHaveLength(2);
});

test('it stops: open tunnels end, and what was shown is whole', async () => {
  const other = await startTcpServer((socket) => socket.resume());
  const url = await startEcho();
  const forward = await startForward([url]);
  const tunnel = await connectThrough(forward.port, new URL(other).host);
  await fetchThrough(forward.port)(url);
  await forward.capture.stop();
  tunnel.socket.resume();
  await once(tunnel.socket, 'close');
  expect(typesOf(forward)).toEqual(WHOLE);
});
