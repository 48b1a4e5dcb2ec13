/** The store that a command works with, and the file beside it. */

import { TapedeckError } from '../errors.ts';
import { type Needs, openFor } from '../sources/open-for.ts';
import { openForReading, openStore, type Store } from '../store/file/open.ts';
import { isEngineUrl } from '../store/file/path.ts';
import { troubleOf } from '../store/file/trouble.ts';
import { takeInSpools } from '../store/keep/catch-up.ts';
import { openSideFile, type SideFile } from '../store/keep/side-file.ts';
import { type Io, say, storeOf } from './io.ts';
import { notices } from './output.ts';

/**
 * Opens what a command wants of the store that `--db` names for reading, with an index of all its messages, for as long as `read`
 * takes. `mostFrames`: as for `openIndexed`.
 */
export async function withStore(
  io: Io,
  db: string | undefined,
  wanted: Needs,
  read: (store: Store) => void | Promise<void>,
  mostFrames?: number,
): Promise<void> {
  const { store, close } = await openFor(storeOf(io, db), wanted, { notices: notices(io), mostFrames });
  try {
    await read(store);
  } finally {
    close();
  }
}

/**
 * The file of the store that `--db` names, for a command that writes to it. `instead`: what to do where it is an engine, which
 * hosts write to by shipping alone. Throws `TapedeckError` `usage` then.
 */
export function writableStoreOf(io: Io, db: string | undefined, instead: string): string {
  const path = storeOf(io, db);
  if (isEngineUrl(path))
    throw new TapedeckError('usage', `Expected the file of a store, got the URL of an engine. ${instead}`);
  return path;
}

/**
 * Opens the store that `--db` names for writing, and for as long as `change` takes. It must be there already. `instead`: as for
 * `writableStoreOf`.
 */
export async function withWritableStore(
  io: Io,
  db: string | undefined,
  instead: string,
  change: (store: Store) => void | Promise<void>,
): Promise<void> {
  const path = writableStoreOf(io, db, instead);
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
