/**
 * How much of the writer's time the index may take, and the pruning of old sessions. Frames come first: while traffic flows,
 * indexing gets a small share of the time, saved up to a short while, in small slices; once it pauses, all of it. So ordinary
 * traffic is indexed at once, and a flood costs it nothing but the storing of its frames.
 */

export const INDEX_SHARE = 0.02;

/**
 * None, in a flood that the index cannot keep up with: what it takes then is taken from those who write, and hardly helps. While a
 * recorder is new that is more than its time, since V8 compiles what runs, on the processors of those who write.
 */
export const FLOOD_SHARE = 0;

const MAX_CREDIT_MS = 20;

/** Without traffic for so long, nobody is disturbed. Traffic that never stops comes in batches, twice in this time. */
const QUIET_AFTER_MS = 60;

/** Frames that arrive wait at most this long for a slice of indexing to end. */
const MAX_SLICE_MS = 10;

/**
 * While traffic flows a slice is shorter: a call may come to wait for the processor that it runs on, with another one idle.
 * With 5 ms, one call in a hundred took over a millisecond more.
 */
const MAX_BUSY_SLICE_MS = 2;

const LEAST_CREDIT_MS = 1;

/** On a busy machine a slice lasts long because others run meanwhile: that is no reason to do nothing for long afterwards. */
const MOST_DEBT_MS = 40;

type Pace = {
  onTraffic(now: number): void;
  onWorked(began: number, ended: number): void;
  /** Whole milliseconds until the next slice may begin. */
  waitMs(now: number): number;
  /** How long a slice that begins now may take; 0: none may, because traffic goes on that was to pause. */
  sliceMs(now: number): number;
};

/** All times in milliseconds of one monotonic clock. `share` of the time, while traffic flows; 0: nothing is done before it pauses. */
export function createPace(share: () => number = () => INDEX_SHARE): Pace {
  let credit = MAX_CREDIT_MS;
  let creditedAt = 0;
  let lastTraffic = Number.NEGATIVE_INFINITY;

  function addCredit(now: number): void {
    credit = Math.min(MAX_CREDIT_MS, credit + (now - creditedAt) * share());
    creditedAt = now;
  }

  return {
    onTraffic(now) {
      lastTraffic = now;
    },
    onWorked(began, ended) {
      addCredit(ended);
      credit = Math.max(credit - (ended - began), -MOST_DEBT_MS);
    },
    waitMs(now) {
      addCredit(now);
      const untilQuiet = Math.max(0, lastTraffic + QUIET_AFTER_MS - now);
      if (share() === 0) return Math.ceil(untilQuiet);
      if (credit >= LEAST_CREDIT_MS) return 0;
      const untilCredit = (LEAST_CREDIT_MS - credit) / share();
      return Math.ceil(Math.min(untilCredit, untilQuiet));
    },
    sliceMs(now) {
      addCredit(now);
      const isQuiet = now - lastTraffic >= QUIET_AFTER_MS;
      if (isQuiet) return MAX_SLICE_MS;
      return share() === 0 || credit < LEAST_CREDIT_MS ? 0 : Math.min(MAX_BUSY_SLICE_MS, credit);
    },
  };
}
