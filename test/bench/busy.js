// The rows of a busy machine: how long a frame takes to its row while twice as many busy programs run as there are
// processors, for one recorder and for twelve that start at once; and whether any is lost.
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { startClient } from './client.js';
import { format, percentile } from './figures.js';
import { lossOf, variants } from './stdio.js';

const CROWD = 12;
const CALL_EVERY_MS = 20;
const LOOK_EVERY_MS = 5;
const MOST_MS = 250;

export async function benchBusy(folder, { busyCalls, progress }) {
  const count = 2 * availableParallelism();
  const rows = [];
  for (const recorders of [1, CROWD]) {
    progress(`${recorders} recorders beside ${count} busy loops`);
    const loops = Array.from({ length: count }, () =>
      spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
    );
    const stop = () => loops.forEach((loop) => void loop.kill('SIGKILL'));
    process.on('exit', stop);
    try {
      rows.push(
        rowOf(recorders, count, await measure(join(folder, `busy-${recorders}`), recorders, busyCalls)),
      );
    } finally {
      stop();
      process.off('exit', stop);
    }
  }
  return rows;
}

/**
 * The way of each frame in milliseconds, as somebody sees it who looks into the store every few of them. `open`: of those
 * that passed after something of their session was seen there, so that its recorder had opened the store.
 */
async function measure(folder, recorders, calls) {
  const watch = watchFrames(join(folder, 'bench.db'));
  const { tapedeck } = variants(folder);
  await Promise.all(
    Array.from({ length: recorders }, async () => {
      const client = await startClient(tapedeck);
      for (let i = 0; i < calls; i += 1) {
        await client.call('tools/call', { name: 'echo', arguments: { text: 'hello' } });
        await sleep(CALL_EVERY_MS);
      }
      await client.close();
    }),
  );
  // What ended in a spool is taken in here.
  const lost = lossOf(folder);
  const { ways, open } = await watch.stop();
  // The handshake is three frames.
  const missing = recorders * (2 * calls + 3) - ways.length;
  return { ways, open, lost: lost + missing };
}

function watchFrames(file) {
  const ways = [];
  const open = [];
  const firstSeen = new Map();
  let last = 0;
  let isOver = false;
  const look = (store) => {
    const now = (performance.timeOrigin + performance.now()) * 1000;
    for (const [row, at, session] of store.all(last)) {
      const way = (now - at) / 1000;
      ways.push(way);
      if (!firstSeen.has(session)) firstSeen.set(session, now);
      if (at > firstSeen.get(session)) open.push(way);
      last = row;
    }
  };
  const watching = (async () => {
    while (!existsSync(file)) await sleep(LOOK_EVERY_MS);
    let store;
    while (store === undefined) {
      await sleep(LOOK_EVERY_MS);
      try {
        store = new Database(file, { readonly: true })
          .prepare('SELECT rowid, at, session FROM frame WHERE rowid > ? ORDER BY rowid')
          .raw();
      } catch {
        // Its tables are being made.
      }
    }
    while (!isOver) {
      look(store);
      await sleep(LOOK_EVERY_MS);
    }
    look(store);
  })();
  return {
    async stop() {
      isOver = true;
      await watching;
      return { ways, open };
    },
  };
}

/** The promise begins with the open store: until then a recorder keeps what passes in memory. */
function rowOf(recorders, loops, { ways, open, lost }) {
  const p99 = percentile(open, 0.99);
  const who = recorders === 1 ? 'one recorder' : `${recorders} recorders at once`;
  return {
    what: `${who} beside ${loops} busy loops: a frame’s way to its row once the store is open, p99`,
    tapedeck: `${format(p99)} ms`,
    against: `p50 ${format(percentile(open, 0.5))} ms; p99 with the start ${format(percentile(ways, 0.99))} ms`,
    ratio: lost === 0 ? 'none lost' : `LOST ${lost}`,
    wanted: `≤ ${MOST_MS} ms, none lost`,
    met: p99 <= MOST_MS && lost === 0 ? 'yes' : 'NO',
  };
}
