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
import type { ClosedRequest, Outcome } from '../../protocol/message/correlate.ts';
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
  /** Whether it must be restarted: an error left it with more than is stored, or the session was rewritten. */
  isSpoiled(): boolean;
  /** Indexes what is not indexed yet, for about `maxMs` milliseconds, in one transaction. True: nothing is left. */
  advance(maxMs: number): boolean;
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
  /** Whoever rewrites what is stored of a session raises it first. Undefined: somebody is at it. */
  revisionOf(session: number): number | undefined;
  /** The next frames behind a `seq`, some at once. */
  framesAfter(session: number, seq: number): BareFrame[];
  /** The header `traceparent` of an HTTP request; null where it has none. */
  traceparentOf(session: number, exchange: number): string | null;
  /** Does the work in one transaction that writes. */
  transact<T>(work: () => T): T;
  /** Does it with everything as it is at its beginning, and keeps nobody from writing. */
  look<T>(work: () => T): T;
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
  const revisionOf = store
    .prepare<[number], number>(
      'SELECT revision FROM session WHERE number = ? AND NOT EXISTS (SELECT 1 FROM masking WHERE session = number)',
    )
    .pluck();
  const transaction = store.transaction((work: () => unknown) => work());
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
    revisionOf: (session) => revisionOf.get(session),
    framesAfter(session, seq) {
      framesAfter ??= prepareFramesOfAny(store, FRAMES_AT_ONCE);
      return framesAfter(session, seq);
    },
    traceparentOf(session, exchange) {
      traceparentOf ??= prepareTraceparent(store);
      return traceparentOf(session, exchange);
    },
    transact: transaction.immediate as PreparedIndex['transact'],
    look: transaction.deferred as PreparedIndex['look'],
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

/** What some frames make of the index, to be written in one transaction. `upTo`: the last of them. */
type Found = {
  messages: IndexedMessage[];
  traces: { seq: number; traceparent: string }[];
  outcomes: ClosedRequest[];
  upTo: number;
  isDone: boolean;
};

/** Continues a session's index. The session must not be indexed at all yet, or only by this same indexer. */
export function createIndexer(session: number, index: PreparedIndex): Indexer {
  const conversation = createConversation();
  let isSpoiled = false;
  let indexed = 0;
  let expectsTraces = false;
  const closed: ClosedHttpExchange[] = [];
  let recent: { frames: readonly FrameWithReading[]; firstSeq: number } = { frames: [], firstSeq: 1 };
  /** What was found and is not written yet. */
  let ready: Found | null = null;
  /** Once it is another one, what is remembered or was found may be masked in the store. */
  const revision = index.revisionOf(session);

  /** Visits the next frame, or some that are read back. False: there are none. */
  function visitNext(after: number, visit: (frame: FrameWithReading, seq: number) => void): boolean {
    const next = recent.frames[after + 1 - recent.firstSeq];
    if (next !== undefined) {
      visit(next, after + 1);
      return true;
    }
    const stored = index.framesAfter(session, after);
    for (const frame of stored) visit(frame, frame.seq);
    return stored.length > 0;
  }

  function find(maxMs: number): Found {
    const deadline = performance.now() + maxMs;
    const found: Found = { messages: [], traces: [], outcomes: [], upTo: indexed, isDone: false };
    // Taken back once that is written, or ready to be.
    isSpoiled = true;
    const visit = (frame: FrameWithReading, seq: number) => {
      concludeUpTo(seq - 1, found);
      for (const indexed of conversation.add(frame, seq)) {
        found.messages.push(indexed);
        const { traceparent } = indexed.message.details;
        if (traceparent !== null) found.traces.push({ seq, traceparent });
      }
      found.outcomes.push(...conversation.settle(frame, seq));
      if (expectsTraces) traceRequest(frame, seq, found);
      found.upTo = seq;
    };
    do found.isDone = !visitNext(found.upTo, visit);
    while (!found.isDone && performance.now() < deadline);
    if (found.isDone) concludeUpTo(found.upTo, found);
    return found;
  }

  function traceRequest({ channel, http }: FrameWithReading, seq: number, { traces }: Found): void {
    if (channel !== 'request' || http === null) return;
    const traceparent = index.traceparentOf(session, http.exchange);
    if (traceparent !== null) traces.push({ seq, traceparent });
  }

  function concludeUpTo(seq: number, { outcomes }: Found): void {
    let concluded = 0;
    for (let next = closed[0]; next !== undefined && next.after <= seq; next = closed[concluded]) {
      concluded += 1;
      outcomes.push(...conversation.close(next.number, next.how));
    }
    if (concluded > 0) closed.splice(0, concluded);
  }

  function write({ messages, traces, outcomes, upTo }: Found): void {
    for (const message of messages) index.insert(session, message);
    for (const { seq, traceparent } of traces) index.trace(session, seq, traceparent);
    for (const { place, outcome } of outcomes) index.setOutcome(session, outcome, place.seq, place.n);
    if (upTo > indexed || outcomes.length > 0) index.update(session, conversation.facts(), upTo);
  }

  function isUnchanged(): boolean {
    return index.revisionOf(session) === revision;
  }

  /** Writes what was found, or finds it first. Null: the session was rewritten. */
  function settle(maxMs: number): Found | null {
    const found = index.transact(() => {
      if (!isUnchanged()) return null;
      const found = ready ?? find(maxMs);
      write(found);
      return found;
    });
    ready = null;
    isSpoiled = found === null;
    if (found !== null) indexed = found.upTo;
    return found;
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
    advance(maxMs) {
      // Since that was found, more may have been stored.
      if (ready !== null && settle(maxMs) === null) return false;
      // Others may write meanwhile, unless they rewrite these frames: reading messages out of frames takes longer than writing them.
      if (revision !== undefined) {
        ready = index.look(() => (isUnchanged() ? find(maxMs) : null));
        isSpoiled = false;
      }
      const isDone = settle(maxMs)?.isDone === true;
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
  const index = prepareIndex(store);
  let indexer = restartIndexer(session, index, onSlice);
  while (!indexer.advance(SLICE_MS)) {
    onSlice();
    pause(SLICE_MS / 2);
    if (indexer.isSpoiled()) indexer = restartIndexer(session, index, onSlice);
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
