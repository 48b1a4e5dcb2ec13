/**
 * Which open session an HTTP request belongs to. Facts: MCP specification, basic/transports of 2024-11-05 to 2026-07-28.
 * The first rule that applies chooses:
 *
 * 1. `Mcp-Session-Id`: the session known by it, even one that has ended; an unknown id opens one (the proxy came late).
 * 2. A target that a legacy SSE stream announced, unless by GET: its session; of several the latest that is open.
 * 3. `initialize`: a free session, or one that so far only probed (`server/discover`); neither of another client. A free
 *    session is of another client too where its requests had another `User-Agent`; so in rules 4 and 5.
 * 4. 2026-07-28 requests: the session of the same client, version and credentials; else the one whose credentials were
 *    just refused; else a free session, of no other client or credentials.
 * 5. Other messages: the established stateless session with these credentials (else one whose were just refused) and
 *    no other protocol version; else one being set up without a request of rules 3 or 4 in flight.
 * 6. A GET for events, which may become a legacy SSE stream, or be a stateless server's stream, which is mostly refused: a free
 *    session; or the established stateless legacy one with these credentials whose messages were posted to this very
 *    target, if it was last on this connection or active a moment ago.
 * 7. All else (OAuth, CORS preflight, a body not read yet): the open session that was last on this connection; else
 *    one being set up; else the only one.
 *
 * Where several suit: the one last on this connection, else the one active last; in a crowd only the latest hundred of a kind
 * are looked at. Where none does, a new one opens.
 * Being set up: no message was answered with 2xx, and nothing names the session. Free: being set up, and nothing is in
 * flight that may yet found it. So 401, discovery, token and `initialize` of one client stand in one session, as do a
 * refused probe and the `initialize` after it, while two clients that connect at the same moment get two.
 */

import { memoize } from '../bounded.ts';
import type { Message } from '../message/message.ts';
import {
  isBeingSetUp,
  type RequestKind,
  type Session,
  type SessionBook,
  type SessionRule,
  type Standing,
} from './session-book.ts';

/** What the headers of a request say. */
export type RequestFacts = {
  exchange: number;
  at: number;
  /** The client's address and port. */
  connection: string;
  method: string;
  /** The request target as the client wrote it. */
  target: string;
  /** `Mcp-Session-Id`. */
  sessionId: string | null;
  /** `Authorization`, or anything that is equal where that is. */
  credentials: string | null;
  /** `User-Agent`. */
  agent: string | null;
  /** `MCP-Protocol-Version`. */
  protocolVersion: string | null;
  /** Whether `Accept` names event streams. */
  acceptsEvents: boolean;
};

/** What a request's body tells about who sent it. */
type Body = { kind: RequestKind; isProbe: boolean; client: string | null; protocolVersion: string | null };

/** A request that belongs somewhere: what its head says, and its body. */
export type AskedRequest = { readonly facts: RequestFacts; body: Body };

/** A client that lost its stream comes back within 30 s (TypeScript SDK). */
const MOMENT = 60_000_000;

export function chooseSession(book: SessionBook, asked: AskedRequest): Session | undefined {
  const { facts, body } = asked;
  const { connection, at, method, target, sessionId } = facts;
  if (sessionId !== null) return book.known(headerKey(sessionId));
  const announced = method === 'GET' ? undefined : book.known(targetKey(target));
  if (announced !== undefined) return announced;
  for (const rule of RULES[body.kind]) {
    const session = book.pick(connection, at, rule, asked);
    if (session !== undefined) return session;
  }
  return body.kind === 'other' ? book.only(at) : undefined;
}

/** Those that are being set up. */
const NEW = 'new';

/** Those whose credentials the latest answer refused. */
const REFUSED = 'refused';

function standingOf(session: Session): Standing {
  const { basis, established, credentials, isRefused, isModern, client, protocolVersion } = session;
  return { basis, established, credentials, isRefused, isModern, client, protocolVersion };
}

