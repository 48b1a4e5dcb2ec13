/** What searches and counts sooner, made in the background once somebody has searched or counted. */

import { eachFigures } from '../../inspect/figures/kept-figures.ts';
import { createSearchIndex } from '../../store/keep/search-index.ts';
import { VERSION } from '../../version.ts';
import { sideFor, type ToolQuestion } from './asked.ts';

/** So long one piece of it takes, in milliseconds: then others may want the thread. */
const PIECE_MS = 5000;

/** Brings the file beside the store further. Returns whether that is done. */
export async function keepUp({ store, scope, keepsIndex }: ToolQuestion): Promise<{ isDone: boolean }> {
  const side = sideFor(store, keepsIndex);
  if (side === null) return { isDone: true };
  const until = performance.now() + PIECE_MS;
  try {
    for (const { done, total } of createSearchIndex(side, store).catchUp())
      if (done < total && performance.now() > until) return { isDone: false };
    for (const _ of eachFigures(store, side, scope.sessions(), VERSION))
      if (performance.now() > until) return { isDone: false };
    return { isDone: true };
  } catch (error) {
    // Another process may have it at the moment; and a full disk is no trouble of the client's.
    if (error instanceof Error && 'code' in error) return { isDone: true };
    throw error;
  } finally {
    side.close();
  }
}

/** So long one piece of a copy takes, in milliseconds: questions come between. */
const COPY_PIECE_MS = 300;

/** Goes on with the redacted copies of large sessions. */
export async function keepCopying({ scope }: ToolQuestion): Promise<{ isDone: boolean }> {
  return { isDone: await scope.copies.goOn(COPY_PIECE_MS) };
}
