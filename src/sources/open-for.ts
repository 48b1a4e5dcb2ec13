/** Opens what a command reads: a store of this machine, or of an engine what the command asks for. */

import type { Needs } from '../engine/read/needs.ts';
import type { CountedFigures } from '../inspect/figures/chosen-figures.ts';
import type { Store } from '../store/file/open.ts';
import { isEngineUrl } from '../store/file/path.ts';
import { type CatchUpNotices, openIndexed } from '../store/keep/catch-up.ts';

export type OpenOptions = {
  notices: OpenNotices;
  /** As for `openIndexed`. */
  mostFrames?: number | undefined;
  env?: NodeJS.ProcessEnv;
  /** Reach an engine beyond loopback without knowing that it is the right one. */
  isInsecure?: boolean | undefined;
};

/** Besides what is said of a store: of an engine how far the fetching is, and what there is to know. */
export type OpenNotices = CatchUpNotices & {
  onPulled?(bytes: number, total: number): void;
  onCounted?(sessions: number): void;
  onFetched?(): void;
  onNote?(text: string): void;
};

/** What nobody is told of. */
export const SILENT = { onPulled() {}, onCounted() {}, onFetched() {}, onNote() {} };

/** `close` removes what was fetched, too. `file`: where it is. `counted`: where figures are wanted, those that came in place of frames. */
export type OpenedStore = { store: Store; file: string; counted?: CountedFigures; close(): void };

/**
 * Opens `db` for reading: the path of a store, or the URL of an engine, of which what is needed is fetched. Throws `TapedeckError` where
 * there is none, or where it cannot be reached.
 */
export async function openFor(
  db: string,
  needs: Needs,
  { notices, mostFrames, env = process.env, isInsecure = false }: OpenOptions,
): Promise<OpenedStore> {
  if (isEngineUrl(db)) {
    const { openEngine } = await import('../engine/read/open-engine.ts');
    return openEngine(db, needs, { env, isInsecure, notices: { ...SILENT, ...notices } });
  }
  const store = await openIndexed(db, notices, mostFrames);
  return { store, file: db, close: () => void store.close() };
}
