/**
 * What comes into a store while one looks on: across all sessions, whichever process records them. It follows the index
 * of messages, which recorders complete whenever their traffic pauses; frames show when they are indexed.
 */

import type { Store } from '../file/open.ts';
import {
  type FrameSelection,
  type MessageRow,
  prepareFramesAfter,
  prepareMessagesBetween,
  type StoredFrame,
} from './frames.ts';
import { eachSession, findSession, type SessionRow, stateOf } from './sessions.ts';

export type Arrival = { session: SessionRow; frame: StoredFrame };

/** A request that waits for its answer. `at`: microseconds since the Unix epoch. */
export type OpenCall = {
  session: SessionRow;
  seq: number;
  n: number;
  method: string;
  target: string | null;
  at: number;
};

type Follower = {
  /** What came since the last call, in order of time. The first call returns the last `backlog` frames of the newest session. */
  poll(): Arrival[];
  /** The oldest first. */
  openCalls(): OpenCall[];
};

/** How far a session was followed. */
type Place = { seen: number };

/** Of one session at once: a flood comes in portions. */
const MAX_FRAMES = 1000;

/**
 * `session`: follow one session alone. `isNew`: the store came about while one waited for it, so that nothing in it was
 * there before. Throws `TapedeckError` `not-found` where there is none.
 */
export function createFollower(
  store: Store,
  options: {
    session?: string | undefined;
    only?: FrameSelection | undefined;
    backlog: number;
    isNew?: boolean;
  },
): Follower {
  const places = new Map<number, Place>();
  const open = new Map<string, OpenCall>();
  /** Another session of the same name is followed too, once it begins: a server that is started again. */
  const chosen = options.session === undefined ? null : findSession(store, options.session);
  const version = () => store.pragma('data_version', { simple: true });
  let lastVersion: unknown;
  let isFirst = options.isNew !== true;

  function poll(): Arrival[] {
    const now = version();
    // Nothing was committed by anybody since.
    if (now === lastVersion) return [];
    lastVersion = now;
    const arrivals = followed().flatMap(advance);
    isFirst = false;
    return arrivals.sort((a, b) => a.frame.at - b.frame.at);
  }

  function followed(): SessionRow[] {
    const { session: reference } = options;
    const sessions = [...eachSession(store)];
    if (reference === undefined) return sessions;
    return sessions.filter(({ number, name }) => number === chosen?.number || name === reference);
  }

  function advance(session: SessionRow, index: number): Arrival[] {
    const place = places.get(session.number) ?? begin(session, index);
    const upTo = Math.min(session.indexed, place.seen + MAX_FRAMES);
    // There is more: look again.
    if (upTo < session.indexed) lastVersion = undefined;
    if (upTo <= place.seen) return [];
    const messages = prepareMessagesBetween(store, session.number)(place.seen, upTo);
    noteCalls(session, messages);
    const arrivals = arrivalsOf(session, messages, place.seen, upTo);
    place.seen = upTo;
    return arrivals;
  }

  /** Of what was there before, only the last frames of the newest session are shown. */
  function begin(session: SessionRow, index: number): Place {
    const isOld = isFirst;
    const seen = isOld ? Math.max(0, session.indexed - (index === 0 ? options.backlog : 0)) : 0;
    const place = { seen };
    places.set(session.number, place);
    if (isOld && stateOf(session) === 'open') noteOldCalls(session, seen);
    return place;
  }

  function arrivalsOf(session: SessionRow, messages: MessageRow[], after: number, upTo: number): Arrival[] {
    const selected = selectedBetween(session, after, upTo);
    const frames = prepareFramesAfter(store, session.number, upTo - after)(after);
    const wanted = frames.filter(({ seq }) => seq <= upTo && (selected === null || selected.has(seq)));
    return wanted.map((frame) => ({
      session,
      frame: { ...frame, messages: messages.filter(({ seq }) => seq === frame.seq) },
    }));
  }

  function selectedBetween(session: SessionRow, after: number, upTo: number): Set<number> | null {
    const { only } = options;
    if (only === undefined) return null;
    const sql = `SELECT seq FROM (${only.sql}) WHERE seq > @after AND seq <= @upTo`;
    const values = { ...only.values, session: session.number, after, upTo };
    return new Set(store.prepare<[object], number>(sql).pluck().all(values));
  }

  function noteCalls(session: SessionRow, messages: readonly MessageRow[]): void {
    for (const message of messages) {
      if (message.kind === 'request' && message.outcome === null) noteCall(session, message.seq, message.n);
      else if (message.toSeq !== null && CLOSES.has(message.relation ?? ''))
        closeCall(session, message.toSeq, message.toN);
    }
  }

  function noteOldCalls(session: SessionRow, upTo: number): void {
    for (const { seq, n } of store
      .prepare<[number, number], { seq: number; n: number }>(SELECT_OPEN)
      .all(session.number, upTo))
      noteCall(session, seq, n);
  }

  function noteCall(session: SessionRow, seq: number, n: number): void {
    const call = store
      .prepare<[number, number, number], Omit<OpenCall, 'session'>>(SELECT_CALL)
      .get(session.number, seq, n);
    if (call !== undefined) open.set(`${session.number}.${seq}.${n}`, { ...call, session });
  }

  function closeCall(session: SessionRow, seq: number, n: number | null): void {
    open.delete(`${session.number}.${seq}.${n}`);
  }

  function openCalls(): OpenCall[] {
    const states = new Map([...eachSession(store)].map((session) => [session.number, stateOf(session)]));
    const outcome = store.prepare<[number, number, number], string | null>(SELECT_OUTCOME).pluck();
    // The end of an HTTP exchange may be the end of what was asked on it.
    for (const [key, { session, seq, n }] of open)
      if (states.get(session.number) !== 'open' || outcome.get(session.number, seq, n) !== null)
        open.delete(key);
    return [...open.values()].sort((a, b) => a.at - b.at);
  }

  return { poll, openCalls };
}

const CLOSES: ReadonlySet<string> = new Set(['reply', 'cancel']);

const SELECT_OUTCOME = 'SELECT outcome FROM message WHERE session = ? AND seq = ? AND n = ?';

const SELECT_CALL = `SELECT m.seq, m.n, m.canonical AS method, m.target, f.at
  FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
  WHERE m.session = ? AND m.seq = ? AND m.n = ? AND m.canonical <> 'subscriptions/listen'`;

const SELECT_OPEN = `SELECT m.seq, m.n FROM message AS m
  WHERE m.session = ? AND m.seq <= ? AND m.kind = 'request' AND m.outcome IS NULL AND NOT EXISTS (
    SELECT 1 FROM message AS a WHERE a.session = m.session AND a.to_seq = m.seq AND a.to_n = m.n
      AND a.relation IN ('reply', 'cancel'))`;
