import { readFileSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { createRests } from '../../../src/store/keep/rests.ts';

vi.mock('node:os', async (load) => ({ ...(await load<object>()), setPriority: vi.fn() }));
vi.mock('node:fs', async (load) => ({ ...(await load<object>()), readFileSync: vi.fn() }));

beforeEach(() => vi.mocked(setPriority).mockClear());

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

/** A thread has a module of its own: what it has given away stays away. */
async function newThread(givesWay: boolean, atWorkPerProcessor: number) {
  const atWork = atWorkPerProcessor * availableParallelism();
  vi.mocked(readFileSync).mockReturnValue(`0.50 0.40 0.30 ${atWork}/400 12345\n`);
  vi.resetModules();
  const { createRests } = await import('../../../src/store/keep/rests.ts');
  return createRests({ isLate: () => false, givesWay });
}

test.runIf(process.platform === 'linux')(
  'a thread gives way to all others, once, where much passes by stdio and the machine is not crowded',
  async () => {
    const { onBatch } = await newThread(true, 1);
    onBatch(100 * 1024);
    expect(setPriority).not.toHaveBeenCalled();
    onBatch(256 * 1024);
    onBatch(256 * 1024);
    expect(setPriority).toHaveBeenCalledTimes(1);
    expect(setPriority).toHaveBeenCalledWith(expect.any(Number), 10);
  },
);

test.each([
  ['the machine is crowded', true, 4],
  ['it is not stdio', false, 1],
] as const)('a thread does not give way where %s', async (_why, givesWay, atWork) => {
  const { onBatch } = await newThread(givesWay, atWork);
  onBatch(256 * 1024);
  expect(setPriority).not.toHaveBeenCalled();
});
