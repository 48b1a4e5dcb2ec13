import { expect, test } from 'vitest';
import { createPace } from '../../../src/store/keep/pace.ts';

test('without traffic all the time is there for indexing', () => {
  const pace = createPace();
  for (let now = 0; now < 1000; now += 10) {
    expect(pace.waitMs(now)).toBe(0);
    expect(pace.sliceMs(now)).toBe(10);
    pace.onWorked(now, now + 10);
  }
});

test('under steady traffic indexing gets a fiftieth of the time', () => {
  const pace = createPace();
  let worked = 0;
  let now = 0;
  while (now < 100_000) {
    pace.onTraffic(now);
    const wait = pace.waitMs(now);
    if (wait > 0) {
      // The traffic goes on meanwhile.
      now += Math.min(wait, 5);
      continue;
    }
    const slice = pace.sliceMs(now);
    pace.onWorked(now, now + slice);
    now += slice;
    worked += slice;
  }
  expect(worked / now).toBeGreaterThan(0.015);
  expect(worked / now).toBeLessThan(0.025);
});

test('between two batches of steady calls there is no pause, and a slice is short', () => {
  const pace = createPace();
  for (let now = 0; now < 3000; now += 30) {
    pace.onTraffic(now);
    for (const between of [now + 1, now + 29]) {
      const slice = pace.sliceMs(between);
      expect(slice).toBeLessThanOrEqual(2);
      if (pace.waitMs(between) === 0) pace.onWorked(between, between + slice);
    }
  }
});

test('without a share nothing is indexed until traffic pauses, whatever was saved up, and then at once', () => {
  let share = 0.02;
  const pace = createPace(() => share);
  pace.onTraffic(0);
  expect(pace.waitMs(1)).toBe(0);
  share = 0;
  for (let now = 0; now < 3000; now += 30) {
    pace.onTraffic(now);
    expect(pace.waitMs(now + 29)).toBe(31);
    expect(pace.sliceMs(now + 29)).toBe(0);
  }
  expect(pace.waitMs(3030)).toBe(0);
  expect(pace.sliceMs(3030)).toBe(10);
});

test('traffic that goes on where a pause was waited for leaves no time for a slice', () => {
  const pace = createPace();
  pace.onTraffic(0);
  pace.onWorked(0, 200);
  for (let now = 200; now < 1000; now += 30) {
    pace.onTraffic(now);
    expect(pace.sliceMs(now + 29)).toBe(0);
  }
});

test('after a quiet while a single chunk is indexed at once', () => {
  const pace = createPace();
  pace.onTraffic(0);
  pace.onWorked(0, 200);
  pace.onTraffic(60_000);
  expect(pace.waitMs(60_000)).toBe(0);
});

test('when traffic stops, indexing waits no longer than for quiet', () => {
  const pace = createPace();
  pace.onTraffic(1000);
  pace.onWorked(1000, 2000);
  pace.onTraffic(2000);
  expect(pace.waitMs(2000)).toBe(60);
  expect(pace.waitMs(2055)).toBe(5);
  expect(pace.waitMs(2060)).toBe(0);
});
