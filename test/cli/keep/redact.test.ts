import { copyFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { startServer } from '../../support/http.ts';
import { recordUrl } from '../../support/http-record.ts';
import { storeOnce } from '../../support/once.ts';
import { inFull } from '../../support/scale.ts';
import { FAKE_SECRETS, indexHolds, storeHolds } from '../../support/secrets.ts';
import { send } from '../../support/send.ts';
import {
  latestSession,
  record,
  showFrames,
  tapedeck,
  tapedeckInProcess,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

function call(text: string, id: number): string {
  return `${JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo', arguments: { text } } })}\n`;
}

async function recordLines(db: string, options: readonly string[] = ['--no-redact']): Promise<void> {
  const run = record(
    db,
    ['spill.js', '--api-key', 'plain-key-77'],
    ['--label', `l=${FAKE_SECRETS[3]?.text}`, ...options],
  );
  run.child.stdin.end(FAKE_SECRETS.map(({ text }, i) => call(text, i)).join(''));
  await run.ended;
}

/** A copy of one recording with secrets, to be changed. */
const secretStore = storeOnce((db) => recordLines(db));

async function redact(db: string, ...args: string[]) {
  const { code, stdout, stderr } = await tapedeckInProcess(['redact', 'latest', '--db', db, ...args]);
  return { code, stdout: stdout.toString(), stderr };
}

test('what is masked after the fact is in no file of the store any more, and the rest is as it was', async () => {
  const db = await secretStore();
  const before = await showFrames(db);
  expect(storeHolds(db, FAKE_SECRETS[0]?.secret ?? '')).toBe(true);
  const { code, stdout, stderr } = await redact(db);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^github-token +redacted in \d+ frames$/m);
  expect(stdout).toMatch(/^session +redacted in 3 fields$/m);
  for (const { secret } of FAKE_SECRETS) expect(storeHolds(db, secret), secret).toBe(false);
  const after = await showFrames(db);
  expect(after.map(({ messages }) => messages)).toEqual(before.map(({ messages }) => messages));
  expect(after.map(({ size }) => size)).toEqual(before.map(({ size }) => size));
  expect((await latestSession(db)).target).toContain('--api-key');
  expect((await tapedeckInProcess(['scan', '--db', db])).code).toBe(0);
  expect((await redact(db)).stdout).toBe('nothing to redact\n');
});

inFull('what was recorded and then masked is what would have been recorded', async () => {
  const db = await secretStore();
  await redact(db);
  const masked = await showFrames(db);
  await recordLines(db, []);
  const recorded = await showFrames(db);
  const texts = (frames: typeof masked) => frames.map(({ channel, text }) => `${channel} ${text}`).toSorted();
  expect(texts(masked)).toEqual(texts(recorded));
});

inFull('it replays to a client that sends the real secrets', async () => {
  const db = tempStore();
  const run = record(db, ['echo.js'], ['--no-redact']);
  run.child.stdin.end(FAKE_SECRETS.map(({ text }, i) => call(text, i)).join(''));
  await run.ended;
  await redact(db);
  const replay = tapedeck(['replay', 'latest', '--db', db, '--fail-on-miss']);
  replay.child.stdin.end(FAKE_SECRETS.map(({ text }, i) => call(text, i)).join(''));
  const { code, stdout } = await replay.ended;
  expect(code).toBe(0);
  expect(stdout.toString()).toContain('[redacted:jwt:');
});

test('--dry-run changes nothing, and counts the same', async () => {
  const db = await secretStore();
  const before = await showFrames(db);
  const dry = JSON.parse((await redact(db, '--dry-run', '--json')).stdout);
  expect(await showFrames(db)).toEqual(before);
  const real = JSON.parse((await redact(db, '--json')).stdout);
  expect({ ...dry, dryRun: false }).toEqual(real);
  expect(real.frames).toMatchObject({ 'github-token': expect.any(Number), jwt: expect.any(Number) });
});

test('own rules and paths mask more, in what was redacted already too', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js']);
  run.child.stdin.end(`${call('see TCK-77007700', 1)}${call('x', 2)}`);
  await run.ended;
  const { stdout } = await redact(db, '--redact-rule', 'ticket=/TCK-\\d+/', '--redact', '$.params.name');
  expect(stdout).toBe('path                redacted in 4 frames\nticket              redacted in 2 frames\n');
  expect(storeHolds(db, 'TCK-77007700')).toBe(false);
});

test('heads, bodies, events and originals of HTTP are masked, and only of that session', async () => {
  const db = tempStore();
  const token = FAKE_SECRETS.find(({ rule }) => rule === 'github-token')?.text ?? '';
  const { url } = await startServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'X-Api-Key': 'key-in-a-head' });
    response.end(`id: ${token}\ndata: {"jsonrpc":"2.0","id":1,"result":{"password":"word-in-an-event"}}\n\n`);
  });
  const { url: proxy, stop } = await recordUrl(`${url}/mcp`, { db, args: ['--no-redact'] });
  await (await send(new URL('/mcp?token=in-the-query', proxy), { body: { id: 1, method: 'tools/list' } }))
    .ended;
  await stop();
  await tapedeckInProcess(['redact', 'latest', '--db', db]);
  for (const secret of [token, 'key-in-a-head', 'word-in-an-event', 'in-the-query'])
    expect(storeHolds(db, secret), secret).toBe(false);
  expect((await showFrames(db)).map(({ messages }) => messages[0]?.kind)).toEqual(['request', 'result']);
});

test('an open session is refused', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js']);
  run.child.stdin.write(call('x', 1));
  await until('it is stored', async () => (await latestSession(db).catch(() => null))?.frames === 2);
  const { code, stderr } = await redact(db);
  expect(code).toBe(2);
  expect(stderr).toMatch(/^tapedeck: Session [0-9a-f]{12} is still being recorded\./);
});

inFull('where others are at work in the store, it says that old bytes may be left', async () => {
  const db = await secretStore();
  const reader = new Database(db);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM frame').get();
  const { code, stderr } = await redact(db);
  reader.close();
  expect(code).toBe(1);
  expect(stderr).toContain('because another process is reading the store');
  expect(await redact(db)).toEqual({ code: 0, stdout: 'nothing to redact\n', stderr: '' });
  expect(storeHolds(db, FAKE_SECRETS[1]?.secret ?? '')).toBe(false);
});

test('a copy from before an update is named', async () => {
  const db = await secretStore();
  copyFileSync(db, `${db}.v1`);
  const { code, stderr } = await redact(db);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /\.v1 is a copy from before an update of the store, and was not changed: remove it\n$/,
  );
});

test('the index of texts has nothing of what was masked either, and finds what stands there now', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js']);
  run.child.stdin.end(call('zqjwv', 1));
  await run.ended;
  const search = async (text: string) =>
    (await tapedeckInProcess(['search', text, '--json', '--db', db])).stdout.toString().split('\n').length -
    1;
  expect(await search('zqjwv')).toBe(2);
  expect(indexHolds(db, 'zqj')).toBe(true);
  expect((await redact(db, '--redact-rule', 'word=/zq\\w+/')).code).toBe(0);
  for (const three of ['zqj', 'qjw', 'jwv']) expect(indexHolds(db, three), three).toBe(false);
  expect(await search('zqjwv')).toBe(0);
  expect(await search('[redacted:word')).toBe(2);
});
