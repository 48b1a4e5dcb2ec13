/**
 * What the writer’s thread says without a message, so that it is heard also by who waits and hears nothing else; and when it has said
 * nothing for too long.
 */

/**
 * Where stands what: a number that counts up while the writer is at work, whether all that it needs is loaded, and whether it has
 * stored the end.
 */
export const BEATS = { count: 0, isLoaded: 1, isClosed: 2 } as const;

/** So often it is looked whether the thread is still there to be waited for. */
const LOOK_EVERY_MS = 20;

/** A writer that shows no sign of life for so long, while something waits for it, is stuck. */
const SILENT_MS = 5000;

/**
 * One commit may take that long for each megabyte that waits, on a slow disk that others write to as well, and shows no sign
 * of life meanwhile.
 */
const SILENT_MS_PER_MB = 200;

/** The same at the end, once a signal asks for it. */
const SILENT_AT_SIGNAL_MS = 1000;

const LAST_MOMENT_MS = 500;

/** Beside many others a thread takes long to start: until it has begun it is given more time. */
const STARTING_MS = 20_000;

const WATCH_AT_END_EVERY_MS = 50;

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export function raise(beats: Int32Array<SharedArrayBuffer>, flag: number): void {
  Atomics.store(beats, flag, 1);
  Atomics.notify(beats, flag);
}

/** Waits until a flag is raised. False: it was not within so many milliseconds, or nobody is there any more to raise it. */
export function isRaised(beats: Int32Array, flag: number, withinMs: number, isThere: () => boolean): boolean {
  const deadline = performance.now() + withinMs;
  while (Atomics.load(beats, flag) === 0) {
    const leftMs = deadline - performance.now();
    if (leftMs <= 0 || !isThere()) return false;
    Atomics.wait(beats, flag, 0, Math.min(leftMs, LOOK_EVERY_MS));
  }
  return true;
}

/** Watches for signs of life of the writer. */
type Watch = {
  heard(): void;
  /** There was none for too long, though there is something to do. */
  isSilent(): boolean;
  /** Settles when it is silent for too long, from now on. */
  silence(): Promise<void>;
  end(): void;
};

/** `isGuest`: the signals are not ours. `waitingBytes` null: it has nothing to do. */
export function createSilenceWatch(
  beats: Int32Array,
  isGuest: boolean,
  waitingBytes: () => number | null,
): Watch {
  let heardAt = performance.now();
  let beat = 0;
  let timer: NodeJS.Timeout | undefined;
  let limit = STARTING_MS;
  let isHurried = false;
  const hurry = () => {
    isHurried = true;
    limit = SILENT_AT_SIGNAL_MS;
  };

  function isTooSilent(isAsked: boolean): boolean {
    const now = Atomics.load(beats, BEATS.count);
    if (now !== beat || !isAsked) heardAt = performance.now();
    if (now !== 0 && !isHurried) limit = SILENT_MS;
    beat = now;
    return performance.now() - heardAt > limit + patience();
  }

  function patience(): number {
    return isHurried ? 0 : ((waitingBytes() ?? 0) / 1e6) * SILENT_MS_PER_MB;
  }

  return {
    heard() {
      heardAt = performance.now();
    },
    isSilent: () => isTooSilent(waitingBytes() !== null),
    silence() {
      // Who was silent before has a moment left.
      const least = performance.now() - limit - patience() + LAST_MOMENT_MS;
      heardAt = waitingBytes() === null ? performance.now() : Math.max(heardAt, least);
      if (!isGuest) for (const signal of SIGNALS) process.on(signal, hurry);
      return new Promise((resolve) => {
        timer = setInterval(() => isTooSilent(true) && resolve(), WATCH_AT_END_EVERY_MS);
        if (isGuest) timer.unref();
      });
    },
    end() {
      clearInterval(timer);
      for (const signal of SIGNALS) process.off(signal, hurry);
    },
  };
}
