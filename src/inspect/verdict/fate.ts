/**
 * Who lost a call: what became of a request whose asker has no answer that it could use. A fate says what the recording
 * proves, and no more: where frames are missing, it is `unknown`. Times are those at which tapedeck had passed the bytes on.
 *
 * - Over stdio a request that was passed on may stand unread in the server's pipe. That the server has read it is proven where
 *   it answered a later one: the pipe keeps the order.
 * - Over HTTP the end of the request's HTTP exchange tells who gave up. Of the 2026-07-28 era a client that closes it cancels
 *   (basic/patterns/cancellation); before, closing says nothing but that nobody waits there any more.
 * - An answer that was handed over is the client's to lose: where it cancels long after, or leaves before it has all of it.
 */

import type { Outcome, Place } from '../../protocol/message/correlate.ts';
import { canonicalMethod } from '../../protocol/message/methods.ts';
import type { Store } from '../../store/file/open.ts';
import type { MessageRow } from '../../store/read/frames.ts';
import type { HttpExchangeRow } from '../../store/read/http.ts';
import { type SessionRow, stateOf } from '../../store/read/sessions.ts';
import { type AnswerPassage, type Lookups, prepareLookups, type RequestPassage } from './passages.ts';

/**
 * `never-came`: a cancellation names it, but no such request was sent. `not-forwarded`: tapedeck could not reach the server, or
 * refused the request in its place. `server-gone`: the server had closed its output before. `no-answer`: it was passed on, and
 * the other side never answered. `client-left`: the client closed the HTTP exchange before an answer. `cancelled`: by whom says
 * `by`. `refused`: the HTTP status was an error.
 * `mismatched`: an answer has its id as another type, a number as a string, so that it answers nothing. `dropped`: the answer was handed over, and the client did without it.
 * `crossed`: the same, but so soon that the two may have met on the way. `open`: an answer may still come.
 */
export type CallVerdict =
  | 'never-came'
  | 'not-forwarded'
  | 'server-gone'
  | 'no-answer'
  | 'client-left'
  | 'cancelled'
  | 'refused'
  | 'mismatched'
  | 'dropped'
  | 'crossed'
  | 'open'
  | 'unknown';

export type Fate = {
  verdict: CallVerdict;
  /** Who owed the answer. */
  asked: 'client' | 'server';
  /** Whose act ended the waiting; null where nobody's did, or nothing tells. */
  by: 'client' | 'server' | 'tapedeck' | null;
  /** How long it had waited by then, in microseconds; null where it did not, or nothing tells. */
  waited: number | null;
  /** What ended the waiting, or why nothing is known, in words. Recorded text stands in it: it is not escaped. */
  why: string | null;
  /** The frame of an answer that came all the same. */
  answerSeq: number | null;
  /** Microseconds between the answer and the cancellation, or from the end of the server to the request. */
  gap: number | null;
  /** A later request that the other side answered: it had read this one. Stdio alone. */
  readBy: number | null;
};

/** A client that cancels later than this was not overtaken by the answer. Microseconds. */
const CROSSING = 1_000_000;

type FateRow = Pick<MessageRow, 'seq' | 'n' | 'kind' | 'method' | 'relation' | 'outcome'>;

/** Looks up the fate of a message of this session; null for one that has none, such as a request that was answered. */
export function prepareFates(store: Store, session: SessionRow): (row: FateRow) => Fate | null {
  const look = prepareLookups(store, session);

  function ofRequest(place: Place, outcome: string | null): Fate | null {
    const answer = look.answerTo(place);
    // What became of it was asked for.
    if (outcome === FAULT || answer?.outcome === FAULT) return null;
    const isOwnAnswer = answer !== undefined && answer.outcome !== 'cancelled';
    if (isOwnAnswer && answer.channel !== 'response') return null;
    const request = look.asked(place);
    if (request === undefined) return null;
    if (isOwnAnswer) return leftBehind(request, answer, look);
    const httpExchange = request.http === null ? undefined : look.httpExchange(request.http);
    if (answer === undefined && isSettled(outcome, httpExchange)) return null;
    return lost({ place, outcome, request, answer, httpExchange }, session, look);
  }

  function ofCancellation({ seq, n }: Place): Fate | null {
    const named = look.cancelled({ seq, n });
    if (named === undefined || !look.isKept) return null;
    const base = { ...NOTHING, asked: named.by === 'client' ? 'server' : 'client', by: named.by } as const;
    if (named.request === null) return named.isSure ? { ...base, verdict: 'never-came' } : null;
    const answer = look.answerTo(named.request);
    if (answer === undefined || answer.outcome === FAULT) return null;
    const gap = named.at - answer.at;
    return { ...base, verdict: gap < CROSSING ? 'crossed' : 'dropped', answerSeq: answer.seq, gap };
  }

  return (row) => {
    if (row.kind === 'request') return ofRequest(row, row.outcome);
    const isStray = row.kind === 'notification' && row.relation === null && row.method !== null;
    return isStray && canonicalMethod(row.method ?? '') === CANCELLED ? ofCancellation(row) : null;
  };
}

/** Answered by a frame without payload: it has an outcome of its own, which is not that of its HTTP exchange. */
function isSettled(outcome: string | null, httpExchange: HttpExchangeRow | undefined): boolean {
  const isRefused = httpExchange !== undefined && httpExchange.status !== null && httpExchange.status >= 400;
  return outcome !== null && outcome !== 'cancelled' && !isRefused;
}

const CANCELLED = 'notifications/cancelled';

