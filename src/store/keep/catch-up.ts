/** Opening a store with all that belongs to it: what a recorder left behind, killed or in haste, is done first. */

import { TapedeckError } from '../../errors.ts';
import { openForReading, openStore, pause, type Store } from '../file/open.ts';
import { openLeftSpool, removeSpool, spoolsOf } from '../file/spool.ts';
import { troubleOf } from '../file/trouble.ts';
import { isTurnTaken } from '../file/turn.ts';
import { type SessionRow, sessionsBehind, stateOf } from '../read/sessions.ts';
import type { createTakeIn } from '../write/take-in.ts';
import { openRedactions } from './redaction-state.ts';

type SpoolNotices = {
  /** Of a spool that is taken in now, before that begins. */
  onTakingIn(file: string): void;
  /** So many recorders have frames that are not in the store yet; they take them in themselves, or the next command does. */
  onWaiting(spools: number): void;
  /** A spool cannot be read. It stays where it is. */
  onDamaged(file: string, why: string): void;
};

export type CatchUpNotices = SpoolNotices & {
  /** Of each session that is indexed now, before that begins. */
  onIndexing(session: SessionRow): void;
  /** Of sessions that are too large to be indexed for this command. */
  onLeftBehind(sessions: readonly SessionRow[]): void;
  /** Of a session that is not wholly redacted. `isAtWork`: a process is at it; else that was killed. */
  onUnredacted(session: { id: string }, isAtWork: boolean): void;
};

/** For callers that nobody could be told by. */
export const NO_NOTICES: CatchUpNotices = {
  onTakingIn() {},
  onWaiting() {},
  onDamaged() {},
  onIndexing() {},
  onLeftBehind() {},
  onUnredacted() {},
};

/** `mostFrames`: so many frames are indexed at most; the largest sessions stay as they are beyond that. */
export async function openIndexed(
  file: string,
  notices: CatchUpNotices,
  mostFrames: number = Number.POSITIVE_INFINITY,
): Promise<Store> {
  await takeInSpools(file, notices);
  const { onIndexing, onLeftBehind, onUnredacted } = notices;
  const store = openForReading(file);
  const redactions = openRedactions(store);
  const isAtWork = redactions.length > 0 && isTurnTaken(store);
  for (const { id } of redactions) onUnredacted({ id }, isAtWork);
  const unredacted = new Set(redactions.map(({ session }) => session));
  const behind = sessionsBehind(store).filter(isLeftBehind);
  // What is not redacted yet must not get into an index.
  const due = behind.filter(({ number }) => !unredacted.has(number));
  const chosen = smallest(due, mostFrames);
  if (chosen.length < due.length) onLeftBehind(due.filter((session) => !chosen.includes(session)));
  if (chosen.length === 0) return store;
  store.close();
  await indexAll(file, chosen, onIndexing);
  return openForReading(file);
}

async function indexAll(
  file: string,
  sessions: readonly SessionRow[],
  onIndexing: (session: SessionRow) => void,
): Promise<void> {
  // Loaded only here: most commands find every index complete.
  const { reindexSession } = await import('../write/index.ts');
  let store: Store | undefined;
  try {
    store = openStore(file);
    for (const session of sessions) {
      onIndexing(session);
      reindexSession(store, session.number);
    }
  } catch {
    // A store that we may not write is shown as it is: its frames are all there, only their index is short.
  } finally {
    store?.close();
  }
}

function smallest(sessions: readonly SessionRow[], mostFrames: number): SessionRow[] {
  let left = mostFrames;
  return sessions
    .toSorted((a, b) => a.frames - b.frames)
    .filter(({ frames }) => {
      left -= frames;
      return left >= 0;
    });
}

/** So long a spool may keep recorders waiting for the store; then it leaves them half as much time. */
const SLICE_MS = 50;

/** Another one that takes the same spool in, or its recorder, may be through in a moment. */
const ATTEMPTS = 5;

const ATTEMPT_PAUSE_MS = 20;

/** Takes into a store what its recorders could not commit there, as far as they are gone. Makes the store where there is none yet. */
export async function takeInSpools(file: string, notices: SpoolNotices): Promise<void> {
  const spools = spoolsOf(file);
  if (spools.length === 0) return;
  const { createTakeIn } = await import('../write/take-in.ts');
  let store: Store | undefined;
  let waiting = 0;
  try {
    store = openStore(file);
    for (const spool of spools) if (!takeIn(store, spool, createTakeIn, notices)) waiting += 1;
  } catch {
    // A store that cannot be written is shown as it is.
    waiting = spools.length;
  } finally {
    store?.close();
  }
  if (waiting > 0) notices.onWaiting(waiting);
}

/** False: it is to wait. */
function takeIn(
  store: Store,
  file: string,
  create: typeof createTakeIn,
  { onTakingIn, onDamaged }: SpoolNotices,
): boolean {
  let spool: Store | null = null;
  try {
    spool = openWhenFree(file);
    if (spool === null) return false;
    onTakingIn(file);
    const taking = create(store, spool);
    while (!taking.advance(SLICE_MS)) pause(SLICE_MS / 2);
    removeSpool(spool);
    return true;
  } catch (error) {
    spool?.close();
    const { text, isPassing } = troubleOf(error);
    if (isPassing || isReadOnly(error)) return false;
    onDamaged(file, text);
    return true;
  }
}

function openWhenFree(file: string): Store | null {
  for (let attempt = 1; ; attempt += 1) {
    const spool = openLeftSpool(file);
    if (spool !== null || attempt === ATTEMPTS) return spool;
    pause(ATTEMPT_PAUSE_MS * Math.random());
  }
}

function isReadOnly(error: unknown): boolean {
  return (
    !(error instanceof TapedeckError) &&
    (error as { code?: string }).code?.startsWith('SQLITE_READONLY') === true
  );
}

/** The recorder of an open session is at work on its index itself. */
function isLeftBehind(session: SessionRow): boolean {
  return stateOf(session) !== 'open';
}
