/** The indexes of the sessions that are recorded: made after their frames are stored, as far as time allows. */

import { BoundedMap } from '../../protocol/bounded.ts';
import type { HttpExchange } from '../../protocol/http/exchange.ts';
import { headerOf } from '../../protocol/http/headers.ts';
import type { Store } from '../file/open.ts';
import { type ClosedHttpExchange, closingOf, TRACEPARENT_HEADER } from '../read/http.ts';
import { createIndexer, type Indexer, prepareIndex, restartIndexer } from '../write/index.ts';
import type { PendingSession, SessionKey } from '../write/pending.ts';

export type Indexing = {
  /** The session's row was made just now: nothing of it is indexed in this row. */
  begin(session: PendingSession, key: SessionKey): void;
  /**
   * Call it before `confirm`. `isAtHand`: what it has is in the store, and need not be read back; else it is in a spool, and
   * comes later.
   */
  takeStored(session: PendingSession, isAtHand: boolean): void;
  /** Something of the session has come into the store by itself. */
  setBehind(session: PendingSession): void;
  /** Of this session nothing more is to be indexed, or in another row. */
  forget(session: PendingSession): void;
  /** Nothing more comes of this session: it is forgotten once it is indexed. */
  release(session: PendingSession): void;
  /** Indexes for about so many milliseconds. True: nothing is left. Throws SQLite's error. */
  advance(maxMs: number): boolean;
  /** Gives up: readers complete the index. */
  stop(): void;
};

/** Equal heads are one and the same list, so that most need not be looked through. */
const tracedHeads = new WeakMap<readonly string[], boolean>();

function isTraced(requestHeaders: readonly string[]): boolean {
  let known = tracedHeads.get(requestHeaders);
  if (known === undefined) {
    known = headerOf(requestHeaders, TRACEPARENT_HEADER) !== '';
    tracedHeads.set(requestHeaders, known);
  }
  return known;
}

/** So many sessions keep what their index needs to go on. Of another one that speaks again, the index begins anew. */
const MAX_INDEXERS = 1000;

/** Of more that wait, those of which nothing more comes are left to readers. */
const MAX_BEHIND = 10_000;

/** So many of those that have ended for good: they hardly speak again. */
const MAX_FINISHED = 50;

/** So much is kept at hand until it is indexed. Where the index falls further behind, the rest is read back from the store. */
const MAX_AT_HAND_BYTES = 16 * 1024 * 1024;

/** `isThere`: whether a session's row is still in the store. */
export function createIndexing(store: Store, isThere: (key: SessionKey) => boolean): Indexing {
  const behind = new Set<PendingSession>();
  /** The session first whose indexer was used longest ago. */
  const indexers = new BoundedMap<PendingSession, Indexer>(Number.POSITIVE_INFINITY);
  const finished = new BoundedMap<PendingSession, Indexer>(MAX_FINISHED);
  const index = prepareIndex(store);
  /** Of which sessions frames are at hand, and how many bytes. */
  const atHand = new Map<PendingSession, number>();
  let bytesAtHand = 0;
  let isStopped = false;

  /** What comes last of a session takes the place of what came before. */
  function hold(session: PendingSession, indexer: Indexer): void {
    if (session.frames().length === 0) return;
    letGo(session);
    const isRoom = bytesAtHand < MAX_AT_HAND_BYTES;
    const frames = isRoom ? session.frames() : [];
    indexer.remember(frames, session.firstSeq());
    const bytes = frames.reduce((sum, { payload }) => sum + payload.length, 0);
    atHand.set(session, bytes);
    bytesAtHand += bytes;
  }

  function tellExchanges(session: PendingSession, indexer: Indexer): void {
    const closed: ClosedHttpExchange[] = [];
    let expectsTraces = false;
    const look = (one: HttpExchange) => {
      for (const closing of closingOf(one)) closed.push(closing);
      expectsTraces ||= isTraced(one.requestHeaders);
    };
    session.newHttpExchanges().forEach(look);
    session.changedHttpExchanges().forEach(look);
    for (const closing of closed.sort((a, b) => a.after - b.after)) indexer.close(closing);
    if (expectsTraces) indexer.expectTraces();
  }

  function letGo(session: PendingSession): void {
    bytesAtHand -= atHand.get(session) ?? 0;
    atHand.delete(session);
  }

  function forget(session: PendingSession): void {
    letGo(session);
    indexers.delete(session);
    finished.delete(session);
    behind.delete(session);
  }

  function isDone(session: PendingSession): void {
    behind.delete(session);
    letGo(session);
    const indexer = hasEnded(session) ? indexers.get(session) : undefined;
    if (indexer === undefined) return;
    indexers.delete(session);
    finished.set(session, indexer);
  }

  function indexerOf(session: PendingSession, { number }: SessionKey): Indexer {
    const known = indexers.use(session) ?? finished.use(session);
    if (known !== undefined && !known.isSpoiled()) return known;
    const indexer = restartIndexer(number, index);
    indexers.set(session, indexer);
    return indexer;
  }

  return {
    begin(session, { number }) {
      forget(session);
      if (!isStopped && indexers.size < MAX_INDEXERS) indexers.set(session, createIndexer(number, index));
    },
    takeStored(session, isAtHand) {
      if (isStopped) return;
      const indexer = indexers.get(session) ?? finished.get(session);
      if (isAtHand && indexer !== undefined) hold(session, indexer);
      if (indexer !== undefined) tellExchanges(session, indexer);
      behind.add(session);
    },
    release(session) {
      if (!behind.has(session) || behind.size > MAX_BEHIND) forget(session);
    },
    setBehind: (session) => void (isStopped || behind.add(session)),
    forget,
    advance(maxMs) {
      const deadline = performance.now() + maxMs;
      for (const session of behind) {
        const { key } = session;
        if (key === null || !isThere(key)) forget(session);
        else if (indexerOf(session, key).advance(deadline - performance.now())) isDone(session);
        if (performance.now() >= deadline) break;
      }
      while (indexers.size > MAX_INDEXERS) {
        const oldest = indexers.oldestKey();
        if (oldest === undefined || behind.has(oldest)) break;
        indexers.delete(oldest);
      }
      return behind.size === 0;
    },
    stop() {
      isStopped = true;
      behind.clear();
    },
  };
}

/** For good: one that was only idle may be spoken to again. */
function hasEnded({ state: { end } }: PendingSession): boolean {
  return end !== null && end.reason !== 'idle' && end.reason !== 'crowded-out';
}
