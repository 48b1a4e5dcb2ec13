/** A thread beside a recorder that decides which sessions are kept once they have ended, out of the way of traffic and writer. */

import { existsSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { openStore } from '../../store/file/open.ts';
import { decideEnded } from './judge.ts';

/** It comes after recorders. */
const NICENESS = 10;

/** Sessions that wait for it are kept meanwhile: nothing depends on its being soon. */
const EVERY_MS = 2000;

const { file } = workerData as { file: string };

/** What cannot be decided now, because another process has the store, is tried again. */
function round(): void {
  if (!existsSync(file)) return;
  try {
    const store = openStore(file);
    try {
      decideEnded(store);
    } finally {
      store.close();
    }
  } catch {
    // The recorder itself says what is wrong with its store.
  }
}

try {
  if (process.platform === 'linux') setPriority(0, NICENESS);
} catch {
  // Then it stays as it is.
}
const timer = setInterval(round, EVERY_MS);
parentPort?.once('message', () => {
  clearInterval(timer);
  round();
  parentPort?.close();
});
