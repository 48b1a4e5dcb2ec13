/**
 * Says what answers a request that comes more often than it was recorded.
 *
 * Some requests repeat their last answer whatever `--repeat` says, because their number means nothing: clients send them
 * when they connect, when a cache ran out (`ttlMs`), or until something is over:
 *
 * | method                                             | why                                                    |
 * |----------------------------------------------------|--------------------------------------------------------|
 * | `initialize`, `server/discover`                    | every connection begins with it, probes come before    |
 * | `ping`                                             | by the clock                                           |
 * | `logging/setLevel`, `resources/subscribe`, `…/unsubscribe` | their answer is empty                          |
 * | every `…/list`                                     | a pure read, cached or not by the client's own rules   |
 * | `subscriptions/listen`                             | opened anew after every broken stream                  |
 * | `tasks/get`, `tasks/result`                        | polled; the last status is the final one               |
 * | `notifications/…` with an id                       | malformed, and nothing hangs on the answer             |
 *
 * Several recorded answers still come in their order first. What else the server sent for such a request is sent once
 * only: it may be what makes the client ask again.
 */

import type { Step } from '../recording/script.ts';

/** `error`: a miss; `last`: the last answer again; `cycle`: all answers again, from the first. */
export type Repeat = 'error' | 'last' | 'cycle';

const REPEATS_LAST = new Set([
  'initialize',
  'server/discover',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'subscriptions/listen',
  'tasks/get',
  'tasks/result',
]);

export function mayAlwaysRepeat(method: string): boolean {
  return REPEATS_LAST.has(method) || method.endsWith('/list') || method.startsWith('notifications/');
}

/** What holds for one method: never less than `last` for those that may always repeat, nor a cycle of them. */
export function repeatOf(method: string, repeat: Repeat): Repeat {
  return mayAlwaysRepeat(method) ? 'last' : repeat;
}

/** What a client gets again that asks again. A subscription is acknowledged, and stays open without its old news. */
export function repeatedSteps(method: string, steps: readonly Step[]): readonly Step[] {
  if (method === 'subscriptions/listen') return steps.slice(0, 1);
  return mayAlwaysRepeat(method) ? steps.filter(({ isAnswer }) => isAnswer) : steps;
}
