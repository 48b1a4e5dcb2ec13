/** Opens what a command reads: a store of this machine, or of an engine what the command asks for. */

import { TapedeckError } from '../errors.ts';
import type { Filter } from '../inspect/filter/filter.ts';
import type { Store } from '../store/file/open.ts';
import { isEngineUrl } from '../store/file/path.ts';
import { type CatchUpNotices, openIndexed } from '../store/keep/catch-up.ts';

/**
 * What is read of a store. Of a local one everything is there anyway; of an engine this much is fetched, so that what is asked of
 * the store has the same answer as if all of it were there.
 */
export type Needs =
  /** These sessions, each by an id, the beginning of one, a name or `latest`, with all their frames. */
  | { of: 'sessions'; references: readonly string[] }
  /** What the rows of sessions say: of all of them, or of the newest. */
  | { of: 'rows'; most: number }
  /**
   * Every session with a frame for which the filter holds, with all its frames; or the newest of them, until there are `most` of
   * them or of their frames for which it holds. `withRuns`: and what the rows say of the others in their runs.
   */
  | { of: 'matches'; filter: Filter | undefined; most?: number; mostFrames?: number; withRuns?: boolean }
  /** The sessions of a run of a client, by its id, the beginning of one, its name or `latest`. */
  | { of: 'run'; reference: string };

export type OpenOptions = {
  notices: CatchUpNotices;
  /** As for `openIndexed`. */
  mostFrames?: number | undefined;
};

/** `close` removes what was fetched, too. */
export type OpenedStore = { store: Store; close(): void };

/**
 * Opens `db`, the path of a store or the URL of an engine, for reading. Throws `TapedeckError` where there is none, or where it
 * cannot be reached.
 */
export async function openFor(db: string, _wanted: Needs, options: OpenOptions): Promise<OpenedStore> {
  if (isEngineUrl(db))
    throw new TapedeckError('usage', 'Expected the file of a store, got the URL of an engine.');
  const store = await openIndexed(db, options.notices, options.mostFrames);
  return { store, close: () => void store.close() };
}
