/**
 * Which message belongs to which request. Rules (MCP specification, basic/index and basic/patterns):
 *
 * 1. An id is unique per sender, not per session, and may be reused once answered. So an answer belongs to the
 *    latest unanswered request of the other side with the same id of the same type.
 * 2. Progress names a token that the other side chose on a request; a token of a task lives on after the answer.
 * 3. `notifications/cancelled` names a request of its own sender; in the 2026-07-28 era a server also uses it to end
 *    the client's `subscriptions/listen`. A late answer to a cancelled request stays linked, its outcome `cancelled`.
 * 4. A retry after `input_required` has a new id: it continues the round with equal params and equal `requestState`.
 * 5. Requests and notifications that name a task, or a subscription, belong to the request that began it.
 *
 * Memory is bounded: of more than `maxOpen` open requests (or tokens, rounds, tasks) the oldest are forgotten.
 */
import type { Details } from './details.ts';
import { type Direction, opposite } from './frame.ts';
import type { Id } from './id.ts';
import type { InvalidMessage, Message } from './message.ts';
import type { Remark } from './problems.ts';
import { createWaiting, type Waiting } from './waiting.ts';

/** A message's place in its session: the frame's number, and the message's number inside the frame. */
export type Place = { seq: number; n: number };

export type Relation = 'reply' | 'progress' | 'cancel' | 'round' | 'task' | 'subscription';

/** How an exchange ended. `unanswered` is what none of these happened to. */
export type Outcome = 'ok' | 'tool-error' | 'error' | 'cancelled' | 'input-required';

/** `latency` is in microseconds, from the request's last byte to the answer's. Only answers have one. */
export type Correlation = {
  relation: Relation | null;
  to: Place | null;
  latency: number | null;
  outcome: Outcome | null;
  remark: Remark | null;
};

export type Correlator = {
  /** Takes the messages of a session in the order they passed. */
  add(message: Message, sender: Direction, place: Place, at: number): Correlation;
  /** Requests that so far have neither an answer nor a cancellation. */
  unanswered(): number;
};

type Open = {
  place: Place;
  at: number;
  canonical: string;
  details: Details;
  isCounted: boolean;
  isCancelled: boolean;
};

const NOTHING: Correlation = { relation: null, to: null, latency: null, outcome: null, remark: null };