function isAsShelved(session: Session): boolean {
  const before = session.shelvedAs;
  return (
    before !== null &&
    before.basis === session.basis &&
    before.established === session.established &&
    before.credentials === session.credentials &&
    before.isRefused === session.isRefused &&
    before.isModern === session.isModern &&
    before.client === session.client &&
    before.protocolVersion === session.protocolVersion
  );
}

/** Says what the session has become, so that it is found by that. Mostly a request changes nothing of it. */
export function shelve(book: SessionBook, session: Session): void {
  if (session.endReason !== null || isAsShelved(session)) return;
  session.shelvedAs = standingOf(session);
  book.shelve(session, shelvesOf(session));
}

/** Where a session stands to be found by rules 3 to 7, which find no session that a key names. */
function shelvesOf(session: Session): string[] {
  const { basis, established, credentials, isRefused } = session;
  if (basis !== 'stateless') return [];
  const shelves = isRefused ? [REFUSED] : [];
  if (established === 'not-yet') return [...shelves, NEW];
  if (established === 'by-probe') shelves.push(probedBy(session));
  if (session.isModern) shelves.push(modernOf(session, credentials));
  return [...shelves, withCredentials(credentials)];
}

function probedBy({ client }: { client: string | null }): string {
  return `probed ${client}`;
}

function modernOf(
  { client, protocolVersion }: Pick<Session, 'client' | 'protocolVersion'>,
  credentials: string | null,
): string {
  return `modern ${JSON.stringify([client, protocolVersion, credentials])}`;
}

function withCredentials(credentials: string | null): string {
  return credentials === null ? 'open to all' : `for ${credentials}`;
}

/** Rules 3 to 7, the best first. No closures are made for a request: there may be thousands a second. */
const RULES: Readonly<Record<RequestKind, readonly SessionRule<AskedRequest>[]>> = {
  initialize: [
    {
      from: ({ body }) => [NEW, probedBy(body)],
      suits: (session, { facts, body }) =>
        (isFree(session) && isNoOther(session, facts, body)) || hasOnlyProbed(session, body),
    },
  ],
  modern: [
    {
      from: ({ facts, body }) => [modernOf(body, facts.credentials), NEW],
      suits: (session, { facts, body }) =>
        isSameModern(session, body) && session.credentials === facts.credentials,
    },
    {
      from: () => [REFUSED],
      suits: (session, { body }) => isSameModern(session, body) && session.isRefused,
    },
    {
      from: () => [NEW],
      suits: (session, { facts, body }) =>
        isFree(session) && isNoOther(session, facts, body) && mayTake(session, facts),
    },
  ],
  legacy: [
    {
      from: ({ facts }) => [withCredentials(facts.credentials)],
      suits: (session, { facts, body }) =>
        isSameLegacy(session, body) && session.credentials === facts.credentials,
    },
    {
      from: () => [REFUSED],
      suits: (session, { body }) => isSameLegacy(session, body) && session.isRefused,
    },
    {
      from: () => [NEW],
      suits: (session, { facts }) =>
        isBeingSetUp(session) &&
        !isOpening(session) &&
        isSameAgent(session, facts) &&
        mayTake(session, facts),
    },
  ],
  stream: [
    {
      from: ({ facts }) => [NEW, withCredentials(facts.credentials)],
      suits: (session, { facts }, isHere) =>
        (isFree(session) && mayTake(session, facts)) || mayStream(session, facts, isHere),
    },
  ],
  other: [
    { from: () => [], suits: () => true },
    { from: () => [NEW], suits: isBeingSetUp },
  ],
};

/** Whether what is in flight decides where the next request belongs. */
export function mayBeFounded({ basis, established }: Session): boolean {
  return basis === 'stateless' && established !== 'by-message';
}

function isFree(session: Session): boolean {
  return isBeingSetUp(session) && session.pending === null;
}

function isOpening({ pending }: Session): boolean {
  for (const kind of pending?.values() ?? []) if (kind === 'initialize' || kind === 'modern') return true;
  return false;
}

function isNoOther(session: Session, facts: RequestFacts, { client }: Body): boolean {
  if (!isSameAgent(session, facts)) return false;
  return session.client === null || client === null || session.client === client;
}

