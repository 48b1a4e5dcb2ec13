import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { makeCertificate } from '../support/certificate.ts';
import { connectThrough, startForward } from '../support/forward.ts';
import { listenOn, openSocket, startServer, startTcpServer } from '../support/http.ts';
import { until } from '../support/tapedeck.ts';

/** A server with TLS that says which name it was asked for in the handshake, and in the request. */
async function startTlsEcho() {
  const server = createTlsServer(makeCertificate(), (request, response) => {
    const { servername } = request.socket as TLSSocket;
    response.end(`sni=${servername || 'none'} host=${request.headers.host} url=${request.url}`);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return listenOn(server);
}

/** What the server says to a GET in a tunnel. */
async function ask(
  port: number,
  ca: string,
  target: string,
  { servername = 'localhost', host = target } = {},
) {
  const { status, socket } = await connectThrough(port, target);
  expect(status).toBe(200);
  const tls = connectTls({ socket, ca, servername, checkServerIdentity: () => undefined });
  tls.on('error', () => {});
  tls.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  return (await buffer(tls)).toString();
}

test('a named origin is recognised in upper case and with a dot at its end', async () => {
  const upstream = await startTlsEcho();
  const forward = await startForward([`https://localhost:${upstream}`], { isInsecure: true });
  for (const host of ['LOCALHOST', 'localhost.', 'LocalHost.'])
    expect(await ask(forward.port, forward.ca, `${host}:${upstream}`), host).toContain('sni=localhost');
  expect(forward.capture.passed()).toMatchObject({ named: 3, others: 0 });
});

test('the server is asked for, and verified, by the origin’s name, whatever the client’s SNI and Host are', async () => {
  const upstream = await startTlsEcho();
  const forward = await startForward([`https://localhost:${upstream}`], { isInsecure: true });
  const elsewhere = { servername: 'elsewhere.example', host: 'elsewhere.example' };
  expect(await ask(forward.port, forward.ca, `localhost:${upstream}`, elsewhere)).toContain(
    'sni=localhost host=elsewhere.example url=/',
  );
  await until('it has ended', () => forward.events.some(({ type }) => type === 'end'));
  expect(forward.events[0]).toMatchObject({
    type: 'request',
    rawHeaders: expect.arrayContaining(['elsewhere.example']),
  });
});

test('an international name is recognised as certificates have it', async () => {
  const { port, capture } = await startForward(['https://bücher.example/']);
  expect(await connectThrough(port, 'XN--bcher-KVA.example:443')).toMatchObject({ status: 200 });
  expect(capture.passed()).toMatchObject({ named: 1, others: 0 });
});

test('a CONNECT within TLS, a request for elsewhere within it, and TLS within it lead nowhere', async () => {
  const upstream = await startTlsEcho();
  const { url: other } = await startServer((_, response) => response.end('not here'));
  const target = `localhost:${upstream}`;
  const { port, ca, capture } = await startForward([`https://${target}`], { isInsecure: true });
  const inner = async (bytes: Buffer | string) => {
    const { socket } = await connectThrough(port, target);
    const tls = connectTls({ socket, ca, host: 'localhost' });
    tls.on('error', () => {});
    tls.end(bytes);
    return (await buffer(tls)).toString();
  };
  const { host } = new URL(other);
  expect(await inner(`CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\nGET / HTTP/1.1\r\n\r\n`)).toBe('');
  expect(await inner(`GET ${other}/ HTTP/1.1\r\nHost: ${target}\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /);
  // The beginning of a ClientHello.
  expect(await inner(Buffer.from('16030100050100000100', 'hex'))).toMatch(/^HTTP\/1.1 400 /);
  expect(capture.passed()).toMatchObject({ others: 0 });
});

test('bytes that are no TLS in a tunnel to an origin with TLS end it, and reach nobody', async () => {
  const upstream = await startTlsEcho();
  const forward = await startForward([`https://localhost:${upstream}`], { isInsecure: true });
  for (const bytes of [
    'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n',
    'SSH-2.0-x\r\n',
    '\x16\x03\x01\xff\xff',
  ]) {
    const { socket } = await connectThrough(forward.port, `localhost:${upstream}`);
    socket.end(bytes);
    expect((await buffer(socket)).toString()).not.toContain('sni=');
  }
  expect(forward.events).toEqual([]);
  expect(forward.notices).toEqual([]);
});

test('TLS in a blind tunnel is the two ends’ own, with a CONNECT in it or without', async () => {
  const upstream = await startTlsEcho();
  const forward = await startForward(['http://127.0.0.1:9']);
  const { socket } = await connectThrough(forward.port, `localhost:${upstream}`);
  const tls = connectTls({ socket, servername: 'localhost', rejectUnauthorized: false });
  await once(tls, 'secureConnect');
  tls.write('GET /own HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  expect((await buffer(tls)).toString()).toContain('sni=localhost host=localhost url=/own');
  expect(forward.events).toEqual([]);
});

test.each(['Content-Length: 0', 'Content-Length: 00'])(
  'a CONNECT that says it has no body is none with one: %s',
  async (line) => {
    const { host } = new URL(await startTcpServer((socket) => socket.pipe(socket)));
    const { port } = await startForward(['http://127.0.0.1:9']);
    expect(await connectThrough(port, host, [line])).toMatchObject({ status: 200 });
  },
);

test.each([
  'Content-Length: 4\r\nContent-Length: 4',
  'Content-Length: +4',
  'Content-Length: 0, 4',
  'Content-Length: 4\r\nTransfer-Encoding: chunked',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding:\x0bchunked',
])(
  'one whose body could be read in two ways is refused, and what is behind it is not read: %j',
  async (lines) => {
    const asked: (string | undefined)[] = [];
    const { url } = await startServer(({ url: path }, response) => {
      asked.push(path);
      response.end('hidden');
    });
    const { host } = new URL(url);
    const forward = await startForward([url]);
    const hidden = `GET ${url}/hidden HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    const { closed } = openSocket(
      forward.port,
      `CONNECT ${host} HTTP/1.1\r\n${lines}\r\n\r\n0\r\n\r\n${hidden}`,
    );
    expect(await closed).toMatch(/^HTTP\/1.1 400 /);
    expect([asked, forward.events]).toEqual([[], []]);
  },
);

test('who sends a CONNECT and nothing more, or half a handshake, holds nothing open when it stops', async () => {
  const upstream = await startTlsEcho();
  const forward = await startForward([`https://localhost:${upstream}`], { isInsecure: true });
  const slow = openSocket(forward.port, 'CONNECT local');
  const { socket } = await connectThrough(forward.port, `localhost:${upstream}`);
  socket.write(Buffer.from('160301', 'hex'));
  await forward.capture.stop();
  await slow.closed;
  socket.resume();
  await until('it is closed', () => socket.closed);
  expect(forward.notices).toEqual([]);
});
