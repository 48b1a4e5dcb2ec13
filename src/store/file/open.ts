/** Opening a store: rights, pragmas, migrations. One store is written by many processes at once. */

import { chmodSync, closeSync, existsSync, mkdirSync, openSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { TapedeckError } from '../../errors.ts';
import { MIGRATIONS } from './schema.ts';

export type Store = Database.Database;

/** Marks the file as a tapedeck store ("tpdk"), so that another program's database is never migrated. */
const APPLICATION_ID = 0x7470646b;

/** Older SQLite may corrupt a WAL store that one process checkpoints while another writes (fixed in 3.51.3). */
const OLDEST_SQLITE = [3, 51, 3] as const;

/** Rows of 1 to 4 KB pack well into pages of this size; measured against 4096. */
const PAGE_SIZE = 8192;

/** A writer appends and hardly reads: more than this only makes a recorder larger. */
const CACHE_KIB = 4096;

const BUSY_TIMEOUT_MS = 2000;

/** Who waits for the store has no place in a queue, but tries again and again: beside busy recorders that may take a while. */
const PATIENT_TIMEOUT_MS = 60_000;

/** The WAL is carried over into the store when it has grown to this: seldom, because that holds up the writer. */
export const WAL_MOST_BYTES = 32 * 1024 * 1024;

/** And is then cut back to this. */
const WAL_KEPT_BYTES = 16 * 1024 * 1024;

type OpenOptions = {
  /** Survive power loss too, not just the end of the process: every commit reaches the disk. */
  durable?: boolean;
  /** The WAL is carried over into the store when it has grown to this. */
  walBytes?: number;
  /** For long work that nobody's traffic waits for: other writers are waited for longer. */
  isPatient?: boolean;
  migrations?: readonly string[];
};

/**
 * Opens the store for writing and makes it where there is none (file 0600, a new folder 0700). An older store is
 * migrated in one transaction, after a copy. Throws `TapedeckError` `newer` or `not-a-store` (another program's file);
 * SQLite's own errors pass through.
 */
export function openStore(file: string, options: OpenOptions = {}): Store {
  assertSqlite();
  createFile(file);
  const store = new Database(file, { timeout: options.isPatient ? PATIENT_TIMEOUT_MS : BUSY_TIMEOUT_MS });
  try {
    prepare(store, file, options.migrations ?? MIGRATIONS);
    store.pragma(`synchronous = ${options.durable ? 'FULL' : 'NORMAL'}`);
    store.pragma(`cache_size = -${CACHE_KIB}`);
    // What is deleted is overwritten with zeros, by every writer: a free page soon holds others' rows too, and its rest
    // would keep what was there before.
    store.pragma('secure_delete = ON');
    const walBytes = options.walBytes ?? WAL_MOST_BYTES;
    store.pragma(`wal_autocheckpoint = ${Math.ceil(walBytes / PAGE_SIZE)}`);
    store.pragma(`journal_size_limit = ${Math.min(walBytes, WAL_KEPT_BYTES)}`);
    return store;
  } catch (error) {
    store.close();
    throw error;
  }
}

/** A store that nobody else sees, gone when it is closed. Only what outgrows SQLite's cache is put on disk, unnamed. */
export function openTemporaryStore(): Store {
  assertSqlite();
  const store = new Database('');
  prepare(store, '', MIGRATIONS);
  return store;
}

/** Opens an existing store for reading. Throws `TapedeckError` `not-found` where there is none. */
export function openForReading(file: string, migrations: readonly string[] = MIGRATIONS): Store {
  if (!existsSync(file)) {
    throw new TapedeckError(
      'not-found',
      `There is no store at ${file} yet. Record something first: tapedeck record -- <command>`,
    );
  }
  const store = new Database(file, { readonly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const version = checkedVersion(store, file, migrations.length);
    if (version === migrations.length) return store;
  } catch (error) {
    store.close();
    throw error;
  }
  store.close();
  openStore(file, { migrations }).close();
  return openForReading(file, migrations);
}

function assertSqlite(): void {
  const store = new Database(':memory:');
  const version = store.prepare<[], string>('SELECT sqlite_version()').pluck().get() ?? '';
  store.close();
  if (!isAtLeast(version.split('.').map(Number), OLDEST_SQLITE)) {
    throw new TapedeckError(
      'old-sqlite',
      `Expected SQLite ${OLDEST_SQLITE.join('.')} or newer, got ${version}. Reinstall better-sqlite3.`,
    );
  }
}

function isAtLeast(version: readonly number[], least: readonly number[]): boolean {
  for (const [i, wanted] of least.entries()) {
    const got = version[i] ?? 0;
    if (got !== wanted) return got > wanted;
  }
  return true;
}

/** SQLite gives its -wal and -shm files the rights of the store, so it is enough to make the store itself private. */
function createFile(file: string): void {
  if (existsSync(file)) return;
  const folder = dirname(file);
  if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) chmodSync(folder, 0o700);
  closeSync(openSync(file, 'a', 0o600));
}

function prepare(store: Store, file: string, migrations: readonly string[]): void {
  const version = checkedVersion(store, file, migrations.length);
  if (version === 0) {
    // These two take effect only before the first table exists.
    store.pragma(`page_size = ${PAGE_SIZE}`);
    store.pragma('auto_vacuum = INCREMENTAL');
  }
  enterWal(store);
  if (version < migrations.length) migrate(store, file, migrations);
}

function checkedVersion(store: Store, file: string, newest: number): number {
  const { version, isForeign } = store.transaction(() => readKind(store))();
  if (isForeign) {
    throw new TapedeckError(
      'not-a-store',
      `Expected a tapedeck store, got another program's database: ${file}. Name another file with --db.`,
    );
  }
  if (version > newest) {
    throw new TapedeckError(
      'newer',
      `${file} was written by a newer tapedeck (store version ${version}, this one knows ${newest}). Update mcp-tapedeck, or name another file with --db.`,
    );
  }
  return version;
}

/** Inside a transaction: another process may be making the store's first tables between two looks. */
function readKind(store: Store): { version: number; isForeign: boolean } {
  const version = Number(store.pragma('user_version', { simple: true }));
  const owner = Number(store.pragma('application_id', { simple: true }));
  return { version, isForeign: owner !== APPLICATION_ID && (version !== 0 || hasTables(store)) };
}

function hasTables(store: Store): boolean {
  return store.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}

/** Several processes may turn a new store to WAL at once: SQLite then reports BUSY without waiting, so we wait. */
function enterWal(store: Store): void {
  const deadline = performance.now() + BUSY_TIMEOUT_MS;
  for (;;) {
    try {
      store.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY' || performance.now() > deadline) throw error;
      pause(10);
    }
  }
}

function migrate(store: Store, file: string, migrations: readonly string[]): void {
  store.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have migrated between our look and our lock.
    const version = Number(store.pragma('user_version', { simple: true }));
    if (version > 0 && version < migrations.length) copyBefore(file, version);
    for (const sql of migrations.slice(version)) store.exec(sql);
    store.pragma(`user_version = ${migrations.length}`);
    store.pragma(`application_id = ${APPLICATION_ID}`);
    store.exec('COMMIT');
  } catch (error) {
    if (store.inTransaction) store.exec('ROLLBACK');
    throw error;
  }
}

/** The copy sees the state before the migration, because the transaction around it is not committed yet. */
function copyBefore(file: string, version: number): void {
  const copy = `${file}.v${version}`;
  if (existsSync(copy)) return;
  closeSync(openSync(copy, 'a', 0o600));
  const reader = new Database(file, { readonly: true });
  reader.prepare('VACUUM INTO ?').run(copy);
  reader.close();
}

/** Keeps a thread that does nothing else waiting. */
export function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
