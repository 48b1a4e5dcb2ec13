/**
 * Short rests of the writer's thread. It works through a batch in bursts of milliseconds. A call that wakes the forwarding
 * thread meanwhile may have to wait for the end of such a burst, with another processor idle: the system leaves a thread that
 * works where it is. One that sleeps for a moment lets others in, and goes on wherever there is room.
 * By stdio, where much passes on a machine that has little else to do, it gives way to all others for good.
 */

import { readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';

/**
 * It works for so many milliseconds between two rests, and looks at the clock at every so many calls. Where little passes, a call at a
 * time goes through several threads in turn, and each may find its processor taken. Measured on two cores, nine and sixteen rounds in turn:
 * by stdio the p99 was 1.52 times that of a bare relay, and 2.08 times with what is for much; over one HTTP connection 1.83 times
 * httpxy's, and 2.02 times. Where much passes, a rest takes more than it gives: over 32 connections, 12,500 requests a second, 11,000 with 0.1
 * ms, 11,800 with 0.3 ms.
 */
const BURSTS = { little: { ms: 0.05, calls: 1 }, much: { ms: 0.2, calls: 4 } };

/** With what the system adds, a sleep takes some 0.1 ms. */
const REST_MS = 0.05;

const NICENESS = 10;

/** With more than so many threads at work for each processor a machine is busy with other things than ours. */
const CROWD_PER_PROCESSOR = 3;

/** Batches of this size do not come from a client that waits for each answer: some 6,000 HTTP exchanges or 18,000 calls a second. */
const MUCH_BATCH_BYTES = 128 * 1024;

/** Batches of this size come where much passes, several MB a second. */
const HEAVY_BATCH_BYTES = 192 * 1024;

type RestRules = {
  /** There is no time for a rest. */
  isLate: () => boolean;
  /** By stdio alone: see `giveWay`. */
  givesWay: boolean;
};

export type Rests = {
  /** Each batch as it comes: how many bytes it has says how much passes. */
  onBatch(bytes: number): void;
  /** To be called again and again while this thread works: now and then it sleeps. */
  rest(): void;
};

export function createRests({ isLate, givesWay }: RestRules): Rests {
  const never = new Int32Array(new SharedArrayBuffer(4));
  let burst = BURSTS.little;
  let calls = 0;
  let rested = 0;
  return {
    onBatch(bytes) {
      burst = bytes >= MUCH_BATCH_BYTES ? BURSTS.much : BURSTS.little;
      if (givesWay && bytes >= HEAVY_BATCH_BYTES) giveWay();
    },
    rest() {
      calls += 1;
      if (calls % burst.calls !== 0 || performance.now() - rested < burst.ms) return;
      if (!isLate()) Atomics.wait(never, 0, 0, REST_MS);
      rested = performance.now();
    },
  };
}

let hasGivenWay = false;

/**
 * The relay and its two ends come before this thread wherever they want the same processor. Measured on two cores, with
 * 64 calls in flight: 169,000 instead of 141,000 calls/s, and still nothing older than 85 ms unsaved at a kill -9. But on a
 * crowded machine a thread that comes after all others hardly runs at all, and nobody can take that back: so it gives way
 * where there is much to record and little else to do. Not by HTTP, where it takes turns by its rests: measured at 32 connections,
 * 17,700 requests/s without this and 16,700 with it.
 */
function giveWay(): void {
  // Linux alone can set the priority of one thread.
  if (hasGivenWay || process.platform !== 'linux') return;
  try {
    const [, atWork] = / (\d+)\//.exec(readFileSync('/proc/loadavg', 'utf8')) ?? [];
    if (Number(atWork) > CROWD_PER_PROCESSOR * availableParallelism()) return;
    hasGivenWay = true;
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, NICENESS);
  } catch {
    // No /proc, or not allowed: then it stays as it is.
  }
}
