/** Faults in what a server answers over HTTP: compressed, several at once, twice, and more than can be held. */
import { type IncomingMessage, request as openRequest, type ServerResponse } from 'node:http';
import zlib from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { readBody, startServer } from '../support/http.ts';
import { recordUrlInProcess } from '../support/http-record.ts';
import { inFull, scale } from '../support/scale.ts';
import { showFrames, tapedeckInProcess } from '../support/tapedeck.ts';

type Encode = (bytes: Buffer) => Buffer;

const { zstdCompressSync } = zlib as unknown as { zstdCompressSync?: Encode };

const ALL_CODINGS: readonly (readonly [name: string, encode: Encode])[] = [
  ['gzip', zlib.gzipSync],
  ['br', zlib.brotliCompressSync],
  ['deflate', zlib.deflateSync],
  ...(zstdCompressSync === undefined ? [] : ([['zstd', zstdCompressSync]] as const)),
];

const CODINGS = ALL_CODINGS.slice(0, scale(ALL_CODINGS.length, 1));

const answerOf = (id: number, text: string) =>
  Buffer.from(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text }] } }));

const JSON_HEADERS = { 'Content-Type': 'application/json' };

/** Answers each call by `answer`, which is given its id and its text. */
async function recordServer(
  answer: (response: ServerResponse, id: number, text: string) => void,
  faults: readonly string[],
) {
  const { url } = await startServer(async (request, response) => {
    const { id, params } = JSON.parse((await readBody(request)).toString());
    answer(response, id, params.arguments.text);
  });
  const args = faults.flatMap((fault) => ['--fault', fault]);
  const recording = await recordUrlInProcess(`${url}/mcp`, { args });
  onTestFinished(() => void recording.run.child.kill('SIGTERM'));
  return recording;
}

let lastId = 0;

type Got = { status: number; headers: IncomingMessage['headers']; body: Buffer; id: number };

function call(url: URL, text: string): Promise<Got> {
  lastId += 1;
  const id = lastId;
  const params = { name: 'echo', arguments: { text } };
  const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
  return new Promise((resolve, reject) => {
    const headers = { ...JSON_HEADERS, 'Content-Length': String(Buffer.byteLength(body)) };
    const sent = openRequest(url, { method: 'POST', agent: false, headers }, async (answer) => {
      const { statusCode: status = 0, headers: got } = answer;
      resolve(readBody(answer).then((bytes) => ({ status, headers: got, body: bytes, id })));
    });
    sent.on('error', reject);
    sent.end(body);
  });
}

test.each(CODINGS)(
  'a body in %s is looked into; its bytes stay unless something else goes on',
  async (coding, encode) => {
    const recording = await recordServer(
      (response, id, text) => {
        const body = encode(answerOf(id, text));
        const headers = {
          ...JSON_HEADERS,
          'Content-Encoding': coding,
          'Content-Length': String(body.length),
        };
        response.writeHead(200, headers).end(body);
      },
      ['text~"late" delay=1ms', 'text~"wrong" error(-32050,"no")', 'text~"cut" truncate(12)'],
    );
    for (const text of ['plain', 'late']) {
      const { headers, body, id } = await call(recording.url, text);
      expect(body).toEqual(encode(answerOf(id, text)));
      expect(headers).toMatchObject({ 'content-encoding': coding, 'content-length': String(body.length) });
    }
    for (const text of ['wrong', 'cut']) {
      const { headers, body, id } = await call(recording.url, text);
      const wrong = `{"jsonrpc":"2.0","id":${id},"error":{"code":-32050,"message":"no"}}`;
      expect(body.toString()).toBe(text === 'wrong' ? wrong : '{"jsonrpc":"');
      expect(headers).not.toHaveProperty('content-encoding');
      expect(headers['content-length']).toBe(String(body.length));
    }
    await recording.stop();
    const faulted = await faultsIn(recording.db);
    expect(faulted.map(({ action }) => action)).toEqual(['delay 1ms', 'error -32050', 'truncate 12']);
    for (const { text, original } of faulted)
      expect(original ?? text).toMatch(/^\{.*"text":"(?:late|wrong|cut)"/);
    const check = (await tapedeckInProcess(['check', '--db', recording.db])).stdout.toString();
    expect(check).not.toContain('server:');
  },
);

async function faultsIn(db: string) {
  const frames = (await showFrames(db)) as (Awaited<ReturnType<typeof showFrames>>[number] & {
    original?: string;
    fault?: { action: string };
  })[];
  return frames.flatMap(({ fault, text = '', original }) =>
    fault === undefined ? [] : [{ action: fault.action, text, original }],
  );
}

const eventOf = (json: Buffer) => Buffer.from(`event: message\ndata: ${json}\n\n`);

const PROGRESS = Buffer.from(
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}',
);

