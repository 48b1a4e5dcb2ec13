import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openForReading, openStore, type Store } from '../../../src/store/file/open.ts';
import { bytesOnDisk, scrubStore } from '../../../src/store/keep/scrub.ts';
import { createSearchIndex } from '../../../src/store/keep/search-index.ts';
import { openSideFile } from '../../../src/store/keep/side-file.ts';
import { removeSession } from '../../../src/store/write/removal.ts';
import { countInFiles, plantSessions, wordOf } from '../../support/planted.ts';
import { inFull } from '../../support/scale.ts';
import { tempStore } from '../../support/tapedeck.ts';

const ENDED = Array.from({ length: 10 }, (_, i) => 1e15 + i);
const EVERY_OTHER = ENDED.map((_, i) => i).filter((i) => i % 2 === 1);
const GONE = EVERY_OTHER.map(wordOf);

function removeEveryOther(store: Store, numbers: readonly number[]): void {
  for (const i of EVERY_OTHER) removeSession(store, numbers[i] ?? 0);
}

test('after scrubbing no byte of a deleted session is left in any file, and its space is given back', () => {
  const db = tempStore();
  const store = openStore(db);
  removeEveryOther(store, plantSessions(store, ENDED, 400));
  const before = bytesOnDisk(store);
  const { bytesAfter, remains } = scrubStore(store);
  expect(remains).toEqual([]);
  expect(bytesAfter).toBeLessThan(before * 0.6);
  expect(statSync(`${db}-wal`).size).toBe(0);
  expect(countInFiles(db, GONE)).toBe(0);
  expect(countInFiles(db, [wordOf(0)])).toBeGreaterThan(1000);
  expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
  store.close();
});

test('what searches keep beside the store forgets a deleted session too', () => {
  const db = tempStore();
  const store = openStore(db);
  const numbers = plantSessions(store, ENDED, 40);
  const side = openSideFile(store);
  for (const _ of createSearchIndex(side, store).catchUp());
  side.close();
  removeEveryOther(store, numbers);
  expect(scrubStore(store).remains).toEqual([]);
  expect(existsSync(`${db}.index`)).toBe(true);
  expect(countInFiles(db, GONE)).toBe(0);
  store.close();
});

inFull(
  'a reader in the midst of the store is not waited for beyond measure, and what that leaves is told',
  () => {
    const db = tempStore();
    const store = openStore(db);
    const numbers = plantSessions(store, ENDED, 40);
    const reader = openForReading(db);
    reader.exec('BEGIN');
    reader.prepare('SELECT count(*) FROM frame').get();
    removeEveryOther(store, numbers);
    const began = performance.now();
    const { remains } = scrubStore(store);
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(remains).toEqual([expect.stringContaining('another process is reading')]);
    reader.exec('COMMIT');
    expect(scrubStore(store).remains).toEqual([]);
    expect(countInFiles(db, GONE)).toBe(0);
    reader.close();
    store.close();
  },
);

test('a large store is not rewritten while one records into it, unless that is asked for', () => {
  const db = tempStore();
  const store = openStore(db);
  const numbers = plantSessions(store, [...ENDED, null], 40);
  const insert = store.prepare(
    'INSERT INTO frame_part (session, seq, part, bytes) VALUES (?, 1, ?, zeroblob(1048576))',
  );
  store.transaction(() => {
    for (let part = 1; part <= 40; part += 1) insert.run(numbers[0], part);
  })();
  removeEveryOther(store, numbers);
  const { remains } = scrubStore(store);
  expect(remains).toEqual([expect.stringMatching(/is being recorded.*prune --vacuum/)]);
  expect(scrubStore(store, { isForced: true }).remains).toEqual([]);
  expect(countInFiles(db, GONE)).toBe(0);
  store.close();
});

test('a copy from before an update is told of, and left alone', () => {
  const db = tempStore();
  const store = openStore(db);
  writeFileSync(`${db}.v1`, 'as it was');
  expect(scrubStore(store).remains).toEqual([expect.stringContaining(`${db}.v1 is a copy`)]);
  expect(readFileSync(`${db}.v1`, 'utf8')).toBe('as it was');
  store.close();
});

test('a store that could not give back space can after it was rewritten', () => {
  const db = tempStore();
  openStore(db).close();
  const other = new Database(db);
  other.pragma('journal_mode = DELETE');
  other.pragma('auto_vacuum = NONE');
  other.exec('VACUUM');
  other.close();
  const store = openStore(db);
  expect(store.pragma('auto_vacuum', { simple: true })).toBe(0);
  removeEveryOther(store, plantSessions(store, ENDED, 20));
  expect(scrubStore(store).remains).toEqual([]);
  expect(store.pragma('auto_vacuum', { simple: true })).toBe(2);
  expect(countInFiles(db, GONE)).toBe(0);
  store.close();
});
