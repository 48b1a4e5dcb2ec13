/**
 * Requests that were sent to a live server and have no answer yet, by the ids that they were sent with, oldest first. Each
 * has a time limit, which starts anew whenever the server shows that it still works on it.
 */

// Tests may replace the global timers; a live server keeps to the real ones.
import { clearTimeout, setTimeout } from 'node:timers';

export type PendingCalls<C> = {
  /** Without a limit the server may take forever, as with subscriptions. */
  add(id: string, call: C, hasLimit?: boolean): void;
  get(id: string): C | undefined;
  /** Starts the time limit anew. Does nothing for a call without one, or one that is not pending. */
  restart(id: string): void;
  /** Takes a call out and stops its clock. Returns undefined where it is not pending. */
  remove(id: string): C | undefined;
  removeAll(): C[];
  /** Returns a copy, so calls may be removed while it is walked. */
  all(): C[];
  count(): number;
};

/** `onTimeout` is called with each call that has run out of time, after it was removed. */
export function createPendingCalls<C>(
  timeoutMs: number,
  onTimeout: (call: C, id: string) => void,
): PendingCalls<C> {
  const pending = new Map<string, { call: C; timer: NodeJS.Timeout | null }>();

  function startTimer(id: string): NodeJS.Timeout {
    return setTimeout(() => {
      const call = remove(id);
      if (call !== undefined) onTimeout(call, id);
    }, timeoutMs);
  }

  function remove(id: string): C | undefined {
    const entry = pending.get(id);
    if (entry === undefined) return undefined;
    pending.delete(id);
    if (entry.timer !== null) clearTimeout(entry.timer);
    return entry.call;
  }

  function all(): C[] {
    return Array.from(pending.values(), ({ call }) => call);
  }

  return {
    add(id, call, hasLimit = true) {
      pending.set(id, { call, timer: hasLimit ? startTimer(id) : null });
    },
    get: (id) => pending.get(id)?.call,
    restart(id) {
      const entry = pending.get(id);
      if (entry === undefined || entry.timer === null) return;
      clearTimeout(entry.timer);
      entry.timer = startTimer(id);
    },
    remove,
    removeAll() {
      const calls = all();
      for (const id of pending.keys()) remove(id);
      return calls;
    },
    all,
    count: () => pending.size,
  };
}
