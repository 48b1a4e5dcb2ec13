import { createHash } from 'node:crypto';
import { Agent, type ServerResponse } from 'node:http';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openSocket, readBody, startServer } from '../support/http.ts';
import { payloadIn, postTo, query, recordUrlInProcess } from '../support/http-record.ts';
import { scale } from '../support/scale.ts';
import { listSessions, tempStore, until } from '../support/tapedeck.ts';

const rpc = (message: object) => JSON.stringify({ jsonrpc: '2.0', ...message });
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const listen = (n: number) => rpc({ id: n, method: 'tools/call', params: { name: `stream-${n}` } });

/** Answers calls of `stream-…` with streams that wait for `say`, all else at once with the request's id. */
async function startStreams() {
  const streams = new Map<string, ServerResponse>();
  const { url } = await startServer(async (request, response) => {
    const { id, params } = JSON.parse((await readBody(request)).toString());
    if (params.name.startsWith('stream-')) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.flushHeaders();
      streams.set(params.name, response);
      return;
    }
    const body = rpc({ id, result: { name: params.name } });
    response.writeHead(200, {
      'Content-Type': 'application/json',
      'Content-Length': Buffer.byteLength(body),
    });
    response.end(body);
  });
  return { url, streams };
}

test('two hundred streams at once, with two thousand calls among them, are kept whole, in order and apart', async () => {
  const db = tempStore();
  const { url, streams } = await startStreams();
  const run = await recordUrlInProcess(`${url}/mcp`, { db });
  const received = new Map<string, string>();
  const count = { streams: scale(200), calls: scale(2000) };
  const numbers = Array.from({ length: count.streams }, (_, i) => i);
  const ends = numbers.map(async (n) => {
    const answer = await postTo(run.url, listen(n));
    answer.setEncoding('utf8');
    for await (const text of answer) received.set(`stream-${n}`, (received.get(`stream-${n}`) ?? '') + text);
  });
  await until('all streams are open', () => streams.size === count.streams);

  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const calls = Array.from({ length: count.calls }, async (_, i) => {
    const answer = await postTo(
      run.url,
      rpc({ id: i, method: 'tools/call', params: { name: `call-${i}` } }),
      {
        agent,
      },
    );
    expect(JSON.parse((await readBody(answer)).toString())).toMatchObject({
      id: i,
      result: { name: `call-${i}` },
    });
  });
  for (let k = 0; k < 20; k += 1) {
    for (const [name, stream] of streams)
      stream.write(`id: ${name}.${k}\ndata: {"from":"${name}","k":${k}}\n\n`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await Promise.all(calls);
  agent.destroy();
  for (const stream of streams.values()) stream.end();
  await Promise.all(ends);
  await run.stop();

  const store = new Database(db, { readonly: true });
  const pairs = store
    .prepare<[], { asked: string; session: number; number: number }>(
      `SELECT CAST(payload AS TEXT) AS asked, session, http AS number FROM frame WHERE channel = 'request'`,
    )
    .all();
  expect(pairs).toHaveLength(count.streams + count.calls);
  const answer = store
    .prepare<[number, number], string>(
      `SELECT CAST(payload AS TEXT) FROM frame WHERE session = ? AND http = ? AND channel <> 'request' ORDER BY seq`,
    )
    .pluck();
  for (const { asked, session, number } of pairs) {
    const { id, params } = JSON.parse(asked);
    const stored = answer.all(session, number);
    if (params.name.startsWith('call-')) expect(stored).toEqual([rpc({ id, result: { name: params.name } })]);
    else {
      expect(stored).toHaveLength(20);
      expect(stored.join('')).toBe(received.get(params.name));
    }
  }
  store.close();
  const sessions = await listSessions(db);
  expect(sessions.reduce((sum, { frames }) => sum + frames, 0)).toBe(
    count.streams * (1 + 20) + count.calls * 2,
  );
  expect(sessions.every(({ dropped }) => dropped === 0)).toBe(true);
});

for (const [option, isCut] of [
  [[], false],
  [['--max-frame', '1mb'], true],
] as const) {
  test(`64 MB both ways pass while they come, and are recorded ${isCut ? 'cut, with size and hash' : 'whole'}`, async () => {
    const db = tempStore();
    const sent = Buffer.alloc(scale(64) * 1024 * 1024, '{"a":1234567890}');
    const back = Buffer.from(sent.map((byte) => byte ^ 1));
    let goOn = () => {};
    const { url } = await startServer(async (request, response) => {
      let size = 0;
      for await (const chunk of request) size += (chunk as Buffer).length;
      response.writeHead(200, { 'X-Size': String(size), 'Content-Type': 'application/json' });
      response.write(back.subarray(0, 100_000));
      goOn = () => void response.end(back.subarray(100_000));
    });
    const run = await recordUrlInProcess(`${url}/mcp`, { db, args: [...option, '--no-redact'] });
    const answer = await postTo(run.url, sent);
    expect(answer.headers['x-size']).toBe(String(sent.length));
    const chunks: Buffer[] = [];
    for await (const chunk of answer) {
      // The upstream sends the rest only now that the beginning is here.
      if (chunks.push(chunk as Buffer) === 1) goOn();
    }
    expect(Buffer.concat(chunks).equals(back)).toBe(true);
    await run.stop();
    const kept = isCut ? 1024 * 1024 : sent.length;
    for (const [channel, whole] of [
      ['request', sent],
      ['response', back],
    ] as const) {
      expect(payloadIn(db, `channel = '${channel}'`).equals(whole.subarray(0, kept))).toBe(true);
      expect(query(db, `SELECT size, sha256, flags FROM frame WHERE channel = '${channel}'`)).toMatchObject([
        {
          size: whole.length,
          sha256: isCut ? sha256(whole) : null,
          ...(isCut ? { flags: expect.stringContaining('truncated') } : {}),
        },
      ]);
    }
    expect(query(db, 'SELECT * FROM unfinished LIMIT 1')).toEqual([]);
    expect(await listSessions(db)).toMatchObject([{ dropped: 0 }]);
  });
}

test('two proxies on one store at once keep everything of both', async () => {
  const db = tempStore();
  const { url } = await startStreams();
  const count = scale(300);
  const runs = await Promise.all([
    recordUrlInProcess(`${url}/mcp`, { db, args: ['--name', 'a'] }),
    recordUrlInProcess(`${url}/mcp`, { db, args: ['--name', 'b'] }),
  ]);
  const calls = runs.flatMap(({ url: proxy }) =>
    Array.from({ length: count }, async (_, id) =>
      readBody(await postTo(proxy, rpc({ id, method: 'tools/call', params: { name: 'x'.repeat(id) } }))),
    ),
  );
  await Promise.all(calls);
  for (const run of runs) await run.stop();
  for (const name of ['a', 'b']) {
    const own = `FROM frame JOIN session ON session.number = frame.session WHERE session.name = '${name}'`;
    expect(query(db, `SELECT count(*) AS n, count(DISTINCT payload) AS different ${own}`)).toEqual([
      { n: 2 * count, different: 2 * count },
    ]);
  }
  expect(
    (await listSessions(db)).every(({ dropped, endReason }) => dropped === 0 && endReason === 'stopped'),
  ).toBe(true);
});

test('a stream that stays quiet for longer than every limit of its far ends stays open', async () => {
  const db = tempStore();
  const limits = {
    keepAliveTimeout: 200,
    headersTimeout: 200,
    requestTimeout: 200,
    connectionsCheckingInterval: 50,
  };
  let speak = () => {};
  const { url } = await startServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    response.write('data: 1\n\n');
    speak = () => void response.end('data: 2\n\n');
  }, limits);
  const run = await recordUrlInProcess(`${url}/mcp`, { db });
  const quiet = await postTo(run.url, listen(1), { agent: new Agent({ keepAlive: true }) });
  const body = readBody(quiet);
  await until(
    'the first event is stored',
    () => query(db, "SELECT 1 FROM frame WHERE channel = 'sse'").length === 1,
  );
  // Requests whose heads never end are cut by the same limits: once that has happened several times, they have passed.
  for (let round = 0; round < 3; round += 1)
    await openSocket(Number(new URL(url).port), 'POST / HTTP/1.1\r\n').closed;
  speak();
  expect((await body).toString()).toBe('data: 1\n\ndata: 2\n\n');
  await run.stop();
  expect(query(db, 'SELECT closed_by, error FROM http_exchange')).toEqual([
    { closed_by: 'server', error: null },
  ]);
});
