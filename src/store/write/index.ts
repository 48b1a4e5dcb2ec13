/**
 * The index of messages, made from stored frames: the same way while a session is recorded, after a recorder was
 * killed, and when a better parser rebuilds it. It may lag behind the frames; `session.indexed` says how far it is.
 */

import { TapedeckError } from '../../errors.ts';
import {
  type ConversationFacts,
  createConversation,
  type FrameWithReading,
  type IndexedMessage,
} from '../../protocol/message/conversation.ts';
import type { Outcome } from '../../protocol/message/correlate.ts';
import { readTraceparent } from '../../protocol/message/trace.ts';
import { pause, type Store } from '../file/open.ts';
import { type BareFrame, prepareFramesOfAny } from '../read/frames.ts';
import {
  type ClosedHttpExchange,
  prepareClosedHttpExchanges,
  prepareHasTraceparents,
  prepareTraceparent,
} from '../read/http.ts';
import { watchIndex } from './revision.ts';
import { prepareTraceInsert } from './run.ts';

export type Indexer = {
  /** Frames that were stored just now, in place of those before: they need not be read back. Kept until they are indexed. */
  remember(frames: readonly FrameWithReading[], firstSeq: number): void;
  /** Says that HTTP requests of the session have a header `traceparent`: from now on it is looked for. */
  expectTraces(): void;
  /** Says how an HTTP exchange ended, if not with answers. Exchanges come in the order in which they ended. */
  close(closed: ClosedHttpExchange): void;
  /** Whether an error left it with more than is stored: it cannot go on, and must be restarted. */
  isSpoiled(): boolean;
  /** Indexes what is not indexed yet, for about `maxMs` milliseconds, in one transaction. True: nothing is left. */
  advance(maxMs: number): boolean;
  /** The next frame is not among those that are remembered. */
  isBehind(): boolean;
};

/** Frames read at once: few enough that even large ones fit into memory together. */
const FRAMES_AT_ONCE = 64;

/** What the index of a store takes, prepared once for all of its sessions: a statement for each would cost its memory. */
export type PreparedIndex = {
  insert(session: number, indexed: IndexedMessage): void;
  /** `traceparent` as it was written, valid or not. */
  trace(session: number, seq: number, traceparent: string): void;
  setOutcome(session: number, outcome: Outcome, seq: number, n: number): void;
  update(session: number, facts: ConversationFacts, indexed: number): void;
  /** The next frames behind a `seq`, some at once. */
  framesAfter(session: number, seq: number): BareFrame[];
  /** The header `traceparent` of an HTTP request; null where it has none. */
  traceparentOf(session: number, exchange: number): string | null;
  /** Does the work in one transaction. */
  transact<T>(work: () => T): T;
  restart(): PreparedRestart;
};

/** What it takes to begin the index of a session anew. */
type PreparedRestart = {
  forget(session: number, onSlice: () => void): void;
  closedHttpExchanges(session: number): ClosedHttpExchange[];
  hasTraceparents(session: number): boolean;
};

export function prepareIndex(store: Store): PreparedIndex {
  const setOutcome = store.prepare('UPDATE message SET outcome = ? WHERE session = ? AND seq = ? AND n = ?');
  // Made when they are needed: a recorder by stdio has one session, which is never begun anew.
  let insertTrace: ReturnType<typeof prepareTraceInsert> | undefined;
  let framesAfter: PreparedIndex['framesAfter'] | undefined;
  let traceparentOf: PreparedIndex['traceparentOf'] | undefined;
  let restart: PreparedRestart | undefined;
  return {
    insert: prepareMessageInsert(store),
    trace(session, seq, traceparent) {
      const context = readTraceparent(traceparent);
      if (context === null) return;
      insertTrace ??= prepareTraceInsert(store);
      insertTrace(session, seq, context);
    },
    setOutcome: (session, outcome, seq, n) => void setOutcome.run(outcome, session, seq, n),
    update: prepareFactsUpdate(store),
    framesAfter(session, seq) {
      framesAfter ??= prepareFramesOfAny(store, FRAMES_AT_ONCE);
      return framesAfter(session, seq);
    },
    traceparentOf(session, exchange) {
      traceparentOf ??= prepareTraceparent(store);
      return traceparentOf(session, exchange);
    },
    transact: store.transaction((work: () => unknown) => work()).immediate as PreparedIndex['transact'],
    restart() {
      restart ??= {
        forget: prepareForget(store),
        closedHttpExchanges: prepareClosedHttpExchanges(store),
        hasTraceparents: prepareHasTraceparents(store),
      };
      return restart;
    },
  };
}

