/**
 * Assigns every HTTP exchange of one proxy run to a session. An assignment is final, so a session opens with the first HTTP
 * exchange that needs one, as `stateless`. Its basis is learnt later: from an answer that carries a session id, or from a
 * stream that begins with `endpoint`. The rules by which a session is chosen stand in `session-choice.ts`.
 *
 * A session ends by DELETE; by 404 to a POST or DELETE that named it (a GET is also answered so where no streams are
 * served); with its legacy stream; or by idleness, which is shorter where too many are open. After idleness, a request that
 * names it reopens it.
 */

import type { Message } from '../message/message.ts';
import { NumberMap } from '../number-map.ts';
import {
  createSessionBook,
  type HttpBasis,
  type HttpEndReason,
  type HttpTransport,
  type IdleGaps,
  isBeingSetUp,
  type RequestKind,
  type Session,
  type SessionChange,
} from './session-book.ts';
import {
  type AskedRequest,
  announcedKey,
  chooseSession,
  describeBody,
  hasMessages,
  headerKey,
  mayBeFounded,
  type RequestFacts,
  shelve,
} from './session-choice.ts';

export type { HttpBasis, HttpEndReason, HttpTransport, SessionChange };

type HttpAnswer = { at: number; status: number; sessionId: string | null };

export type HttpSessions = {
  /** Chooses the session. `messages` are those of the request's body; null where it has none or is not read yet. */
  assign(facts: RequestFacts, messages: readonly Message[] | null): number;
  /** The body of a request that had to be assigned before it was read. */
  read(exchange: number, messages: readonly Message[]): void;
  responded(exchange: number, answer: HttpAnswer): void;
  /** A legacy SSE stream's `endpoint` event: the URL to post to, as it was sent. */
  endpoint(exchange: number, target: string): void;
  ended(exchange: number, at: number, closedBy: 'server' | 'client' | 'proxy'): void;
  /** Ends what has been idle for too long at this time. */
  tick(at: number): void;
  /** The open sessions. */
  open(): number[];
};

export type HttpSessionsOptions = {
  onChange: (change: SessionChange) => void;
  idle?: IdleGaps;
  maxOpen?: number;
  maxRemembered?: number;
  maxFinished?: number;
};

type SessionExchange = AskedRequest & { readonly session: Session; status: number | null };

const MINUTE = 60_000_000;

/** OAuth needs a human, hence the patience with what is being set up. */
const IDLE: IdleGaps = { known: 30 * MINUTE, stateless: 5 * MINUTE, settingUp: 10 * MINUTE };

/** So many sessions may be open in one proxy run, and so many that were idle are remembered, because their clients may come back. */
export const MAX_SESSIONS = 10_000;

/** Of sessions that a client or the server has ended, so many are remembered, for answers and requests that come late. */
const MAX_FINISHED = 1000;

