/** The figures that somebody has asked for: of one session or all, of all calls or of those that a filter leaves. */

import type { Store } from '../../store/file/open.ts';
import type { SideFile } from '../../store/keep/side-file.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { eachSession, type SessionRow } from '../../store/read/sessions.ts';
import { type Filter, isAboutSessions } from '../filter/filter.ts';
import { eachCandidate, eachSessionWith, selectFrames } from '../filter/sql.ts';
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
};

/** `openSide`: the file beside the store, for what is kept of all sessions; null where it cannot be kept. */
export function chosenFigures(
  store: Store,
  openSide: () => SideFile | null,
  { only, filter, by, version }: Choice,
): Iterable<SomeFigures> {
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
