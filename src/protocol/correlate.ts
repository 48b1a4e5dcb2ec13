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
import type { Message } from './message.ts';
import type { Remark } from './problems.ts';

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
  /** An earlier request that is still open under the same id. */
  earlier: Open | undefined;
};

const NOTHING: Correlation = { relation: null, to: null, latency: null, outcome: null, remark: null };

export function createCorrelator(maxOpen = 65_536): Correlator {
  const openBy: Record<Direction, Map<string, Open>> = {
    'client-to-server': new Map(),
    'server-to-client': new Map(),
  };
  const tokensBy: Record<Direction, Map<string, Open>> = {
    'client-to-server': new Map(),
    'server-to-client': new Map(),
  };
  const rounds = new Map<string, { place: Place; keys: readonly string[] }[]>();
  const tasks = new Map<string, Place>();
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
        // The other side may still answer it, and that answer should not look lost.
        if (message.id === null || message.canonical === null) return NOTHING;
        return addRequest(message.id, message.canonical, message.details, sender, place, at, false);
    }
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
    const open = openBy[sender];
    const earlier = open.get(id.key);
    const request = { place, at, canonical, details, isCounted, isCancelled: false, earlier };
    // Delete first, so that the map's order stays the order of the latest use.
    open.delete(id.key);
    open.set(id.key, request);
    forgetOldest(open, maxOpen);
    if (details.progressToken !== null) {
      tokensBy[sender].set(details.progressToken, request);
      forgetOldest(tokensBy[sender], maxOpen);
    }
    if (isCounted) unanswered += 1;
    const link = continuedRound(canonical, details) ?? taskOf(details);
    return { ...NOTHING, ...link, remark: earlier === undefined || earlier.isCancelled ? null : 'id-in-use' };
  }

  function addAnswer(id: Id, sender: Direction, at: number, details: Details, outcome: Outcome): Correlation {
    const asker = opposite(sender);
    const request = openBy[asker].get(id.key);
    if (request === undefined) return { ...NOTHING, outcome, remark: 'no-open-request' };
    close(asker, id.key, request);
    const { taskId } = details;
    if (taskId !== null && !request.canonical.startsWith('tasks/')) {
      tasks.set(taskId, request.place);
      forgetOldest(tasks, maxOpen);
    } else if (request.details.progressToken !== null) tokensBy[asker].delete(request.details.progressToken);
    if (outcome === 'input-required') openRound(request, details);
    return {
      relation: 'reply',
      to: request.place,
      latency: at - request.at,
      outcome: request.isCancelled ? 'cancelled' : outcome,
      remark: null,
    };
  }

  function close(asker: Direction, key: string, request: Open): void {
    if (request.earlier === undefined) openBy[asker].delete(key);
    else openBy[asker].set(key, request.earlier);
    if (request.isCounted && !request.isCancelled) unanswered -= 1;
  }

  function addNotification(canonical: string, details: Details, sender: Direction): Correlation {
    if (canonical === 'notifications/progress') return progressOf(details, sender);
    if (canonical === 'notifications/cancelled') return cancel(details, sender);
    if (details.subscription !== null) {
      const listen = openBy[opposite(sender)].get(details.subscription);
      return listen === undefined ? NOTHING : { ...NOTHING, relation: 'subscription', to: listen.place };
    }
    return { ...NOTHING, ...taskOf(details) };
  }

  function progressOf(details: Details, sender: Direction): Correlation {
    const request =
      details.progressToken === null ? undefined : tokensBy[opposite(sender)].get(details.progressToken);
    return request === undefined ? NOTHING : { ...NOTHING, relation: 'progress', to: request.place };
  }

  function cancel(details: Details, sender: Direction): Correlation {
    if (details.cancels === null) return NOTHING;
    const request = openBy[sender].get(details.cancels) ?? listenOf(opposite(sender), details.cancels);
    if (request === undefined) return NOTHING;
    if (request.isCounted && !request.isCancelled) unanswered -= 1;
    request.isCancelled = true;
    return { ...NOTHING, relation: 'cancel', to: request.place };
  }

  function listenOf(asker: Direction, key: string): Open | undefined {
    const request = openBy[asker].get(key);
    return request?.canonical === 'subscriptions/listen' ? request : undefined;
  }

  function openRound(request: Open, answer: Details): void {
    if (request.details.round === null || answer.round === null) return;
    const key = roundKey(request.canonical, request.details.round.params, answer.round.state);
    const waiting = rounds.get(key) ?? [];
    waiting.push({ place: request.place, keys: answer.round.keys });
    rounds.set(key, waiting);
    forgetOldest(rounds, maxOpen);
  }

  function continuedRound(
    canonical: string,
    { round }: Details,
  ): { relation: 'round'; to: Place } | undefined {
    if (round === null || (round.state === 0 && round.keys.length === 0)) return undefined;
    const key = roundKey(canonical, round.params, round.state);
    const waiting = rounds.get(key);
    const at = waiting?.findIndex(({ keys }) => round.keys.every((name) => keys.includes(name))) ?? -1;
    const [before] = waiting?.splice(at, at === -1 ? 0 : 1) ?? [];
    if (waiting?.length === 0) rounds.delete(key);
    return before === undefined ? undefined : { relation: 'round', to: before.place };
  }

  function taskOf({ taskId }: Details): { relation: 'task'; to: Place } | undefined {
    const began = taskId === null ? undefined : tasks.get(taskId);
    return began === undefined ? undefined : { relation: 'task', to: began };
  }

  return { add, unanswered: () => unanswered };
}

function resultOutcome({ isToolError, resultType }: Details): Outcome {
  if (resultType === 'input_required') return 'input-required';
  return isToolError ? 'tool-error' : 'ok';
}

function roundKey(canonical: string, params: number, state: number): string {
  return `${canonical} ${params} ${state}`;
}

function forgetOldest<V>(map: Map<string, V>, max: number): void {
  if (map.size <= max) return;
  const [oldest] = map.keys();
  if (oldest !== undefined) map.delete(oldest);
}
