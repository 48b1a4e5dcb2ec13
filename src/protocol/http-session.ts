/**
 * Which session each HTTP exchange of one proxy run belongs to. An assignment is final, so a session opens with the
 * first exchange that needs one, as `stateless`, and its basis is learnt later: by an answer that carries a session id,
 * or by a stream that begins with `endpoint`. How a session is chosen stands in `http-session-rules.ts`.
 *
 * A session ends by DELETE; by 404 to a POST or DELETE that named it (a GET is also answered so where no streams are
 * served); with its legacy stream; or by idleness. After idleness, a request that names it reopens it.
 */
import {
  createBook,
  type HttpBasis,
  type HttpEndReason,
  type HttpTransport,
  type IdleGaps,
  isBeingSetUp,
  type Kind,
  type Session,
  type SessionChange,
} from './http-session-book.ts';
import {
  announcedKey,
  type Body,
  choose,
  describe,
  hasMessages,
  headerKey,
  isSuccess,
  type RequestFacts,
} from './http-session-rules.ts';
import type { Message } from './message.ts';

export type { HttpBasis, HttpEndReason, HttpTransport, IdleGaps, RequestFacts, SessionChange };

export type HttpAnswer = { at: number; status: number; sessionId: string | null };

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
  maxRemembered?: number;
};

type Exchange = { facts: RequestFacts; body: Body; session: Session; status: number | null };

const MINUTE = 60_000_000;
/** OAuth needs a human, hence the patience with what is being set up. */
const IDLE: IdleGaps = { known: 30 * MINUTE, stateless: 5 * MINUTE, settingUp: 10 * MINUTE };

export function createHttpSessions(options: HttpSessionsOptions): HttpSessions {
  const book = createBook(options.onChange, options.idle ?? IDLE, options.maxRemembered ?? 10_000);
  const exchanges = new Map<number, Exchange>();

  function assign(request: RequestFacts, messages: readonly Message[] | null): number {
    // An empty header names nothing.
    const facts = { ...request, sessionId: request.sessionId || null };
    const body = describe(facts, messages);
    const session = choose(book, facts, body) ?? book.open(facts.at);
    if (facts.sessionId !== null) name(session, facts.sessionId);
    book.enter(session, facts.connection, facts.at);
    const exchange: Exchange = { facts, body, session, status: null };
    exchanges.set(facts.exchange, exchange);
    begin(exchange);
    return session.number;
  }

  function name(session: Session, sessionId: string): void {
    book.learn(session, headerKey(sessionId));
    if (session.basis === 'stateless') book.rebase(session, 'session-header', 'http');
  }

  function read(number: number, messages: readonly Message[]): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    exchange.body = describe(exchange.facts, messages);
    if (isBeingSetUp(exchange.session)) begin(exchange);
    if (exchange.status !== null) settle(exchange, exchange.status);
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
    const reason = facts.sessionId === null ? null : endReason(facts.method, body.kind, status);
    if (reason !== null) book.end(session, at, reason);
  }

  function endpoint(number: number, target: string): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    const { facts, session } = exchange;
    const isItsStream = isBeingSetUp(session);
    session.pending.delete(number);
    book.learn(session, announcedKey(target, facts.target));
    if (!isItsStream) return;
    session.stream = number;
    book.rebase(session, 'sse-endpoint', 'sse');
  }

  function ended(number: number, at: number, closedBy: 'server' | 'client' | 'proxy'): void {
    const exchange = exchanges.get(number);
    if (exchange === undefined) return;
    const { session } = exchange;
    exchanges.delete(number);
    session.pending.delete(number);
    book.leave(session, at);
    if (session.stream !== number) return;
    session.stream = null;
    if (closedBy !== 'proxy') book.end(session, at, `${closedBy}-closed`);
  }

  return { assign, read, responded, endpoint, ended, tick: book.endIdle, open: book.numbers };
}

/** The session takes on what the request tells, and waits for the answer. */
function begin({ facts, body, session }: Exchange): void {
  // A body that is not read yet may be anything.
  if (body.kind !== 'other' || facts.method === 'POST') session.pending.set(facts.exchange, body.kind);
  if (!hasMessages(body)) return;
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

/** What the status of the answer means for the session. */
function settle({ facts, body, session }: Exchange, status: number): void {
  // A stream may still turn out to be a legacy one.
  if (body.kind !== 'stream' || !isSuccess(status)) session.pending.delete(facts.exchange);
  if (!hasMessages(body)) return;
  if (isSuccess(status)) {
    session.isRefused = false;
    if (!body.isProbe) session.established = 'by-message';
    else if (session.established === 'not-yet') session.established = 'by-probe';
  } else if ((status === 401 || status === 403) && session.credentials === facts.credentials) {
    session.isRefused = true;
  }
}

function endReason(method: string, kind: Kind, status: number): HttpEndReason | null {
  if (method === 'DELETE' && isSuccess(status)) return 'deleted';
  // In the 2026-07-28 era 404 says that the method is unknown.
  return status === 404 && kind !== 'modern' && (method === 'POST' || method === 'DELETE') ? 'gone' : null;
}