test.each(CODINGS)('events in %s go on without it, each in its time', async (coding, encode) => {
  const recording = await recordServer(
    (response, id, text) => {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': coding });
      response.end(encode(Buffer.concat([eventOf(PROGRESS), eventOf(answerOf(id, text))])));
    },
    ['text~"wrong" error(-32050,"no")'],
  );
  const plain = await call(recording.url, 'plain');
  expect(plain.headers).not.toHaveProperty('content-encoding');
  expect(plain.body.toString()).toBe(`${eventOf(PROGRESS)}${eventOf(answerOf(plain.id, 'plain'))}`);
  const wrong = await call(recording.url, 'wrong');
  expect(wrong.body.toString()).toContain('"code":-32050');
  await recording.stop();
  expect(await faultsIn(recording.db)).toMatchObject([{ action: 'error -32050' }]);
  expect(recording.rows("SELECT * FROM message WHERE method = 'notifications/message'")).toHaveLength(2);
});

test('where only clients have faults, compressed events pass untouched', async () => {
  const bodies: Buffer[] = [];
  const recording = await recordServer(
    (response, id, text) => {
      const body = zlib.gzipSync(eventOf(answerOf(id, text)));
      bodies.push(body);
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Content-Encoding': 'gzip' }).end(body);
    },
    ['dir=client drop p=0'],
  );
  const { headers, body } = await call(recording.url, 'plain');
  expect([headers['content-encoding'], body]).toEqual(['gzip', bodies[0]]);
});

test('what is not in the coding that it names passes as it is, and events of it end', async () => {
  const recording = await recordServer(
    (response, id, text) => {
      const type = text === 'events' ? 'text/event-stream' : 'application/json';
      const body = text === 'bomb' ? zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024)) : answerOf(id, text);
      response.writeHead(200, {
        'Content-Type': type,
        'Content-Encoding': text === 'odd' ? 'x-none' : 'gzip',
      });
      response.end(body);
    },
    ['error(-32050)'],
  );
  for (const text of ['broken', 'odd']) {
    const { headers, body, id } = await call(recording.url, text);
    expect(body).toEqual(answerOf(id, text));
    expect(headers).toHaveProperty('content-encoding');
  }
  expect((await call(recording.url, 'bomb')).body).toEqual(zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024)));
  await expect(call(recording.url, 'events')).rejects.toThrow(/aborted|socket hang up|ECONNRESET/);
});

test('an answer of JSON goes behind others, and twice as a batch', async () => {
  const recording = await recordServer(
    (response, id, text) => void response.writeHead(200, JSON_HEADERS).end(answerOf(id, text)),
    ['text~"behind" reorder(2)', 'text~"twice" duplicate'],
  );
  const order: string[] = [];
  const noted = (text: string) => call(recording.url, text).then(() => order.push(text));
  const behind = noted('behind');
  for (const text of ['one', 'two']) await noted(text);
  await behind;
  await noted('three');
  expect(order).toEqual(['one', 'two', 'behind', 'three']);
  const { body, id, headers } = await call(recording.url, 'twice');
  expect(JSON.parse(body.toString())).toEqual(
    [answerOf(id, 'twice'), answerOf(id, 'twice')].map((one) => JSON.parse(one.toString())),
  );
  expect(headers['content-length'] ?? String(body.length)).toBe(String(body.length));
});

inFull('an answer that is too large for a fault passes as it comes, and that is said', async () => {
  const large = 'x'.repeat(17 * 1024 * 1024);
  const recording = await recordServer(
    (response, id, text) => {
      const json = answerOf(id, large);
      const isEvent = text === 'event';
      response.writeHead(200, { 'Content-Type': isEvent ? 'text/event-stream' : 'application/json' });
      response.end(isEvent ? eventOf(json) : json);
    },
    ['tool=echo drop'],
  );
  const body = await call(recording.url, 'body');
  expect(body.body.equals(answerOf(body.id, large))).toBe(true);
  const event = await call(recording.url, 'event');
  expect(event.body.equals(eventOf(answerOf(event.id, large)))).toBe(true);
  await recording.stop();
  expect(recording.run.stderr()).toContain('2 bodies or events were too large for a fault');
  expect(recording.rows('SELECT size FROM frame WHERE size > 17000000')).toHaveLength(2);
});
