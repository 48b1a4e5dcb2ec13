/** Opening a store for reading with a complete index: what a recorder left behind, killed or in haste, is done first. */
import { reindexSession } from './indexer.ts';
import { openForReading, openStore, type Store } from './open.ts';
import { type SessionRow, sessionsBehind, stateOf } from './reader.ts';

/** `onSession` is told of each session that is indexed now, before that begins. */
export function openIndexed(file: string, onSession: (session: SessionRow) => void): Store {
  const store = openForReading(file);
  const behind = sessionsBehind(store).filter(isLeftBehind);
  if (behind.length === 0) return store;
  store.close();
  try {
    const writable = openStore(file);
    for (const session of behind) {
      onSession(session);
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
