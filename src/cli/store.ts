/** The store that a command works with, and the file beside it. */

import type { Needs } from '../engine/read/needs.ts';
import { TapedeckError } from '../errors.ts';
import type { CountedFigures } from '../inspect/figures/chosen-figures.ts';
import type { Filter } from '../inspect/filter/filter.ts';
import { type OpenOptions, openFor } from '../sources/open-for.ts';
import { openForReading, openStore, type Store } from '../store/file/open.ts';
import { isEngineUrl } from '../store/file/path.ts';
import { troubleOf } from '../store/file/trouble.ts';
import { takeInSpools } from '../store/keep/catch-up.ts';
import { openSideFile, type SideFile } from '../store/keep/side-file.ts';
import { type Io, say, storeOf } from './io.ts';
import { notices } from './output.ts';

/**
 * Opens what a command wants of the store that `--db` names for reading, with an index of all its messages, for as long as `read`
 * takes. `counted`: as for `OpenedStore`. `mostFrames`: as for `openIndexed`.
 */
export async function withStore(
  io: Io,
  db: string | undefined,
  wanted: Needs,
  read: (store: Store, counted: CountedFigures | undefined) => void | Promise<void>,
  mostFrames?: number,
): Promise<void> {
  const { store, counted, close } = await openFor(storeOf(io, db), wanted, {
    ...readingOf(io),
    mostFrames,
  });
  try {
    await read(store, counted);
  } finally {
    close();
  }
}

/** How this command reads, whatever it opens. */
export function readingOf(io: Io): Pick<OpenOptions, 'notices' | 'env' | 'isInsecure'> {
  return { notices: notices(io), env: io.env, isInsecure: io.isInsecureEngine };
}

/** So many sessions of an engine are fetched for who looks around in them. */
const SESSIONS_TO_LOOK_AT = 50;

/**
 * The file of the store that `--db` names, for a command that goes on reading it. Of an engine it is one with the sessions that are asked
 * for as they are now; without `references` with the newest 50 of which something passes the filter. `close` removes that again.
 */
export async function fileToLookAt(
  io: Io,
  db: string | undefined,
  references: readonly string[],
  filter: Filter | undefined,
): Promise<{ file: string; close(): void }> {
  const name = storeOf(io, db);
  if (!isEngineUrl(name)) return { file: name, close() {} };
  const needs: Needs =
    references.length > 0
      ? { of: 'sessions', references }
      : { of: 'matches', filter, most: SESSIONS_TO_LOOK_AT };
  const opened = await openFor(name, needs, readingOf(io));
  const what = references.length > 0 ? 'the sessions' : `the newest ${SESSIONS_TO_LOOK_AT} sessions`;
  say(io, `shown are ${what} of the engine as they are now`);
  return opened;
}

/**
 * The file of the store that `--db` names, for a command that writes to it. `instead`: what to do where it is an engine, which
 * hosts write to by shipping alone. Throws `TapedeckError` `usage` then.
 */
export function writableStoreOf(io: Io, db: string | undefined, instead: string): string {
  const path = storeOf(io, db);
  if (isEngineUrl(path))
    throw new TapedeckError(
      'usage',
      `Expected the file of a store, got the URL of an engine, from --db, TAPEDECK_DB or your configuration. ${instead}`,
    );
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

/**
 * Opens the file beside the store `db`. Null where it cannot be kept, or is not worth it, as for what was fetched of an engine: then the
 * command goes on without it.
 */
export function openSide(io: Io, db: string | undefined, store: Store): SideFile | null {
  if (isEngineUrl(storeOf(io, db))) return null;
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
