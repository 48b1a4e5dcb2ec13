/**
 * Spools: what a recorder could not commit to its store within a fraction of a second goes into a small store of its own
 * beside it, `recordings.db.spool-<run>`. It has the same tables, so the same code writes it, redacts it and brings it through
 * a kill. One process at a time has it open; a spool that nobody has is what a recorder left behind.
 */

import { readdirSync, rmSync } from 'node:fs';
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
  try {
    return openSpool(file, false);
  } catch (error) {
    if ((error as { code?: string }).code?.startsWith('SQLITE_BUSY')) return null;
    throw error;
  }
}

/** Call it once everything of the spool is in the store. Throws the system's error. */
export function removeSpool(spool: Store): void {
  const file = spool.name;
  // While it is locked still, so that nobody opens what is about to go.
  rmSync(file, { force: true });
  spool.close();
  for (const end of BESIDE) rmSync(file + end, { force: true });
}
