/**
 * Which message belongs to which request. Rules (MCP specification, basic/index and basic/patterns):
 *
 * 1. An id is unique per sender, not per session, and may be reused once answered. So an answer belongs to the
 *    latest unanswered request of the other side with the same id of the same type.
 * 2. Progress names a token that the other side chose on a request; a token of a task lives on after the answer.
 * 3. `notifications/cancelled` names a request of its own sender; in the 2026-07-28 era a server also uses it to end
 *    the client's `subscriptions/listen`. A late answer to a cancelled request stays linked, its outcome `cancelled`.
 * 4. A retry after `input_required` has a new id: it continues the round with equal params and equal `requestState`.
 * 5. Over HTTP, an answer or progress that comes on the HTTP exchange of a request with its id or token belongs to that request;
 *    only where there is none, to a request of another HTTP exchange: legacy answers may come on any stream of the session.
 *    An error without an id answers the one request of its HTTP exchange.
 * 6. In the 2026-07-28 era a client that closes an HTTP exchange early cancels what it asked there. An HTTP exchange with
 *    an error status ends what was asked on it in an error, even if no message says so.
 * 7. Requests and notifications that name a task, or a subscription, belong to the request that began it.
 *
 * Memory is bounded: of more than `maxOpen` open requests (or tokens, rounds, tasks) the oldest are forgotten.
 */

import { BoundedLists, BoundedMap } from '../bounded.ts';
import { type Direction, opposite } from '../wire/frame.ts';
import type { Details, Id } from './details.ts';
import type { ErrorMessage, InvalidMessage, Message, Remark } from './message.ts';

/** A message's place in its session: the frame's number, and the message's number inside the frame. */
export type Place = { seq: number; n: number };

type Relation = 'reply' | 'progress' | 'cancel' | 'round' | 'task' | 'subscription';

/** How an exchange ended. One without an outcome is unanswered. `fault`: one was put in on purpose. */
export type Outcome = 'ok' | 'tool-error' | 'error' | 'cancelled' | 'input-required' | 'fault';

/** `latency` is in microseconds, from the request's last byte to the answer's. Only answers have one. */
export type Correlation = {
  relation: Relation | null;
  to: Place | null;
  latency: number | null;
  outcome: Outcome | null;
  remark: Remark | null;
};

/** `left`: the client closed it early. `refused`: its status was an error. */
export type HttpClosing = 'left' | 'refused';

type HttpEnd = { status: number | null; closedBy: string | null };

/** How the end of an HTTP exchange concludes what was asked on it; null where messages alone do. */
export function httpClosing({ status, closedBy }: HttpEnd): HttpClosing | null {
  if (status !== null && status >= 400) return 'refused';
  return closedBy === 'client' ? 'left' : null;
}

export type ClosedRequest = { place: Place; outcome: Outcome };

type Correlator = {
  /** Takes the messages of a session in the order they passed; `httpExchange` is the HTTP exchange that each came on. */
  add(
    message: Message,
    sender: Direction,
    place: Place,
    at: number,
    httpExchange?: number | null,
  ): Correlation;
  /** An HTTP exchange ended without answers. Returns the requests that this is the outcome of. */
  close(httpExchange: number, how: HttpClosing): ClosedRequest[];
  /** Requests that so far have neither an answer nor a cancellation. */
  unanswered(): number;
};

/** Who sent a message, and where and when it passed. */
type Passage = { sender: Direction; place: Place; at: number; httpExchange: number | null };

type OpenRequest = {
  id: Id;
  place: Place;
  at: number;
  httpExchange: number | null;
  canonical: string;
  details: Details;
  isCounted: boolean;
  isCancelled: boolean;
};

/** Of a message that belongs to no other. */
export const NOTHING: Correlation = { relation: null, to: null, latency: null, outcome: null, remark: null };

