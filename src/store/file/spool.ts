/**
 * Spools: what a recorder could not commit to its store within a fraction of a second goes into a small store of its own
 * beside it, `recordings.db.spool-<run>`. It has the same tables, so the same code writes it, redacts it and brings it through
 * a kill. One process at a time has it open; a spool that nobody has is what a recorder left behind.
 */

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { openSpool, type Store } from './open.ts';

const MARK = '.spool-';

/** Files that SQLite keeps beside its own. */
const BESIDE = ['-wal', '-shm', '-journal'];

/** `run` tells one recorder from all others. */
export function spoolPath(file: string, run: string): string {
  return file + MARK + run;
}

/** The spools beside a store, whether their recorders are at work or not, the oldest names first. */
export function spoolsOf(file: string): string[] {
  const prefix = basename(file) + MARK;
  const folder = dirname(file);
  try {
    const spools = readdirSync(folder).filter(
      (name) => name.startsWith(prefix) && !BESIDE.some((end) => name.endsWith(end)),
    );
    return spools.sort().map((name) => join(folder, name));
  } catch {
    return [];
  }
}

/** Opens a spool that was left behind. Null: its recorder, or somebody who takes it in, is at work. Throws SQLite's errors. */
export function openLeftSpool(file: string): Store | null {
  return openUnlessTaken(file, false);
}

function openUnlessTaken(file: string, isDurable: boolean): Store | null {
  try {
    return openSpool(file, isDurable);
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY')) return null;
    throw error;
  }
}

const MOST_NAMES = 10;

/**
 * Makes the spool of a recorder. In the moment in which it is made another process may take it for one that was left behind, look
 * into it and remove it; then another one is made, under a name of its own. Throws SQLite's or the system's error.
 */
export function makeSpool(file: string, run: string, isDurable: boolean): Store {
  for (let i = 1; i < MOST_NAMES; i += 1) {
    const spool = openUnlessTaken(nameOf(file, run, i), isDurable);
    if (spool === null) continue;
    // From here on nobody else can remove it; before, somebody may have.
    if (existsSync(spool.name)) return spool;
    spool.close();
  }
  return openSpool(nameOf(file, run, MOST_NAMES), isDurable);
}

function nameOf(file: string, run: string, i: number): string {
  return i === 1 ? spoolPath(file, run) : `${spoolPath(file, run)}.${i}`;
}

/** The spool that a recorder has, or had last; the one that it would make where there is none. */
export function lastSpoolOf(file: string, run: string): string {
  const names = Array.from({ length: MOST_NAMES }, (_, i) => nameOf(file, run, i + 1));
  return names.findLast((name) => existsSync(name)) ?? spoolPath(file, run);
}

/** Call it once everything of the spool is in the store. Throws the system's error. */
export function removeSpool(spool: Store): void {
  const file = spool.name;
  // While it is locked still, so that nobody opens what is about to go. Windows removes nothing that is open: whoever opens it
  // in between finds that all of it is taken in, and removes it.
  if (process.platform === 'win32') spool.close();
  rmSync(file, { force: true });
  spool.close();
  for (const end of BESIDE) rmSync(file + end, { force: true });
}
