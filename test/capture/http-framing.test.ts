import { expect, test } from 'vitest';
import { openSocket, readBody, startProxy, startServer, startTcpServer } from '../support/http.ts';

const HIDDEN = 'GET /hidden HTTP/1.1\r\nHost: localhost\r\n\r\n';
const CHUNKED_HIDDEN = `${HIDDEN.length.toString(16)}\r\n${HIDDEN}\r\n0\r\n\r\n`;

const SMUGGLERS: readonly (readonly [string, string])[] = [
  [
    'a chunked DELETE',
    `DELETE / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED_HIDDEN}`,
  ],
  [
    'a chunked GET',
    `GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED_HIDDEN}`,
  ],
  [
    'a chunked OPTIONS',
    `OPTIONS / HTTP/1.1\r\nHost: localhost\r\ntransfer-encoding: Chunked\r\n\r\n${CHUNKED_HIDDEN}`,
  ],
  [
    'a GET with a body',
    `GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  ],
  [
    'a length that Connection would hide',
    `POST / HTTP/1.1\r\nHost: localhost\r\nConnection: Content-Length\r\nContent-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
  ],
  [
    'chunks that Connection would hide',
    `POST / HTTP/1.1\r\nHost: localhost\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED_HIDDEN}`,
  ],
];

for (const [what, text] of SMUGGLERS) {
  test(`${what} stays one request with one body`, async () => {
    const seen: string[] = [];
    const upstream = await startServer(async (req, res) => {
      const body = await readBody(req);
      seen.push(`${req.url} ${body}`);
      res.end('one');
    });
    const { port } = await startProxy(upstream.url);
    const client = openSocket(port, text);
    await client.until('one');
    // Whatever was left over on a kept connection would now be taken for the beginning of this one.
    client.socket.write('GET /next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
    await client.closed;
    expect(seen).toEqual([`/ ${HIDDEN}`, '/next ']);
  });
}

test('a connection on which an overlooked body may stand is not used again', async () => {
  const connections: string[] = [];
  const url = await startTcpServer((socket) => {
    const number = connections.push('') - 1;
    socket.on('data', (bytes) => {
      connections[number] += bytes.toString();
      // Overlooks the body, and stays open.
      if (bytes.includes('HTTP/1.1')) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    });
  });
  const { port } = await startProxy(url);
  for (const [, text] of SMUGGLERS.slice(0, 4)) await openSocket(port, text).until('ok');
  expect(connections).toHaveLength(4);
});

const DOUBTFUL: readonly (readonly [string, string])[] = [
  ['two lengths', 'Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd'],
  ['two equal lengths', 'Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc'],
  ['a list of lengths', 'Content-Length: 3, 3\r\n\r\nabc'],
  ['a signed length', 'Content-Length: +3\r\n\r\nabc'],
  ['length and chunks', 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['chunks and length', 'Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n'],
  ['another coding', 'Transfer-Encoding: gzip\r\n\r\nabc'],
  ['an unknown coding', 'Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
  ['a coding before chunks', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
  ['a coding after chunks', 'Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n'],
  ['chunks twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
  ['a coding in another line', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n'],
  ['a space before the colon', 'Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n'],
  ['a folded header', 'X: a\r\n Transfer-Encoding: chunked\r\n\r\n'],
  ['a bare line feed in a header', 'X: a\nTransfer-Encoding: chunked\r\n\r\n'],
  ['two hosts', 'Host: localhost\r\n\r\n'],
  ['no number as a chunk size', 'Transfer-Encoding: chunked\r\n\r\nx\r\n\r\n'],
];

for (const [what, rest] of DOUBTFUL) {
  test(`a request with ${what} is refused, or at most one whole request`, async () => {
    const complete: string[] = [];
    const upstream = await startServer((req, res) => {
      req.on('end', () => {
        complete.push(String(req.url));
        res.end();
      });
      req.resume();
      req.on('error', () => {});
    });
    const { port } = await startProxy(upstream.url);
    const client = openSocket(port, `POST / HTTP/1.1\r\nHost: localhost\r\n${rest}`);
    client.socket.write(HIDDEN);
    expect(await client.until('\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
    await client.closed;
    expect(complete).toEqual([]);
  });
}

test('chunks from a client of HTTP/1.0, which has none, are refused', async () => {
  const upstream = await startServer((_req, res) => res.end());
  const { port, events } = await startProxy(upstream.url);
  const client = openSocket(port, `POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKED_HIDDEN}`);
  expect(await client.closed).toMatch(/^HTTP\/1.1 400 /);
  expect(events.at(-1)).toMatchObject({ type: 'end', closedBy: 'proxy' });
});

test('an answer with both a length and chunks is never passed on as it is', async () => {
  const url = await startTcpServer((socket) => {
    socket.once('data', () =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'),
    );
  });
  const { port } = await startProxy(url);
  const client = openSocket(port, 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  expect(await client.closed).not.toMatch(/content-length/i);
});

test('an answer in a transfer coding other than chunks is a 502', async () => {
  const url = await startTcpServer((socket) => {
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc'));
  });
  const { port } = await startProxy(url);
  const client = openSocket(port, 'GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  expect(await client.closed).toMatch(/^HTTP\/1.1 502 [\s\S]+Transfer-Encoding is "gzip"\n$/);
});

const UNWRITABLE: readonly (readonly [string, string, RegExp])[] = [
  ['a status below 100', 'HTTP/1.1 099 Odd\r\nContent-Length: 2\r\n\r\nhi', /its status is 99/],
  ['a control character in its status line', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\nhi', /control/],
  [
    'a switch of protocols that nobody asked for',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhi',
    /switched protocols/,
  ],
];

for (const [what, text, reason] of UNWRITABLE) {
  test(`${what} is answered for with 502, and harms no other request`, async () => {
    const url = await startTcpServer((socket) => {
      socket.on('data', (bytes) => {
        const isOdd = bytes.includes('GET /odd');
        socket.write(isOdd ? text : 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', 'latin1');
      });
    });
    const { port, waitFor } = await startProxy(url);
    const answer = await openSocket(port, 'GET /odd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
      .closed;
    expect(answer).toMatch(/^HTTP\/1.1 502 /);
    expect(answer).toMatch(reason);
    expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy', error: expect.stringMatching(reason) });
    await openSocket(port, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n').until('ok');
  });
}

test('many requests that wait on one connection are answered in order, and warned of by nobody', async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on('warning', onWarning);
  const upstream = await startServer((req, res) => res.end(`${req.url}\n`));
  const { port } = await startProxy(upstream.url);
  const urls = Array.from({ length: 40 }, (_, i) => `/${i}`);
  const client = openSocket(
    port,
    urls.map((url) => `GET ${url} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''),
  );
  const received = await client.until('/39\n');
  expect(received.match(/^\/\d+$/gm)).toEqual(urls);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
