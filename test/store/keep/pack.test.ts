import { statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openForReading, openStore, type Store } from '../../../src/store/file/open.ts';
import { createPacking, packable } from '../../../src/store/keep/pack.ts';
import { eachBareFrame, lastSeqOf, preparePayloads } from '../../../src/store/read/frames.ts';
import { prepareOutlineFrames } from '../../../src/store/read/outline.ts';
import { payloadBytes, prepareBeginnings } from '../../../src/store/read/slices.ts';
import { mixLines } from '../../bench/mix.js';
import { inFull, sample, scale } from '../../support/scale.ts';
import { storeSession } from '../../support/stored.ts';
import {
  BIN,
  ROOT,
  record,
  showFrames,
  start,
  tapedeckInProcess,
  tempStore,
  until,
} from '../../support/tapedeck.ts';

const WORD = 'rarissimum';
const SECRET = 'ghp_0123456789abcdefghijABCDEFGHIJ012345';
const FRAMES = scale(2000, 200);

async function output(db: string, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await tapedeckInProcess([...args, '--db', db]);
  return `${code}\n${stdout}${stderr}`;
}

/** A mix, a line of several MiB, words and a secret to look for, and recordings by HTTP with event streams. */
async function fill(db: string): Promise<void> {
  const store = openStore(db);
  const large = JSON.stringify({
    jsonrpc: '2.0',
    method: 'x',
    params: { text: `many words ${WORD} `.repeat(60_000) },
  });
  const secret = JSON.stringify({
    jsonrpc: '2.0',
    method: 'y',
    params: { text: 'around '.repeat(90), token: SECRET },
  });
  storeSession(store, { lines: [...mixLines(FRAMES)], start: { name: 'mix' } });
  storeSession(store, {
    lines: [large, secret, 'no JSON '.repeat(70), `\u00ff${'\0'.repeat(900)}`],
    start: { name: 'odd' },
  });
  store.close();
  for (const name of ['everything-http', 'modern-http'])
    await output(db, ['import', join(ROOT, 'recordings', `${name}.ndjson`)]);
}

const READERS: readonly (readonly string[])[] = [
  ['list', '--json'],
  ['show', 'mix', '--json'],
  ['show', 'mix', '--full', '--filter', 'dur>=0'],
  ['show', 'everything-http', '--full'],
  ['show', 'odd', '--json', '--filter', `text~${WORD}`],
  ['search', WORD],
  ['search', 'around'],
  ['search', 'ro'],
  ['stats', '--all'],
  ['check', 'modern-http'],
  ['scan', 'odd'],
  ['diff', 'everything-http', 'modern-http'],
  ['export', 'mix', '--format', 'ndjson', '--force', '-o', '-'],
  ['export', 'everything-http', '--format', 'har'],
  ['export', 'odd', '--format', 'markdown'],
  ['list', '--filter', 'text~AROUND', '--json'],
  ['list', '--filter', `text~/${WORD.slice(0, 4)}\\w+/`],
  ['show', 'modern-http', '--http'],
  ['stats', 'mix', '--json'],
  ['stats', '--all', '--by', 'session'],
  ['check', 'everything-http', '--json'],
  ['diff', 'everything-http', 'modern-http', '--json'],
  ['export', 'everything-http', '--format', 'mermaid'],
  ['export', 'everything-http', '--format', 'otlp'],
];

const payloads = (store: Store) =>
  store
    .prepare<[], number>('SELECT number FROM session ORDER BY number')
    .pluck()
    .all()
    .flatMap((number) => [...eachBareFrame(store, number)].map(({ payload }) => payload.toString('latin1')));

const packedRows = (store: Store) =>
  Number(store.prepare('SELECT count(*) FROM frame WHERE codec IS NOT NULL').pluck().get());

test('every reader says of a packed store what it said before, and no byte has changed', async () => {
  const db = tempStore();
  await fill(db);
  const readers = sample(READERS);
  const all = async () => {
    const texts: string[] = [];
    for (const args of readers) {
      const text = await output(db, args);
      // One that was refused would say the same of both.
      expect(text, args.join(' ')).not.toContain('See: tapedeck');
      texts.push(text);
    }
    return texts;
  };
  const before = await all();
  const [bytes, taken] = [payloads(openForReading(db)), statSync(db).size];
  const { stdout } = await tapedeckInProcess(['pack', '--json', '--db', db]);
  expect(JSON.parse(stdout.toString())).toMatchObject({ sessions: 4, remains: [] });
  const store = openForReading(db);
  expect(packedRows(store)).toBeGreaterThan(FRAMES / 4);
  expect(store.prepare('SELECT count(*) FROM frame_part WHERE codec IS NOT NULL').pluck().get()).toBe(1);
  expect(payloads(store)).toEqual(bytes);
  expect(statSync(db).size).toBeLessThan(taken * 0.7);
  expect(await all()).toEqual(before);
  store.close();
});

test('what the viewer reads piece by piece, and what replay reads by number, is the same once it is packed', async () => {
  const db = tempStore();
  await fill(db);
  const store = openForReading(db);
  const sessions = store.prepare<[], number>('SELECT number FROM session ORDER BY number').pluck().all();
  const pieces = () =>
    sessions.map((number) => {
      const last = lastSeqOf(store, number);
      const all = Array.from({ length: last }, (_, i) => i + 1);
      const byNumber = preparePayloads(store, number);
      return {
        outline: prepareOutlineFrames(store, number)(0, last, last),
        beginnings: prepareBeginnings(store, number, { limit: last, maxBytes: 100 })(0),
        sizes: all.map((seq) => payloadBytes(store, number, seq)?.size),
        ends: all.map((seq) => payloadBytes(store, number, seq)?.from(200).toString('latin1')),
        payloads: all.map((seq) => byNumber(seq)?.payload.toString('latin1')),
      };
    });
  const before = pieces();
  expect(await output(db, ['pack'])).toContain('packed');
  expect(packedRows(store)).toBeGreaterThan(FRAMES / 4);
  expect(pieces()).toEqual(before);
  store.close();
});

