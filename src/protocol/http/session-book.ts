/**
 * Keeps the sessions of one proxy run: which are open, the keys of each, and the session that each connection carried last.
 * Reports every change once, in the order in which it happened. The decisions are made in `sessions.ts`.
 *
 * Memory is bounded: of open sessions `maxOpen`; of those that ended and may go on, and of connections, `maxRemembered` each; of
 * those that ended for good `maxFinished`; of the keys of one session `MAX_KEYS`. The oldest are forgotten first. An open session is never forgotten: idleness ends it, at once
 * where too many are open. Every operation takes constant time, however many are.
 */

import { BoundedMap } from '../bounded.ts';
import { NumberMap } from '../number-map.ts';
import { createKeys, createShelves, type Shelved } from './session-index.ts';

/** By what a session is told from others: a header, the URL that a legacy SSE stream announced, or traits alone. */
export type HttpBasis = 'session-header' | 'sse-endpoint' | 'stateless';

/** `crowded-out`: of too many open ones it was idle for longest. */
export type HttpEndReason = 'deleted' | 'gone' | 'idle' | 'crowded-out' | 'client-closed' | 'server-closed';

export type HttpTransport = 'http' | 'sse';

/** `at` is microseconds since the Unix epoch; of an end by idleness, when the session had been idle for too long. */
export type SessionChange =
  /**
   * Sessions count from 1 within the proxy run. A new one has the basis `stateless` and the transport `http`; another basis
   * comes with the `key` that it is told by: `Mcp-Session-Id`, or what a legacy stream announced.
   */
  | { type: 'opened'; session: number; at: number }
  | { type: 'basis'; session: number; basis: HttpBasis; transport: HttpTransport; key: string }
  /** A message of it was answered with success, and nothing names it: so nothing will. */
  | { type: 'unnamed'; session: number }
  | { type: 'ended'; session: number; at: number; reason: HttpEndReason }
  /** It had ended by idleness, and was spoken to again. */
  | { type: 'reopened'; session: number }
  /** It had ended, and nothing more is assigned to it. */
  | { type: 'forgotten'; session: number };

/** What an exchange may be to the session it is in. `stream` is a GET that may become a legacy SSE stream. */
export type RequestKind = 'initialize' | 'modern' | 'legacy' | 'stream' | 'other';

export type Session = Shelved & {
  /** What it was when it was put on its shelves; null: it stands on none. */
  shelvedAs: Standing | null;
  readonly number: number;
  basis: HttpBasis;
  keys: string[];
  /** What was answered with success first; after a probe alone the client may yet turn to `initialize`. */
  established: 'not-yet' | 'by-probe' | 'by-message';
  /** Exchanges that have no answer yet and may found the session; null where there are none, as in most of thousands. */
  pending: Map<number, RequestKind> | null;
  /** The exchange that is its legacy SSE stream. */
  stream: number | null;
  isModern: boolean;
  /** It was said that nothing will name it. */
  isUnnamed: boolean;
  client: string | null;
  protocolVersion: string | null;
  credentials: string | null;
  /** `User-Agent` of the latest request with messages, or of the stream that was asked for before any. */
  agent: string | null;
  /** The latest answer refused the credentials, so the next request may bring others. */
  isRefused: boolean;
  /** Where its messages were posted last. */
  target: string | null;
  inFlight: number;
  lastActive: number;
  endReason: HttpEndReason | null;
};

/** What of a session its shelves depend on. */
export type Standing = Pick<
  Session,
  'basis' | 'established' | 'credentials' | 'isRefused' | 'isModern' | 'client' | 'protocolVersion'
>;

/** In microseconds: how long a session may lie idle that is known by a key, that is not, that is still being set up. */
export type IdleGaps = { known: number; stateless: number; settingUp: number };

/** Where to look for a session for a request, and what it has to be like. `isHere`: it was last on the connection in question. */
export type SessionRule<A> = {
  from(asked: A): readonly string[];
  suits(session: Session, asked: A, isHere: boolean): boolean;
};

export type BookLimits = { maxOpen: number; maxRemembered: number; maxFinished: number };

