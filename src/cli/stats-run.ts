/** What `stats` does. In a file of its own, because it loads much that no other command needs. */
import type { Filter } from '../inspect/filter.ts';
import { eachFigures, type SomeFigures, summedFigures } from '../inspect/kept-figures.ts';
import { lookOf } from '../inspect/look.ts';
import { prepareFigures } from '../inspect/session-figures.ts';
import { putTogether } from '../inspect/stats.ts';
import { groupLine, statsLines } from '../inspect/stats-view.ts';
import { openIndexed } from '../store/catch-up.ts';
import type { FrameSelection } from '../store/frame-selection.ts';
import { storePath } from '../store/location.ts';
import type { Store } from '../store/open.ts';
import { eachSession, findSession, type SessionRow } from '../store/reader.ts';
import { VERSION } from '../version.ts';
import { readFilter } from './filter-option.ts';
import { createProgress, NOTICES, withLineEnds, writeOutput } from './output.ts';
import { openSide } from './side.ts';
import type { StatsOptions } from './stats.ts';

export async function stats({ session, all, by, db, filter: written, json }: StatsOptions): Promise<void> {
  const filter = await readFilter(written);
  const store = openIndexed(storePath(db), NOTICES);
  const only = all ? null : findSession(store, session ?? 'latest');
  const figures =
    filter === undefined
      ? wholeFigures(store, only, eachSession(store), by !== 'session')
      : await filteredFigures(store, only, filter);
  const together = putTogether(withProgress(figures), by);
  const isPlain = process.stdout.isTTY !== true;
  await writeOutput(
    withLineEnds(
      json ? together.groups.map(groupLine) : statsLines(together, lookOf(process.stdout), isPlain),
    ),
  );
  store.close();
}

/** Figures are kept of whole sessions. */
function* wholeFigures(
  store: Store,
  only: SessionRow | null,
  sessions: Iterable<SessionRow>,
  canSum: boolean,
): Generator<SomeFigures> {
  if (only !== null) {
    const chosen = [...sessions].filter(({ id }) => id === only.id);
    yield* eachFigures(store, null, chosen, VERSION);
    return;
  }
  const side = openSide(store);
  const isSum = side !== null && canSum;
  yield* isSum
    ? summedFigures(store, side, [...sessions], VERSION)
    : eachFigures(store, side, sessions, VERSION);
  side?.close();
}

/** What a filter leaves; the filter language is loaded for it. */
async function filteredFigures(
  store: Store,
  only: SessionRow | null,
  filter: Filter,
): Promise<Iterable<SomeFigures>> {
  const { isAboutSessions } = await import('../inspect/filter.ts');
  const { eachCandidate, eachSessionWith } = await import('../inspect/filter-sessions.ts');
  const { selectFrames } = await import('../inspect/filter-sql.ts');
  return isAboutSessions(filter)
    ? wholeFigures(store, only, eachSessionWith(store, filter), false)
    : selectedFigures(store, only, eachCandidate(store, filter), selectFrames(store, filter));
}

function* selectedFigures(
  store: Store,
  only: SessionRow | null,
  sessions: Iterable<SessionRow>,
  selection: FrameSelection,
): Generator<SomeFigures> {
  const make = prepareFigures(store, selection);
  for (const session of sessions) {
    if (only !== null && session.id !== only.id) continue;
    const figures = make(session);
    if (figures.topics.length > 0) yield { session, sessions: 1, figures };
  }
}

function* withProgress(all: Iterable<SomeFigures>): Generator<SomeFigures> {
  const progress = createProgress('read', null);
  let frames = 0;
  for (const one of all) {
    yield one;
    frames += one.session?.frames ?? 0;
    progress.advance(frames);
  }
  progress.end();
}
