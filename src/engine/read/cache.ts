/**
 * Sessions that were fetched before, in a store of their own in the user's cache folder: they need not be fetched again while they
 * are the same on the engine. The oldest go when there are too many. Whatever is wrong with it, reading goes on without.
 */

import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openStore, openUnchanged, type Store } from '../../store/file/open.ts';
import { FRAME_TABLES } from './fetched.ts';
import type { Found } from './find.ts';

export type Cache = {
  /** The keys of the sessions that are kept, and which version. */
  kept(): Map<string, string>;
  /** Removes what is kept of these sessions, so that no byte of it stays. */
  forget(keys: readonly string[]): void;
  /** Puts the frames of a session into the store that was fetched, and all that belongs to them. False: they are not here. */
  take(session: Found, number: number): boolean;
  /** Keeps those of a session that is whole. */
  keep(session: Found, number: number): void;
};

const KEPT = `CREATE TABLE IF NOT EXISTS kept (
  session INTEGER PRIMARY KEY REFERENCES session (number) ON DELETE CASCADE,
  key TEXT NOT NULL UNIQUE,
  version TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  used_at INTEGER NOT NULL
)`;

/** Beside the payload of a frame, on disk. */
const FRAME_BYTES = 300;

/**
 * Opens the cache of an engine, beside the store that was fetched. `most`: bytes that it may take. Null where it cannot be opened: then
 * nothing is kept.
 */
export function openCache(folder: string, engine: string, fetched: Store, most: number): Cache | null {
  const file = join(folder, `${engine}.db`);
  if (most === 0 || !prepare(file)) return null;
  try {
    fetched.prepare('ATTACH ? AS cache').run(file);
    // What a session had before it was redacted is not to stay.
    fetched.pragma('cache.secure_delete = ON');
  } catch {
    return null;
  }
  return createCache(fetched, most);
}

/** Makes it. One that another version has made is made anew. */
function prepare(file: string): boolean {
  for (const isLast of [false, true]) {
    try {
      // An older one is not worth a migration, nor the copy that is made before.
      if (existsSync(file)) openUnchanged(file)?.close();
      const store = openStore(file);
      store.exec(KEPT);
      store.close();
      return true;
    } catch {
      if (isLast) break;
      for (const end of ['', '-wal', '-shm']) rmSync(file + end, { force: true });
    }
  }
  return false;
}

const TABLES = [...FRAME_TABLES.map(({ name }) => name), 'frame_redaction'];

function createCache(store: Store, most: number): Cache {
  const copies = TABLES.map((table) => {
    const columns = (store.pragma(`main.table_info(${table})`) as { name: string }[])
      .map(({ name }) => name)
      .filter((name) => name !== 'rowid' && name !== 'session')
      .join(', ');
    const order = columns.includes('seq') ? 'ORDER BY seq' : '';
    const copy = (from: string, to: string) =>
      store.prepare(
        `INSERT OR IGNORE INTO ${to}.${table} (session, ${columns})
           SELECT @to, ${columns} FROM ${from}.${table} WHERE session = @from ${order}`,
      );
    return { out: copy('cache', 'main'), into: copy('main', 'cache') };
  });
  const find = store
    .prepare<[string, string], number>('SELECT session FROM cache.kept WHERE key = ? AND version = ?')
    .pluck();
  const use = store.prepare('UPDATE cache.kept SET used_at = ? WHERE session = ?');
  const oldest = store.prepare<[], { session: number; bytes: number }>(
    'SELECT session, bytes FROM cache.kept ORDER BY used_at',
  );
  const kept = store.prepare<[], [string, string]>('SELECT key, version FROM cache.kept').raw();
  const removeKey = store.prepare('DELETE FROM cache.session WHERE id = ?');
  const remove = store.prepare('DELETE FROM cache.session WHERE number = ?');
  const addSession = store.prepare(
    `INSERT INTO cache.session (id, basis, transport, target, started_at, host, pid, tapedeck)
       VALUES (?, '', '', '', 0, '', 0, '') RETURNING number`,
  );
  const addKept = store.prepare(
    'INSERT INTO cache.kept (session, key, version, bytes, used_at) VALUES (?, ?, ?, ?, ?)',
  );

  const take = store.transaction((session: Found, number: number): boolean => {
    const from = find.get(session.key, session.version);
    if (from === undefined) return false;
    for (const { out } of copies) out.run({ from, to: number });
    use.run(Date.now(), from);
    return true;
  });

  const keep = store.transaction((session: Found, number: number): void => {
    const bytes = session.bytes + session.frames * FRAME_BYTES;
    if (bytes > most) return;
    removeKey.run(session.key);
    makeRoom(bytes);
    const to = addSession.pluck().get(session.key);
    for (const { into } of copies) into.run({ from: number, to });
    addKept.run(to, session.key, session.version, bytes, Date.now());
  });

  function makeRoom(bytes: number): void {
    const all = oldest.all();
    let left = all.reduce((sum, one) => sum + one.bytes, 0) + bytes;
    for (const one of all) {
      if (left <= most) return;
      remove.run(one.session);
      left -= one.bytes;
    }
  }

  function forget(keys: readonly string[]): void {
    store.transaction(() => {
      for (const key of keys) removeKey.run(key);
    })();
    // What was overwritten stands in the write-ahead log still.
    store.pragma('cache.wal_checkpoint(TRUNCATE)');
  }

  /** Another reader may have it, or the disk be full. */
  function attempt<T>(work: () => T, otherwise: T): T {
    try {
      return work();
    } catch {
      return otherwise;
    }
  }

  return {
    kept: () => attempt(() => new Map(kept.all()), new Map()),
    forget: (keys) => attempt(() => forget(keys), undefined),
    take: (session, number) => attempt(() => take.immediate(session, number), false),
    keep: (session, number) => attempt(() => keep.immediate(session, number), undefined),
  };
}
