/** One process at a time ships a store all the while; and the one that recorders started goes when they are gone. */

import { hostname } from 'node:os';
import type { Store } from '../store/file/open.ts';
import { isAlive } from '../store/file/process.ts';
import { createTurn, type Turn } from '../store/file/turn.ts';

/** So long after the last recorder it waits for the next one. */
const LINGER_MS = 60_000;

const LOOK_EVERY_MS = 5000;

/** Notes that this store is shipped from now on, and by whom. Null: another process is at it. */
export function takeShipperTurn(store: Store): Turn | null {
  store.prepare('INSERT OR IGNORE INTO shipper (one) VALUES (1)').run();
  const turn = createTurn(store, 'shipper');
  return turn.take() ? turn : null;
}

/** Whether a recorder of this host is at work on the store, or was a short while ago. `parent`: one that has no session yet. */
export function watchRecorders(store: Store, parent: number): () => boolean {
  const select = store.prepare<[string], { pid: number; started: string | null }>(
    'SELECT DISTINCT pid, process_started AS started FROM session WHERE end_reason IS NULL AND host = ?',
  );
  let seenAt = performance.now();
  let lookedAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - lookedAt >= LOOK_EVERY_MS) {
      lookedAt = now;
      const isThere =
        process.ppid === parent || select.all(hostname()).some(({ pid, started }) => isAlive(pid, started));
      if (isThere) seenAt = now;
    }
    return now - seenAt < LINGER_MS;
  };
}