export function createHttpSessions(options: HttpSessionsOptions): HttpSessions {
  const { onChange, idle = IDLE, maxOpen = MAX_SESSIONS, maxRemembered = MAX_SESSIONS } = options;
  const { maxFinished = Math.min(MAX_FINISHED, maxRemembered) } = options;
  const book = createSessionBook(onChange, idle, { maxOpen, maxRemembered, maxFinished });
  const exchanges = new NumberMap<SessionExchange>();

  function assign(request: RequestFacts, messages: readonly Message[] | null): number {
    // An empty header names nothing.
    const facts = request.sessionId === '' ? { ...request, sessionId: null } : request;
    const body = describeBody(facts, messages);
    const session = chooseSession(book, { facts, body }) ?? book.open(facts.at);
    if (facts.sessionId !== null) name(session, facts.sessionId);
    book.enter(session, facts.connection, facts.at);
    const exchange: SessionExchange = { facts, body, session, status: null };
    exchanges.set(facts.exchange, exchange);
    begin(exchange);
    shelve(book, session);
    return session.number;
  }

  function name(session: Session, sessionId: string): void {
    book.learn(session, headerKey(sessionId));
    if (session.basis === 'stateless') book.rebase(session, 'session-header', 'http', sessionId);
  }

  function read(number: number, messages: readonly Message[]): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    exchange.body = describeBody(exchange.facts, messages);
    if (isBeingSetUp(exchange.session)) begin(exchange);
    if (exchange.status !== null) settle(exchange, exchange.status);
    tellUnnamed(exchange.session);
    shelve(book, exchange.session);
  }

  function responded(number: number, { at, status, sessionId }: HttpAnswer): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    const { facts, body, session } = exchange;
    exchange.status = status;
    book.touch(session, at);
    settle(exchange, status);
    if (sessionId && facts.method === 'POST' && isSuccess(status) && body.kind !== 'modern')
      name(session, sessionId);
    tellUnnamed(session);
    shelve(book, session);
    const reason = facts.sessionId === null ? null : endReason(facts.method, body.kind, status);
    if (reason !== null) book.end(session, at, reason);
  }

  function endpoint(number: number, target: string): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    const { facts, session } = exchange;
    const isItsStream = isBeingSetUp(session);
    settled(session, number);
    book.learn(session, announcedKey(target, facts.target));
    if (!isItsStream) return;
    session.stream = number;
    book.rebase(session, 'sse-endpoint', 'sse', target);
    shelve(book, session);
  }

  function ended(number: number, at: number, closedBy: 'server' | 'client' | 'proxy'): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    const { session } = exchange;
    exchanges.delete(number);
    settled(session, number);
    book.leave(session, at);
    if (session.stream !== number) return;
    session.stream = null;
    if (closedBy !== 'proxy') book.end(session, at, `${closedBy}-closed`);
  }

  function tellUnnamed(session: Session): void {
    if (session.basis === 'stateless' && session.established === 'by-message') book.leaveUnnamed(session);
  }

  return { assign, read, responded, endpoint, ended, tick: book.endIdle, open: book.numbers };
}

/** The session takes on what the request tells, and waits for the answer. */
function begin({ facts, body, session }: SessionExchange): void {
  // A body that is not read yet may be anything. What is founded for good waits for nothing.
  if (mayBeFounded(session) && (body.kind !== 'other' || facts.method === 'POST')) {
    session.pending ??= new Map();
    session.pending.set(facts.exchange, body.kind);
  }
  if (body.kind === 'stream') session.agent ??= facts.agent;
  if (!hasMessages(body)) return;
  session.agent = facts.agent;
  session.credentials = facts.credentials;
  session.target = facts.target;
  if (body.kind === 'legacy') {
    session.protocolVersion = body.protocolVersion ?? session.protocolVersion;
    return;
  }
  session.isModern = body.kind === 'modern';
  session.client = body.client;
  session.protocolVersion = body.protocolVersion;
}

/** The session waits no longer for the answer to this exchange. */
function settled(session: Session, exchange: number): void {
  session.pending?.delete(exchange);
  if (session.pending?.size === 0) session.pending = null;
}

/** What the status of the answer means for the session. */
function settle({ facts, body, session }: SessionExchange, status: number): void {
  // A stream may still turn out to be a legacy one.
  if (body.kind !== 'stream' || !isSuccess(status)) settled(session, facts.exchange);
  if (!hasMessages(body)) return;
  if (isSuccess(status)) {
    session.isRefused = false;
    if (!body.isProbe) session.established = 'by-message';
    else if (session.established === 'not-yet') session.established = 'by-probe';
  } else if ((status === 401 || status === 403) && session.credentials === facts.credentials) {
    session.isRefused = true;
  }
}

function endReason(method: string, kind: RequestKind, status: number): HttpEndReason | null {
  if (method === 'DELETE' && isSuccess(status)) return 'deleted';
  // In the 2026-07-28 era 404 says that the method is unknown.
  return status === 404 && kind !== 'modern' && (method === 'POST' || method === 'DELETE') ? 'gone' : null;
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}
