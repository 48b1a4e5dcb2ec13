import { rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:https';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { type Certificate, makeCertificate } from '../support/certificate.ts';
import { listenOn, readBody, startServer } from '../support/http.ts';
import { exchangesOf, expectWhole, query, recordUrl, sessionsOf } from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { findFreePort } from '../support/servers.ts';
import { type Run, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const LIST = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
const ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}';

/** Answers everything with an empty list. */
const startLister = () =>
  startServer((_request, response) => {
    response.setHeader('Content-Type', 'application/json').end(ANSWER);
  });

async function post(url: URL, body = LIST, more = {}): Promise<{ status: number; text: string }> {
  const headers = { 'Content-Type': 'application/json', ...more };
  const response = await fetch(url, { method: 'POST', body, headers });
  return { status: response.status, text: await response.text() };
}

/** What was said on stderr besides the line for clients. */
function complaintsOf({ run }: { run: Run }): string[] {
  return run
    .stderr()
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('tapedeck: listening on'));
}

test('a server that cannot be reached is answered for in one line, which is recorded', async () => {
  const port = await findFreePort();
  const recording = await recordUrl(`http://127.0.0.1:${port}/mcp`);
  const { status, text } = await post(recording.url);
  expect(status).toBe(502);
  expect(text).toMatch(
    new RegExp(`^tapedeck: cannot reach http://127\\.0\\.0\\.1:${port}: .*ECONNREFUSED.*\\n$`),
  );
  const client = new Client({ name: 'tester', version: '1.0.0' });
  const transport = new StreamableHTTPClientTransport(recording.url) as Transport;
  await expect(client.connect(transport)).rejects.toThrow(/502|cannot reach/);
  await recording.stop();

  expect(complaintsOf(recording)).toEqual([]);
  expectWhole(recording);
  expect(sessionsOf(recording)).toMatchObject([{ basis: 'stateless', errors: 2, unanswered: 0 }]);
  expect(exchangesOf(recording)).toEqual(['tools/list error', 'initialize error']);
  const [first] = recording.rows('SELECT status, closed_by, error FROM http_exchange');
  expect(first).toEqual({ status: 502, closed_by: 'proxy', error: text.trim().replace('tapedeck: ', '') });
  expect(recording.rows("SELECT DISTINCT flags FROM frame WHERE channel = 'response'")).toEqual([
    { flags: 'foreign-body' },
  ]);
});

test('a secret in the server’s own URL is masked', async () => {
  const { url } = await startLister();
  const recording = await recordUrl(`${url}/mcp?api_key=hush`);
  await post(recording.url);
  await recording.stop();
  const [{ target, path }] = recording.rows(
    'SELECT target, path FROM session JOIN http_exchange ON session = session.number',
  ) as [{ target: string; path: string }];
  expect(path).toMatch(/^\/mcp\?api_key=masked-[0-9a-f]+$/);
  expect(target).toBe(url + path);
});

test('a store that cannot be opened harms no traffic and is said once', async () => {
  const file = join(tempFolder(), 'plain');
  writeFileSync(file, '');
  const recording = await recordUrl((await startLister()).url, { db: join(file, 'x.db') });
  for (let round = 0; round < 3; round += 1) {
    expect(await post(recording.url)).toEqual({ status: 200, text: ANSWER });
  }
  await recording.stop();
  expect(complaintsOf(recording)).toEqual([
    expect.stringMatching(
      /not a folder|EEXIST|ENOTDIR.*Traffic goes on; what cannot be recorded is counted\.$/,
    ),
  ]);
});

test('a store that is removed while traffic flows harms none of it and is said once', async () => {
  const recording = await recordUrl((await startLister()).url);
  await post(recording.url);
  await until('it is stored', () => recording.rows('SELECT 1 FROM frame').length === 2);
  rmSync(recording.db);
  for (let round = 0; round < 3; round += 1) {
    expect(await post(recording.url)).toEqual({ status: 200, text: ANSWER });
  }
  await until('it is said', () => complaintsOf(recording).length > 0);
  expect(await post(recording.url)).toEqual({ status: 200, text: ANSWER });
  await recording.stop();
  expect(complaintsOf(recording)).toEqual([
    expect.stringMatching(/removed or replaced.*Traffic goes on; what cannot be recorded is counted\.$/),
  ]);
});