export function createCorrelator(maxOpen = 65_536): Correlator {
  const openBy: Record<Direction, Waiting<Open>> = {
    'client-to-server': createWaiting(maxOpen),
    'server-to-client': createWaiting(maxOpen),
  };
  const tokensBy: Record<Direction, Map<string, Open>> = {
    'client-to-server': new Map(),
    'server-to-client': new Map(),
  };
  /** By who asked for the task: ids of tasks are unique per receiver only. */
  const tasksBy: Record<Direction, Map<string, Place>> = {
    'client-to-server': new Map(),
    'server-to-client': new Map(),
  };
  const rounds = createWaiting<{ place: Place; keys: readonly string[] }>(maxOpen);
  let unanswered = 0;

  function add(message: Message, sender: Direction, place: Place, at: number): Correlation {
    switch (message.kind) {
      case 'request':
        return addRequest(message.id, message.canonical, message.details, sender, place, at, true);
      case 'notification':
        return addNotification(message.canonical, message.details, sender);
      case 'result':
        return addAnswer(message.id, sender, at, message.details, resultOutcome(message.details));
      case 'error':
        return message.id === null ? NOTHING : addAnswer(message.id, sender, at, message.details, 'error');
      case 'invalid':
        return addInvalid(message, sender, place, at);
    }
  }

  /** Malformed, yet the other side may have acted on it: a call may be answered, an answer ends its request. */
  function addInvalid(message: InvalidMessage, sender: Direction, place: Place, at: number): Correlation {
    const { id, canonical, details, isAnswer } = message;
    if (id === null) return NOTHING;
    if (isAnswer) return addAnswer(id, sender, at, details, 'error');
    return canonical === null ? NOTHING : addRequest(id, canonical, details, sender, place, at, false);
  }

  function addRequest(
    id: Id,
    canonical: string,
    details: Details,
    sender: Direction,
    place: Place,
    at: number,
    isCounted: boolean,
  ): Correlation {
    const earlier = latest(sender, id.key);
    const request = { place, at, canonical, details, isCounted, isCancelled: false };
    openBy[sender].add(id.key, request);
    if (details.progressToken !== null) {
      tokensBy[sender].set(details.progressToken, request);
      forgetOldest(tokensBy[sender], maxOpen);
    }
    if (isCounted) unanswered += 1;
    const link = continuedRound(canonical, details) ?? taskOf(canonical, details, sender);
    return { ...NOTHING, ...link, remark: earlier === undefined || earlier.isCancelled ? null : 'id-in-use' };
  }

  function latest(asker: Direction, key: string): Open | undefined {
    return openBy[asker].under(key).at(-1);
  }

  function addAnswer(id: Id, sender: Direction, at: number, details: Details, outcome: Outcome): Correlation {
    const asker = opposite(sender);
    const request = latest(asker, id.key);
    if (request === undefined) return { ...NOTHING, outcome, remark: 'no-open-request' };
    openBy[asker].remove(id.key, request);
    if (request.isCounted && !request.isCancelled) unanswered -= 1;
    const { taskId, beginsTask } = details;
    if (taskId !== null && beginsTask && !isAboutTask(request.canonical)) {
      tasksBy[asker].set(taskId, request.place);
      forgetOldest(tasksBy[asker], maxOpen);
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

  function endToken(asker: Direction, request: Open): void {
    const token = request.details.progressToken;
    if (token !== null && tokensBy[asker].get(token) === request) tokensBy[asker].delete(token);
  }

  function addNotification(canonical: string, details: Details, sender: Direction): Correlation {
    if (canonical === 'notifications/progress') return progressOf(details, sender);
    if (canonical === 'notifications/cancelled') return cancel(details, sender);
    if (details.subscription !== null) {
      const listen = listenOf(opposite(sender), details.subscription);
      return listen === undefined ? NOTHING : { ...NOTHING, relation: 'subscription', to: listen.place };
    }
    return { ...NOTHING, ...taskOf(canonical, details, sender) };
  }

  function progressOf(details: Details, sender: Direction): Correlation {
    const request =
      details.progressToken === null ? undefined : tokensBy[opposite(sender)].get(details.progressToken);
    return request === undefined ? NOTHING : { ...NOTHING, relation: 'progress', to: request.place };
  }

  function cancel(details: Details, sender: Direction): Correlation {
    if (details.cancels === null) return NOTHING;
    const request = latest(sender, details.cancels) ?? listenOf(opposite(sender), details.cancels);
    if (request === undefined) return NOTHING;
    if (request.isCounted && !request.isCancelled) unanswered -= 1;
    request.isCancelled = true;
    return { ...NOTHING, relation: 'cancel', to: request.place };
  }

  function listenOf(asker: Direction, key: string): Open | undefined {
    const request = latest(asker, key);
    return request?.canonical === 'subscriptions/listen' ? request : undefined;
  }

  function openRound(request: Open, answer: Details): void {
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
    const before = rounds.under(key).find(({ keys }) => round.keys.every((name) => keys.includes(name)));
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

  return { add, unanswered: () => unanswered };
}

function resultOutcome({ isToolError, resultType }: Details): Outcome {
  if (resultType === 'input_required') return 'input-required';
  return isToolError ? 'tool-error' : 'ok';
}

function isAboutTask(canonical: string): boolean {
  return canonical.startsWith('tasks/');
}

function roundKey(canonical: string, params: number, state: number): string {
  return `${canonical} ${params} ${state}`;
}

function forgetOldest<V>(map: Map<string, V>, max: number): void {
  if (map.size <= max) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
