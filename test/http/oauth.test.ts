import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import {
  exchangesOf,
  expectSameReindexed,
  expectWhole,
  type Recording,
  recordUrlInProcess,
  requestsOf,
  sessionsOf,
} from '../support/http-record.ts';
import { converse, METADATA, startProtected } from '../support/oauth.ts';
import { until } from '../support/tapedeck.ts';

function headersOf({ rows }: Recording, session: number): string[][] {
  return rows<{ headers: string }>(
    'SELECT request_headers AS headers FROM http_exchange WHERE session = ? ORDER BY number',
    session,
  ).map(({ headers }) => {
    const pairs = JSON.parse(headers) as [string, string][];
    return pairs.filter(([name]) => name.toLowerCase() === 'authorization').map(([, value]) => value);
  });
}

/** Whether the store holds the text anywhere: in its file, or in what is on the way there. */
function holds(db: string, text: string): boolean {
  return [db, `${db}-wal`].some((file) => existsSync(file) && readFileSync(file).includes(text));
}

test('a refusal, the way to a token and the session opened with it are one session', async () => {
  const server = await startProtected();
  const direct = await converse(server.url, server.authorization.url);
  const recording = await recordUrlInProcess(server.url);
  expect(await converse(recording.url, server.authorization.url)).toEqual(direct);
  await recording.stop();

  expectWhole(recording);
  await expectSameReindexed(recording);
  expect(sessionsOf(recording)).toMatchObject([
    {
      basis: 'session-header',
      client: 'tester',
      server: 'protected',
      ended: 'deleted',
      errors: 1,
      unanswered: 0,
    },
  ]);
  expect(requestsOf(recording).slice(0, 4)).toEqual([
    'POST /mcp 401',
    `GET ${METADATA} 200`,
    'POST /mcp 200',
    'POST /mcp 202',
  ]);
  // The status alone refused the first request: no message answers it.
  expect(exchangesOf(recording)).toEqual([
    'initialize error',
    'initialize ok',
    'tools/list ok',
    'tools/call whisper ok',
  ]);
});

test('what tapedeck edited stands beside what the server had sent', async () => {
  const server = await startProtected();
  const recording = await recordUrlInProcess(server.url);
  await converse(recording.url, server.authorization.url);
  await recording.stop();

  const { origin: proxy } = recording.url;
  const { origin: upstream } = server.url;
  const edited = recording.rows<{ edits: string; headers: string }>(
    'SELECT edits, response_headers AS headers FROM http_exchange WHERE edits IS NOT NULL',
  );
  const challenge = (origin: string) => `Bearer resource_metadata="${origin}${METADATA}", scope="all"`;
  const byServer = edited.flatMap(({ edits }) =>
    JSON.parse(edits).filter((edit: { side: string }) => edit.side === 'response'),
  );
  expect(byServer).toEqual([{ side: 'response', header: 'WWW-Authenticate', original: challenge(upstream) }]);
  const challenged = edited.find(({ headers }) => headers.includes('WWW-Authenticate'));
  expect(JSON.parse(challenged?.headers ?? '')).toContainEqual(['WWW-Authenticate', challenge(proxy)]);
  const metadata = (origin: string) =>
    JSON.stringify({ resource: `${origin}/mcp`, authorization_servers: [server.authorization.url] });
  expect(
    recording.rows(`SELECT CAST(original AS TEXT) AS original, CAST(payload AS TEXT) AS edited, flags
      FROM frame_edit JOIN frame USING (session, seq)`),
  ).toEqual([{ original: metadata(upstream), edited: metadata(proxy), flags: 'foreign-body' }]);
});

test('a token is nowhere in the store; the same one has the same placeholder, another one another', async () => {
  const server = await startProtected();
  const recording = await recordUrlInProcess(server.url);
  await converse(recording.url, server.authorization.url);
  await until(
    'it is all stored',
    () => recording.rows("SELECT 1 FROM http_exchange WHERE method = 'DELETE' AND ended_at > 0").length === 1,
  );
  const { tokens } = server.authorization;
  expect(tokens).toHaveLength(1);
  expect(holds(recording.db, 'resource_metadata')).toBe(true);
  expect(holds(recording.db, tokens[0] ?? '')).toBe(false);
  await converse(recording.url, server.authorization.url);
  await recording.stop();
  for (const token of tokens) expect(holds(recording.db, token)).toBe(false);

  const placeholders = [1, 2].map((session) => new Set(headersOf(recording, session).flat()));
  expect(placeholders.map(({ size }) => size)).toEqual([1, 1]);
  const [first, second] = placeholders.map((set) => [...set][0] ?? '');
  expect(first).toMatch(/^Bearer masked-[0-9a-f]{12}$/);
  expect(second).toMatch(/^Bearer masked-[0-9a-f]{12}$/);
  expect(second).not.toBe(first);
  // The session's own id opens it, so it is as secret.
  const ids = recording.rows(`SELECT DISTINCT json_extract(value, '$[1]') AS id FROM http_exchange,
    json_each(response_headers) WHERE lower(json_extract(value, '$[0]')) = 'mcp-session-id'`);
  expect(ids).toHaveLength(2);
  for (const { id } of ids) expect(id).toMatch(/^masked-/);
});

test('with --no-edit nothing is changed', async () => {
  const server = await startProtected();
  const recording = await recordUrlInProcess(server.url, { args: ['--no-edit'] });
  const [refused, direct] = await Promise.all(
    [recording.url, server.url].map((url) => fetch(url, { method: 'POST', body: '{}' })),
  );
  expect(refused?.status).toBe(401);
  expect(refused?.headers.get('www-authenticate')).toBe(direct?.headers.get('www-authenticate'));
  const metadata = await (await fetch(new URL(METADATA, recording.url))).text();
  expect(metadata).toBe(await (await fetch(new URL(METADATA, server.url))).text());
  await recording.stop();
  expect(recording.rows('SELECT edits FROM http_exchange')).toEqual([{ edits: null }, { edits: null }]);
  expect(recording.rows('SELECT * FROM frame_edit')).toEqual([]);
});
