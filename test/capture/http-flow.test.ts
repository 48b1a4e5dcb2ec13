import { createHash } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:http';
import { Readable, type Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { openSocket, startProxy, startServer } from '../support/http.ts';
import { inFull } from '../support/scale.ts';

const MB = 1024 * 1024;
const SIZE = 64 * MB;
/** What all buffers between the two ends may hold together, the kernel's own included. */
const BOUND = 24 * MB;

function* body() {
  for (let i = 0; i < SIZE / 65_536; i += 1) yield Buffer.alloc(65_536, i % 251);
}

function hashOf(chunks: Iterable<Buffer>): string {
  const hash = createHash('sha256');
  for (const chunk of chunks) hash.update(chunk);
  return hash.digest('hex');
}

async function hashStream(stream: Readable): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of stream) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

/** Writes it all at the reader's pace; `count` grows with what has been accepted. */
function send(sink: Writable, count: { bytes: number }): void {
  const source = Readable.from(body());
  source.on('data', (chunk: Buffer) => {
    count.bytes += chunk.length;
  });
  source.pipe(sink);
}

/** Settles once the number has stopped growing. */
async function stalled(count: { bytes: number }): Promise<void> {
  for (let before = -1; before !== count.bytes; ) {
    before = count.bytes;
    await delay(200);
  }
}

test('a client that does not read holds the upstream back, and then gets every byte', async () => {
  const sent = { bytes: 0 };
  const upstream = await startServer((_req, res) => send(res, sent));
  const { port } = await startProxy(upstream.url, { onEvent() {} });
  const call = request({ port }).end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  await stalled(sent);
  expect(sent.bytes).toBeLessThan(BOUND);
  expect(await hashStream(answer)).toBe(hashOf(body()));
});

test('an upstream that does not read holds the client back, and then gets every byte', async () => {
  const sent = { bytes: 0 };
  let read = () => {};
  const upstream = await startServer((req, res) => {
    read = async () => res.end(await hashStream(req));
  });
  const { port } = await startProxy(upstream.url, { onEvent() {} });
  const call = request({ port, method: 'POST', headers: { 'Content-Length': SIZE } });
  send(call, sent);
  await stalled(sent);
  expect(sent.bytes).toBeLessThan(BOUND);
  read();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  const [hash] = (await once(answer, 'data')) as [Buffer];
  expect(hash.toString()).toBe(hashOf(body()));
});

test('streams and short requests in great number do not mix', async () => {
  const upstream = await startServer((req, res) => {
    if (req.method === 'POST') return void req.pipe(res);
    res.writeHead(200, { 'Content-Type': 'text/event-stream' });
    let n = 0;
    const next = () => {
      n += 1;
      if (n > 50) return void res.end();
      res.write(`data: ${req.url} ${n}\n\n`);
      setImmediate(next);
    };
    next();
  });
  const { capture, events } = await startProxy(upstream.url);
  const stream = async (i: number) => {
    const text = await (await fetch(new URL(`/s${i}`, capture.url))).text();
    expect(text).toBe(Array.from({ length: 50 }, (_, n) => `data: /s${i} ${n + 1}\n\n`).join(''));
  };
  const short = async (i: number) => {
    const text = await (await fetch(capture.url, { method: 'POST', body: `call ${i}` })).text();
    expect(text).toBe(`call ${i}`);
  };
  const streams = Array.from({ length: 100 }, (_, i) => stream(i));
  await Promise.all([...streams, ...Array.from({ length: 500 }, (_, i) => short(i))]);
  expect(events.filter((event) => event.type === 'request')).toHaveLength(600);
});

inFull('a stream that stays quiet for long stays open', async () => {
  const upstream = await startServer((_req, res) => {
    res.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
    // Longer than the proxy keeps an idle connection, which this is not.
    setTimeout(() => res.end('data: late\n\n'), 5000);
  });
  const { port } = await startProxy(upstream.url);
  await openSocket(port, 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n').until('data: late');
});
