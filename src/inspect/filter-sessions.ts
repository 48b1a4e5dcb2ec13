/** The sessions that have what a filter asks for. */
import type { Store } from '../store/open.ts';
import { eachSession, type SessionRow } from '../store/reader.ts';
import { type Filter, isAboutSessions } from './filter.ts';
import { selectFrames, selectSessions } from './filter-sql.ts';

/** Those with a frame for which the filter holds, the newest first; a filter about sessions alone needs no frame. */
export function* eachSessionWith(store: Store, filter: Filter): Generator<SessionRow> {
  const hasFrame = isAboutSessions(filter) ? () => true : prepareFrameSearch(store, filter);
  for (const session of eachCandidate(store, filter)) if (hasFrame(session)) yield session;
}

/** Those whose frames must be looked at, the newest first. */
export function* eachCandidate(store: Store, filter: Filter): Generator<SessionRow> {
  const { sql, values } = selectSessions(store, filter);
  const numbers = store.prepare<[object], number>(`SELECT s.number FROM session AS s WHERE ${sql}`).pluck();
  const candidates = new Set(numbers.all(values));
  for (const session of eachSession(store)) if (candidates.has(session.number)) yield session;
}

function prepareFrameSearch(store: Store, filter: Filter): (session: SessionRow) => boolean {
  const { sql, values } = selectFrames(store, filter);
  const any = store.prepare<[object], number>(`${sql} LIMIT 1`);
  return ({ number }) => any.get({ ...values, session: number }) !== undefined;
}
