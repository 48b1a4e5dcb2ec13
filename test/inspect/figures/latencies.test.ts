import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addLatencies,
  addLatency,
  histogram,
  noLatencies,
  percentiles,
} from '../../../src/inspect/figures/call-figures.ts';

const latency = fc.oneof(fc.integer({ min: 0, max: 20 }), fc.integer({ min: 0, max: 1e10 }));
const some = fc.array(latency, { minLength: 1, maxLength: 300 });

function collected(values: readonly number[]) {
  const latencies = noLatencies();
  for (const value of values) addLatency(latencies, value);
  return latencies;
}

test('percentiles are those of the sorted values, to half a per cent', () => {
  fc.assert(
    fc.property(some, fc.constantFrom(0.01, 0.5, 0.95, 0.99, 1), (values, share) => {
      const sorted = values.toSorted((a, b) => a - b);
      const exact = sorted[Math.max(1, Math.ceil(share * sorted.length)) - 1] ?? Number.NaN;
      const [got] = percentiles(collected(values), [share]);
      expect(Math.abs((got ?? Number.NaN) - exact)).toBeLessThanOrEqual(exact * 0.00501);
    }),
  );
});

test('latencies put together are as if they had been counted together', () => {
  fc.assert(
    fc.property(some, some, (first, second) => {
      const together = collected(first);
      addLatencies(together, collected(second));
      addLatencies(together, noLatencies());
      expect(together).toEqual(collected([...first, ...second]));
    }),
  );
});

test('every latency is in one bar of the histogram, and bars follow one another', () => {
  fc.assert(
    fc.property(some, (values) => {
      const bars = histogram(collected(values));
      expect(bars.reduce((sum, { count }) => sum + count, 0)).toBe(values.length);
      for (const [i, bar] of bars.entries()) if (i > 0) expect(bar.from).toBe(bars[i - 1]?.to);
      expect(bars[0]?.from).toBeLessThanOrEqual(Math.min(...values));
      expect(bars.at(-1)?.to).toBeGreaterThan(Math.max(...values));
    }),
  );
});

test('of no latencies there is no percentile and no bar', () => {
  expect(percentiles(noLatencies(), [0.5, 1])).toEqual([null, null]);
  expect(histogram(noLatencies())).toEqual([]);
});
