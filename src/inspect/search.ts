/** Frames of all sessions for which a filter holds, the newest first. */

import type { Store } from '../store/file/open.ts';
import type { SearchIndex, Wanted } from '../store/keep/search-index.ts';
import { type FrameSelection, lastSeqOf } from '../store/read/frames.ts';
import { prepareSession, type SessionRow } from '../store/read/sessions.ts';
import type { Filter } from './filter/filter.ts';
import { eachCandidate, selectFrames } from './filter/sql.ts';

/** Some of the frames that were found, all of one session. */
export type SearchHit = { session: SessionRow; only: FrameSelection };

/** So many frames are found before they are put together by session. */
const FRAMES_AT_ONCE = 1000;

/**
 * At most `limit` frames; within a session in the order in which they passed. Without an index all frames are read.
 * `onMore` is called if there are more.
 */
export function* eachHit(
  store: Store,
  filter: Filter,
  index: SearchIndex | null,
  limit: number,
  onMore: () => void,
): Generator<SearchHit> {
  const sessionOf = prepareSession(store);
  let found = new Map<number, number[]>();
  let count = 0;
  for (const place of eachPlace(store, filter, index)) {
    if (!place.holds) continue;
    const { session, seq } = place;
    if (count === limit) {
      onMore();
      break;
    }
    count += 1;
    found.set(session, [...(found.get(session) ?? []), seq]);
    if (count % FRAMES_AT_ONCE !== 0) continue;
    yield* hits(found, sessionOf);
    found = new Map();
  }
  yield* hits(found, sessionOf);
}

function* hits(
  found: ReadonlyMap<number, readonly number[]>,
  sessionOf: (number: number) => SessionRow | undefined,
): Generator<SearchHit> {
  const named = [...found].flatMap(([number, seqs]) => {
    const session = sessionOf(number);
    // One that was removed meanwhile is gone.
    return session === undefined ? [] : [{ session, only: theseFrames(seqs) }];
  });
  yield* named.toSorted((one, other) => other.session.startedAt - one.session.startedAt);
}

function theseFrames(seqs: readonly number[]): FrameSelection {
  const values = { seqs: JSON.stringify(seqs) };
  return { sql: 'SELECT value AS seq FROM json_each(@seqs)', values, hasUnfinished: () => false };
}

/** By the number of the session. */
export type FoundPlace = { session: number; seq: number };

/** Where the search has come to. False: the filter does not hold here, and one may want to stop. */
export type SearchedPlace = FoundPlace & { holds: boolean };

/**
 * Where the frames stand, the newest first. `after`: a place where an earlier search over the same index, or without one, has
 * stopped; it goes on behind it.
 */
export function eachPlace(
  store: Store,
  filter: Filter,
  index: SearchIndex | null,
  after?: FoundPlace,
): Generator<SearchedPlace> {
  const wanted = wantedBy(filter);
  const candidates = wanted === null ? null : (index?.candidates(wanted) ?? null);
  return candidates === null
    ? everyPlace(store, filter, after)
    : checkedPlaces(store, filter, candidates, after);
}

/** Those of the candidates for which the filter holds. */
function* checkedPlaces(
  store: Store,
  filter: Filter,
  candidates: Iterable<number>,
  after: FoundPlace | undefined,
): Generator<SearchedPlace> {
  const { sql, values } = selectFrames(store, filter);
  const placeOf = store.prepare<[number], FoundPlace>('SELECT session, seq FROM frame WHERE rowid = ?');
  const check = store.prepare<[object], number>(`SELECT 1 FROM (${sql}) WHERE seq = @seq LIMIT 1`).pluck();
  const rowidOf = store
    .prepare<[FoundPlace], number>('SELECT rowid FROM frame WHERE session = @session AND seq = @seq')
    .pluck();
  const before = after === undefined ? Number.POSITIVE_INFINITY : (rowidOf.get(after) ?? 0);
  for (const rowid of candidates) {
    const place = rowid < before ? placeOf.get(rowid) : undefined;
    if (place !== undefined) yield { ...place, holds: check.get({ ...values, ...place }) === 1 };
  }
}

/** So many frames are read at once, where no index says which. */
const FRAMES_A_STEP = 500;

function* everyPlace(store: Store, filter: Filter, after: FoundPlace | undefined): Generator<SearchedPlace> {
  const { sql, values } = selectFrames(store, filter);
  const select = store
    .prepare<[object], number>(
      `SELECT DISTINCT seq FROM (${sql}) WHERE seq > @after AND seq <= @upTo ORDER BY seq DESC`,
    )
    .pluck();
  const sessions = [...eachCandidate(store, filter)].map(({ number }) => number);
  const from = after === undefined ? 0 : Math.max(0, sessions.indexOf(after.session));
  for (const session of sessions.slice(from)) {
    const last = session === after?.session ? after.seq - 1 : lastSeqOf(store, session);
    for (let upTo = last; upTo > 0; upTo -= FRAMES_A_STEP) {
      const seqs = select.all({ ...values, session, after: upTo - FRAMES_A_STEP, upTo });
      for (const seq of seqs) yield { session, seq, holds: true };
      yield { session, seq: Math.max(1, upTo - FRAMES_A_STEP + 1), holds: false };
    }
  }
}

/** What the text of a frame must have, so that the filter can hold; null where it asks for no text. */
function wantedBy(filter: Filter): Wanted | null {
  if (filter.type === 'not') return null;
  if (filter.type === 'term') {
    const { field, isNegated, test } = filter;
    if (field !== 'text' || isNegated || test.type !== 'matches' || test.pattern.type !== 'part') return null;
    return { type: 'text', text: test.pattern.text };
  }
  const parts = filter.parts.map(wantedBy);
  const known = parts.filter((part) => part !== null);
  if (known.length === 0 || (filter.type === 'or' && known.length < parts.length)) return null;
  return { type: filter.type, parts: known };
}
