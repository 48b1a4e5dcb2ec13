import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NumberMap } from '../../src/protocol/number-map.ts';

/** Few, so that they meet; some of them far apart, but of one place. */
const KEY = fc.oneof(
  fc.integer({ min: 1, max: 200 }),
  fc.integer({ min: 0, max: 200 }).map((times) => 7 + times * 64),
  fc.integer({ min: 0, max: 20 }).map((less) => 0xffff_ffff - less),
);

test('whatever is put in and taken out, in whatever order, it has what a Map has', () => {
  const step = fc.record({ key: KEY, isDeletion: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), (steps) => {
      const numbers = new NumberMap<number>();
      const model = new Map<number, number>();
      for (const [i, { key, isDeletion }] of steps.entries()) {
        if (isDeletion) {
          numbers.delete(key);
          model.delete(key);
        } else {
          numbers.set(key, i);
          model.set(key, i);
        }
        expect(numbers.size).toBe(model.size);
        expect(numbers.get(key)).toBe(model.get(key));
      }
      for (const { key } of steps) expect(numbers.get(key)).toBe(model.get(key));
      const byKey = [...model].sort(([a], [b]) => a - b).map(([, value]) => value);
      expect(numbers.values()).toEqual(byKey);
      numbers.clear();
      for (const { key } of steps) expect(numbers.get(key)).toBeUndefined();
      expect(numbers.size).toBe(0);
    }),
  );
});

const WORDS = 128;

const PASSING = 60_000;

/** Nothing is there long enough to be found twice, which would make it old. */
const COLLECTED_EVERY = 500;

test.each([100, 200, 300, 400])(
  'of %i that are there at once, what is deleted is collected young',
  (most) => {
    setFlagsFromString('--expose-gc');
    const collectYoung: () => void = runInNewContext("() => gc({ type: 'minor' })");
    const numbers = new NumberMap<number[]>();
    // What others left in this process is old first.
    collectYoung();
    collectYoung();
    const before = bytesOfOldObjects();
    for (let key = 1; key <= PASSING; key += 1) {
      numbers.set(key, new Array<number>(WORDS).fill(key));
      if (key > most) numbers.delete(key - most);
      if (key % COLLECTED_EVERY === 0) collectYoung();
    }
    expect(numbers.size).toBe(most);
    expect(bytesOfOldObjects() - before).toBeLessThan((PASSING / 20) * WORDS * 8);
  },
);

function bytesOfOldObjects(): number {
  return getHeapSpaceStatistics().find((space) => space.space_name === 'old_space')?.space_used_size ?? 0;
}