inFull('that nobody reads stderr any more is not the traffic’s trouble', async () => {
  const recording = await recordUrl((await startLister()).url);
  await post(recording.url);
  await until('it is stored', () => recording.rows('SELECT 1 FROM frame').length === 2);
  recording.run.child.stderr.destroy();
  rmSync(recording.db);
  // Longer than it takes to notice, to say so, and to fail in that.
  for (let round = 0; round < 10; round += 1) {
    expect(await post(recording.url)).toEqual({ status: 200, text: ANSWER });
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await recording.stop();
});

test('what never fitted onto the disk is counted', async () => {
  const db = tempStore();
  const recording = await recordUrl((await startLister()).url, { db });
  await post(recording.url);
  await until('it is stored', () => recording.rows('SELECT 1 FROM frame').length === 2);
  const store = new Database(db);
  // Stands for a full disk: whatever is large fails.
  store.exec(`CREATE TRIGGER full BEFORE INSERT ON frame WHEN length(new.payload) > 100000
    BEGIN SELECT raise(FAIL, 'full'); END`);
  store.close();
  const large = JSON.stringify({ ...JSON.parse(LIST), params: { text: 'x'.repeat(200_000) } });
  const sessionId = { 'Mcp-Session-Id': 'new' };
  expect((await post(recording.url, large, sessionId)).status).toBe(200);
  await until('it is said', () => complaintsOf(recording).length > 0);
  await recording.stop();
  const lost = recording.rows("SELECT dropped, dropped_bytes FROM session WHERE basis = 'session-header'");
  expect(lost).toEqual([{ dropped: 2, dropped_bytes: large.length + ANSWER.length }]);
});

test('with --strict it ends where its store is removed', async () => {
  const recording = await recordUrl((await startLister()).url, { args: ['--strict', '--grace', '0'] });
  await post(recording.url);
  await until('it is stored', () => recording.rows('SELECT 1 FROM frame').length === 2);
  rmSync(recording.db);
  await post(recording.url);
  expect(await recording.run.ended).toMatchObject({ code: 1, signal: null });
  expect(complaintsOf(recording)).toEqual([expect.stringMatching(/Stopping, because of --strict\.$/)]);
});

test('a lock that passes costs nothing', async () => {
  const recording = await recordUrl((await startLister()).url);
  await post(recording.url);
  await until('it is stored', () => recording.rows('SELECT 1 FROM frame').length === 2);
  const store = new Database(recording.db);
  store.exec('BEGIN IMMEDIATE');
  for (let round = 0; round < 5; round += 1) {
    expect(await post(recording.url)).toEqual({ status: 200, text: ANSWER });
  }
  store.exec('COMMIT');
  store.close();
  await recording.stop();
  expectWhole(recording);
  expect(exchangesOf(recording)).toEqual(Array(6).fill('tools/list ok'));
});

test('where the queue is too small, traffic flows, and what was lost is counted', async () => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: { text: 'x'.repeat(4_000_000) } });
  const upstream = await startServer((_request, response) => {
    response.setHeader('Content-Type', 'application/json').end(body);
  });
  const recording = await recordUrl(upstream.url, { args: ['--max-queue', '100kb'] });
  for (let round = 0; round < 5; round += 1) expect((await post(recording.url)).text === body).toBe(true);
  await recording.stop();
  expect(complaintsOf(recording)).toEqual([]);
  const [session] = recording.rows('SELECT dropped, dropped_bytes FROM session');
  expect(session?.['dropped']).toBeGreaterThan(0);
  expect(session?.['dropped_bytes']).toBeGreaterThan(0);
  // Every byte of a body that is not in a frame is one that was counted as lost.
  const [kept] = recording.rows('SELECT sum(length(payload)) AS bytes FROM frame');
  const [parts] = recording.rows('SELECT coalesce(sum(length(bytes)), 0) AS bytes FROM frame_part');
  expect(Number(kept?.['bytes']) + Number(parts?.['bytes']) + Number(session?.['dropped_bytes'])).toBe(
    5 * (LIST.length + body.length),
  );
});

async function startTlsLister(certificate: Certificate): Promise<URL> {
  const server = createServer(certificate, (_request, response) => {
    response.setHeader('Content-Type', 'application/json').end(ANSWER);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return new URL(`https://localhost:${await listenOn(server)}/mcp`);
}

inFull('a server whose certificate nobody vouches for is not reached, unless one insists', async () => {
  const certificate = makeCertificate();
  const upstream = await startTlsLister(certificate);
  const refused = await recordUrl(upstream);
  expect(await post(refused.url)).toMatchObject({
    status: 502,
    text: expect.stringMatching(/^tapedeck: cannot reach https:\/\/localhost:\d+: self-signed certificate/),
  });
  await refused.stop();
  expect(exchangesOf(refused)).toEqual(['tools/list error']);

  const vouched = await recordUrl(upstream, { env: { NODE_EXTRA_CA_CERTS: certificate.file } });
  expect(await post(vouched.url)).toEqual({ status: 200, text: ANSWER });
  await vouched.stop();
  expect(complaintsOf(vouched)).toEqual([]);

  const insecure = await recordUrl(upstream, { args: ['--insecure'] });
  expect(await post(insecure.url)).toEqual({ status: 200, text: ANSWER });
  await insecure.stop();
  expect(complaintsOf(insecure)).toEqual([
    'tapedeck: WARNING: --insecure: the certificate of the server is not verified',
  ]);
  expect(exchangesOf(insecure)).toEqual(['tools/list ok']);
});

test('it listens with TLS', async () => {
  const certificate = makeCertificate();
  const folder = tempFolder();
  const key = join(folder, 'key.pem');
  writeFileSync(key, certificate.key);
  const recording = await recordUrl(`${(await startLister()).url}/mcp`, {
    args: ['--tls-cert', certificate.file, '--tls-key', key],
    db: tempStore(),
  });
  expect(recording.url.protocol).toBe('https:');
  const text = await new Promise<string>((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json' };
    const asked = request(recording.url, { method: 'POST', ca: certificate.cert, headers, agent: false });
    asked.on('response', (response) => void readBody(response).then((body) => resolve(body.toString())));
    asked.on('error', reject).end(LIST);
  });
  expect(text).toBe(ANSWER);
  await recording.stop();
  expectWhole(recording);
  expect(exchangesOf(recording)).toEqual(['tools/list ok']);
  expect(query(recording.db, 'SELECT target FROM session')).toEqual([
    { target: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/) },
  ]);
});
