/** Deletes sessions for real, at once, as `tapedeck prune` does. What a recorder does in the background is in upkeep.ts. */

import { pause, type Store } from '../file/open.ts';
import { createTurn, type Turn, waitForTurn } from '../file/turn.ts';
import { createRemoval, type Removal } from '../write/removal.ts';
import { hideDepartures } from './departure.ts';
import type { RetentionLimits } from './limits.ts';
import { finishRedactions, type OnFrames } from './redact.ts';
import {
  type Candidate,
  candidates,
  type Departure,
  type Plan,
  planNamed,
  planRetention,
} from './retention.ts';
import {
  bytesInUse,
  bytesOnDisk,
  freePages,
  giveBackPages,
  hasScraps,
  type Scrubbed,
  scrubStore,
  truncateWal,
} from './scrub.ts';

/** Sessions by number, or limits: for those in `mayGo` alone, where it is given. */
export type Selection =
  | { named: ReadonlySet<number>; reason: 'named' | 'filter' }
  | { limits: RetentionLimits; mayGo: ReadonlySet<number> | null };

export type Pruned = Scrubbed & {
  departures: Departure[];
  /** Bytes that stay above the limit, because sessions that are open or kept have them. */
  excessBytes: number;
  /** Sessions whose redaction had been interrupted, and is finished now. */
  redacted: string[];
};

/** Estimates are wrong: so often, sessions are looked for again. */
const MAX_ROUNDS = 20;

/** Recorders get the store for a while after each slice, or they would wait for their turn too long. */
const SLICE_MS = 20;

const PAUSE_MS = 10;

/** What would go. */
export function planPrune(store: Store, selection: Selection): Plan {
  return choose(store, candidates(store), selection);
}

/**
 * Deletes the sessions for good, in short transactions, and gives their space back. `isForced`: rewrites the store even if
 * recorders have to wait. `isEverywhere`: what an engine has of them is to be deleted there, too, by whoever ships next. It finishes what `redact` was interrupted in. Throws `TapedeckError` `busy` while another process prunes, and SQLite's errors; the store is
 * sound then, and the next one goes on.
 */
export function prune(
  store: Store,
  selection: Selection,
  { isForced, isEverywhere }: { isForced: boolean; isEverywhere: boolean },
  onFrames: OnFrames,
): Pruned {
  const bytesBefore = bytesOnDisk(store);
  const turn = createTurn(store);
  waitForTurn(turn);
  try {
    // On a full disk this is where room comes from.
    truncateWal(store, 1);
    removeHidden(store, turn);
    const { departures, excessBytes } = removeRounds(store, selection, turn, isEverywhere);
    const redacted = finishRedactions(store, turn, onFrames);
    const needsScrub = departures.length > 0 || isForced || hasScraps(store);
    const { bytesAfter, remains } = needsScrub ? scrubStore(store, { isForced }) : giveBack(store);
    return { departures, excessBytes, redacted, bytesBefore, bytesAfter, remains };
  } finally {
    turn.end();
  }
}

function removeRounds(store: Store, selection: Selection, turn: Turn, isEverywhere: boolean): Plan {
  const departures: Departure[] = [];
  for (let round = 1; ; round += 1) {
    const plan = choose(store, candidates(store), selection);
    if (plan.departures.length === 0 || round > MAX_ROUNDS)
      return { departures, excessBytes: plan.excessBytes };
    hideDepartures(store, plan.departures, isEverywhere);
    removeHidden(store, turn);
    departures.push(...plan.departures);
  }
}

function choose(store: Store, sessions: readonly Candidate[], selection: Selection): Plan {
  if ('named' in selection) return planNamed(sessions, selection.named, selection.reason, bytesInUse(store));
  const { limits, mayGo } = selection;
  const isKept = ({ number }: Candidate) => mayGo !== null && !mayGo.has(number);
  return planRetention(sessions, limits, { now: Date.now() * 1000, bytesInUse: bytesInUse(store), isKept });
}

function removeHidden(store: Store, turn: Turn): void {
  const removal = createRemoval(store);
  while (!advanceOnFullDisk(store, removal)) {
    turn.keep();
    pause(PAUSE_MS);
  }
}

/** What is deleted goes through the WAL first: where there is no room for it, the WAL is emptied in between. */
function advanceOnFullDisk(store: Store, removal: Removal): boolean {
  try {
    return removal.advance(SLICE_MS);
  } catch (error) {
    if ((error as { code?: string }).code !== 'SQLITE_FULL') throw error;
    truncateWal(store, 1);
    return removal.advance(0);
  }
}

function giveBack(store: Store): Scrubbed {
  const bytesBefore = bytesOnDisk(store);
  if (freePages(store) > 0) {
    while (giveBackPages(store));
    truncateWal(store);
  }
  return { bytesBefore, bytesAfter: bytesOnDisk(store), remains: [] };
}
