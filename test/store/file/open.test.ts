import { chmodSync, existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openForReading, openStore } from '../../../src/store/file/open.ts';
import { MIGRATIONS } from '../../../src/store/file/schema.ts';
import { tempFolder, tempStore } from '../../support/tapedeck.ts';

const modeOf = (path: string) => statSync(path).mode & 0o777;

test('a new store and its folder are private, its side files too', () => {
  const folder = join(tempFolder(), 'a', 'b');
  const db = join(folder, 'recordings.db');
  const store = openStore(db);
  store.exec('PRAGMA foreign_keys = OFF; INSERT INTO label VALUES (1, 2, 3)');
  expect([modeOf(folder), modeOf(db), modeOf(`${db}-wal`), modeOf(`${db}-shm`)]).toEqual([
    0o700, 0o600, 0o600, 0o600,
  ]);
  store.close();
});

test('a store that others may read is made private when it is opened, with what lies beside it', () => {
  const db = tempStore();
  const first = openStore(db);
  first.exec('PRAGMA foreign_keys = OFF; INSERT INTO label VALUES (1, 2, 3)');
  writeFileSync(`${db}.index`, '');
  const files = ['', '-wal', '-shm', '.index'].map((end) => `${db}${end}`);
  for (const file of files) chmodSync(file, 0o644);
  openStore(db).close();
  expect(files.map(modeOf)).toEqual([0o600, 0o600, 0o600, 0o600]);
  first.close();
});

test('folders are made as deep as they are named, and one that cannot be made is an error, not a wait', () => {
  const file = join(tempFolder(), 'a/b/c/store.db');
  openStore(file).close();
  expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700);
  if (process.platform === 'linux')
    expect(() => openStore('/proc/nowhere/at/all/store.db')).toThrow(/nowhere/);
});

test('a folder that exists keeps its rights', () => {
  const folder = tempFolder();
  chmodSync(folder, 0o755);
  openStore(join(folder, 'recordings.db')).close();
  expect(modeOf(folder)).toBe(0o755);
});

test('an older store is migrated in one step, after a copy of what it was', () => {
  const db = tempStore();
  const first = openStore(db, { migrations: ['CREATE TABLE thing (a)'] });
  first.exec('INSERT INTO thing VALUES (1)');
  first.close();

  const second = openStore(db, { migrations: ['CREATE TABLE thing (a)', 'ALTER TABLE thing ADD COLUMN b'] });
  expect(second.prepare('SELECT a, b FROM thing').get()).toEqual({ a: 1, b: null });
  expect(second.pragma('user_version', { simple: true })).toBe(2);
  second.close();

  const copy = new Database(`${db}.v1`, { readonly: true });
  expect(copy.prepare('SELECT * FROM thing').all()).toEqual([{ a: 1 }]);
  expect(copy.pragma('user_version', { simple: true })).toBe(1);
  expect(modeOf(`${db}.v1`)).toBe(0o600);
  copy.close();
});

test('a migration that fails changes nothing', () => {
  const db = tempStore();
  openStore(db, { migrations: ['CREATE TABLE thing (a)'] }).close();
  const broken = ['CREATE TABLE thing (a)', 'CREATE TABLE other (b); INSERT INTO nowhere VALUES (1)'];
  expect(() => openStore(db, { migrations: broken })).toThrow(/nowhere/);
  const store = openStore(db, { migrations: ['CREATE TABLE thing (a)'] });
  expect(store.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all()).toEqual([
    'thing',
  ]);
  store.close();
});

test('reading migrates an older store too', () => {
  const db = tempStore();
  openStore(db, { migrations: ['CREATE TABLE thing (a)'] }).close();
  const store = openForReading(db, ['CREATE TABLE thing (a)', 'CREATE TABLE other (b)']);
  expect(store.readonly).toBe(true);
  expect(store.pragma('user_version', { simple: true })).toBe(2);
  store.close();
});

test('a store of a newer tapedeck is refused by name, for reading and for writing', () => {
  const db = tempStore();
  openStore(db, { migrations: [...MIGRATIONS, 'CREATE TABLE future (a)'] }).close();
  expect(() => openStore(db)).toThrow(/written by a newer tapedeck/);
  expect(() => openForReading(db)).toThrow(/written by a newer tapedeck/);
});

test('another program’s database is refused, whatever its version says', () => {
  const db = tempStore();
  const other = new Database(db);
  other.exec('CREATE TABLE mine (a)');
  other.close();
  chmodSync(db, 0o644);
  expect(() => openStore(db)).toThrow(/another program's database/);
  expect(modeOf(db)).toBe(0o644);
  expect(() => openForReading(db)).toThrow(/another program's database/);
});

test('a folder in the place of a store is refused, and says how to name a file', () => {
  const folder = tempFolder();
  for (const open of [openStore, openForReading])
    expect(() => open(folder)).toThrow(`got a folder: ${folder}. Name a file in it with --db.`);
});

test('reading a store that is not there says how to make one, and makes none', () => {
  const db = tempStore();
  expect(() => openForReading(db)).toThrow(/There is no store at .* tapedeck record/);
  expect(existsSync(db)).toBe(false);
});

test('the store has the pages, the vacuum mode and the journal that the design wants', () => {
  const store = openStore(tempStore());
  const pragma = (name: string) => store.pragma(name, { simple: true });
  expect([pragma('page_size'), pragma('auto_vacuum'), pragma('journal_mode')]).toEqual([8192, 2, 'wal']);
  store.close();
});

test('an answer is found by its index, however many messages a session has', () => {
  const db = tempStore();
  openStore(db).close();
  const store = openForReading(db);
  const plan = store.prepare<[], { detail: string }>('EXPLAIN QUERY PLAN SELECT * FROM exchange').all();
  const details = plan.map(({ detail }) => detail).filter((detail) => /SEARCH (answer|cancel)/.test(detail));
  expect(details).toEqual([
    expect.stringMatching(/^SEARCH answer USING INDEX message_link \(session=\? AND to_seq=\?\)/),
    expect.stringMatching(/^SEARCH cancel USING INDEX message_link \(session=\? AND to_seq=\?\)/),
  ]);
  store.close();
});

test('commits reach the disk at once only in a durable store', () => {
  const synchronousOf = (durable: boolean) => {
    const store = openStore(tempStore(), { durable });
    const level = store.pragma('synchronous', { simple: true });
    store.close();
    return level;
  };
  // SQLite's numbers: 1 is NORMAL, 2 is FULL.
  expect([synchronousOf(false), synchronousOf(true)]).toEqual([1, 2]);
});
