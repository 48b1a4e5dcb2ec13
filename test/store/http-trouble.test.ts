import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBody, startServer } from '../support/http.ts';
import { postTo, query, recordUrl } from '../support/http-record.ts';
import { inFull, scale } from '../support/scale.ts';
import { BIN, listSessions, start, tempFolder, tempStore, until } from '../support/tapedeck.ts';

const call = (id: number, size: number) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'x', text: 'y'.repeat(size) } });

/** Answers with what was sent, as a result. */
async function startEcho(): Promise<string> {
  const { url } = await startServer(async (request, response) => {
    const body = await readBody(request);
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(Buffer.from(body.toString().replace('"method":"tools/call","params"', '"result"')));
  });
  return url;
}

async function callMany(proxy: URL, count: number, size: number): Promise<void> {
  await Promise.all(
    Array.from({ length: count }, async (_, id) => {
      const text = (await readBody(await postTo(proxy, call(id, size)))).toString();
      expect(text.length).toBeGreaterThan(size);
      expect(JSON.parse(text)).toMatchObject({ id, result: { name: 'x' } });
    }),
  );
}

test('a queue that is full drops and counts, mixes nothing, and the traffic does not wait', async () => {
  const db = tempStore();
  const run = await recordUrl(`${await startEcho()}/mcp`, { db, args: ['--max-queue', '100kb'] });
  const count = scale(300);
  await callMany(run.url, count, 200_000);
  await run.stop();
  const sessions = await listSessions(db);
  const dropped = sessions.reduce((sum, session) => sum + session.dropped, 0);
  expect(dropped).toBeGreaterThan(0);
  // A body of which a part was lost is both: a frame, cut, and a loss.
  const [kept] = query<{ whole: number }>(db, 'SELECT sum(frames - truncated) AS whole FROM session');
  expect((kept?.whole ?? 0) + dropped).toBe(2 * count);
  const whole = query<{ text: string; size: number; parts: number }>(
    db,
    "SELECT CAST(payload AS TEXT) AS text, size FROM frame WHERE flags IS NULL OR flags NOT LIKE '%truncated%'",
  );
  for (const { text, size } of whole) {
    expect(text).toHaveLength(size);
    expect(JSON.parse(text)).toMatchObject({ jsonrpc: '2.0' });
  }
  const cut = query<{ text: string; size: number }>(
    db,
    "SELECT CAST(payload AS TEXT) AS text, size FROM frame WHERE flags LIKE '%truncated%'",
  );
  for (const { text, size } of cut) expect(text.length).toBeLessThan(size);
  const answers = query<{ asked: string; answer: string }>(
    db,
    `SELECT CAST(q.payload AS TEXT) AS asked, CAST(a.payload AS TEXT) AS answer FROM frame AS q
     JOIN frame AS a ON a.session = q.session AND a.http = q.http AND a.channel = 'response' AND a.flags IS NULL
     WHERE q.channel = 'request' AND q.flags IS NULL`,
  );
  for (const { asked, answer } of answers) expect(JSON.parse(answer).id).toBe(JSON.parse(asked).id);
});

inFull('--strict waits for the store instead of dropping', async () => {
  const db = tempStore();
  const run = await recordUrl(`${await startEcho()}/mcp`, { db, args: ['--max-queue', '100kb', '--strict'] });
  const count = scale(100);
  await callMany(run.url, count, 200_000);
  await run.stop();
  const sessions = await listSessions(db);
  expect(sessions.map(({ dropped }) => dropped)).toEqual(sessions.map(() => 0));
  expect(query(db, 'SELECT count(*) AS n FROM frame WHERE flags IS NULL')).toEqual([{ n: 2 * count }]);
});

inFull('of a store that is removed, which is said once, what passes after it is kept', async () => {
  const db = tempStore();
  const run = await recordUrl(`${await startEcho()}/mcp`, { db });
  await callMany(run.url, 1, 10);
  await until('it is stored', () => query(db, 'SELECT 1 FROM frame').length === 2);
  rmSync(db);
  await callMany(run.url, 20, 10);
  await run.stop();
  expect(run.run.stderr().match(/removed or replaced/g)).toHaveLength(1);
  expect(await listSessions(db)).toMatchObject([{ frames: 40, dropped: 2, endReason: 'stopped' }]);
});

inFull('a full disk harms no traffic, is said once, and the loss is on the session', async () => {
  const folder = join(tempFolder(), 'full');
  mkdirSync(folder);
  const copy = join(tempFolder(), 'copy.db');
  const node = `'${process.execPath}'`;
  const url = await startEcho();
  const pidFile = join(tempFolder(), 'pid');
  const record = `${node} '${BIN}' record '${url}/mcp' --listen 127.0.0.1:0 --db '${folder}/x.db'`;
  const script = `mount -t tmpfs -o size=2m tmpfs '${folder}' || exit 1
    ${record} & echo $! > '${pidFile}'; wait $!
    cp '${folder}/x.db' '${copy}'; cp '${folder}/x.db-wal' '${copy}-wal' 2>/dev/null; true`;
  const run = start('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', script]);
  await until('it listens', () => run.stderr().includes('listening on '));
  const [, proxy = ''] = /listening on (\S+)/.exec(run.stderr()) ?? [];
  await callMany(new URL(proxy), 1, 10);
  await callMany(new URL(proxy), 100, 100_000);
  await until('it is said', () => run.stderr().includes('the disk is full'));
  process.kill(Number(readFileSync(pidFile, 'utf8')), 'SIGTERM');
  const { stderr } = await run.ended;
  expect(stderr.match(/the disk is full/g)).toHaveLength(1);
  const sessions = await listSessions(copy);
  const sum = (what: 'frames' | 'dropped') => sessions.reduce((total, session) => total + session[what], 0);
  expect(sum('dropped')).toBeGreaterThan(0);
  expect(sum('frames') + sum('dropped')).toBe(202);
});