const FAULT = 'fault' satisfies Outcome;

const NOTHING = { by: null, waited: null, why: null, answerSeq: null, gap: null, readBy: null } as const;

/** An answer that came as a body, whose client did not stay until it had all of it. */
function leftBehind(request: RequestPassage, { seq, at }: AnswerPassage, look: Lookups): Fate | null {
  if (request.http === null || look.closedBy(request.http) !== 'client') return null;
  const waited = at - request.at;
  return { ...NOTHING, verdict: 'dropped', asked: 'server', by: 'client', waited, answerSeq: seq };
}

type Lost = {
  place: Place;
  outcome: string | null;
  request: RequestPassage;
  answer: AnswerPassage | undefined;
  httpExchange: HttpExchangeRow | undefined;
};

function lost(
  { place, outcome, request, answer, httpExchange }: Lost,
  session: SessionRow,
  look: Lookups,
): Fate {
  const isClients = request.channel === 'stdin' || request.channel === 'request';
  const asked = isClients ? 'server' : 'client';
  const base = { ...NOTHING, asked } as const;
  const since = (at: number | null) => (at === null ? null : at - request.at);
  const own = isClients ? httpExchange : undefined;
  if (own?.closedBy === 'proxy' && !isOurEnd(own)) return refusedByProxy(base, own, since(own.endedAt));
  const stray = answer === undefined ? look.strayAnswer(request.channel, place) : undefined;
  if (stray !== undefined)
    return { ...base, verdict: 'mismatched', by: asked, waited: since(stray.at), answerSeq: stray.seq };
  const cancel = look.cancelOf(place);
  if (cancel !== undefined) {
    const late = answer === undefined ? {} : { answerSeq: answer.seq, gap: answer.at - cancel.at };
    return { ...base, verdict: 'cancelled', by: cancel.by, waited: since(cancel.at), ...late };
  }
  if (own !== undefined && own.status !== null && own.status >= 400)
    return {
      ...base,
      verdict: 'refused',
      by: 'server',
      waited: since(own.responseAt),
      why: `HTTP ${own.status}`,
    };
  if (own?.closedBy === 'client') {
    const verdict = outcome === 'cancelled' ? 'cancelled' : 'client-left';
    return { ...base, verdict, by: 'client', waited: since(own.endedAt), why: 'it closed the connection' };
  }
  const doubt = look.doubt(request, place);
  if (doubt !== null) return { ...base, verdict: 'unknown', why: doubt };
  if (own?.closedBy === 'server' && own.error !== null)
    return {
      ...base,
      verdict: 'no-answer',
      by: 'server',
      waited: since(own.endedAt),
      why: `it broke the connection off: ${own.error}`,
    };
  return unanswered(base, session, { place, request, own }, look);
}

/** Where tapedeck itself was stopped, the server had been asked. */
function isOurEnd({ error }: HttpExchangeRow): boolean {
  return error === 'tapedeck stopped';
}

function refusedByProxy(
  base: typeof NOTHING & Pick<Fate, 'asked'>,
  { error, status, responseAt }: HttpExchangeRow,
  waited: number | null,
): Fate {
  const why = error ?? `HTTP ${status}`;
  // The server had answered, with what cannot be forwarded.
  if (responseAt !== null && why.startsWith('cannot forward'))
    return {
      ...base,
      verdict: 'no-answer',
      by: 'tapedeck',
      waited,
      why: `tapedeck refused the answer: ${why}`,
    };
  return { ...base, verdict: 'not-forwarded', by: 'tapedeck', waited, why };
}

/** It was passed on, and nothing came back. */
function unanswered(
  base: typeof NOTHING & Pick<Fate, 'asked'>,
  session: SessionRow,
  { place, request, own }: { place: Place; request: RequestPassage; own: HttpExchangeRow | undefined },
  look: Lookups,
): Fate {
  const { clientClosedAt, serverClosedAt } = look.closings;
  const isStdio = session.transport === 'stdio';
  if (isStdio && base.asked === 'server' && serverClosedAt !== null && request.at >= serverClosedAt)
    return { ...base, verdict: 'server-gone', by: 'server', gap: request.at - serverClosedAt };
  const readBy = isStdio && request.isOfOther === 0 ? look.readBy(request.channel, place) : null;
  const never = { ...base, verdict: 'no-answer', readBy } as const;
  const until = (at: number, by: Fate['by'], why: string): Fate => ({
    ...never,
    by,
    waited: at - request.at,
    why,
  });
  if (stateOf(session) === 'open') return { ...base, verdict: 'open' };
  if (own?.endedAt != null && isOurEnd(own)) return until(own.endedAt, 'tapedeck', 'tapedeck was stopped');
  if (own?.endedAt != null && own.status !== 202)
    return until(own.endedAt, 'server', `it ended its answer, HTTP ${own.status}`);
  if (
    clientClosedAt !== null &&
    clientClosedAt >= request.at &&
    clientClosedAt <= (serverClosedAt ?? clientClosedAt)
  )
    return until(clientClosedAt, 'client', 'the client ended its input');
  if (isStdio && serverClosedAt !== null) return until(serverClosedAt, 'server', exitText(session));
  if (session.endedAt !== null) return until(session.endedAt, null, 'the session ended');
  return never;
}

function exitText({ signal, exitCode, endReason }: SessionRow): string {
  if (signal !== null) return `the server died by ${signal}`;
  if (endReason !== 'server-exited' && exitCode === 0) return 'the server ended';
  return exitCode === null ? 'the server ended' : `the server exited with ${exitCode}`;
}
