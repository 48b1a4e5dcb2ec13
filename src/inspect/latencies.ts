/**
 * Latencies in little memory, however many there are: counted by classes that are 1 % wide, so that percentiles are exact to
 * half a per cent, and counts of several sessions can be put together.
 */

export type Latencies = {
  /** How many there are of each class. */
  classes: Map<number, number>;
  count: number;
  /** Microseconds; 0 where there are none. */
  least: number;
  most: number;
};

const WIDTH = Math.log(1.01);

export function noLatencies(): Latencies {
  return { classes: new Map(), count: 0, least: 0, most: 0 };
}

/** Adds one of so many microseconds. */
export function addLatency(to: Latencies, microseconds: number): void {
  const latency = Math.max(0, microseconds);
  addCount(to, classOf(latency), 1);
  to.least = to.count === 0 ? latency : Math.min(to.least, latency);
  to.most = Math.max(to.most, latency);
  to.count += 1;
}

export function addLatencies(to: Latencies, more: Latencies): void {
  if (more.count === 0) return;
  for (const [number, count] of more.classes) addCount(to, number, count);
  to.least = to.count === 0 ? more.least : Math.min(to.least, more.least);
  to.most = Math.max(to.most, more.most);
  to.count += more.count;
}

function addCount({ classes }: Latencies, number: number, count: number): void {
  classes.set(number, (classes.get(number) ?? 0) + count);
}

/** Class 0 is below one microsecond. */
function classOf(microseconds: number): number {
  return microseconds < 1 ? 0 : 1 + Math.floor(Math.log(microseconds) / WIDTH);
}

function middleOf(number: number): number {
  return number === 0 ? 0 : Math.exp((number - 0.5) * WIDTH);
}

/** For each share, such as 0.95, the latency in microseconds that it does not exceed (the nearest rank); null for none. */
export function percentiles(latencies: Latencies, shares: readonly number[]): (number | null)[] {
  const sorted = [...latencies.classes].toSorted(([a], [b]) => a - b);
  return shares.map((share) => (latencies.count === 0 ? null : latencyAt(latencies, sorted, share)));
}

function latencyAt(
  { count, least, most }: Latencies,
  sorted: readonly [number: number, count: number][],
  share: number,
): number {
  let left = Math.max(1, Math.ceil(share * count));
  if (left === count) return most;
  for (const [number, some] of sorted) {
    left -= some;
    if (left <= 0) return Math.min(most, Math.max(least, middleOf(number)));
  }
  return most;
}

export type Bar = { from: number; to: number; count: number };

/** How many lie in each step of 1, 2, 5, 10, 20 … microseconds, from the least to the most. */
export function histogram({ classes, count, least, most }: Latencies): Bar[] {
  if (count === 0) return [];
  const bars = stepsAround(least, most);
  for (const [number, some] of classes) {
    const middle = Math.min(most, Math.max(least, middleOf(number)));
    const bar = bars.find(({ to }) => middle < to) ?? bars.at(-1);
    if (bar !== undefined) bar.count += some;
  }
  return bars;
}

function stepsAround(least: number, most: number): Bar[] {
  const bars: Bar[] = [];
  let from = 0;
  for (let power = 1; ; power *= 10) {
    for (const step of [1, 2, 5]) {
      const to = step * power;
      if (to > least) bars.push({ from, to, count: 0 });
      if (to > most) return bars;
      from = to;
    }
  }
}
