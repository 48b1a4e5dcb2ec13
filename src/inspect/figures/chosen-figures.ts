/** The figures that somebody has asked for: of one session or all, of all calls or of those that a filter leaves. */

import type { Store } from '../../store/file/open.ts';
import type { SideFile } from '../../store/keep/side-file.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { eachSession, type SessionRow } from '../../store/read/sessions.ts';
import { type Filter, isAboutSessions } from '../filter/filter.ts';
import { eachCandidate, eachSessionWith, selectFrames } from '../filter/sql.ts';
import { readFigures } from './call-figures.ts';
import { eachFigures, type SomeFigures, summedFigures } from './kept-figures.ts';
import { prepareFigures } from './session-figures.ts';
import type { Grouping } from './stats.ts';

type Choice = {
  /** Null: all sessions. */
  only: SessionRow | null;
  filter: Filter | undefined;
  by: Grouping;
  /** Whose figures may be kept. */
  version: string;
  /** What is known already. */
  counted?: CountedFigures;
};

/**
 * Figures that came in place of the frames of their sessions, by their numbers, as `figuresText` has them: of the calls for which
 * the filter holds, and of none where there is one.
 */
export type CountedFigures = ReadonlyMap<number, string>;

/** `openSide`: the file beside the store, for what is kept of all sessions; null where it cannot be kept. */
export function chosenFigures(
  store: Store,
  openSide: () => SideFile | null,
  { only, filter, by, version, counted }: Choice,
): Iterable<SomeFigures> {
  if (counted !== undefined && counted.size > 0) return withCounted(store, counted, only, filter);
  if (filter !== undefined && !isAboutSessions(filter))
    return selectedFigures(store, only, eachCandidate(store, filter), selectFrames(store, filter));
  const sessions = filter === undefined ? eachSession(store) : eachSessionWith(store, filter);
  if (only !== null) return eachFigures(store, null, withId(sessions, only.id), version);
  return keptFigures(store, openSide, [...sessions], filter === undefined && by !== 'session', version);
}

function withId(sessions: Iterable<SessionRow>, id: string): SessionRow[] {
  return [...sessions].filter((session) => session.id === id);
}

/** Figures of whole sessions are stored, and need not be computed again. */
function* keptFigures(
  store: Store,
  openSide: () => SideFile | null,
  sessions: readonly SessionRow[],
  canSum: boolean,
  version: string,
): Generator<SomeFigures> {
  const side = openSide();
  try {
    yield* side !== null && canSum
      ? summedFigures(store, side, sessions, version)
      : eachFigures(store, side, sessions, version);
  } finally {
    side?.close();
  }
}

/** Of a store that nothing is kept beside: what is counted already, and in its place among them what is not. */
function* withCounted(
  store: Store,
  counted: CountedFigures,
  only: SessionRow | null,
  filter: Filter | undefined,
): Generator<SomeFigures> {
  const selected = filter === undefined || isAboutSessions(filter) ? null : filter;
  const make = prepareFigures(store, selected === null ? undefined : selectFrames(store, selected));
  const others = filter === undefined ? eachSession(store) : eachCandidate(store, filter);
  const wanted = new Set([...others].map(({ number }) => number));
  for (const session of [...eachSession(store)]) {
    if (only !== null && session.id !== only.id) continue;
    const text = counted.get(session.number);
    if (text === undefined && !wanted.has(session.number)) continue;
    const figures = text === undefined ? make(session) : readFigures(text);
    if (selected === null || figures.topics.length > 0) yield { session, sessions: 1, figures };
  }
}

function* selectedFigures(
  store: Store,
  only: SessionRow | null,
  sessions: Iterable<SessionRow>,
  selection: FrameSelection,
): Generator<SomeFigures> {
  const make = prepareFigures(store, selection);
  for (const session of [...sessions]) {
    if (only !== null && session.id !== only.id) continue;
    const figures = make(session);
    if (figures.topics.length > 0) yield { session, sessions: 1, figures };
  }
}
