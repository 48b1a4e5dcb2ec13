import type { ServerResponse } from 'node:http';
import { createGzip } from 'node:zlib';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openSocket, startServer } from '../support/http.ts';
import { postTo, query, recordUrl } from '../support/http-record.ts';
import { scale } from '../support/scale.ts';
import { fixture, listSessions, type Run, showFrames, start, tempStore, until } from '../support/tapedeck.ts';

const CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}';
const now = () => (performance.timeOrigin + performance.now()) * 1000;

async function kill({ run }: { run: Run }): Promise<number> {
  const at = now();
  run.child.kill('SIGKILL');
  await run.ended;
  return at;
}

/** A server whose streams number their events and say when each was sent, without an end. */
async function startNumbering() {
  const { url } = await startServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    let n = 0;
    const timer = setInterval(() => {
      for (let k = 0; k < 2; k += 1) response.write(`data: {"n":${n++},"at":${now()}}\n\n`);
    }, 2);
    response.on('close', () => clearInterval(timer));
  });
  return url;
}

test('after kill -9 at any moment everything forwarded 100 ms before is stored and the sessions are cut off', async () => {
  const url = await startNumbering();
  let killsWithSomethingDue = 0;
  const kills = scale(12, 3);
  for (let i = 0; i < kills; i += 1) {
    const db = tempStore();
    const run = await recordUrl(`${url}/mcp`, { db });
    const received: { n: number; at: number }[] = [];
    const answer = await postTo(run.url, CALL);
    answer.setEncoding('utf8');
    let text = '';
    answer.on('data', (more: string) => {
      text += more;
      const arrivedAt = now();
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        received.push({ n: JSON.parse(text.slice(6, end)).n, at: arrivedAt });
        text = text.slice(end + 2);
      }
    });
    answer.on('error', () => {});
    await until('a session is there', () => query(db, 'SELECT 1 FROM session').length === 1);
    const count = received.length + ((i + Math.random()) / kills) * 400;
    await until('some more events have passed', () => received.length > count);
    const killedAt = await kill(run);
    const due = received.filter(({ at }) => at < killedAt - 100_000).length;
    if (due > 0) killsWithSomethingDue += 1;
    expect(await listSessions(db)).toMatchObject([{ endReason: 'cut-off', endedAt: null }]);
    const stored = query<{ text: string }>(
      db,
      "SELECT CAST(payload AS TEXT) AS text FROM frame WHERE channel = 'sse' ORDER BY seq",
    ).map((row) => JSON.parse(row.text.slice(6)).n as number);
    expect(stored).toEqual(stored.map((_, index) => index));
    expect(stored.length).toBeGreaterThanOrEqual(due);
    const store = new Database(db);
    expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
    store.close();
  }
  expect(killsWithSomethingDue).toBeGreaterThanOrEqual(kills / 3);
});

test('bodies and events that were still coming when tapedeck was killed are kept as far as they came', async () => {
  const db = tempStore();
  const { url } = await startServer((request, response) => {
    request.once('data', () => {
      const type = request.url === '/mcp' ? 'application/json' : 'text/event-stream';
      response.writeHead(200, { 'Content-Type': type });
      response.write(type === 'application/json' ? '{"half":' : 'data: 1\n\ndata: {"half');
    });
  });
  const run = await recordUrl(`${url}/mcp`, { db });
  const head = 'Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n';
  const clients = ['/mcp', '/events'].map((path) =>
    openSocket(Number(run.url.port), `POST ${path} HTTP/1.1\r\n${head}{"begin":`),
  );
  for (const client of clients) await client.until('"half');
  const unfinished = () =>
    query<{ channel: string; http: number; text: string }>(
      db,
      'SELECT channel, http, CAST(bytes AS TEXT) AS text FROM unfinished ORDER BY channel, http, part',
    );
  await until('all is stored', () => unfinished().length === 4);
  await kill(run);
  expect(unfinished().map(({ channel, text }) => [channel, text])).toEqual([
    ['request', '{"begin":'],
    ['request', '{"begin":'],
    ['response', '{"half":'],
    ['sse', 'data: {"half'],
  ]);
  expect((await listSessions(db)).map(({ endReason }) => endReason)).toContain('cut-off');
  const shown = (
    await Promise.all((await listSessions(db)).map(({ session }) => showFrames(db, session)))
  ).flat();
  expect(shown.map(({ text }) => text).sort()).toEqual(
    ['data: 1\n\n', 'data: {"half', '{"begin":', '{"begin":', '{"half":'].sort(),
  );
});

test('of a large body that comes without a pause, what has come is stored before it has ended', async () => {
  const db = tempStore();
  const piece = Buffer.alloc(1024 * 1024, 'x');
  const { url } = await startServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more);
    more();
  });
  const run = await recordUrl(`${url}/mcp`, { db });
  const answer = await postTo(run.url, CALL);
  let received = 0;
  answer.on('data', (bytes: Buffer) => {
    received += bytes.length;
  });
  answer.on('error', () => {});
  const stored = () =>
    query<{ size: number | null }>(db, 'SELECT sum(length(bytes)) AS size FROM unfinished')[0]?.size ?? 0;
  for (const megabytes of [1, 10]) {
    await until(`${megabytes} MB are stored`, () => stored() > megabytes * 1024 * 1024);
  }
  await kill(run);
  expect(received).toBeGreaterThanOrEqual(stored());
  expect(await listSessions(db)).toMatchObject([{ endReason: 'cut-off' }]);
});

