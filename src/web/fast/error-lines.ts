/**
 * How the errors of a session spread over its time, for the small line in a list. Counting them reads all messages of a session:
 * so what a list has no time for is counted afterwards, and then told as a change of the session.
 */

import type { Store } from '../../store/file/open.ts';
import { errorTimes } from '../../store/read/outline.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { breathe } from '../params.ts';

const PARTS = 24;

/** So long a list waits for lines, in milliseconds. */
const IN_TIME_MS = 15;

/** So many are looked through before others are let in. */
const FRAMES_AT_ONCE = 2000;

type Counted = { indexed: number; end: number; counts: number[]; countedAt: number };

/** Of a session that is being recorded a line is good for so long, in milliseconds. */
const GOOD_FOR_MS = 5000;

/** By connection and session. A session that has ended does not change. */
const known = new WeakMap<Store, Map<number, Counted>>();

/** Ids of sessions whose lines came late. */
const late = new Set<string>();

/** Returns the sessions whose lines have come since the last call. */
export function takeLate(): string[] {
  const ids = [...late];
  late.clear();
  return ids;
}

type ErrorLines = {
  /** Errors in each part of the session's time up to `end`; null where it has none, or where no time is left. */
  inTime(session: SessionRow, end: number): number[] | null;
  /** Counts what there was no time for, in pauses. */
  completeLater(): void;
};

export function createErrorLines(store: Store): ErrorLines {
  const ofStore = known.get(store) ?? new Map<number, Counted>();
  known.set(store, ofStore);
  const began = performance.now();
  const left: [SessionRow, number][] = [];
  let isFirst = true;

  function find({ number, indexed, endedAt }: SessionRow, end: number): number[] | undefined {
    const counted = ofStore.get(number);
    if (counted === undefined) return undefined;
    const isRecent = endedAt === null && performance.now() - counted.countedAt < GOOD_FOR_MS;
    return isRecent || (counted.indexed === indexed && counted.end === end) ? counted.counts : undefined;
  }

  /** Of the frames after one up to another. */
  function addTo(
    counts: number[],
    { number, startedAt }: SessionRow,
    end: number,
    after: number,
    upTo: number,
  ): void {
    const part = Math.max(1, end - startedAt) / PARTS;
    for (const at of errorTimes(store, number, after, upTo)) {
      const place = Math.min(PARTS - 1, Math.max(0, Math.floor((at - startedAt) / part)));
      counts[place] = (counts[place] ?? 0) + 1;
    }
  }

  function keep({ number, indexed }: SessionRow, end: number, counts: number[]): number[] {
    ofStore.set(number, { indexed, end, counts, countedAt: performance.now() });
    return counts;
  }

  async function complete(): Promise<void> {
    for (const [session, end] of left) {
      await breathe();
      // Another list may have had the time; and a store may have been replaced.
      if (find(session, end) !== undefined) continue;
      const counts = Array<number>(PARTS).fill(0);
      for (let after = 0; after < session.indexed; after += FRAMES_AT_ONCE) {
        if (!store.open) return;
        addTo(counts, session, end, after, after + FRAMES_AT_ONCE);
        await breathe();
      }
      keep(session, end, counts);
      late.add(session.id);
    }
  }

  return {
    inTime(session, end) {
      if (session.errors === 0) return null;
      const found = find(session, end);
      if (found !== undefined) return found;
      // One is always counted: so a session that is asked for alone has its line, however busy the machine is.
      const hasTime = isFirst || performance.now() - began < IN_TIME_MS;
      if (session.indexed > FRAMES_AT_ONCE || !hasTime) {
        left.push([session, end]);
        return null;
      }
      isFirst = false;
      const counts = Array<number>(PARTS).fill(0);
      addTo(counts, session, end, 0, session.indexed);
      return keep(session, end, counts);
    },
    completeLater() {
      // What cannot be counted now is counted for the next list.
      complete().catch(() => {});
    },
  };
}
