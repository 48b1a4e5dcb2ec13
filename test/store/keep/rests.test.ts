import { expect, onTestFinished, test, vi } from 'vitest';
import { createRests } from '../../../src/store/keep/rests.ts';

/** Works until it has rested so often, or for so long. */
function work(rest: () => void, until: () => boolean, mostMs: number): void {
  for (const began = performance.now(); !until() && performance.now() - began < mostMs; ) rest();
}

test.each(['little', 'much'])(
  'a thread at work where %s passes rests again and again, for less than a millisecond each time, and not where it is late',
  (what) => {
    const sleep = vi.spyOn(Atomics, 'wait');
    onTestFinished(() => sleep.mockRestore());
    let isLate = false;
    const { onBatch, rest } = createRests({ isLate: () => isLate, givesWay: false });
    onBatch(what === 'much' ? 200 * 1024 : 100);
    work(rest, () => sleep.mock.calls.length >= 3, 10_000);
    expect(sleep).toHaveBeenCalledTimes(3);
    for (const [, , , ms] of sleep.mock.calls) expect(ms).toBeLessThan(1);
    // Nobody wakes it: it sleeps to the end of its time.
    expect(new Set(sleep.mock.results.map(({ value }) => value))).toEqual(new Set(['timed-out']));
    isLate = true;
    work(rest, () => false, 20);
    expect(sleep).toHaveBeenCalledTimes(3);
  },
);

test('little work needs no rest', () => {
  const sleep = vi.spyOn(Atomics, 'wait');
  onTestFinished(() => sleep.mockRestore());
  const { onBatch, rest } = createRests({ isLate: () => false, givesWay: false });
  onBatch(200 * 1024);
  for (let i = 0; i < 3; i += 1) rest();
  expect(sleep).not.toHaveBeenCalled();
});
