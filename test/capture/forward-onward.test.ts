import { once } from 'node:events';
import { createServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test, vi } from 'vitest';
import { readOnward } from '../../src/capture/forward/onward.ts';
import { makeCertificate } from '../support/certificate.ts';
import { startCompanyProxy } from '../support/company-proxy.ts';
import { connectThrough, fetchThrough, startForward } from '../support/forward.ts';
import { listenOn, openSocket, readBody, startServer, startTcpServer } from '../support/http.ts';
import { until } from '../support/tapedeck.ts';

const USER = 'Basic bWU6ei9w';

/** Environments in which it is named, with user `me` and password `z/p`. */
function envOf(port: number, more: Record<string, string> = {}) {
  const proxy = `http://me:z%2Fp@localhost:${port}`;
  return { HTTPS_PROXY: proxy, HTTP_PROXY: proxy, ...more };
}

async function startEcho(): Promise<number> {
  const { url } = await startServer(async (request, response) => {
    const body = (await readBody(request)).toString();
    response.end(JSON.stringify({ url: request.url, raw: request.rawHeaders, body }));
  });
  return Number(new URL(url).port);
}

test('a named origin with TLS is asked through it, and its password goes to nobody else', async () => {
  const server = createServer(makeCertificate(), async (request, response) => {
    const body = (await readBody(request)).toString();
    response.end(`${request.headers.host} ${request.url} ${body} ${request.rawHeaders.join()}`);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const company = await startCompanyProxy({
    hosts: { 'api.example': await listenOn(server) },
    authorization: USER,
  });
  const { onward } = readOnward(envOf(company.port));
  const url = 'https://api.example/mcp';
  const forward = await startForward([url], { isInsecure: true, onward });
  const ask = fetchThrough(forward.port, forward.ca);
  for (const body of ['one', 'two']) {
    const text = await (await ask(url, { method: 'POST', body })).text();
    expect(text).toMatch(new RegExp(`^api.example:80 /mcp ${body} `));
    expect(text).not.toMatch(/proxy-authorization/i);
  }
  // The second request has the connection of the first.
  expect(company.asked).toEqual(['CONNECT api.example:443']);
  await until('both have ended', () => forward.events.filter(({ type }) => type === 'end').length === 2);
  const said = JSON.stringify([forward.events, forward.notices]);
  for (const secret of ['z/p', 'z%2Fp', USER.slice(6)]) expect(said).not.toContain(secret);
});

test('a tunnel goes through it, with what comes right behind the CONNECT', async () => {
  const echo = new URL(await startTcpServer((socket) => socket.pipe(socket)));
  const company = await startCompanyProxy({ hosts: { 'other.example': Number(echo.port) } });
  const { port, capture } = await startForward(['http://127.0.0.1:9'], {
    onward: readOnward(envOf(company.port)).onward,
  });
  const tunnel = openSocket(port, 'CONNECT other.example:443 HTTP/1.1\r\n\r\nhello');
  await tunnel.until('hello');
  expect(company.asked).toEqual(['CONNECT other.example:443']);
  expect(capture.passed()).toMatchObject({ others: 1, bytes: 10 });
});

test('plain HTTP goes to it in absolute form, named or not, without what the client sent for us', async () => {
  const echo = await startEcho();
  const company = await startCompanyProxy({
    hosts: { 'named.example': echo, 'other.example': echo },
    authorization: USER,
  });
  const forward = await startForward(['http://named.example/mcp'], {
    onward: readOnward(envOf(company.port)).onward,
  });
  for (const host of ['named.example', 'other.example']) {
    const text = `POST http://${host}/a?b HTTP/1.1\r\nHost: ${host}\r\nProxy-Authorization: Basic eDp5\r\nContent-Length: 4\r\n\r\nbody`;
    const answer = await openSocket(forward.port, text).until('"body":"body"');
    expect(answer).toContain('"url":"/a?b"');
  }
  expect(company.asked).toEqual(['POST http://named.example/a?b', 'POST http://other.example/a?b']);
  expect(JSON.stringify(company.rawHeaders)).not.toContain('eDp5');
  await until('it has ended', () => forward.events.some(({ type }) => type === 'end'));
  expect(forward.events[0]).toMatchObject({ type: 'request', path: '/a?b' });
  expect(JSON.stringify(forward.events)).not.toMatch(/proxy-authorization|bWU6ei9w/i);
});

test('so does a WebSocket, and HTTP/2 from the first byte', async () => {
  const { url, server } = await startServer(() => {});
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhi');
  });
  const raw = new URL(await startTcpServer((socket) => socket.pipe(socket)));
  const company = await startCompanyProxy({
    hosts: { 'ws.example': Number(new URL(url).port), 'h2.example': Number(raw.port) },
    authorization: USER,
  });
  const { port } = await startForward(['http://ws.example/', 'http://h2.example/'], {
    onward: readOnward(envOf(company.port)).onward,
  });
  const asks = 'Host: ws.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n';
  await openSocket(port, `GET http://ws.example/ HTTP/1.1\r\n${asks}`).until('hi');
  const preface = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
  await openSocket(port, `CONNECT h2.example:80 HTTP/1.1\r\n\r\n${preface}and on`).until('and on');
  expect(company.asked).toEqual(['CONNECT ws.example:80', 'CONNECT h2.example:80']);
});

