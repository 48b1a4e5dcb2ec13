/**
 * Makes deletion real. What is deleted or replaced in a store leaves bytes in five places: in the pages that SQLite frees,
 * in the unused part of pages that are still in use, in the WAL, in the index beside the store, and in copies of the whole
 * file.
 *
 * `openStore` lets SQLite overwrite freed bytes with zeros (`secure_delete`). That covers all but one thing: while SQLite
 * moves rows between pages, copies of them stay behind in the unused part of a page, and nothing but rewriting the store
 * (VACUUM) removes those. So that is done too, wherever it does not keep recorders waiting.
 */

import { existsSync, readdirSync, statfsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pause, type Store } from '../file/open.ts';
import { troubleOf } from '../file/trouble.ts';
import { candidates, isOpen } from './retention.ts';
import { scrubSideFile, sidePath } from './side-file.ts';

export type Scrubbed = {
  /** What the store and its WAL take on disk, before and after. */
  bytesBefore: number;
  bytesAfter: number;
  /** What could not be done, one sentence each with what to do about it. Empty: nothing of what was deleted is left. */
  remains: string[];
};

type ScrubOptions = {
  /** Rewrite the store even if recorders have to wait for that. */
  isForced?: boolean;
};

/** Rewriting so much takes some tenths of a second: recorders do not mind. */
const REWRITE_BESIDE_RECORDERS_BYTES = 32 * 1024 * 1024;

/** VACUUM makes a copy, and then takes it through the WAL. */
const ROOM_FOR_REWRITING = 2.1;

/** Giving back so many pages holds other writers up for some milliseconds. */
const PAGES_AT_ONCE = 256;

/** A checkpoint that waits keeps writers waiting: it gives way to them, and tries again. */
const CHECKPOINT_ATTEMPT_MS = 40;

const CHECKPOINT_PAUSE_MS = 60;

const CHECKPOINT_ATTEMPTS = 50;

/**
 * Call it after rows were deleted or replaced, outside a transaction, on a store from `openStore`. Afterwards nothing of
 * them is left in the store, its free pages or its WAL, and free space is given back, but for what `remains` tells. It
 * waits a few seconds at most for readers, and does not throw because of other processes; SQLite's other errors pass
 * through.
 */
export function scrubStore(store: Store, options: ScrubOptions = {}): Scrubbed {
  const bytesBefore = bytesOnDisk(store);
  const remains: string[] = [];
  const obstacle = options.isForced ? roomObstacle : rewriteObstacle;
  if (obstacle(store) !== null) {
    // That may give it the room it lacks.
    while (giveBackPages(store));
    truncateWal(store);
  }
  const failure = obstacle(store) ?? rewrite(store);
  if (failure !== null) {
    store.exec('UPDATE upkeep SET scraps = 1');
    remains.push(
      `Scraps of deleted rows may be left in the unused part of pages, because the store could not be rewritten: ${failure}`,
    );
  }
  if (!truncateWal(store)) {
    remains.push(
      `The WAL (${walOf(store)}) still has what was deleted, because another process is reading the store; it goes when the last process closes the store, or with: tapedeck prune --vacuum`,
    );
  }
  const inIndex = scrubIndex(store);
  if (inIndex !== null) {
    remains.push(
      `The index beside the store (${sidePath(store)}) may still have something of what was deleted, because ${inIndex}: remove it, search makes it anew`,
    );
  }
  for (const copy of copiesOf(store))
    remains.push(`${copy} is a copy from before an update of the store, and was not changed: remove it`);
  return { bytesBefore, bytesAfter: bytesOnDisk(store), remains };
}

/** Null: done; otherwise why not. */
function scrubIndex(store: Store): string | null {
  try {
    return scrubSideFile(store) ? null : 'another process is reading it';
  } catch (error) {
    if (!(error instanceof Error && 'code' in error)) throw error;
    return troubleOf(error).text;
  }
}

/** Whether scraps of what was deleted may be left, which only `scrubStore` removes. */
export function hasScraps(store: Store): boolean {
  return store.prepare<[], number>('SELECT scraps FROM upkeep').pluck().get() !== 0;
}

/** What the store and its WAL take on disk. */
export function bytesOnDisk(store: Store): number {
  return sizeOf(store.name) + bytesOfWal(store);
}

