/**
 * Keeps a store within its limits while a session is recorded into it, in the background: in the writer's thread, in slices,
 * whenever frames leave time. It deletes as `prune` does, but for one thing: it never rewrites the store, because recorders
 * would wait for that; so scraps of rows may stay in the unused part of pages until the next `tapedeck prune`.
 */

import { hostname } from 'node:os';
import { pause, type Store, WAL_MOST_BYTES } from '../file/open.ts';
import { processStarted as processStartedAt } from '../file/process.ts';
import { troubleOf } from '../file/trouble.ts';
import { createTurn } from '../file/turn.ts';
import { createRemoval } from '../write/removal.ts';
import { hideDepartures } from './departure.ts';
import type { UpkeepRules } from './limits.ts';
import { createPace } from './pace.ts';
import type { Packing } from './pack.ts';
import { type Candidate, candidates, planRetention } from './retention.ts';
import { bytesOfWal, bytesOnDisk, giveBackPages, isGivingBack, preparePages, truncateWal } from './scrub.ts';

type Upkeep = {
  /** Works for about `maxMs`. `isQuiet`: no frames are coming. Throws SQLite's errors. */
  advance(maxMs: number, isQuiet: boolean): Progress;
  /** Whether the store is so far above its limit that deleting must not take its time. */
  isPressed(): boolean;
  /** Our sessions have ended now: they stay, or who records into a small store would find nothing. */
  keepOwn(): void;
  /** Lets the next one go on. */
  end(): void;
};

/** `waiting`: there is something to do, and another process is at it. */
type Progress = 'done' | 'more' | 'waiting';

/** Age and number of sessions change slowly, and asking for them takes longer than asking for the size. */
const SLOW_CHECK_EVERY_MS = 60_000;

/** Where nothing can be deleted, it is not tried again before this. */
const RETRY_AFTER_MS = 5000;

/** So much of the limit is left to the WAL, within bounds. */
const WAL_SHARE = 1 / 8;

const WAL_LEAST_BYTES = 1024 * 1024;

const PRESSED_FROM = 1.05;

/** Somewhat more is deleted than has to be, because looking for what to delete takes time too. */
const AIM = 0.98;

/** Between two attempts at a WAL that is too large: each may hold up writers for some tens of milliseconds. */
const WAL_PAUSE_MS = 250;

/** The WAL is to be carried over into the store when it has grown to this, so that both together keep to the limit. */
export function walBytesWithin(maxBytes: number | null): number {
  if (maxBytes === null) return WAL_MOST_BYTES;
  return Math.min(WAL_MOST_BYTES, Math.max(WAL_LEAST_BYTES, maxBytes * WAL_SHARE));
}

/** What packs the sessions that are due in a store; null: none is. */
type FindPacking = (store: Store) => Packing | null;

/**
 * `onNotice` is called once if the limit cannot be kept, and once if sessions go that were still to be shipped. `onUnshipped`: they do
 * not go, and this is called in their place.
 */
