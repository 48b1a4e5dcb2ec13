/** When what was recorded is sent again: at once, or after as much time as passed then, at any speed. */
// Not the globals: tests replace these by clocks of their own, which would hold up every answer.

import { clearImmediate, clearTimeout, setImmediate, setTimeout } from 'node:timers';

/** Recorded time: none of it, or so many times as fast. */
export type Speed = 'fast' | number;

export type Timetable = {
  /**
   * Does something so many microseconds of recorded time later. `order`: the first or a later message for a request, or one
   * that belongs to none. `leastMs`: not sooner than so long from now, at any speed. Returns what prevents it; null where it
   * is done already.
   */
  schedule(
    micros: number,
    order: 'first' | 'next' | 'unasked',
    action: () => void,
    leastMs?: number,
  ): (() => void) | null;
  /**
   * Settles when everything due has been done. At recorded speed, what belongs to no request is not waited for: servers
   * go when their client does.
   */
  idle(): Promise<void>;
  /** Nothing that is still to come is done, and nothing keeps the process alive. */
  end(): void;
};

/** Node takes a longer one for none. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Fast, each message but the first gets a turn of its own: clients that find progress and answer in one piece of input may
 * take the answer first, and drop the progress (the official SDK does).
 */
export function createTimetable(speed: Speed): Timetable {
  /** Actions that are still to come: what prevents each. */
  const waiting = new Set<() => void>();
  /** How many of them `idle` waits for. */
  let pending = 0;
  let onIdle = () => {};
  let isEnded = false;

  return {
    schedule(micros, order, action, leastMs = 0) {
      if (order === 'first' && (speed === 'fast' || micros <= 0)) {
        action();
        return null;
      }
      const isAwaited = speed === 'fast' || order !== 'unasked';
      const settle = (act: () => void) => {
        if (!waiting.delete(cancel)) return;
        if (isAwaited) pending -= 1;
        if (!isEnded) act();
        if (pending === 0) onIdle();
      };
      const stop = after(delayOf(micros, speed, leastMs), () => settle(action));
      const cancel = () => {
        stop();
        settle(() => {});
      };
      waiting.add(cancel);
      if (isAwaited) pending += 1;
      return cancel;
    },
    idle: () =>
      new Promise((resolve) => {
        onIdle = resolve;
        if (pending === 0) resolve();
      }),
    end() {
      isEnded = true;
      for (const cancel of waiting) cancel();
    },
  };
}

/** Null for none but a turn. */
function delayOf(micros: number, speed: Speed, leastMs: number): number | null {
  if (speed === 'fast') return leastMs > 0 ? leastMs : null;
  return Math.max(leastMs, Math.min(micros / 1000 / speed, MAX_TIMEOUT_MS));
}

/** Returns what prevents it. */
function after(ms: number | null, action: () => void): () => void {
  if (ms === null) {
    const immediate = setImmediate(action);
    return () => clearImmediate(immediate);
  }
  const timer = setTimeout(action, ms);
  return () => clearTimeout(timer);
}