export function bytesOfWal(store: Store): number {
  return sizeOf(walOf(store));
}

/** Gives the last pages of the file back, where others are free. True: there are more. One short transaction. */
export function giveBackPages(store: Store): boolean {
  if (!isGivingBack(store)) return false;
  const before = freePages(store);
  if (before === 0) return false;
  store.pragma(`incremental_vacuum(${PAGES_AT_ONCE})`);
  const after = freePages(store);
  return after > 0 && after < before;
}

/** Carries the WAL over into the store and empties it. False: readers or writers did not let us, for some seconds. */
export function truncateWal(store: Store, attempts = CHECKPOINT_ATTEMPTS): boolean {
  const timeout = Number(store.pragma('busy_timeout', { simple: true }));
  // This one keeps nobody waiting, and leaves the next one little to do.
  store.pragma('wal_checkpoint(PASSIVE)');
  store.pragma(`busy_timeout = ${CHECKPOINT_ATTEMPT_MS}`);
  try {
    for (let attempt = 1; ; attempt += 1) {
      const busy = store.pragma('wal_checkpoint(TRUNCATE)', { simple: true });
      if (busy === 0) return true;
      if (attempt >= attempts) return false;
      pause(CHECKPOINT_PAUSE_MS);
    }
  } finally {
    store.pragma(`busy_timeout = ${timeout}`);
  }
}

export function freePages(store: Store): number {
  return preparePages(store).free();
}

/** Bytes of the pages that are in use. */
export function bytesInUse(store: Store): number {
  return preparePages(store).bytesInUse();
}

/** For who asks again and again: to prepare a statement each time takes memory that nobody sees until it is collected. */
export function preparePages(store: Store): { free(): number; bytesInUse(): number } {
  const asking = (pragma: string) => {
    const statement = store.prepare<[], number>(`PRAGMA ${pragma}`).pluck();
    return () => statement.get() ?? 0;
  };
  const [all, free, pageBytes] = [asking('page_count'), asking('freelist_count'), asking('page_size')];
  return { free, bytesInUse: () => (all() - free()) * pageBytes() };
}

function rewriteObstacle(store: Store): string | null {
  const open = candidates(store).find((session) => isOpen(session, Date.now() * 1000));
  if (open !== undefined && bytesInUse(store) > REWRITE_BESIDE_RECORDERS_BYTES)
    return `session ${open.id} is being recorded, and would have to wait. When it has ended: tapedeck prune --vacuum`;
  return roomObstacle(store);
}

function roomObstacle(store: Store): string | null {
  const wanted = bytesInUse(store) * ROOM_FOR_REWRITING;
  const { bavail, bsize } = statfsSync(dirname(store.name));
  if (bavail * bsize >= wanted) return null;
  return `that takes ${Math.ceil(wanted / 1e6)} MB on disk for a moment, and ${Math.floor((bavail * bsize) / 1e6)} MB are free. With more room: tapedeck prune --vacuum`;
}

/** Null: done. Turns a store that cannot give back space into one that can, too. */
function rewrite(store: Store): string | null {
  try {
    store.pragma('auto_vacuum = INCREMENTAL');
    store.exec('VACUUM');
    store.exec('UPDATE upkeep SET scraps = 0');
    return null;
  } catch (error) {
    const { code = '' } = error as { code?: string };
    if (code.startsWith('SQLITE_BUSY'))
      return 'another process was writing. Try again: tapedeck prune --vacuum';
    if (code === 'SQLITE_FULL') return 'the disk is full. With more room: tapedeck prune --vacuum';
    throw error;
  }
}

/** Only a store made with `auto_vacuum = INCREMENTAL` can. */
export function isGivingBack(store: Store): boolean {
  return Number(store.pragma('auto_vacuum', { simple: true })) === 2;
}

/** What migrations left: see `copyBefore` in open.ts. */
function copiesOf(store: Store): string[] {
  const folder = dirname(store.name);
  const name = basename(store.name);
  return readdirSync(folder)
    .filter((file) => file.startsWith(`${name}.v`) && /^\d+$/.test(file.slice(name.length + 2)))
    .map((file) => join(folder, file));
}

function walOf(store: Store): string {
  return `${store.name}-wal`;
}

function sizeOf(file: string): number {
  return existsSync(file) ? statSync(file).size : 0;
}
