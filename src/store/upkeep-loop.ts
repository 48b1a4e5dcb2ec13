/** When the writer's thread does its upkeep: between the frames, and the less the more of them are waiting. */
import type { Store } from './open.ts';
import { createPace } from './pace.ts';
import { pause } from './pause.ts';
import type { RetentionLimits } from './retention.ts';
import { troubleOf } from './trouble.ts';
import { createUpkeep, type Progress, type Upkeep } from './upkeep.ts';

export type UpkeepLoop = {
  /** Another store is open now; undefined: none. */
  open(store: Store | undefined): void;
  /** Frames came, the newest of them so many milliseconds after it had passed. */
  onTraffic(lagMs: number): void;
  /** Something was stored, or time has passed. */
  poke(): void;
  /** Nothing follows: does what is left, for so many milliseconds at most. */
  finish(maxMs: number): void;
};

/** Shares of the thread's time while frames come. Deleting takes about as long as storing does. */
const SHARE = 0.1;
const SHARE_PRESSED = 0.5;
/** Frames are late: what waits in memory must not grow. A limit that is exceeded for a while is better than lost frames. */
const SHARE_BEHIND = 0.02;
const BEHIND_FROM_MS = 200;
const QUIET_AFTER_MS = 500;
/** The first calls of a session have the processors to themselves. */
const BEGINS_AFTER_MS = 500;
/** For the turn of another process to end. */
const WAITING_MS = 1000;
const WAITING_PRESSED_MS = 50;

export function createUpkeepLoop(limits: RetentionLimits, onNotice: (text: string) => void): UpkeepLoop {
  const pace = createPace(share);
  let upkeep: Upkeep | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lag = 0;
  let trafficAt = Number.NEGATIVE_INFINITY;

  function share(): number {
    if (lag > BEHIND_FROM_MS) return SHARE_BEHIND;
    return upkeep?.isPressed() ? SHARE_PRESSED : SHARE;
  }

  function poke(): void {
    plan(pace.waitMs(performance.now()));
  }

  function plan(ms: number): void {
    if (upkeep !== undefined) timer ??= setTimeout(work, ms);
  }

  function work(): void {
    timer = undefined;
    const began = performance.now();
    const progress = tryAdvance(pace.sliceMs(began), began - trafficAt >= QUIET_AFTER_MS);
    pace.onWorked(began, performance.now());
    if (progress === 'more') poke();
    if (progress === 'waiting') plan(upkeep?.isPressed() ? WAITING_PRESSED_MS : WAITING_MS);
  }

  /** Trouble costs no data, and passes or comes to light with the frames; what does not is told once. */
  function tryAdvance(maxMs: number, isQuiet: boolean): Progress {
    try {
      return upkeep?.advance(maxMs, isQuiet) ?? 'done';
    } catch (error) {
      const { text, isPassing } = troubleOf(error);
      if (!isPassing) {
        upkeep = undefined;
        onNotice(`old sessions cannot be pruned: ${text}`);
      }
      return 'done';
    }
  }

  return {
    open(store) {
      upkeep = store && createUpkeep(store, limits, onNotice);
      plan(BEGINS_AFTER_MS);
    },
    onTraffic(lagMs) {
      trafficAt = performance.now();
      pace.onTraffic(trafficAt);
      lag = lagMs;
    },
    poke,
    finish(maxMs) {
      clearTimeout(timer);
      upkeep?.keepOwn();
      const deadline = performance.now() + maxMs;
      while (performance.now() < deadline) {
        const progress = tryAdvance(deadline - performance.now(), false);
        // The other one sees to a store that is hardly above its limit.
        if (progress === 'done' || (progress === 'waiting' && !upkeep?.isPressed())) break;
        if (progress === 'waiting') pause(WAITING_PRESSED_MS);
      }
      upkeep?.end();
      upkeep = undefined;
    },
  };
}
