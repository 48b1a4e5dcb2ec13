/** What is recorded of a connection of HTTP/2: what passed, as one HTTP exchange that nobody has read. */
import { randomBytes } from 'node:crypto';
import { type ClientHttp2Session, connect, createServer } from 'node:http2';
import type { Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { HTTP2_PREFACE } from '../../src/protocol/wire/http-event.ts';
import { listenOn } from '../support/http.ts';
import { query, recordUrl, recordUrlInProcess } from '../support/http-record.ts';
import { tapedeckInProcess, until } from '../support/tapedeck.ts';

async function startEcho(): Promise<string> {
  const server = createServer((request, response) => void request.pipe(response));
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => sockets.add(socket)).on('sessionError', () => {});
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${await listenOn(server)}/mcp`;
}

function open(url: URL): ClientHttp2Session {
  const session = connect(url.origin);
  session.on('error', () => {});
  onTestFinished(() => void session.destroy());
  return session;
}

async function ask(session: ClientHttp2Session, body: Buffer): Promise<Buffer> {
  const stream = session.request({ ':method': 'POST', authorization: 'Bearer not-a-real-one' });
  stream.end(body);
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece as Buffer);
  return Buffer.concat(pieces);
}

const over = (session: ClientHttp2Session) =>
  new Promise<void>((resolve) => {
    session.once('close', resolve);
    session.close();
  });

type Body = { channel: string; size: number; kept: number; flags: string; beginning: Buffer };

const BODIES = `SELECT channel, size, flags, length(payload) + coalesce((SELECT sum(length(bytes)) FROM frame_part AS p
  WHERE p.session = frame.session AND p.seq = frame.seq), 0) AS kept, substr(payload, 1, 24) AS beginning FROM frame ORDER BY channel`;

const STORED = `SELECT coalesce(sum(length(bytes)), 0) AS bytes FROM unfinished WHERE channel = 'response'`;

test('without redaction every byte of it is kept', async () => {
  const recording = await recordUrlInProcess(await startEcho(), { args: ['--no-redact'] });
  const session = open(recording.url);
  const body = randomBytes(3_000_000);
  expect((await ask(session, body)).equals(body)).toBe(true);
  await over(session);
  await recording.stop();
  const [request, response] = recording.rows<Body>(BODIES);
  expect(request).toMatchObject({ channel: 'request', flags: 'foreign-body undecoded' });
  expect(response).toMatchObject({ channel: 'response', flags: 'foreign-body undecoded' });
  expect(String(request?.beginning)).toBe(HTTP2_PREFACE);
  for (const one of [request, response]) {
    expect(one?.size).toBeGreaterThan(body.length);
    expect(one?.kept).toBe(one?.size);
  }
  expect(
    recording.rows(
      'SELECT method, path, version, status, closed_by, error, request_bytes, response_bytes FROM http_exchange',
    ),
  ).toEqual([
    {
      ...{ method: 'PRI', path: '*', version: '2.0', status: null, closed_by: 'client', error: null },
      ...{ request_bytes: request?.size, response_bytes: response?.size },
    },
  ]);
  expect(recording.rows('SELECT * FROM message')).toEqual([]);
});

test('with redaction its bytes are counted and not kept, as nobody could look into them; show and check say what it is', async () => {
  const recording = await recordUrlInProcess(await startEcho());
  const session = open(recording.url);
  await ask(session, Buffer.from('{"jsonrpc":"2.0","id":1,"method":"ping"}'));
  await over(session);
  await recording.stop();
  const bodies = recording.rows<Body>(BODIES);
  expect(bodies.map(({ channel, kept }) => [channel, kept])).toEqual([
    ['request', 0],
    ['response', 0],
  ]);
  const { db } = recording;
  const shown = (await tapedeckInProcess(['show', '--db', db])).stdout.toString();
  expect(shown).toMatch(/PRI \* +HTTP\/2, unread: \d+ B sent, \d+ B received$/m);
  expect(shown).toContain('this body could not be decoded');
  expect((await tapedeckInProcess(['check', '--db', db])).code).toBe(0);
  const noted = await tapedeckInProcess(['check', '--db', db, '--severity', 'note', '--json']);
  expect(JSON.parse(noted.stdout.toString())).toMatchObject({
    rule: 'http2-unread',
    severity: 'note',
    http: 1,
  });
});

test('a recorder that is killed in the midst of it leaves a store in which it stands', async () => {
  const recording = await recordUrl(await startEcho(), { args: ['--no-redact'] });
  const session = open(recording.url);
  const body = randomBytes(100_000);
  expect((await ask(session, body)).equals(body)).toBe(true);
  await until(
    'what passed is stored',
    () => (query<{ bytes: number }>(recording.db, STORED)[0]?.bytes ?? 0) > body.length,
  );
  recording.run.child.kill('SIGKILL');
  await recording.run.ended;
  const shown = (await tapedeckInProcess(['show', '--db', recording.db])).stdout.toString();
  expect(shown).toMatch(/PRI \* +HTTP\/2, unread/);
  expect((await tapedeckInProcess(['check', '--db', recording.db])).code).toBe(0);
});
