/**
 * What of a session was shipped to an engine is no longer what is stored. The shipper sees that by the session's revision, takes
 * the rows back there, and ships them anew.
 */

import { createHash } from 'node:crypto';
import type { Store } from '../file/open.ts';

/** To be called in the transaction that changes the rows, or before the first one that does. */
export function raiseRevision(store: Store, session: number): void {
  store.prepare('UPDATE session SET revision = revision + 1 WHERE number = ?').run(session);
}

/** What was shipped of these sessions is to be deleted in the engine too. To be called while they still have their rows. */
export function withdrawSessions(store: Store, sessions: readonly number[]): void {
  const insert = store.prepare(
    `INSERT OR IGNORE INTO withdrawal (target, key, day)
       SELECT shipped.target, shipped.key, date(session.started_at / 1000000, 'unixepoch')
       FROM shipped JOIN session ON session.number = shipped.session WHERE session.number = ?`,
  );
  for (const session of sessions) insert.run(session);
}

/** Raises the revision of a session whose index is made anew, where it comes out otherwise than before. */
export function watchIndex(store: Store, session: number): { raiseIfChanged(): void } {
  const upTo = Number(
    store.prepare('SELECT indexed FROM session WHERE number = ?').pluck().get(session) ?? 0,
  );
  const before = upTo === 0 ? null : messagesDigest(store, session, upTo);
  return {
    raiseIfChanged() {
      if (before !== null && messagesDigest(store, session, upTo) !== before) raiseRevision(store, session);
    },
  };
}

function messagesDigest(store: Store, session: number, upTo: number): string {
  const hash = createHash('sha256');
  const rows = store
    .prepare<[number, number], unknown[]>(
      'SELECT * FROM message WHERE session = ? AND seq <= ? ORDER BY seq, n',
    )
    .raw();
  for (const row of rows.iterate(session, upTo)) hash.update(`${JSON.stringify(row)}\n`);
  return hash.digest('hex');
}
