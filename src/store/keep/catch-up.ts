/** Opening a store for reading with a complete index: what a recorder left behind, killed or in haste, is done first. */

import { openForReading, openStore, type Store } from '../file/open.ts';
import { isTurnTaken } from '../file/turn.ts';
import { type SessionRow, sessionsBehind, stateOf } from '../read/sessions.ts';
import { reindexSession } from '../write/index.ts';
import { openRedactions } from './redaction-state.ts';

export type CatchUpNotices = {
  /** Of each session that is indexed now, before that begins. */
  onIndexing(session: SessionRow): void;
  /** Of a session that is not wholly redacted. `isAtWork`: a process is at it; else that was killed. */
  onUnredacted(session: { id: string }, isAtWork: boolean): void;
};

export function openIndexed(file: string, { onIndexing, onUnredacted }: CatchUpNotices): Store {
  const store = openForReading(file);
  const redactions = openRedactions(store);
  const isAtWork = redactions.length > 0 && isTurnTaken(store);
  for (const { id } of redactions) onUnredacted({ id }, isAtWork);
  const unredacted = new Set(redactions.map(({ session }) => session));
  const behind = sessionsBehind(store).filter(isLeftBehind);
  // What is not redacted yet must not get into an index.
  const due = behind.filter(({ number }) => !unredacted.has(number));
  if (due.length === 0) return store;
  store.close();
  try {
    const writable = openStore(file);
    for (const session of due) {
      onIndexing(session);
      reindexSession(writable, session.number);
    }
    writable.close();
  } catch {
    // A store that we may not write is shown as it is: its frames are all there, only their index is short.
  }
  return openForReading(file);
}

/** The recorder of an open session is at work on its index itself. */
function isLeftBehind(session: SessionRow): boolean {
  return stateOf(session) !== 'open';
}
