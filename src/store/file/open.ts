/** Opening a store: rights, pragmas, migrations. One store is written by many processes at once. */

import { chmodSync, closeSync, existsSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { TapedeckError } from '../../errors.ts';
import { addUnpacking } from './codec.ts';
import { holdHandles } from './handles.ts';
import { isEngineUrl, makeFolder } from './path.ts';
import { MIGRATIONS } from './schema.ts';

export type Store = Database.Database;

holdHandles(() => new Database(':memory:'), 'ifNeeded');

/** Marks the file as a tapedeck store ("tpdk"), so that another program's database is never migrated. */
const APPLICATION_ID = 0x7470646b;

/** Older SQLite may corrupt a WAL store that one process checkpoints while another writes (fixed in 3.51.3). */
const OLDEST_SQLITE = [3, 51, 3] as const;

/** Rows of 1 to 4 KB pack well into pages of this size; measured against 4096. */
const PAGE_SIZE = 8192;

/** A writer appends and hardly reads: more than this only makes a recorder larger. */
const CACHE_KIB = 4096;

const BUSY_TIMEOUT_MS = 2000;

/** Of a spool that another process has, nothing is waited for: it keeps it. */
const SPOOL_TIMEOUT_MS = 0;

/** Who waits for the store has no place in a queue, but tries again and again: beside busy recorders that may take a while. */
const PATIENT_TIMEOUT_MS = 60_000;

/** The WAL is carried over into the store when it has grown to this: seldom, because that holds up the writer. */
export const WAL_MOST_BYTES = 32 * 1024 * 1024;

/** A spool's: its end must not take long. */
const SPOOL_WAL_BYTES = 4 * 1024 * 1024;

/** And is then cut back to this. */
const WAL_KEPT_BYTES = 16 * 1024 * 1024;

type OpenOptions = {
  /** Survive power loss too, not just the end of the process: every commit reaches the disk. */
  durable?: boolean;
  /** The WAL is carried over into the store when it has grown to this. */
  walBytes?: number;
  /** For long work that nobody's traffic waits for: other writers are waited for longer. */
  isPatient?: boolean;
  /** So long another writer is waited for, in milliseconds. */
  busyMs?: number;
  migrations?: readonly string[];
};

/**
 * Opens the store for writing and makes it where there is none (a new folder 0700); its files are 0600 then. An older store is
 * migrated in one transaction, after a copy. Throws `TapedeckError` `newer` or `not-a-store` (another program's file);
 * SQLite's own errors pass through.
 */
export function openStore(file: string, options: OpenOptions = {}): Store {
  assertSqlite();
  createFile(file);
  const timeout = options.busyMs ?? (options.isPatient ? PATIENT_TIMEOUT_MS : BUSY_TIMEOUT_MS);
  const store = new Database(file, { timeout });
  try {
    prepare(store, file, { migrations: options.migrations, timeoutMs: timeout });
    makePrivate(file);
    addUnpacking(store);
    store.pragma(`synchronous = ${options.durable ? 'FULL' : 'NORMAL'}`);
    store.pragma(`cache_size = -${CACHE_KIB}`);
    // What is deleted is overwritten with zeros, by every writer: a free page soon holds others' rows too, and its rest
    // would keep what was there before.
    store.pragma('secure_delete = ON');
    limitWal(store, options.walBytes ?? WAL_MOST_BYTES);
    return store;
  } catch (error) {
    store.close();
    throw error;
  }
}

/** The WAL is carried over into the store when it has grown to so many bytes. */
export function limitWal(store: Store, walBytes: number): void {
  store.pragma(`wal_autocheckpoint = ${Math.ceil(walBytes / PAGE_SIZE)}`);
  store.pragma(`journal_size_limit = ${Math.min(walBytes, WAL_KEPT_BYTES)}`);
}

/**
 * Opens the spool of a recorder (spool.ts), or makes it: a store that belongs to one process at a time. Throws SQLite's
 * `SQLITE_BUSY` where another one has it: the system takes the lock away from a process that dies.
 */
export function openSpool(file: string, isDurable: boolean): Store {
  createFile(file);
  const spool = new Database(file, { timeout: SPOOL_TIMEOUT_MS });
  try {
    spool.pragma('locking_mode = EXCLUSIVE');
    prepare(spool, file, { timeoutMs: SPOOL_TIMEOUT_MS, isCopied: false });
    // A process that is killed loses nothing either way, and a disk in use takes its time.
    spool.pragma(`synchronous = ${isDurable ? 'FULL' : 'OFF'}`);
    spool.pragma(`cache_size = -${CACHE_KIB}`);
    spool.pragma(`wal_autocheckpoint = ${SPOOL_WAL_BYTES / PAGE_SIZE}`);
    return spool;
  } catch (error) {
    spool.close();
    throw error;
  }
}

/** A store that nobody else sees, gone when it is closed. Only what outgrows SQLite's cache is put on disk, unnamed. */
export function openTemporaryStore(): Store {
  assertSqlite();
  const store = new Database('');
  prepare(store, '', {});
  addUnpacking(store);
  return store;
}

/** Opens an existing store for reading; an older one is migrated. Throws `TapedeckError` `not-found` where there is none. */
export function openForReading(file: string, migrations: readonly string[] = MIGRATIONS): Store {
  const { store, version } = openReadOnly(file, migrations.length);
  if (version === migrations.length) return store;
  store.close();
  openStore(file, { migrations }).close();
  return openForReading(file, migrations);
}

/**
 * Opens an existing store for reading, and changes nothing: an older one is refused (`TapedeckError` `refused`). For whoever must
 * not write, whatever happens to the file meanwhile. Null for one that is being made at this moment.
 */
export function openUnchanged(file: string): Store | null {
  const { store, version } = openReadOnly(file, MIGRATIONS.length);
  if (version === MIGRATIONS.length) return store;
  store.close();
  if (version === 0) return null;
  throw new TapedeckError(
    'refused',
    `${file} was written by an older tapedeck (store version ${version}, this one reads ${MIGRATIONS.length}). Bring it up to date: tapedeck list`,
  );
}

function openReadOnly(file: string, newest: number): { store: Store; version: number } {
  assertNoEngine(file);
  if (!existsSync(file)) {
    throw new TapedeckError(
      'not-found',
      `There is no store at ${file} yet. Record something first: tapedeck record -- <command>`,
    );
  }
  assertNoFolder(file);
  const store = new Database(file, { readonly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const version = checkedVersion(store, file, newest);
    addUnpacking(store);
    return { store, version };
  } catch (error) {
    store.close();
    throw error;
  }
}

/** Carrying it over takes about 6 ms a megabyte, on a disk with nothing else to do. */
const WAL_CARRIED_AT_END_BYTES = 8 * 1024 * 1024;

/**
 * Closes a store at once. The last one who closes a store carries its WAL over into it, which takes long where that is
 * large: then it is left to whoever opens the store next.
 */
export function closeAtOnce(store: Store): void {
  const wal = statSync(`${store.name}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (wal <= WAL_CARRIED_AT_END_BYTES) {
    store.close();
    return;
  }
  // So that the writer is not the last one. Who only reads leaves the WAL as it is.
  const reader = new Database(store.name, { readonly: true, timeout: 0 });
  try {
    reader.prepare('SELECT count(*) FROM sqlite_schema').get();
  } finally {
    store.close();
    reader.close();
  }
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

/** SQLite gives its -wal and -shm files the rights of the store, so it is enough to make a new store itself private. */
function createFile(file: string): void {
  assertNoEngine(file);
  if (existsSync(file)) {
    assertNoFolder(file);
    return;
  }
  const folder = dirname(file);
  if (makeFolder(folder, 0o700)) chmodSync(folder, 0o700);
  closeSync(openSync(file, 'a', 0o600));
}

/** A command that knows better says so before. */
function assertNoEngine(file: string): void {
  if (isEngineUrl(file))
    throw new TapedeckError(
      'usage',
      'Expected the file of a store, got the URL of an engine, from --db, TAPEDECK_DB or your configuration. Name a file with --db.',
    );
}

/** SQLite only says that it cannot read one, as of a disk that fails. */
function assertNoFolder(file: string): void {
  if (statSync(file).isDirectory())
    throw new TapedeckError(
      'not-a-store',
      `Expected a store, got a folder: ${file}. Name a file in it with --db.`,
    );
}

/** A store that came from elsewhere, as by a copy, may be readable by all; so may what lies beside it. */
function makePrivate(file: string): void {
  for (const end of ['', '-wal', '-shm', '.index', '.index-wal', '.index-shm']) {
    try {
      const { mode } = statSync(file + end);
      if ((mode & 0o077) !== 0) chmodSync(file + end, mode & 0o700);
    } catch {
      // It is not there, or belongs to somebody else, whose choice it is.
    }
  }
}

type PrepareOptions = { migrations?: readonly string[] | undefined; timeoutMs?: number; isCopied?: boolean };

/** `isCopied`: a store that is migrated is copied before. */
function prepare(
  store: Store,
  file: string,
  { migrations = MIGRATIONS, timeoutMs = 0, isCopied = true }: PrepareOptions,
): void {
  const version = checkedVersion(store, file, migrations.length);
  if (version === 0) {
    // These two take effect only before the first table exists.
    store.pragma(`page_size = ${PAGE_SIZE}`);
    store.pragma('auto_vacuum = INCREMENTAL');
  }
  enterWal(store, timeoutMs);
  if (version < migrations.length) migrate(store, isCopied ? file : null, migrations);
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
function enterWal(store: Store, timeoutMs: number): void {
  const deadline = performance.now() + Math.min(timeoutMs, BUSY_TIMEOUT_MS);
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

/** `file` null: no copy. */
function migrate(store: Store, file: string | null, migrations: readonly string[]): void {
  store.exec('BEGIN IMMEDIATE');
  try {
    // Another process may have migrated between our look and our lock.
    const version = Number(store.pragma('user_version', { simple: true }));
    if (file !== null && version > 0 && version < migrations.length) copyBefore(file, version);
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