test('the last event of a compressed stream that then stays quiet is stored', async () => {
  const db = tempStore();
  const { url } = await startServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' });
    const gzip = createGzip();
    gzip.pipe(response);
    gzip.write('data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n');
    gzip.flush();
  });
  const run = await recordUrl(`${url}/mcp`, { db });
  const answer = await postTo(run.url, CALL);
  answer.on('error', () => {}).resume();
  // Time makes a commit of its own every ten seconds: it must not need that.
  await until(
    'the event is stored',
    () => query(db, "SELECT 1 FROM frame WHERE channel = 'sse'").length === 1,
    5000,
  );
  await kill(run);
  expect(query(db, "SELECT flags FROM frame WHERE channel = 'sse'")).toEqual([{ flags: null }]);
});

test('an upstream that is killed in the middle of a stream is recorded as who closed it', async () => {
  const db = tempStore();
  const script = `require('node:http').createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message"}\\n\\ndata: half');
  }).listen(0, '127.0.0.1', function () { console.log(this.address().port); });`;
  const server = start(process.execPath, ['-e', script]);
  await until('the server listens', () => /\d+\n/.test(server.stdout().toString()));
  const run = await recordUrl(`http://127.0.0.1:${server.stdout().toString().trim()}/mcp`, { db });
  const answer = await postTo(run.url, CALL);
  const broken = new Promise((resolve) => answer.once('error', resolve));
  answer.resume();
  await until(
    'the event is stored',
    () => query(db, "SELECT 1 FROM frame WHERE channel = 'sse'").length === 1,
  );
  server.child.kill('SIGKILL');
  await broken;
  await run.stop();
  expect(query(db, 'SELECT closed_by, error FROM http_exchange')).toEqual([
    { closed_by: 'server', error: expect.any(String) },
  ]);
  expect(query(db, "SELECT flags FROM frame WHERE channel = 'sse' ORDER BY seq")).toEqual([
    { flags: null },
    { flags: expect.stringContaining('incomplete') },
  ]);
});

test('a client that is killed in the middle of a stream is recorded as who closed it', async () => {
  const db = tempStore();
  const streams: ServerResponse[] = [];
  const { url } = await startServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message"}\n\n');
    streams.push(response);
  });
  const run = await recordUrl(`${url}/mcp`, { db });
  const script = `const request = require('node:http').request({ port: ${run.url.port}, path: '/mcp', method: 'POST', headers: { 'content-type': 'application/json' } });
    request.on('response', (answer) => answer.once('data', () => console.log('here')).resume());
    request.end(${JSON.stringify(CALL)});`;
  const client = start(process.execPath, ['-e', script]);
  await until('the client has the event', () => client.stdout().includes('here'));
  client.child.kill('SIGKILL');
  await until('the server learns it', () => streams[0]?.destroyed === true);
  await run.stop();
  expect(query(db, 'SELECT closed_by, status FROM http_exchange')).toEqual([
    { closed_by: 'client', status: 200 },
  ]);
});

test('streams that are cut when tapedeck stops are recorded to their end', async () => {
  const db = tempStore();
  const { url } = await startServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: {"jsonrpc":"2.0","method":"notifications/message"}\n\ndata: half');
  });
  const run = await recordUrl(`${url}/mcp`, { db, args: ['--grace', '0'] });
  for (let i = 0; i < 20; i += 1) (await postTo(run.url, CALL)).on('error', () => {}).resume();
  await until(
    'the events are stored',
    () => query(db, "SELECT 1 FROM frame WHERE channel = 'sse'").length === 20,
  );
  await run.stop();
  expect(query(db, 'SELECT closed_by, count(ended_at) AS n FROM http_exchange GROUP BY 1')).toEqual([
    { closed_by: 'proxy', n: 20 },
  ]);
  expect(query(db, "SELECT flags, count(*) AS n FROM frame WHERE channel = 'sse' GROUP BY 1")).toEqual([
    { flags: null, n: 20 },
    { flags: 'incomplete', n: 20 },
  ]);
  expect(query(db, 'SELECT 1 FROM unfinished')).toEqual([]);
});

test('a lock that passes costs nothing: what waited is stored', async () => {
  const db = tempStore();
  const { url } = await startServer((request, response) => {
    request.resume();
    request.on('end', () => response.end('{"jsonrpc":"2.0","id":1,"result":{}}'));
  });
  const run = await recordUrl(`${url}/mcp`, { db });
  (await postTo(run.url, CALL)).resume();
  await until('the store is there', () => query(db, 'SELECT 1 FROM frame').length === 2);
  const lock = start(process.execPath, [fixture('hold-lock.js'), db]);
  await until('the store is locked', () => lock.stdout().includes('locked'));
  for (let i = 0; i < 100; i += 1) {
    const answer = await postTo(run.url, CALL);
    answer.resume();
    await new Promise((resolve) => answer.once('end', resolve));
  }
  lock.child.stdin.end();
  await lock.ended;
  await run.stop();
  expect(await listSessions(db)).toMatchObject([{ frames: 202, dropped: 0, exchanges: 101, unanswered: 0 }]);
});