/** Continues a session's index. The session must not be indexed at all yet, or only by this same indexer. */
export function createIndexer(session: number, index: PreparedIndex): Indexer {
  const conversation = createConversation();
  let isSpoiled = false;
  let indexed = 0;
  let expectsTraces = false;
  const closed: ClosedHttpExchange[] = [];
  /** How many of them are concluded. */
  let concluded = 0;
  let recent: { frames: readonly FrameWithReading[]; firstSeq: number } = { frames: [], firstSeq: 1 };

  /** Visits some frames after this one. False: there are none. */
  function visitNext(after: number, visit: (frame: FrameWithReading, seq: number) => void): boolean {
    const { frames, firstSeq } = recent;
    const from = after + 1 - firstSeq;
    if (from < 0 || from >= frames.length) {
      const stored = index.framesAfter(session, after);
      for (const frame of stored) visit(frame, frame.seq);
      return stored.length > 0;
    }
    const end = Math.min(from + FRAMES_AT_ONCE, frames.length);
    for (let i = from; i < end; i += 1) visit(frames[i] as FrameWithReading, firstSeq + i);
    return true;
  }

  function indexSome(maxMs: number): { upTo: number; isDone: boolean } {
    const deadline = performance.now() + maxMs;
    let upTo = indexed;
    // Taken back once the transaction is through.
    isSpoiled = true;
    for (;;) {
      const isDone = !visitNext(upTo, (frame, seq) => {
        concludeUpTo(seq - 1);
        for (const indexed of conversation.add(frame, seq)) {
          index.insert(session, indexed);
          const { traceparent } = indexed.message.details;
          if (traceparent !== null) index.trace(session, seq, traceparent);
        }
        for (const { place, outcome } of conversation.settle(frame, seq))
          index.setOutcome(session, outcome, place.seq, place.n);
        if (expectsTraces) traceRequest(frame, seq);
        upTo = seq;
      });
      if (!isDone && performance.now() < deadline) continue;
      if (isDone) concludeUpTo(upTo);
      if (upTo > indexed || concluded > 0) index.update(session, conversation.facts(), upTo);
      return { upTo, isDone };
    }
  }

  function traceRequest({ channel, http }: FrameWithReading, seq: number): void {
    if (channel !== 'request' || http === null) return;
    const traceparent = index.traceparentOf(session, http.exchange);
    if (traceparent !== null) index.trace(session, seq, traceparent);
  }

  function concludeUpTo(seq: number): void {
    for (let next = closed[concluded]; next !== undefined && next.after <= seq; next = closed[concluded]) {
      concluded += 1;
      for (const { place, outcome } of conversation.close(next.number, next.how))
        index.setOutcome(session, outcome, place.seq, place.n);
    }
  }

  return {
    remember(frames, firstSeq) {
      recent = { frames, firstSeq };
    },
    expectTraces() {
      expectsTraces = true;
    },
    close: (exchange) => void closed.push(exchange),
    isSpoiled: () => isSpoiled,
    isBehind: () => indexed + 1 < recent.firstSeq,
    advance(maxMs) {
      const { upTo, isDone } = index.transact(() => indexSome(maxMs));
      isSpoiled = false;
      indexed = upTo;
      closed.splice(0, concluded);
      concluded = 0;
      if (isDone) recent = { frames: [], firstSeq: 1 };
      return isDone;
    },
  };
}

/** So long a rebuild may keep recorders waiting for the store; then it leaves them half as much time. */
const SLICE_MS = 50;

/**
 * Rebuilds a session's index from nothing. Stopped halfway, it leaves the session as one whose index is behind. `onSlice` is
 * called again and again while that lasts.
 */