test('a proxy with TLS is spoken to with TLS, and its certificate is verified', async () => {
  const certificate = makeCertificate();
  const company = await startCompanyProxy({ hosts: { 'a.example': await startEcho() }, certificate });
  const { onward } = readOnward({ https_proxy: `https://localhost:${company.port}` });
  const { port } = await startForward(['http://127.0.0.1:9'], { onward });
  const { status, head, socket } = await connectThrough(port, 'a.example:443');
  expect(status).toBe(502);
  const body = `${head}${socket.read() ?? ''}`;
  expect(body).toContain(`the proxy https://localhost:${company.port}: self-signed certificate`);
});

test('a client that breaks off a tunnel through a proxy with TLS is seen at the server', async () => {
  const sockets: { closed: boolean }[] = [];
  const other = new URL(await startTcpServer((socket) => void sockets.push(socket.resume())));
  const certificate = makeCertificate();
  const company = await startCompanyProxy({ hosts: { 'a.example': Number(other.port) }, certificate });
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
  onTestFinished(() => void vi.unstubAllEnvs());
  const { onward } = readOnward({ https_proxy: `https://localhost:${company.port}` });
  const { port } = await startForward(['http://127.0.0.1:9'], { onward });
  const { socket, status } = await connectThrough(port, 'a.example:443');
  expect(status).toBe(200);
  socket.resetAndDestroy();
  await until('the server sees it', () => sockets[0]?.closed === true);
});

test('what it refuses is answered for with 502, and a missing password is told of once', async () => {
  const company = await startCompanyProxy({ hosts: { 'api.example': 9 }, authorization: USER });
  const url = `http://127.0.0.1:${company.port}`;
  const { port, notices, ca } = await startForward(['https://api.example/'], {
    onward: readOnward({ HTTPS_PROXY: url }).onward,
  });
  for (const host of ['a.example', 'b.example']) {
    const { closed } = openSocket(port, `CONNECT ${host}:443 HTTP/1.1\r\n\r\n`);
    expect(await closed).toMatch(
      new RegExp(`^HTTP/1.1 502 .*${url}: it answered CONNECT ${host}:443 with 407 Who are you`, 's'),
    );
  }
  const { socket } = await connectThrough(port, 'api.example:443');
  const tls = connectTls({ socket, ca, host: 'api.example' });
  await once(tls, 'secureConnect');
  tls.write('GET / HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n');
  const said = await buffer(tls);
  expect(said.toString()).toMatch(/^HTTP\/1.1 502 .*with 407 Who are you/s);
  expect(notices).toEqual([expect.stringMatching(/wants a user and a password \(407\)/)]);
});

