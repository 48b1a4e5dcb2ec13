/** Where a moment lies on a line: of the whole session or of a part, with or without the times in which nothing happened. */
import type { SessionOutline } from './outline.ts';

/** From microseconds since the session's start to 0…1, and back. */
export type TimeScale = {
  from: number;
  to: number;
  x(at: number): number;
  at(x: number): number;
  /** What is folded, where it stands and how long it was. */
  folds: readonly { x: number; micros: number }[];
};

export type TimeRange = readonly [from: number, to: number];

const IDLE_MICROS = 2_000_000;

/** A fold has this share of the line. */
const FOLD_SHARE = 0.012;

/** The times of more than two seconds in which no frame came and no call was under way. */
export function idleGaps(outline: SessionOutline): TimeRange[] {
  const gaps: TimeRange[] = [];
  let busyUntil = 0;
  for (let i = 0; i < outline.count; i += 1) {
    const at = outline.number('at', i);
    if (at - busyUntil > IDLE_MICROS) gaps.push([busyUntil, at]);
    busyUntil = Math.max(busyUntil, at, outline.endOf(i));
  }
  return gaps;
}

export function makeScale([from, to]: TimeRange, gaps: readonly TimeRange[]): TimeScale {
  const span = Math.max(1, to - from);
  const inside = gaps
    .map(([start, end]): TimeRange => [Math.max(start, from), Math.min(end, to)])
    .filter(([start, end]) => end - start > IDLE_MICROS);
  const idle = inside.reduce((sum, [start, end]) => sum + end - start, 0);
  const busy = Math.max(1, span - idle);
  const share = inside.length === 0 ? 0 : Math.min(FOLD_SHARE, 0.3 / inside.length);
  const busyShare = 1 - share * inside.length;
  /** Corners of the line: moments, and where they are. */
  const moments = [from];
  const places = [0];
  for (const [start, end] of inside) {
    const begin = (places.at(-1) ?? 0) + ((start - (moments.at(-1) ?? 0)) / busy) * busyShare;
    moments.push(start, end);
    places.push(begin, begin + share);
  }
  moments.push(Math.max(to, from + 1));
  places.push(1);
  const folds = inside.map(([start, end], i) => ({
    x: ((places[2 * i + 1] ?? 0) + (places[2 * i + 2] ?? 0)) / 2,
    micros: end - start,
  }));
  return { from, to, folds, x: (at) => between(moments, places, at), at: (x) => between(places, moments, x) };
}

/** On the line through corners, the value at a place; at its ends beyond them. */
function between(xs: readonly number[], ys: readonly number[], x: number): number {
  let [low, high] = [0, xs.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) <= x) low = middle;
    else high = middle;
  }
  const [x0, x1, y0, y1] = [xs[low] ?? 0, xs[high] ?? 1, ys[low] ?? 0, ys[high] ?? 1];
  const share = x1 === x0 ? 0 : Math.min(1, Math.max(0, (x - x0) / (x1 - x0)));
  return y0 + share * (y1 - y0);
}

/** Of the address, in milliseconds with what is behind the point; null where it is none. */
export function readRange(text: string | null): TimeRange | null {
  const [from, to] = (text ?? '').split('-').map((part) => Number(part) * 1000);
  if (text === null || from === undefined || to === undefined || !(to > from)) return null;
  return [from, to];
}

export function rangeText([from, to]: TimeRange): string {
  return `${Math.max(0, Math.floor(from / 1000))}-${Math.ceil(to / 1000)}`;
}

/** Half of it or twice as much, about a moment, within the session. */
export function zoomed(
  [from, to]: TimeRange,
  about: number,
  factor: number,
  all: TimeRange,
): TimeRange | null {
  const start = Math.max(all[0], about - (about - from) * factor);
  const end = Math.min(all[1], about + (to - about) * factor);
  if (end - start < 1000) return [from, to];
  return start <= all[0] && end >= all[1] ? null : [start, end];
}
