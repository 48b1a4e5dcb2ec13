/**
 * What an engine has of a session is no longer what is stored here, or is stored here no more. The shipper sees the first by the
 * session's revision, takes the rows back there, and ships them anew; of the second, what has to be known is kept for a while.
 */

import { createHash } from 'node:crypto';
import type { Store } from '../file/open.ts';
import { type SessionOrigin, sessionKey } from '../read/session-key.ts';

/** To be called in the transaction that changes the rows, or before the first one that does. */
export function raiseRevision(store: Store, session: number): void {
  store.prepare('UPDATE session SET revision = revision + 1 WHERE number = ?').run(session);
}

/** The end of what is known of sessions that are gone here: so long after they went, and of so many of each kind at most. */
const REMEMBERED_US = 90 * 24 * 3600 * 1e6;

const REMEMBERED = 10_000;

/**
 * What an engine has of these sessions is to be deleted there too, whether or not we know that it has something: a shipper that was
 * killed has not noted its last slice. To be called while they still have their rows.
 */
export function withdrawSessions(store: Store, sessions: readonly number[]): void {
  const identity = String(store.prepare('SELECT id FROM identity').pluck().get());
  const select = store.prepare<[number], SessionOrigin & { day: string }>(
    `SELECT id, started_at AS startedAt, host, pid, process_started AS processStarted,
       date(started_at / 1000000, 'unixepoch') AS day FROM session WHERE number = ?`,
  );
  const atTarget = store.prepare(
    'INSERT OR IGNORE INTO withdrawal (target, key, day) SELECT target, ?, ? FROM shipper WHERE target IS NOT NULL',
  );
  const asShipped = store.prepare(
    'INSERT OR IGNORE INTO withdrawal (target, key, day) SELECT target, key, ? FROM shipped WHERE session = ?',
  );
  for (const number of sessions) {
    const session = select.get(number);
    if (session === undefined) continue;
    atTarget.run(sessionKey(identity, session), session.day);
    asShipped.run(session.day, number);
  }
  trim(store, 'withdrawal', 'done_at');
}

/**
 * Notes what an engine has of sessions that go here: one that was restored from a backup may have lost it, and nobody else could tell.
 * What was rewritten since it was shipped is withdrawn. To be called while they still have their rows.
 */
export function noteDepartures(store: Store, sessions: readonly number[]): void {
  const note = store.prepare(
    `INSERT OR REPLACE INTO departed (target, key, day, id, revision, seq, frames, bytes, shipped_at, at)
       SELECT p.target, p.key, date(s.started_at / 1000000, 'unixepoch'), s.id, p.revision, p.seq, p.frames, p.bytes, p.at, ?
       FROM shipped AS p JOIN session AS s ON s.number = p.session
       WHERE p.session = ? AND p.frames > 0 AND p.state <> 'skipped' AND p.revision = s.revision`,
  );
  const now = Date.now() * 1000;
  for (const session of sessions) note.run(now, session);
  trim(store, 'departed', 'at');
  const isRewritten = store
    .prepare<[number], 1>(
      `SELECT 1 FROM session AS s WHERE s.number = ? AND s.revision > 0 AND NOT EXISTS (SELECT 1 FROM shipped AS p
         WHERE p.target = (SELECT target FROM shipper) AND p.session = s.number AND p.revision = s.revision)`,
    )
    .pluck();
  const rewritten = sessions.filter((session) => isRewritten.get(session) !== undefined);
  if (rewritten.length > 0) withdrawSessions(store, rewritten);
}

/** `column`: since when a row is only remembered; null: it is still needed. */
function trim(store: Store, table: 'withdrawal' | 'departed', column: string): void {
  store.prepare(`DELETE FROM ${table} WHERE ${column} < ?`).run(Date.now() * 1000 - REMEMBERED_US);
  store
    .prepare(
      `DELETE FROM ${table} WHERE ${column} <= (SELECT ${column} FROM ${table} WHERE ${column} IS NOT NULL
         ORDER BY ${column} DESC LIMIT 1 OFFSET ${REMEMBERED})`,
    )
    .run();
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
