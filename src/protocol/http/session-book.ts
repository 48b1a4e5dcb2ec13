/**
 * Keeps the sessions of one proxy run: which are open, the keys of each, and the session that each connection carried last.
 * Reports every change once, in the order in which it happened. The decisions are made in `sessions.ts`.
 *
 * Memory is bounded: of sessions that ended, and of connections, `maxRemembered` each; of the keys of one session
 * `MAX_KEYS`. The oldest are forgotten first. An open session is never forgotten: idleness ends it.
 */

import { BoundedMap } from '../bounded.ts';

/** By what a session is told from others: a header, the URL that a legacy SSE stream announced, or traits alone. */
export type HttpBasis = 'session-header' | 'sse-endpoint' | 'stateless';

export type HttpEndReason = 'deleted' | 'gone' | 'idle' | 'client-closed' | 'server-closed';

export type HttpTransport = 'http' | 'sse';

/** `at` is microseconds since the Unix epoch; of an end by idleness, when the session had been idle for too long. */
export type SessionChange =
  /** Sessions count from 1 within the proxy run. A new one has the basis `stateless` and the transport `http`. */
  | { type: 'opened'; session: number; at: number }
  | { type: 'basis'; session: number; basis: HttpBasis; transport: HttpTransport }
  | { type: 'ended'; session: number; at: number; reason: HttpEndReason }
  /** It had ended by idleness, and was spoken to again. */
  | { type: 'reopened'; session: number };

/** What an exchange may be to the session it is in. `stream` is a GET that may become a legacy SSE stream. */
export type RequestKind = 'initialize' | 'modern' | 'legacy' | 'stream' | 'other';

export type Session = {
  readonly number: number;
  basis: HttpBasis;
  keys: string[];
  /** What was answered with success first; after a probe alone the client may yet turn to `initialize`. */
  established: 'not-yet' | 'by-probe' | 'by-message';
  /** Exchanges that have no answer yet and may found the session. */
  pending: Map<number, RequestKind>;
  /** The exchange that is its legacy SSE stream. */
  stream: number | null;
  isModern: boolean;
  client: string | null;
  protocolVersion: string | null;
  credentials: string | null;
  /** The latest answer refused the credentials, so the next request may bring others. */
  isRefused: boolean;
  /** Where its messages were posted last. */
  target: string | null;
  inFlight: number;
  lastActive: number;
  endReason: HttpEndReason | null;
};

/** In microseconds: how long a session may lie idle that is known by a key, that is not, that is still being set up. */
export type IdleGaps = { known: number; stateless: number; settingUp: number };

/** `isHere`: it was last on the connection in question. */
export type Suits = (session: Session, isHere: boolean) => boolean;

export type SessionBook = {
  open(at: number): Session;
  known(key: string): Session | undefined;
  /** Adds a key by which the session can be found. */
  learn(session: Session, key: string): void;
  rebase(session: Session, basis: HttpBasis, transport: HttpTransport): void;
  /** An HTTP exchange begins in the session. */
  enter(session: Session, connection: string, at: number): void;
  touch(session: Session, at: number): void;
  leave(session: Session, at: number): void;
  end(session: Session, at: number, reason: HttpEndReason): void;
  endIdle(at: number): void;
  /** The open session that this connection carried last. */
  on(connection: string, at: number): Session | undefined;
  /** Of the open sessions that suit, the one on this connection, else the one that was active last. */
  pick(connection: string, at: number, suits: Suits): Session | undefined;
  /** The open session, if it is the only one. */
  only(at: number): Session | undefined;
  numbers(): number[];
};

const MAX_KEYS = 100;

export function createSessionBook(
  onChange: (change: SessionChange) => void,
  idle: IdleGaps,
  maxRemembered: number,
): SessionBook {
  /** The one that was active last comes last. */
  const opened = new Set<Session>();
  const ended = new BoundedMap<number, Session>(maxRemembered, forget);
  const byKey = new Map<string, Session[]>();
  const byConnection = new BoundedMap<string, Session>(maxRemembered);
  let count = 0;

  function open(at: number): Session {
    count += 1;
    const session = newSession(count, at);
    opened.add(session);
    onChange({ type: 'opened', session: count, at });
    return session;
  }

  function known(key: string): Session | undefined {
    const sessions = byKey.get(key) ?? [];
    return sessions.findLast(isOpen) ?? sessions.at(-1);
  }

  function learn(session: Session, key: string): void {
    if (byKey.get(key)?.at(-1) === session) return;
    if (!isOpen(session) && !ended.has(session.number)) return;
    unlearn(session, key);
    session.keys.push(key);
    byKey.set(key, [...(byKey.get(key) ?? []), session]);
    const [oldest] = session.keys;
    if (session.keys.length > MAX_KEYS && oldest !== undefined) unlearn(session, oldest);
  }

  function unlearn(session: Session, key: string): void {
    if (!session.keys.includes(key)) return;
    session.keys = session.keys.filter((other) => other !== key);
    const others = (byKey.get(key) ?? []).filter((other) => other !== session);
    if (others.length > 0) byKey.set(key, others);
    else byKey.delete(key);
  }

  function rebase(session: Session, basis: HttpBasis, transport: HttpTransport): void {
    session.basis = basis;
    onChange({ type: 'basis', session: session.number, basis, transport });
  }

  function enter(session: Session, connection: string, at: number): void {
    if (session.endReason === 'idle') reopen(session);
    session.inFlight += 1;
    touch(session, at);
    byConnection.set(connection, session);
    byConnection.use(connection);
  }

  function reopen(session: Session): void {
    session.endReason = null;
    ended.delete(session.number);
    opened.add(session);
    onChange({ type: 'reopened', session: session.number });
  }

  function touch(session: Session, at: number): void {
    session.lastActive = Math.max(session.lastActive, at);
    if (opened.delete(session)) opened.add(session);
  }

  function leave(session: Session, at: number): void {
    session.inFlight -= 1;
    touch(session, at);
  }

  function end(session: Session, at: number, reason: HttpEndReason): void {
    if (!isOpen(session)) return;
    session.endReason = reason;
    opened.delete(session);
    ended.set(session.number, session);
    onChange({ type: 'ended', session: session.number, at, reason });
  }

  function forget(session: Session): void {
    for (const key of session.keys) unlearn(session, key);
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
    for (const session of [...opened]) {
      if (!isAlive(session, at)) end(session, idleFrom(session), 'idle');
    }
  }

  function on(connection: string, at: number): Session | undefined {
    const session = byConnection.get(connection);
    return session !== undefined && isAlive(session, at) ? session : undefined;
  }

  function pick(connection: string, at: number, suits: Suits): Session | undefined {
    const here = on(connection, at);
    if (here !== undefined && suits(here, true)) return here;
    let latest: Session | undefined;
    for (const session of opened) if (isAlive(session, at) && suits(session, false)) latest = session;
    return latest;
  }

  function only(at: number): Session | undefined {
    const alive = [...opened].filter((session) => isAlive(session, at));
    return alive.length === 1 ? alive[0] : undefined;
  }

  const numbers = () => [...opened].map((session) => session.number).sort((a, b) => a - b);
  return { open, known, learn, rebase, enter, touch, leave, end, endIdle, on, pick, only, numbers };
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
    pending: new Map(),
    stream: null,
    isModern: false,
    client: null,
    protocolVersion: null,
    credentials: null,
    isRefused: false,
    target: null,
    inFlight: 0,
    lastActive: at,
    endReason: null,
  };
}
