/** The indexes of the sessions that are recorded: made after their frames are stored, as far as time allows. */

import type { Store } from '../file/open.ts';
import { closingOf } from '../read/http.ts';
import { type Indexer, restartIndexer } from '../write/index.ts';
import type { PendingSession, SessionKey } from '../write/pending.ts';

export type Indexing = {
  /** Call it before `confirm`: the index takes what was just stored, and need not read it back. */
  takeStored(session: PendingSession): void;
  isBehind(session: PendingSession): boolean;
  /** Of this session nothing more is to be indexed, or in another row. */
  forget(session: PendingSession): void;
  /** Indexes for about so many milliseconds. True: nothing is left. Throws SQLite's error. */
  advance(maxMs: number): boolean;
  /** Gives up: readers complete the index. */
  stop(): void;
};

/** So many sessions keep what their index needs to go on. Of another one that speaks again, the index begins anew. */
const MAX_INDEXERS = 1000;

/** `isThere`: whether a session's row is still in the store. */
export function createIndexing(store: Store, isThere: (key: SessionKey) => boolean): Indexing {
  const behind = new Set<PendingSession>();
  /** The session first whose indexer was used longest ago. */
  const indexers = new Map<PendingSession, Indexer>();
  let isStopped = false;

  function forget(session: PendingSession): void {
    indexers.delete(session);
    behind.delete(session);
  }

  function indexerOf(session: PendingSession, { number }: SessionKey): Indexer {
    const known = indexers.get(session);
    const indexer = known === undefined || known.isSpoiled() ? restartIndexer(store, number) : known;
    // Delete first, so that the map's order stays the order of the latest use.
    indexers.delete(session);
    indexers.set(session, indexer);
    return indexer;
  }

  return {
    takeStored(session) {
      if (isStopped) return;
      const indexer = indexers.get(session);
      indexer?.remember(session.frames(), session.firstSeq());
      const closed = [...session.httpExchanges()].flatMap(closingOf).sort((a, b) => a.after - b.after);
      for (const httpExchange of closed) indexer?.close(httpExchange);
      behind.add(session);
    },
    isBehind: (session) => behind.has(session),
    forget,
    advance(maxMs) {
      const deadline = performance.now() + maxMs;
      for (const session of behind) {
        const { key } = session;
        if (key === null || !isThere(key)) forget(session);
        else if (indexerOf(session, key).advance(deadline - performance.now())) behind.delete(session);
        if (performance.now() >= deadline) break;
      }
      for (const session of indexers.keys()) {
        if (indexers.size <= MAX_INDEXERS || behind.has(session)) break;
        indexers.delete(session);
      }
      return behind.size === 0;
    },
    stop() {
      isStopped = true;
      behind.clear();
    },
  };
}
