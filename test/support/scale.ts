import { test } from 'vitest';

/**
 * How much of a test is run. `npm run test:full` runs all; `npm test` a tenth of what is only more of the same: random
 * cases, kills, megabytes, samples of a corpus. What is asserted is the same.
 */
export const IS_FULL = process.env['TAPEDECK_TESTS'] === 'full';

/** `full`, or a tenth of it, but not less than `least`. */
export function scale(full: number, least = 1): number {
  return IS_FULL ? full : Math.min(full, Math.max(least, Math.round(full / 10)));
}

/** All of the cases, or every seventh: a step that meets every client and every form of the corpora. */
export function sample<T>(cases: readonly T[]): readonly T[] {
  return IS_FULL ? cases : cases.filter((_, i) => i % 7 === 0);
}

/**
 * A test that the full run alone has: what it shows, another one shows by another transport, at another moment or with less of
 * it. Vitest counts it as skipped elsewhere.
 */
export const inFull: ReturnType<typeof test.runIf> = test.runIf(IS_FULL);
