// The thread behind limit-relay.js: it rests and gives way as tapedeck's does, and stores as the plainest recorder's does.
import { parentPort, workerData } from 'node:worker_threads';
import { CHANNELS } from '../../build/protocol/wire/frame.js';
import { createRests } from '../../build/store/keep/rests.js';
import { eachItem } from '../../build/store/record/batch.js';
import { openLeastStore } from './least-store.js';

const commit = openLeastStore(workerData.file, false);
const { onBatch, rest } = createRests({ isLate: () => false, givesWay: true });
let waiting = [];

parentPort.on('message', (batch) => {
  onBatch(batch.byteLength);
  if (waiting.length === 0) setTimeout(store, 0);
  eachItem(batch, ({ kind, at, bytes }) => {
    rest();
    waiting.push({ channel: CHANNELS[kind], at, bytes });
  });
});

function store() {
  const chunks = waiting;
  waiting = [];
  commit([{ chunks: restingAt(chunks) }]);
}

function* restingAt(chunks) {
  for (const chunk of chunks) {
    rest();
    yield chunk;
  }
}