export type SessionBook = {
  open(at: number): Session;
  known(key: string): Session | undefined;
  /** Adds a key by which the session can be found. */
  learn(session: Session, key: string): void;
  rebase(session: Session, basis: HttpBasis, transport: HttpTransport, key: string): void;
  /** Says, once, that nothing will name it. */
  leaveUnnamed(session: Session): void;
  /** An HTTP exchange begins in the session. */
  enter(session: Session, connection: string, at: number): void;
  touch(session: Session, at: number): void;
  leave(session: Session, at: number): void;
  end(session: Session, at: number, reason: HttpEndReason): void;
  endIdle(at: number): void;
  /** Says what the session has become: by these names `pick` finds it, as long as it is open. */
  shelve(session: Session, names: readonly string[]): void;
  /** Of the open sessions that suit, the one on this connection, else of the shelves the one that was active last. */
  pick<A>(connection: string, at: number, rule: SessionRule<A>, asked: A): Session | undefined;
  /** The open session, if it is the only one. */
  only(at: number): Session | undefined;
  numbers(): number[];
};

const MAX_KEYS = 100;

const NONE: readonly string[] = [];

export function createSessionBook(
  onChange: (change: SessionChange) => void,
  idle: IdleGaps,
  { maxOpen, maxRemembered, maxFinished }: BookLimits,
): SessionBook {
  /** The one that was active last comes last. */
  const opened = new BoundedMap<number, Session>(Number.POSITIVE_INFINITY);
  /** Those of them that have no exchange in flight, in the same order. */
  const quiet = new BoundedMap<number, Session>(Number.POSITIVE_INFINITY, undefined, new NumberMap());
  /** Ended because nobody spoke to them: a client that names one again goes on with it. */
  const resting = new BoundedMap<number, Session>(maxRemembered, forget);
  /** Ended for good: only stragglers come. Those spoken to last come last. */
  const finished = new BoundedMap<number, Session>(maxFinished, forget);
  const keys = createKeys<Session>();
  const shelves = createShelves<Session>();
  const byConnection = new BoundedMap<string, Session>(maxRemembered);
  const shortestGap = Math.min(idle.known, idle.stateless, idle.settingUp);
  let count = 0;
  let turns = 0;

  function open(at: number): Session {
    count += 1;
    const session = newSession(count, at);
    opened.set(count, session);
    onChange({ type: 'opened', session: count, at });
    makeRoom(at);
    return session;
  }

  /** Those in flight stay, however many they are. */
  function makeRoom(at: number): void {
    const oldest = opened.size > maxOpen ? quiet.get(quiet.oldestKey() ?? 0) : undefined;
    if (oldest !== undefined) end(oldest, at, 'crowded-out');
  }

  function learn(session: Session, key: string): void {
    if (keys.find(key) === session) return;
    if (!isOpen(session) && !resting.has(session.number) && !finished.has(session.number)) return;
    unlearn(session, key);
    session.keys.push(key);
    keys.add(key, session);
    const [oldest] = session.keys;
    if (session.keys.length > MAX_KEYS && oldest !== undefined) unlearn(session, oldest);
  }

  function unlearn(session: Session, key: string): void {
    if (!session.keys.includes(key)) return;
    session.keys = session.keys.filter((other) => other !== key);
    keys.remove(key, session);
  }

  function rebase(session: Session, basis: HttpBasis, transport: HttpTransport, key: string): void {
    session.basis = basis;
    onChange({ type: 'basis', session: session.number, basis, transport, key });
  }

  function leaveUnnamed(session: Session): void {
    if (session.isUnnamed) return;
    session.isUnnamed = true;
    onChange({ type: 'unnamed', session: session.number });
  }

  function enter(session: Session, connection: string, at: number): void {
    if (mayGoOn(session)) reopen(session, at);
    session.inFlight += 1;
    quiet.delete(session.number);
    touch(session, at);
    if (byConnection.use(connection) !== session) byConnection.set(connection, session);
  }

  function reopen(session: Session, at: number): void {
    session.endReason = null;
    resting.delete(session.number);
    opened.set(session.number, session);
    keys.move(session.keys, session);
    onChange({ type: 'reopened', session: session.number });
    makeRoom(at);
  }

  function touch(session: Session, at: number): void {
    session.lastActive = Math.max(session.lastActive, at);
    turns += 1;
    session.turn = turns;
    if (isOpen(session)) {
      opened.use(session.number);
      if (session.inFlight === 0) quiet.use(session.number);
      shelves.use(session);
    } else finished.use(session.number);
  }

  function leave(session: Session, at: number): void {
    session.inFlight -= 1;
    if (session.inFlight === 0 && isOpen(session)) quiet.set(session.number, session);
    touch(session, at);
  }

  function end(session: Session, at: number, reason: HttpEndReason): void {
    if (!isOpen(session)) return;
    session.endReason = reason;
    opened.delete(session.number);
    quiet.delete(session.number);
    shelves.put(session, NONE);
    session.shelvedAs = null;
    keys.move(session.keys, session);
    onChange({ type: 'ended', session: session.number, at, reason });
    (mayGoOn(session) ? resting : finished).set(session.number, session);
  }

  function forget(session: Session): void {
    for (const key of session.keys) keys.remove(key, session);
    session.keys = [];
    onChange({ type: 'forgotten', session: session.number });
  }

  function idleFrom(session: Session): number {
    if (isBeingSetUp(session)) return session.lastActive + idle.settingUp;
    return session.lastActive + (session.basis === 'stateless' ? idle.stateless : idle.known);
  }

  /** Open, and not merely because nobody has looked whether it is idle. */
  function isAlive(session: Session, at: number): boolean {
    return isOpen(session) && (session.inFlight > 0 || at < idleFrom(session));
  }

  function endIdle(at: number): void {
    for (const session of quiet.values()) {
      if (at < session.lastActive + shortestGap) return;
      if (!isAlive(session, at)) end(session, idleFrom(session), 'idle');
    }
  }

  function shelve(session: Session, names: readonly string[]): void {
    if (isOpen(session)) shelves.put(session, names);
  }

  function on(connection: string, at: number): Session | undefined {
    const session = byConnection.get(connection);
    return session !== undefined && isAlive(session, at) ? session : undefined;
  }

  function pick<A>(connection: string, at: number, rule: SessionRule<A>, asked: A): Session | undefined {
    const here = on(connection, at);
    if (here !== undefined && rule.suits(here, asked, true)) return here;
    const suits = (session: Session) => isAlive(session, at) && rule.suits(session, asked, false);
    return shelves.latest(rule.from(asked), suits);
  }

  function only(at: number): Session | undefined {
    const last = opened.newest((session) => isAlive(session, at));
    const another = opened.newest((session) => session !== last && isAlive(session, at));
    return another === undefined ? last : undefined;
  }

  const numbers = () =>
    opened
      .values()
      .map((session) => session.number)
      .sort((a, b) => a - b);
  return {
    ...{ open, known: keys.find, learn, rebase, leaveUnnamed, enter, touch, leave, end, endIdle, shelve },
    ...{ pick, only, numbers },
  };
}

/** It was ended because nobody spoke to it, so it goes on once somebody does. */
function mayGoOn({ endReason }: Session): boolean {
  return endReason === 'idle' || endReason === 'crowded-out';
}

/** None of its messages was answered with success, and nothing names it yet. */
export function isBeingSetUp({ basis, established }: Session): boolean {
  return basis === 'stateless' && established === 'not-yet';
}

function isOpen({ endReason }: Session): boolean {
  return endReason === null;
}

function newSession(number: number, at: number): Session {
  return {
    number,
    basis: 'stateless',
    keys: [],
    established: 'not-yet',
    pending: null,
    stream: null,
    isModern: false,
    isUnnamed: false,
    client: null,
    protocolVersion: null,
    credentials: null,
    agent: null,
    isRefused: false,
    target: null,
    inFlight: 0,
    lastActive: at,
    endReason: null,
    shelves: NONE,
    shelvedAs: null,
    turn: 0,
  };
}
