// How exchanges and pieces of streams reach the plainest recorder's thread (least-writer.js): what has come in some milliseconds at
// once.
import { Worker } from 'node:worker_threads';

const EVERY_MS = 5;

/** `reads`: whether it looks at the bodies, too. */
export function startLeastThread(file, reads) {
  const writer = new Worker(new URL('least-writer.js', import.meta.url), { workerData: { file, reads } });
  let batch = { exchanges: [], pieces: [] };
  let isPlanned = false;

  function plan() {
    if (!isPlanned) setTimeout(handOver, EVERY_MS);
    isPlanned = true;
  }

  function handOver() {
    isPlanned = false;
    writer.postMessage(batch);
    batch = { exchanges: [], pieces: [] };
  }

  return {
    addExchange(exchange) {
      batch.exchanges.push(exchange);
      plan();
    },
    addPiece(piece) {
      batch.pieces.push(piece);
      plan();
    },
  };
}
