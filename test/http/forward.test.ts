import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as FirstHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { expect, test } from 'vitest';
import { fetchThrough } from '../support/forward.ts';
import {
  exchangesOf,
  expectWhole,
  query,
  type Recording,
  requestsOf,
  sessionsOf,
} from '../support/http-record.ts';
import { startInProcess } from '../support/in-process.ts';
import { converse, METADATA, startProtected } from '../support/oauth.ts';
import { talkToDualEra, talkToEverything } from '../support/official-clients.ts';
import { startDualEraServer, startEverything } from '../support/servers.ts';
import { tempFolder, tempStore, until } from '../support/tapedeck.ts';

/** A forward proxy for these servers, in this process; `fetch` goes through it. */
function recordForward(...urls: (string | URL)[]): Promise<Recording & { fetch: typeof fetch }> {
  return recordForwardWith([], ...urls);
}

async function recordForwardWith(
  args: readonly string[],
  ...urls: (string | URL)[]
): Promise<Recording & { fetch: typeof fetch }> {
  const db = tempStore();
  const words = ['record', '--forward', ...urls.map(String), '--listen', '127.0.0.1:0', '--db', db, ...args];
  const folder = tempFolder();
  const env = { XDG_DATA_HOME: folder, HTTPS_PROXY: '', https_proxy: '' };
  const run = startInProcess(words, { env });
  const listening = /listening on http:\/\/127\.0\.0\.1:(\d+) for /;
  await until(`it listens: ${run.stderr()}`, () => listening.test(run.stderr()));
  const port = Number(listening.exec(run.stderr())?.[1]);
  return {
    db,
    url: new URL(String(urls[0])),
    fetch: fetchThrough(port),
    async stop() {
      run.child.kill('SIGTERM');
      expect(await run.ended).toMatchObject({ code: 0 });
    },
    rows: (sql, ...values) => query(db, sql, ...values),
  };
}

function expectUntouched({ rows }: Recording): void {
  expect(rows('SELECT * FROM http_exchange WHERE edits IS NOT NULL')).toEqual([]);
  expect(rows('SELECT * FROM frame_edit')).toEqual([]);
}

test('an official client of the first line sees what it sees directly, and is recorded under the real URL', async () => {
  const url = new URL(await startEverything('streamableHttp'));
  const direct = await talkToEverything(new FirstHttpTransport(url) as Transport);
  const recording = await recordForward(url);
  const { fetch } = recording;
  expect(await talkToEverything(new FirstHttpTransport(url, { fetch }) as Transport)).toEqual(direct);
  await recording.stop();
  expectWhole(recording);
  expectUntouched(recording);
  expect(recording.rows('SELECT target FROM session')).toEqual([{ target: url.href }]);
  expect(sessionsOf(recording)).toMatchObject([{ basis: 'session-header', client: 'tester' }]);
  expect(exchangesOf(recording)).toContain('tools/call echo ok');
});

test.each(['legacy', 'auto'] as const)('so does one of the second line, %s', async (mode) => {
  const url = new URL(await startDualEraServer());
  const direct = await talkToDualEra(new StreamableHTTPClientTransport(url), mode);
  const recording = await recordForward(url);
  const { fetch } = recording;
  expect(await talkToDualEra(new StreamableHTTPClientTransport(url, { fetch }), mode)).toEqual(direct);
  await recording.stop();
  expectWhole(recording);
  expectUntouched(recording);
  expect(recording.rows('SELECT DISTINCT target FROM session')).toEqual([{ target: url.href }]);
});

test('with OAuth the client asks for a token for the real URL, and both servers are recorded where both are named', async () => {
  const { url, authorization } = await startProtected();
  const direct = await converse(url, authorization.url);
  const recording = await recordForward(url, authorization.url);
  expect(await converse(url, authorization.url, recording.fetch)).toEqual(direct);
  await recording.stop();
  expectWhole(recording);
  expectUntouched(recording);
  const of = (target: string) =>
    recording.rows<{ number: number }>('SELECT number FROM session WHERE target = ?', target)[0]?.number;
  expect(requestsOf(recording, of(url.href)).slice(0, 3)).toEqual([
    'POST /mcp 401',
    `GET ${METADATA} 200`,
    'POST /mcp 200',
  ]);
  expect(requestsOf(recording, of(`${authorization.url}/`))).toContain('POST /token 200');
  const asked = recording.rows<{ text: string }>(
    "SELECT CAST(payload AS TEXT) AS text FROM frame WHERE channel = 'request'",
  );
  expect(asked.map(({ text }) => text).join()).toContain(encodeURIComponent(url.href));
  const [token = ''] = authorization.tokens.slice(-1);
  expect(JSON.stringify(recording.rows('SELECT * FROM http_exchange'))).not.toContain(token);
});

test('what the server or the client says is broken on purpose, and the record has the truth beside it', async () => {
  const url = new URL(await startEverything('streamableHttp'));
  const faults = ['tool=echo error(-32050)', 'dir=client tool=get-sum garbage'];
  const recording = await recordForwardWith(
    faults.flatMap((fault) => ['--fault', fault]),
    url,
  );
  const client = new Client({ name: 'tester', version: '1.0.0' });
  await client.connect(new FirstHttpTransport(url, { fetch: recording.fetch }) as Transport);
  await expect(client.callTool({ name: 'echo', arguments: { message: 'hi' } })).rejects.toThrow(/-32050/);
  await expect(client.callTool({ name: 'get-sum', arguments: { a: 1, b: 2 } })).rejects.toThrow(
    /Parse error/,
  );
  await client.close();
  await recording.stop();
  const said = recording.rows<{ action: string; text: string }>(
    'SELECT x.action, CAST(e.original AS TEXT) AS text FROM frame_fault AS x LEFT JOIN frame_edit AS e USING (session, seq) ORDER BY x.number',
  );
  expect(said.map(({ action }) => action)).toEqual(['error -32050', 'garbage']);
  expect(said[0]?.text).toContain('Echo: hi');
});

test('two servers at one origin are recorded each under its own URL', async () => {
  const one = new URL(await startEverything('streamableHttp'));
  const other = new URL('/other', one);
  const recording = await recordForward(one, other);
  await recording.fetch(one, { method: 'POST', body: '{}' });
  await recording.fetch(new URL('/other/deep', one));
  await recording.fetch(new URL('/.well-known/oauth-protected-resource/other', one));
  await recording.stop();
  const counts = recording.rows(
    'SELECT target, count(*) AS n FROM http_exchange JOIN session ON session.number = http_exchange.session GROUP BY 1 ORDER BY 1',
  );
  expect(counts).toEqual([
    { target: one.href, n: 1 },
    { target: other.href, n: 2 },
  ]);
});