export function createCorrelator(maxOpen = 65_536): Correlator {
  const openBy: Record<Direction, BoundedLists<OpenRequest>> = {
    'client-to-server': new BoundedLists(maxOpen),
    'server-to-client': new BoundedLists(maxOpen),
  };
  const tokensBy: Record<Direction, BoundedMap<string, OpenRequest>> = {
    'client-to-server': new BoundedMap(maxOpen),
    'server-to-client': new BoundedMap(maxOpen),
  };
  /** By who asked for the task: ids of tasks are unique per receiver only. */
  const tasksBy: Record<Direction, BoundedMap<string, Place>> = {
    'client-to-server': new BoundedMap(maxOpen),
    'server-to-client': new BoundedMap(maxOpen),
  };
  /** What clients asked, by the HTTP exchange that they asked it on. */
  const openOn = new BoundedLists<OpenRequest>(maxOpen);
  const rounds = new BoundedLists<{ place: Place; keys: readonly string[] }>(maxOpen);
  let unanswered = 0;

  function add(
    message: Message,
    sender: Direction,
    place: Place,
    at: number,
    httpExchange: number | null = null,
  ): Correlation {
    const sent = { sender, place, at, httpExchange };
    switch (message.kind) {
      case 'request':
        return addRequest(message.id, message.canonical, message.details, sent, true);
      case 'notification':
        return addNotification(message.canonical, message.details, sent);
      case 'result':
        return addAnswer(message.id, message.details, resultOutcome(message.details), sent);
      case 'error':
        return addError(message, sent);
      case 'invalid':
        return addInvalid(message, sent);
    }
  }

  function addError({ id, details }: ErrorMessage, sent: Passage): Correlation {
    if (id !== null) return addAnswer(id, details, 'error', sent);
    const [request, another] = sent.sender === 'server-to-client' ? openOn.of(String(sent.httpExchange)) : [];
    if (request === undefined || another !== undefined) return NOTHING;
    return addAnswer(request.id, details, 'error', sent);
  }

  /** Malformed, yet the other side may have acted on it: a call may be answered, an answer ends its request. */
  function addInvalid({ id, canonical, details, isAnswer }: InvalidMessage, sent: Passage): Correlation {
    if (id === null) return NOTHING;
    if (isAnswer) return addAnswer(id, details, 'error', sent);
    return canonical === null ? NOTHING : addRequest(id, canonical, details, sent, false);
  }

  function addRequest(
    id: Id,
    canonical: string,
    details: Details,
    { sender, place, at, httpExchange }: Passage,
    isCounted: boolean,
  ): Correlation {
    const earlier = latest(sender, id.key, httpExchange);
    const request = { id, place, at, httpExchange, canonical, details, isCounted, isCancelled: false };
    openBy[sender].add(id.key, request);
    if (httpExchange !== null && sender === 'client-to-server') openOn.add(String(httpExchange), request);
    if (details.progressToken !== null) {
      tokensBy[sender].set(details.progressToken, request);
    }
    if (isCounted) unanswered += 1;
    const link = continuedRound(canonical, details) ?? taskOf(canonical, details, sender);
    return { ...NOTHING, ...link, remark: isInUse(earlier, details) ? 'id-in-use' : null };
  }

  /** Over HTTP several clients of the 2026-07-28 era may stand in one session, each with its own ids. */
  function isInUse(earlier: OpenRequest | undefined, { isModern }: Details): boolean {
    return earlier !== undefined && !earlier.isCancelled && !(isModern && earlier.httpExchange !== null);
  }

  function latest(asker: Direction, key: string, httpExchange: number | null): OpenRequest | undefined {
    const open = openBy[asker];
    const own =
      httpExchange === null
        ? undefined
        : open.newest(key, (request) => request.httpExchange === httpExchange);
    return own ?? open.newest(key);
  }

  function addAnswer(
    id: Id,
    details: Details,
    outcome: Outcome,
    { sender, at, httpExchange }: Passage,
  ): Correlation {
    const asker = opposite(sender);
    const request = latest(asker, id.key, httpExchange);
    if (request === undefined) return { ...NOTHING, outcome, remark: 'no-open-request' };
    forget(asker, request);
    if (request.isCounted && !request.isCancelled) unanswered -= 1;
    const { taskId, beginsTask } = details;
    if (taskId !== null && beginsTask && !isAboutTask(request.canonical)) {
      tasksBy[asker].set(taskId, request.place);
    } else endToken(asker, request);
    if (outcome === 'input-required') openRound(request, details);
    return {
      relation: 'reply',
      to: request.place,
      latency: at - request.at,
      outcome: request.isCancelled ? 'cancelled' : outcome,
      remark: null,
    };
  }

  function forget(asker: Direction, request: OpenRequest): void {
    openBy[asker].remove(request.id.key, request);
    if (request.httpExchange !== null) openOn.remove(String(request.httpExchange), request);
  }

  function endToken(asker: Direction, request: OpenRequest): void {
    const token = request.details.progressToken;
    if (token !== null && tokensBy[asker].get(token) === request) tokensBy[asker].delete(token);
  }

  function addNotification(
    canonical: string,
    details: Details,
    { sender, httpExchange }: Passage,
  ): Correlation {
    if (canonical === 'notifications/progress') return progressOf(details, sender, httpExchange);
    if (canonical === 'notifications/cancelled') return cancel(details, sender, httpExchange);
    if (details.subscription !== null) {
      const listen = listenOf(opposite(sender), details.subscription, httpExchange);
      return listen === undefined ? NOTHING : { ...NOTHING, relation: 'subscription', to: listen.place };
    }
    return { ...NOTHING, ...taskOf(canonical, details, sender) };
  }

  function progressOf(
    { progressToken }: Details,
    sender: Direction,
    httpExchange: number | null,
  ): Correlation {
    if (progressToken === null) return NOTHING;
    const own = openOn.newest(String(httpExchange), ({ details }) => details.progressToken === progressToken);
    const request = own ?? tokensBy[opposite(sender)].get(progressToken);
    return request === undefined ? NOTHING : { ...NOTHING, relation: 'progress', to: request.place };
  }

  function cancel({ cancels }: Details, sender: Direction, httpExchange: number | null): Correlation {
    if (cancels === null) return NOTHING;
    const request =
      latest(sender, cancels, httpExchange) ?? listenOf(opposite(sender), cancels, httpExchange);
    if (request === undefined) return NOTHING;
    markCancelled(request);
    return { ...NOTHING, relation: 'cancel', to: request.place };
  }

  /** Nobody waits for its answer any more. */
  function markCancelled(request: OpenRequest): void {
    if (request.isCounted && !request.isCancelled) unanswered -= 1;
    request.isCancelled = true;
  }

  function close(httpExchange: number, how: HttpClosing): ClosedRequest[] {
    const asked = openOn.of(String(httpExchange));
    const ended = asked.filter(({ details }) => how === 'refused' || details.isModern);
    const outcome = how === 'refused' ? 'error' : 'cancelled';
    for (const request of ended) {
      markCancelled(request);
      forget('client-to-server', request);
    }
    return ended.map(({ place }) => ({ place, outcome }));
  }

  function listenOf(asker: Direction, key: string, httpExchange: number | null): OpenRequest | undefined {
    const request = latest(asker, key, httpExchange);
    return request?.canonical === 'subscriptions/listen' ? request : undefined;
  }

  function openRound(request: OpenRequest, answer: Details): void {
    if (request.details.round === null || answer.round === null) return;
    const key = roundKey(request.canonical, request.details.round.params, answer.round.state);
    rounds.add(key, { place: request.place, keys: answer.round.keys });
  }

  function continuedRound(
    canonical: string,
    { round }: Details,
  ): { relation: 'round'; to: Place } | undefined {
    if (round === null || (round.state === 0 && round.keys.length === 0)) return undefined;
    const key = roundKey(canonical, round.params, round.state);
    const before = rounds.of(key).find(({ keys }) => round.keys.every((name) => keys.includes(name)));
    if (before === undefined) return undefined;
    rounds.remove(key, before);
    return { relation: 'round', to: before.place };
  }

  function taskOf(
    canonical: string,
    { taskId }: Details,
    sender: Direction,
  ): { relation: 'task'; to: Place } | undefined {
    if (taskId === null) return undefined;
    // Who asked for the task asks about it; all else that names a task comes mostly from who runs it.
    const asker = isAboutTask(canonical) ? sender : opposite(sender);
    const began = tasksBy[asker].get(taskId) ?? tasksBy[opposite(asker)].get(taskId);
    return began === undefined ? undefined : { relation: 'task', to: began };
  }

  return { add, close, unanswered: () => unanswered };
}

export function resultOutcome({ isToolError, resultType }: Details): Outcome {
  if (resultType === 'input_required') return 'input-required';
  return isToolError ? 'tool-error' : 'ok';
}

function isAboutTask(canonical: string): boolean {
  return canonical.startsWith('tasks/');
}

function roundKey(canonical: string, params: number, state: number): string {
  return `${canonical} ${params} ${state}`;
}
