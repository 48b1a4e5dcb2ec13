/** The order in which messages go on, where one is to go behind others: over stdio in one direction, over HTTP in all that is open. */

import { clearTimeout, setTimeout } from 'node:timers';

/** Where too few others come, one that was to go behind them goes on after so many milliseconds. */
const REORDER_MS = 1000;

export type Turns = {
  /** Calls `go` once so many others have gone on, or after a second. Returns how to give that up. */
  behind(count: number, go: () => void): () => void;
  /** One has gone on. */
  passed(): void;
  /** No others come: all that wait go on. */
  release(): void;
};

type Waiting = { left: number; go: () => void };

export function createTurns(): Turns {
  const waiting = new Set<Waiting>();
  return {
    behind(count, go) {
      const one: Waiting = {
        left: count,
        go() {
          clearTimeout(timer);
          if (waiting.delete(one)) go();
        },
      };
      const timer = setTimeout(one.go, REORDER_MS);
      waiting.add(one);
      return () => {
        clearTimeout(timer);
        waiting.delete(one);
      };
    },
    passed() {
      for (const one of waiting) one.left -= 1;
      for (const one of waiting) if (one.left <= 0) one.go();
    },
    release() {
      for (const one of waiting) one.go();
    },
  };
}
