import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { captureHttp } from '../../src/capture/http/proxy.ts';
import { openSocket, startProxy, startServer } from '../support/http.ts';

const GET = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';

async function startStreams() {
  const streams: ServerResponse[] = [];
  const { url } = await startServer((_req, res) => {
    res.write('open');
    streams.push(res);
  });
  return { url, streams };
}

test('stop closes what is idle, and at once if all is', async () => {
  const upstream = await startServer((_req, res) => res.end('x'));
  const { capture, port } = await startProxy(upstream.url, { graceMs: 60_000 });
  const used = openSocket(port, GET);
  await used.until('\r\n\r\nx');
  const unused = openSocket(port);
  await once(unused.socket, 'connect');
  await capture.stop();
  await Promise.all([used.closed, unused.closed]);
});

test('stop accepts nothing new and lets what is open end by itself', async () => {
  const { url, streams } = await startStreams();
  const { capture, port, waitFor } = await startProxy(url, { graceMs: 60_000 });
  const client = openSocket(port, GET);
  await client.until('open');
  const stopped = capture.stop();
  const late = connect(port, '127.0.0.1');
  const [error] = (await once(late, 'error')) as [NodeJS.ErrnoException];
  expect(error.code).toBe('ECONNREFUSED');
  streams[0]?.end('last words');
  await stopped;
  expect(await client.closed).toContain('last words\r\n0\r\n\r\n');
  expect(await waitFor('end')).toMatchObject({ closedBy: 'server', error: null });
});

test('after its grace stop cuts, on both sides', async () => {
  const { url, streams } = await startStreams();
  const { capture, port, waitFor } = await startProxy(url, { graceMs: 50 });
  const client = openSocket(port, GET);
  await client.until('open');
  const gone = once(streams[0] as ServerResponse, 'close');
  await capture.stop();
  await gone;
  expect(await client.closed).not.toContain('0\r\n\r\n');
  expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy', error: 'tapedeck stopped' });
});

test('once stop has settled, every exchange has been shown to its end', async () => {
  const { url } = await startStreams();
  const { capture, port, events } = await startProxy(url);
  const clients = Array.from({ length: 10 }, () => openSocket(port, GET));
  for (const client of clients) await client.until('open');
  await capture.stop();
  expect(events.filter(({ type }) => type === 'end')).toHaveLength(10);
});

test('cut ends a stop that would still wait', async () => {
  const { url } = await startStreams();
  const { capture, port, waitFor } = await startProxy(url, { graceMs: 60_000 });
  await openSocket(port, GET).until('open');
  const stopped = capture.stop();
  capture.cut();
  await stopped;
  expect(await waitFor('end')).toMatchObject({ closedBy: 'proxy' });
});

test('a port that is taken is an error of the start', async () => {
  const { capture } = await startProxy('http://127.0.0.1:9');
  const { port } = capture.address;
  const again = captureHttp({
    upstream: new URL('http://127.0.0.1:9'),
    listen: { host: '127.0.0.1', port },
    tls: null,
    isInsecure: false,
    hasEdits: true,
    allowHosts: [],
    allowOrigins: [],
    graceMs: 0,
    onEvent() {},
    onNotice() {},
  });
  await expect(again).rejects.toMatchObject({ code: 'EADDRINUSE' });
});

test('a stop settles after the end of every exchange was shown, however late its client has left', async () => {
  for (let round = 0; round < 20; round += 1) {
    const { url } = await startStreams();
    const { capture, port, events } = await startProxy(url, { graceMs: 60_000 });
    const clients = Array.from({ length: 5 }, () => openSocket(port, GET));
    await Promise.all(clients.map((client) => client.until('open')));
    for (const { socket } of clients) socket.destroy();
    // Somewhere between the end of the connections and that of the exchanges on them.
    for (let turn = 0; turn < round % 5; turn += 1) await new Promise(setImmediate);
    await capture.stop();
    expect(events.filter(({ type }) => type === 'end')).toHaveLength(5);
  }
});