/** Not every request of a client needs to say it. */
function isSameAgent(session: Session, { agent }: RequestFacts): boolean {
  return session.agent === null || agent === null || session.agent === agent;
}

function hasOnlyProbed(session: Session, { client }: Body): boolean {
  const { basis, established, pending } = session;
  if (basis !== 'stateless' || established !== 'by-probe' || pending !== null) return false;
  return client !== null && session.client === client;
}

function mayTake({ credentials, isRefused }: Session, facts: RequestFacts): boolean {
  return credentials === null || credentials === facts.credentials || isRefused;
}

function isSameModern(session: Session, { client, protocolVersion }: Body): boolean {
  if (session.basis !== 'stateless' || !session.isModern) return false;
  return session.client === client && session.protocolVersion === protocolVersion;
}

function isSameLegacy(session: Session, { protocolVersion }: Body): boolean {
  if (session.basis !== 'stateless' || session.established === 'not-yet') return false;
  if (session.protocolVersion === protocolVersion) return true;
  return !session.isModern && (session.protocolVersion === null || protocolVersion === null);
}

function mayStream(session: Session, facts: RequestFacts, isHere: boolean): boolean {
  const { basis, established, isModern, credentials, target, inFlight, lastActive } = session;
  if (basis !== 'stateless' || established === 'not-yet' || isModern) return false;
  if (credentials !== facts.credentials || target !== facts.target) return false;
  return isHere || inFlight > 0 || facts.at - lastActive <= MOMENT;
}

const OTHER: Body = { kind: 'other', isProbe: false, client: null, protocolVersion: null };

const STREAM: Body = { ...OTHER, kind: 'stream' };

export function describeBody(facts: RequestFacts, messages: readonly Message[] | null): Body {
  const heard = messages ?? [];
  const initialize = heard.find(isInitialize);
  if (initialize !== undefined) return { ...OTHER, kind: 'initialize', client: clientOf(initialize) };
  const modern = heard.find(isModern);
  if (modern !== undefined) {
    const { protocolVersion } = modern.details;
    const isProbe = canonicalOf(modern) === 'server/discover';
    return { kind: 'modern', isProbe, client: clientOf(modern), protocolVersion };
  }
  if (heard.some(isRpc)) return { ...OTHER, kind: 'legacy', protocolVersion: facts.protocolVersion };
  return mayBeStream(facts) ? STREAM : OTHER;
}

function isInitialize(message: Message): boolean {
  return canonicalOf(message) === 'initialize';
}

function isModern({ details }: Message): boolean {
  return details.isModern;
}

function mayBeStream({ method, sessionId, acceptsEvents }: RequestFacts): boolean {
  return method === 'GET' && sessionId === null && acceptsEvents;
}

export function hasMessages({ kind }: Body): boolean {
  return kind !== 'other' && kind !== 'stream';
}

/** OAuth has JSON bodies too. */
function isRpc(message: Message): boolean {
  return message.kind !== 'invalid' || message.method !== null || message.isAnswer;
}

function canonicalOf(message: Message): string | null {
  return 'canonical' in message ? message.canonical : null;
}

function clientOf({ details: { peer } }: Message): string | null {
  return peer === null ? null : JSON.stringify([peer.name, peer.version]);
}

export function headerKey(sessionId: string): string {
  return `header ${sessionId}`;
}

/** Path and query alone, as an announced URL may name another origin than the client's request does. */
const targetKey = memoize((target) => {
  // Nearly every target: nothing in it that a URL would write in another way.
  if (/^\/[\w/?=&-]*$/.test(target)) return `target ${target}`;
  return urlKey(requestUrl(target));
});

export function announcedKey(announced: string, streamTarget: string): string {
  const base = requestUrl(streamTarget).href;
  return URL.canParse(announced, base) ? urlKey(new URL(announced, base)) : `target ${announced}`;
}

function requestUrl(target: string): URL {
  if (target.startsWith('/')) return new URL(`http://host${target}`);
  return new URL(URL.canParse(target) ? target : 'http://host');
}

function urlKey({ pathname, search }: URL): string {
  return `target ${pathname}${search}`;
}
