/**
 * How the thread of all recorders of a host begins. It says at its end why it ends, so that a host which ends in the same turn,
 * and hears no events any more, need not wait for what will never come.
 */

import { workerData } from 'node:worker_threads';
import type { SharedStart } from '../store/record/thread.ts';

const { isGone, why } = workerData as SharedStart;

let reason = 'its thread has ended';

function end(): void {
  why.postMessage(reason);
  // Nobody is woken by it: who waits looks now and then.
  Atomics.store(isGone, 0, 1);
}

process.on('uncaughtExceptionMonitor', (error) => {
  reason = error.message;
});
process.on('exit', end);

try {
  await import('../store/record/worker.ts');
} catch (error) {
  reason = (error as Error).message;
  end();
  throw error;
}
