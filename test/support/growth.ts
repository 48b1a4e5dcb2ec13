/** Holds code to time that grows with the length of its input alone. */
import { expect } from 'vitest';
import { scale } from './scale.ts';

const SMALL = 64 * 1024;

const LARGE = 16 * SMALL;

/** Sixteen times the text may take sixteen times as long; three times that is noise. A square would be 256 times. */
const MOST_GROWTH = 48;

/** What is cheaper than this is lost in noise: it counts as if it had cost so much. */
const NOISE_MS = 20;

/** What costs less in 64 KB is not measured in 1 MB. */
const SUSPICIOUS_MS = scale(10) === 10 ? 20 : 400;

/** From Node 23.9 on: of this thread alone. */
const { threadCpuUsage } = process as { threadCpuUsage?: () => NodeJS.CpuUsage };

const usage = threadCpuUsage ?? (() => process.cpuUsage());

/** Processor time, so that what else the machine does is not counted; the least of a few, as other tests' threads may be. */
function costMs(run: () => void, enough: number): number {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 3 && least > enough; i += 1) {
    const { user, system } = usage();
    run();
    const after = usage();
    least = Math.min(least, (after.user - user + after.system - system) / 1000);
  }
  return least;
}

/** Runs it on 64 KB and 1 MB of a text, again and again. */
export function expectLinear(unit: string, run: (bytes: Buffer) => void): void {
  const bytes = Buffer.alloc(SMALL, unit);
  const small = costMs(() => run(bytes), SUSPICIOUS_MS);
  if (small < SUSPICIOUS_MS) return;
  const more = Buffer.alloc(LARGE, unit);
  const most = MOST_GROWTH * Math.max(small, NOISE_MS);
  const large = costMs(() => run(more), most);
  expect(large, `${JSON.stringify(unit.slice(0, 80))}: ${small} ms, then ms`).toBeLessThan(most);
}