function createUpkeep(
  store: Store,
  limits: UpkeepRules,
  findPacking: FindPacking,
  onNotice: (text: string) => void,
  onUnshipped: ((text: string) => void) | null,
): Upkeep {
  const turn = createTurn(store);
  const removal = createRemoval(store);
  const pages = preparePages(store);
  const canGiveBack = isGivingBack(store);
  const maxBytes = limits.maxBytes ?? Number.POSITIVE_INFINITY;
  /** For the sessions, without the WAL. */
  const maxInUse = limits.maxBytes === null ? null : maxBytes - walBytesWithin(maxBytes);
  const started = processStartedAt(process.pid);
  let isOurTurn = false;
  /** From then on our own sessions stay. */
  let isLast = false;
  /** Whether the WAL has what was deleted. */
  let isWalDirty = false;
  let hasNotified = false;
  let hasToldLoss = false;
  let slowCheckAt = 0;
  let walNotBefore = 0;
  let notBefore = 0;
  let packing: Packing | null = null;

  /** Something is to be deleted, or was not deleted to its end. */
  function isDue(): boolean {
    const isOverSize = maxInUse !== null && pages.bytesInUse() > maxInUse;
    return isOverSize || performance.now() >= slowCheckAt || removal.isDue();
  }

  function hasSpaceToGiveBack(isQuiet: boolean): boolean {
    return canGiveBack && pages.free() > 0 && (isQuiet || bytesOnDisk(store) > maxBytes);
  }

  /** Beside other recorders nobody may find the moment to begin the WAL anew. */
  function isWalTooLarge(): boolean {
    if (limits.maxBytes === null || performance.now() < walNotBefore) return false;
    return bytesOfWal(store) > 2 * walBytesWithin(maxBytes);
  }

  /** True: there is something to remove now. */
  function choose(): boolean {
    slowCheckAt = performance.now() + SLOW_CHECK_EVERY_MS;
    const inUse = pages.bytesInUse();
    const isOverSize = maxInUse !== null && inUse > maxInUse;
    const { departures, excessBytes } = planRetention(
      candidates(store),
      {
        ...limits,
        maxBytes: maxInUse === null ? null : isOverSize ? maxInUse * AIM : Number.POSITIVE_INFINITY,
        maxUnshippedBytes: limits.maxUnshippedBytes ?? maxInUse,
      },
      { now: Date.now() * 1000, bytesInUse: inUse, isKept },
    );
    if (departures.length === 0) {
      if (excessBytes > 0 && !isLast) tellExcess();
      packing ??= findPacking(store);
      return false;
    }
    const unshipped = departures.filter(({ reason }) => reason === 'unshipped');
    if (unshipped.length > 0 && onUnshipped !== null) {
      notBefore = performance.now() + RETRY_AFTER_MS;
      onUnshipped('what is not shipped yet takes more than --max-unshipped');
      return false;
    }
    const lost = hideDepartures(store, departures, false);
    if (lost > 0 && !hasToldLoss) {
      hasToldLoss = true;
      onNotice(
        `${lost} sessions had to go before they were shipped, because of --max-unshipped; the engine is told. See: tapedeck ship status`,
      );
    }
    return true;
  }

  function isKept({ host, pid, processStarted }: Candidate): boolean {
    return isLast && pid === process.pid && host === hostname() && processStarted === started;
  }

  function tellExcess(): void {
    notBefore = performance.now() + RETRY_AFTER_MS;
    if (!hasNotified)
      onNotice('open sessions alone take more than --max-size; they are not deleted until they end');
    hasNotified = true;
  }

  /** The end of a recording does not wait for it. */
  const hasToPack = () => packing !== null && !isLast;

  function work(maxMs: number, isQuiet: boolean): void {
    if (isWalTooLarge()) {
      walNotBefore = performance.now() + WAL_PAUSE_MS;
      truncateWal(store, 1);
    } else if (removal.isDue()) {
      isWalDirty = true;
      removal.advance(maxMs);
    } else if (isDue() && choose()) {
      // The next slice removes what was chosen.
    } else if (packing !== null && hasToPack()) {
      isWalDirty = true;
      if (packing.advance(maxMs)) packing = null;
    } else if (hasSpaceToGiveBack(isQuiet)) {
      isWalDirty = true;
      giveBackPages(store);
    } else if (isQuiet && isWalDirty) {
      isWalDirty = !truncateWal(store, 1);
      if (isWalDirty) notBefore = performance.now() + RETRY_AFTER_MS;
    }
  }

  function end(): void {
    if (isOurTurn) turn.end();
    isOurTurn = false;
  }

  return {
    advance(maxMs, isQuiet) {
      const mayWork = performance.now() >= notBefore;
      const hasWork =
        mayWork &&
        (isDue() || isWalTooLarge() || hasToPack() || hasSpaceToGiveBack(isQuiet) || (isQuiet && isWalDirty));
      if (!hasWork) {
        end();
        return 'done';
      }
      const wasOurTurn = isOurTurn;
      isOurTurn = isOurTurn ? turn.renew() : turn.take();
      if (!isOurTurn) return 'waiting';
      // Others had the turn meanwhile: what was due may be gone.
      if (!wasOurTurn && packing !== null) packing = findPacking(store);
      work(maxMs, isQuiet);
      return 'more';
    },
    keepOwn() {
      isLast = true;
    },
    isPressed: () => maxInUse !== null && pages.bytesInUse() > maxInUse * PRESSED_FROM,
    end,
  };
}

/** When the writer's thread does its upkeep: between the frames, and the less the more of them are waiting. */

type UpkeepLoop = {
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

/** On a busy machine frames may be late all day: until they are this late, a store above its limit gets its ordinary share. */
const FAR_BEHIND_FROM_MS = 2000;

const QUIET_AFTER_MS = 500;

/** The first calls of a session have the processors to themselves. */
const BEGINS_AFTER_MS = 500;

/** For the turn of another process to end. */
const WAITING_MS = 1000;

const WAITING_PRESSED_MS = 50;

export function createUpkeepLoop(
  limits: UpkeepRules,
  onNotice: (text: string) => void,
  onUnshipped: ((text: string) => void) | null = null,
): UpkeepLoop {
  const pace = createPace(share);
  const { packAfterMs } = limits;
  let findPacking: FindPacking = () => null;
  if (packAfterMs !== null)
    void import('./pack.ts').then(({ createPacking, packable }) => {
      findPacking = (store) => {
        const due = packable(store, packAfterMs);
        return due.length === 0 ? null : createPacking(store, due);
      };
    });
  let upkeep: Upkeep | undefined;
  let timer: NodeJS.Timeout | undefined;
  let lag = 0;
  let trafficAt = Number.NEGATIVE_INFINITY;

  function share(): number {
    const isPressed = upkeep?.isPressed() === true;
    if (lag > BEHIND_FROM_MS) return isPressed && lag < FAR_BEHIND_FROM_MS ? SHARE : SHARE_BEHIND;
    return isPressed ? SHARE_PRESSED : SHARE;
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

  /** Trouble costs no data, and passes or comes to light with the frames; what does not is reported once. */
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
      upkeep = store && createUpkeep(store, limits, (own) => findPacking(own), onNotice, onUnshipped);
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
