/**
 * A file beside the store (`recordings.db.index`) for what is made from the store to find things sooner: the index of texts,
 * and the figures of sessions. No recorder ever waits for it, and it can be removed at any time: the next command that
 * needs it makes it anew. It holds no text of a frame, but which three characters follow one another in which frame, and the
 * names of methods and tools.
 *
 * Code that deletes sessions, or changes their frames, calls `forgetSessions`, and `scrubSideFile` where no trace may stay
 * behind. What nobody said is found when the file is opened: sessions that are gone are forgotten then.
 */

import { closeSync, existsSync, openSync, rmSync } from 'node:fs';
import Database from 'better-sqlite3';
import type { Store } from '../file/open.ts';

/** A file of another version is not migrated but made anew. */
const VERSION = 1;

const BUSY_TIMEOUT_MS = 10_000;

const PAGE_SIZE = 8192;

const CACHE_KIB = 32_768;

/**
 * `covered`: up to which `seq` a session is in `gram`, which has the rowids of `frame`; `run`: which these are. `large`: frames stored in parts; they
 * are not indexed but always come into question. `figures`: of a session that is over, as JSON, and what they were made
 * from; under '' those of the sessions in `summed` together.
 */
const SCHEMA = `
  CREATE TABLE covered (session TEXT PRIMARY KEY, frames INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE run (session TEXT, first INTEGER, last INTEGER, PRIMARY KEY (session, first)) WITHOUT ROWID;
  CREATE TABLE large (frame INTEGER PRIMARY KEY);
  CREATE VIRTUAL TABLE gram USING fts5(
    text, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1');
  CREATE VIRTUAL TABLE gram_list USING fts5vocab(gram, row);
  CREATE TABLE figures (session TEXT PRIMARY KEY, made_from TEXT NOT NULL, figures TEXT NOT NULL);
  CREATE TABLE summed (session TEXT PRIMARY KEY, made_from TEXT NOT NULL) WITHOUT ROWID;
`;

const TABLES = ['gram_list', 'gram', 'large', 'run', 'covered', 'figures', 'summed'];

/** What the sum of figures is kept under. */
export const SUM = '';

export type SideFile = Database.Database;

/** Opens the file beside a store, or makes it. Throws SQLite's or the system's error where it cannot be written. */
export function openSideFile(store: Store): SideFile {
  const side = openFile(sidePath(store));
  try {
    forgetLost(side, store);
    return side;
  } catch (error) {
    side.close();
    throw error;
  }
}

/** Takes sessions, by their public ids, out of the file beside a store, if there is one. Their frames may be gone already. */
export function forgetSessions(store: Store, sessions: readonly string[]): void {
  withExisting(store, (side) => forget(side, sessions));
}

/**
 * Leaves nothing behind of what was forgotten, nor of sessions that are gone. It takes seconds for a million frames: all
 * that is left is written anew, because FTS5 only marks what it deletes. False: another process reads the file, so the
 * old bytes may still be in it. Throws SQLite's or the system's error where it cannot be written.
 */
export function scrubSideFile(store: Store): boolean {
  let isScrubbed = true;
  withExisting(store, (side) => {
    forgetLost(side, store);
    side.exec("INSERT INTO gram (gram) VALUES ('optimize')");
    side.exec('VACUUM');
    isScrubbed = side.pragma('wal_checkpoint(TRUNCATE)', { simple: true }) === 0;
  });
  return isScrubbed;
}

function withExisting(store: Store, act: (side: SideFile) => void): void {
  const file = sidePath(store);
  if (!existsSync(file)) return;
  const side = openFile(file);
  try {
    act(side);
  } finally {
    side.close();
  }
}

function forget(side: SideFile, sessions: readonly string[]): void {
  type Run = { first: number; last: number };
  const runs = side.prepare<[string], Run>('SELECT first, last FROM run WHERE session = ?');
  // One by one: FTS5 does not end a range where it ends, and sessions recorded at once have a run for each frame.
  const ofFrame = [
    side.prepare<[number]>('DELETE FROM gram WHERE rowid = ?'),
    side.prepare<[number]>('DELETE FROM large WHERE frame = ?'),
  ];
  const ofSession = ['run', 'covered', 'figures'].map((table) =>
    side.prepare<[string]>(`DELETE FROM ${table} WHERE session = ?`),
  );
  const forgetAll = side.transaction(() => {
    side.exec('DELETE FROM summed');
    for (const session of [SUM, ...sessions]) {
      for (const { first, last } of runs.all(session)) {
        for (let frame = first; frame <= last; frame += 1) for (const remove of ofFrame) remove.run(frame);
      }
      for (const remove of ofSession) remove.run(session);
    }
  });
  forgetAll.immediate();
}

/** Where the file of a store lies. */
export function sidePath(store: Store): string {
  return `${store.name}.index`;
}

function openFile(file: string): SideFile {
  createFile(file);
  const side = new Database(file, { timeout: BUSY_TIMEOUT_MS });
  try {
    return prepare(side);
  } catch (error) {
    const { code } = error as { code?: string };
    side.close();
    if (code !== 'SQLITE_NOTADB' && code !== 'SQLITE_CORRUPT') throw error;
    for (const end of ['', '-wal', '-shm']) rmSync(`${file}${end}`, { force: true });
    createFile(file);
    return prepare(new Database(file, { timeout: BUSY_TIMEOUT_MS }));
  }
}

/** Readable by its owner only, like the store. */
function createFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
}

function prepare(side: SideFile): SideFile {
  try {
    side.pragma(`page_size = ${PAGE_SIZE}`);
    side.pragma('journal_mode = WAL');
    side.pragma('synchronous = NORMAL');
    side.pragma('secure_delete = ON');
    side.pragma(`cache_size = -${CACHE_KIB}`);
    if (versionOf(side) !== VERSION) {
      side
        .transaction(() => {
          if (versionOf(side) !== VERSION) makeAnew(side);
        })
        .immediate();
    }
    return side;
  } catch (error) {
    side.close();
    throw error;
  }
}

function versionOf(side: SideFile): unknown {
  return side.pragma('user_version', { simple: true });
}

/** In its place, not as a new file: others may be at work in it. */
function makeAnew(side: SideFile): void {
  for (const table of TABLES) side.exec(`DROP TABLE IF EXISTS ${table}`);
  side.exec(SCHEMA);
  side.pragma(`user_version = ${VERSION}`);
}

/** Forgets the sessions that it knows and the store does not. */
function forgetLost(side: SideFile, store: Store): void {
  // Read first: a session that begins meanwhile must not seem lost.
  const sql = 'SELECT session FROM covered UNION SELECT session FROM figures WHERE session <> ?';
  const known = side.prepare<[string], string>(sql).pluck().all(SUM);
  const present = new Set(store.prepare<[], string>('SELECT id FROM session').pluck().all());
  const lost = known.filter((session) => !present.has(session));
  if (lost.length > 0) forget(side, lost);
}
