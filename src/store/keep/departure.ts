/** The last moment of sessions that go: what was still to be shipped counts as lost, before their rows are gone. */

import type { Store } from '../file/open.ts';
import { hideSessions } from '../write/removal.ts';
import { noteDepartures, withdrawSessions } from '../write/revision.ts';
import type { Departure } from './retention.ts';

/** Hides sessions. `isEverywhere`: what the engine has of them is to go too. Returns how many were still to be shipped. */
export function hideDepartures(
  store: Store,
  departures: readonly Departure[],
  isEverywhere: boolean,
): number {
  const numbers = departures.map(({ session }) => session.number);
  const unshipped = departures.filter(({ session }) => session.shipping === 'unshipped');
  // It has no effect inside a transaction, where `hideSessions` does it.
  store.pragma('foreign_keys = OFF');
  store
    .transaction(() => {
      if (isEverywhere) withdrawSessions(store, numbers);
      else {
        if (unshipped.length > 0) countLoss(store, unshipped);
        noteDepartures(store, numbers);
      }
      hideSessions(store, numbers);
    })
    .immediate();
  return isEverywhere ? 0 : unshipped.length;
}

function countLoss(store: Store, unshipped: readonly Departure[]): void {
  const there = store.prepare<[number], { frames: number; bytes: number }>(
    `SELECT p.frames, p.bytes FROM shipped AS p JOIN session AS s ON s.number = p.session
       WHERE p.session = ? AND p.target = (SELECT target FROM shipper) AND p.revision = s.revision`,
  );
  let [frames, bytes] = [0, 0];
  for (const { session } of unshipped) {
    const before = there.get(session.number);
    frames += session.frames - (before?.frames ?? 0);
    bytes += session.bytes - (before?.bytes ?? 0);
  }
  store
    .prepare(
      `INSERT INTO loss (at, sessions, frames, bytes)
         SELECT max(?, 1 + ifnull((SELECT max(at) FROM loss), 0)), ?, ?, ?`,
    )
    .run(Date.now() * 1000, unshipped.length, frames, bytes);
}