test('replay answers from a packed store what it answered before', async () => {
  const db = tempStore();
  await fill(db);
  const asked = (await showFrames(db, 'everything-http'))
    .filter(({ direction }) => direction === 'client-to-server')
    .map(({ text }) => `${text}\n`)
    .join('');
  const answers = async () => {
    const { stdout } = await tapedeckInProcess(['replay', 'everything-http', '--db', db], { stdin: asked });
    return stdout.toString().split('\n').toSorted();
  };
  const before = await answers();
  expect(before.filter((line) => line.includes('"result"')).length).toBeGreaterThan(5);
  expect(await output(db, ['pack'])).toContain('packed');
  expect(await answers()).toEqual(before);
});

test('packed sessions are pruned as others are', async () => {
  const db = tempStore();
  await fill(db);
  await output(db, ['pack']);
  const text = await output(db, ['prune', 'mix', 'odd']);
  expect(text).toContain('2 sessions deleted');
  const store = openForReading(db);
  expect(store.prepare('SELECT count(*) FROM frame_part').pluck().get()).toBe(0);
  expect(
    store
      .prepare('SELECT count(*) FROM packing WHERE session NOT IN (SELECT number FROM session)')
      .pluck()
      .get(),
  ).toBe(0);
  store.close();
});

test('SQL of others sees a packed text as null, and no bytes that are no text', async () => {
  const db = tempStore();
  const store = openStore(db);
  storeSession(store, { lines: ['{"short":1}', JSON.stringify({ long: 'again and '.repeat(100) })] });
  store.close();
  await output(db, ['pack']);
  const other = new Database(db, { readonly: true });
  expect(
    other
      .prepare(
        'SELECT text FROM frame_text WHERE session = (SELECT id FROM session WHERE number = 1) ORDER BY seq',
      )
      .pluck()
      .all()
      .slice(0, 2),
  ).toEqual(['{"short":1}', null]);
  other.close();
});

test('a packed secret is redacted for good, and its frame is packed again', async () => {
  const db = tempStore();
  const store = openStore(db);
  const secret = JSON.stringify({
    jsonrpc: '2.0',
    method: 'y',
    params: { text: 'around '.repeat(90), token: SECRET },
  });
  storeSession(store, { lines: [secret, ...mixLines(20)] });
  await output(db, ['pack']);
  const packedBefore = packedRows(store);
  expect(await output(db, ['redact', 'latest'])).toContain('redacted in 1 frame');
  expect(payloads(store).join('\n')).not.toContain(SECRET);
  expect(packedRows(store)).toBe(packedBefore - 1);
  await output(db, ['pack']);
  expect(packedRows(store)).toBe(packedBefore);
  expect(payloads(store)[0]).toContain('[redacted:');
  store.close();
});

test('a recorder packs sessions that ended long ago, and its own session is as it passed', async () => {
  const db = tempStore();
  const store = openStore(db);
  storeSession(store, { lines: [...mixLines(FRAMES)] });
  const before = payloads(store);
  const run = record(db, ['echo.js'], ['--pack-after', '7d']);
  const line = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'ping',
    params: { text: 'again '.repeat(300) },
  });
  run.child.stdin.write(`${line}\n`);
  const isAll = () => store.prepare('SELECT max(seq) FROM packing').pluck().get() === FRAMES;
  await until('all is packed', isAll);
  run.child.stdin.end();
  expect(await run.ended).toMatchObject({ code: 0, stderr: '' });
  expect(payloads(store).slice(0, FRAMES)).toEqual(before);
  expect(store.prepare('SELECT DISTINCT session FROM frame WHERE codec IS NOT NULL').pluck().all()).toEqual([
    1,
  ]);
  store.close();
});

test('a packing that is killed at any moment leaves every byte, and the next one finishes it', async () => {
  const db = tempStore();
  const store = openStore(db);
  const large = 'many words and more '.repeat(180_000);
  const sessions = Array.from({ length: scale(12, 2) }, (_, i) => [...mixLines(scale(1500, 400), i), large]);
  for (const lines of sessions) storeSession(store, { lines });
  const before = payloads(store);
  const progress = () => Number(store.prepare('SELECT ifnull(sum(seq), 0) FROM packing').pluck().get());
  for (let kill = 0; kill < scale(10, 1); kill += 1) {
    const from = progress();
    const run = start(process.execPath, [BIN, 'pack', '--db', db]);
    await Promise.race([until('some is packed', () => progress() > from), run.ended]);
    run.child.kill('SIGKILL');
    await run.ended;
    expect(payloads(store)).toEqual(before);
    expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
  }
  await output(db, ['pack']);
  expect(packable(store, 0)).toEqual([]);
  expect(payloads(store)).toEqual(before);
  store.close();
});

inFull('bytes that somebody has rewritten meanwhile are not replaced by older ones', () => {
  const store = openStore(tempStore());
  const [before, after] = ['before '.repeat(100), 'after! '.repeat(100)];
  const number = storeSession(store, { lines: [before] });
  const packing = createPacking(store, packable(store, 0));
  // As by another process between what was read and what is written.
  const transaction = store.transaction.bind(store);
  Object.assign(store, {
    transaction: (work: () => unknown) => {
      store.prepare('UPDATE frame SET payload = ? WHERE session = ?').run(Buffer.from(after), number);
      return transaction(work);
    },
  });
  packing.advance(1000);
  expect(payloads(store)).toEqual([after]);
  expect(packedRows(store)).toBe(0);
  store.close();
});
