/** The store that a command works with, and the file beside it. */

import { openForReading, openStore, type Store } from '../store/file/open.ts';
import { troubleOf } from '../store/file/trouble.ts';
import { openIndexed, takeInSpools } from '../store/keep/catch-up.ts';
import { openSideFile, type SideFile } from '../store/keep/side-file.ts';
import { type Io, say, storeOf } from './io.ts';
import { notices } from './output.ts';

/**
 * Opens the store that `--db` names for reading, with an index of all its messages, for as long as `read` takes. `mostFrames`:
 * as for `openIndexed`.
 */
export async function withStore(
  io: Io,
  db: string | undefined,
  read: (store: Store) => void | Promise<void>,
  mostFrames?: number,
): Promise<void> {
  const store = await openIndexed(storeOf(io, db), notices(io), mostFrames);
  try {
    await read(store);
  } finally {
    store.close();
  }
}

/** Opens the store that `--db` names for writing, and for as long as `change` takes. It must be there already. */
export async function withWritableStore(
  io: Io,
  db: string | undefined,
  change: (store: Store) => void | Promise<void>,
): Promise<void> {
  const path = storeOf(io, db);
  await takeInSpools(path, notices(io));
  openForReading(path).close();
  const store = openStore(path, { isPatient: true });
  try {
    await change(store);
  } finally {
    store.close();
  }
}

/** Opens the file beside the store. Null where it cannot be kept: then the command goes on without it, slower. */
export function openSide(io: Io, store: Store): SideFile | null {
  try {
    return openSideFile(store);
  } catch (error) {
    sayWithoutSide(io, error);
    return null;
  }
}

/** Passes on what is no trouble of a file but a fault of ours. */
export function sayWithoutSide(io: Io, error: unknown): void {
  if (!(error instanceof Error && 'code' in error)) throw error;
  say(io, `the index beside the store cannot be kept: ${troubleOf(error).text}; it goes on without, slower`);
}
