// The thread of the plainest recorder.
import { parentPort, workerData } from 'node:worker_threads';
import { openLeastStore } from './least-store.js';

const commit = openLeastStore(workerData.file, workerData.reads);
let waiting = [];

parentPort.on('message', (batch) => {
  if (waiting.push(batch) > 1) return;
  setTimeout(() => {
    const all = waiting;
    waiting = [];
    commit(all);
  }, 0);
});
