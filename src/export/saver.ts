/** Saves soon after there is something to save, but does not spend its life on it. */

// Tests replace the globals by clocks of their own.
import { clearTimeout, setTimeout } from 'node:timers';

export type Saver = {
  /** There is something to save. */
  soon(): void;
  /** Saves what is there. Rejects with why it cannot be saved. */
  now(): Promise<void>;
};

const SOON_MS = 300;
/** So many times as long as the last save took passes before the next one. */
const REST = 10;

/** `save` runs once at a time. What it fails with is forgotten but for `now`: it is tried again. */
export function createSaver(save: () => Promise<void>): Saver {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let restMs = SOON_MS;

  function run(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const next = running.then(async () => {
      const startedAt = performance.now();
      await save();
      restMs = Math.max(SOON_MS, (performance.now() - startedAt) * REST);
    });
    running = next.catch(() => {});
    return next;
  }

  return {
    soon() {
      timer ??= setTimeout(() => void run().catch(() => {}), restMs);
    },
    now: run,
  };
}