export function reindexSession(store: Store, session: number, onSlice: () => void = () => {}): void {
  const watch = watchIndex(store, session);
  const indexer = restartIndexer(session, prepareIndex(store), onSlice);
  while (!indexer.advance(SLICE_MS)) {
    onSlice();
    pause(SLICE_MS / 2);
  }
  watch.raiseIfChanged();
}

/** Forgets a session's index, and begins it anew. */
export function restartIndexer(
  session: number,
  index: PreparedIndex,
  onSlice: () => void = () => {},
): Indexer {
  const { forget, closedHttpExchanges, hasTraceparents } = index.restart();
  forget(session, onSlice);
  const indexer = createIndexer(session, index);
  for (const exchange of closedHttpExchanges(session)) indexer.close(exchange);
  if (hasTraceparents(session)) indexer.expectTraces();
  return indexer;
}

const MESSAGES_AT_ONCE = 2048;

/** Takes the messages of a session away, in short transactions: from the first on, the session's index is behind. */
export function forgetIndex(store: Store, session: number, onSlice: () => void): void {
  prepareForget(store)(session, onSlice);
}

function prepareForget(store: Store): PreparedRestart['forget'] {
  const setBehind = store.prepare('UPDATE session SET indexed = 0 WHERE number = ?');
  const remove = store.prepare(`DELETE FROM message WHERE session = ? LIMIT ${MESSAGES_AT_ONCE}`);
  const removeTraces = store.prepare(`DELETE FROM trace WHERE session = ?`);
  const forgetSome = store.transaction((session: number) => {
    setBehind.run(session);
    removeTraces.run(session);
    return remove.run(session).changes;
  }).immediate;
  return (session, onSlice) => {
    for (let began = performance.now(); forgetSome(session) === MESSAGES_AT_ONCE; began = performance.now()) {
      onSlice();
      pause((performance.now() - began) / 2);
    }
  };
}

/** Replaces, because two readers may complete the same index at once. */
function prepareMessageInsert(store: Store): PreparedIndex['insert'] {
  const insert = store.prepare(
    `INSERT OR REPLACE INTO message (session, seq, n, kind, id_type, id, method, canonical, target, task, relation, to_seq, to_n,
       latency, outcome, error_code, problem)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return (session, { seq, n, message, correlation }) => {
    const id = 'id' in message ? message.id : null;
    const { relation, to, latency, outcome } = correlation;
    insert.run(
      session,
      seq,
      n,
      message.kind,
      id?.type ?? null,
      id?.text ?? null,
      'method' in message ? message.method : null,
      'canonical' in message ? message.canonical : null,
      message.details.target,
      message.details.taskId,
      relation,
      to?.seq ?? null,
      to?.n ?? null,
      latency,
      outcome,
      message.kind === 'error' ? message.code : null,
      problemOf(message, correlation),
    );
  };
}

/** The codes of everything wrong with a message, the gravest first, joined by a comma; null when all is well. */
function problemOf(
  message: IndexedMessage['message'],
  correlation: IndexedMessage['correlation'],
): string | null {
  if (message.kind !== 'invalid' && message.remarks.length === 0 && correlation.remark === null) return null;
  const codes: string[] = message.kind === 'invalid' ? [message.reason] : [];
  codes.push(...message.remarks);
  if (correlation.remark !== null) codes.push(correlation.remark);
  return codes.join(',');
}

function prepareFactsUpdate(store: Store): PreparedIndex['update'] {
  const update = store.prepare(
    `UPDATE session SET indexed = ?, era = ?, protocol_version = ?, client_name = ?, client_version = ?,
       server_name = ?, server_version = ?, exchanges = ?, errors = ?, unanswered = ? WHERE number = ?`,
  );
  return (session, { era, protocolVersion, client, server, exchanges, errors, unanswered }, indexed) => {
    const { changes } = update.run(
      indexed,
      era,
      protocolVersion,
      client?.name ?? null,
      client?.version ?? null,
      server?.name ?? null,
      server?.version ?? null,
      exchanges,
      errors,
      unanswered,
      session,
    );
    // Its messages would be left over, and become those of a later session.
    if (changes === 0)
      throw new TapedeckError('not-found', `session ${session} was removed while it was indexed`);
  };
}