test.each([
  ['says nothing that is HTTP', 'SSH-2.0-no\r\n\r\n', 'something that is not HTTP'],
  ['closes at once', '', 'it closed the connection'],
  ['talks without end', 'x'.repeat(20_000), 'something that is not HTTP'],
])('one that %s is no way', async (_, says, expected) => {
  const bad = new URL(
    await startTcpServer((socket) => void (says === '' ? socket.end() : socket.write(says))),
  );
  const { onward } = readOnward({ HTTPS_PROXY: bad.host });
  const { port } = await startForward(['http://127.0.0.1:9'], { onward });
  const { closed } = openSocket(port, 'CONNECT a.example:443 HTTP/1.1\r\n\r\n');
  expect(await closed).toContain(expected);
});

test('it never goes on through itself, by whichever name', async () => {
  let own = 0;
  const { port } = await startForward(['http://127.0.0.1:9'], {
    onward: (scheme, place) => readOnward({ HTTPS_PROXY: `http://localhost:${own}` }).onward(scheme, place),
  });
  own = port;
  const { closed } = openSocket(port, 'CONNECT a.example:443 HTTP/1.1\r\n\r\n');
  expect(await closed).toContain('own port');
});

test('it stops while that proxy thinks, and leaves nothing open', async () => {
  const waiting: { closed: boolean }[] = [];
  const slow = new URL(await startTcpServer((socket) => void waiting.push(socket.resume())));
  const { port, capture } = await startForward(['http://127.0.0.1:9'], {
    onward: readOnward({ HTTPS_PROXY: slow.host }).onward,
  });
  const { closed } = openSocket(port, 'CONNECT a.example:443 HTTP/1.1\r\n\r\n');
  await until('it is asked', () => waiting.length === 1);
  await capture.stop();
  await closed;
  await until('it is left too', () => waiting[0]?.closed === true);
});

test.each([
  ['a.example', 443, ''],
  ['a.example', 443, 'b.example, ,c.example'],
  ['xa.example', 443, 'a.example'],
  ['a.example', 443, 'a.example:80'],
  ['10.1.2.3', 443, '10.2.0.0/16,10.1.2.0/33'],
  ['2001:db8::1', 443, '10.0.0.0/8'],
])('%s:%d goes through it, with NO_PROXY=%j', (host, port, noProxy) => {
  const { onward } = readOnward({ https_proxy: 'http://p.example', no_proxy: noProxy });
  expect(onward('https', { host, port })).toMatchObject({ host: 'p.example', port: 80, authorization: null });
});

test.each([
  ['localhost', 443, ''],
  ['127.0.0.9', 443, ''],
  ['::1', 443, ''],
  ['a.example', 443, '*'],
  ['a.example', 443, 'x,A.example.'],
  ['b.a.example', 443, 'a.example'],
  ['b.a.example', 443, '.a.example'],
  ['b.a.example', 443, '*.a.example'],
  ['a.example.', 443, 'a.example:443'],
  ['10.1.2.3', 443, '10.1.0.0/16'],
  ['2001:db8::1', 443, '2001:DB8::/32'],
  ['2001:db8::1', 443, '[2001:db8:0::1]:443'],
])('%s:%d goes past it, with NO_PROXY=%j', (host, port, noProxy) => {
  const { onward } = readOnward({ HTTPS_PROXY: 'http://p.example', NO_PROXY: noProxy });
  expect(onward('https', { host, port })).toBeNull();
});

test('each scheme has its variable, the lower case goes first, and ALL_PROXY stands in for both', () => {
  const settings = readOnward({
    HTTPS_PROXY: 'http://upper.example',
    https_proxy: 'lower.example:3128',
    ALL_PROXY: 'https://all.example',
  });
  const place = { host: 'a.example', port: 1 };
  expect(settings.onward('https', place)).toMatchObject({ host: 'lower.example', port: 3128, isTls: false });
  expect(settings.onward('http', place)).toMatchObject({ host: 'all.example', port: 443, isTls: true });
  expect(settings.proxies.map(({ variable }) => variable)).toEqual(['https_proxy', 'ALL_PROXY']);
  expect(readOnward({ ALL_PROXY: 'socks5://a:b@c' })).toMatchObject({ proxies: [], unused: ['ALL_PROXY'] });
});
