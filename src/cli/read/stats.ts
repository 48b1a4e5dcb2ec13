import { TapedeckError } from '../../errors.ts';
import { eachFigures, type SomeFigures, summedFigures } from '../../inspect/figures/kept-figures.ts';
import { prepareFigures } from '../../inspect/figures/session-figures.ts';
import { putTogether } from '../../inspect/figures/stats.ts';
import type { Filter } from '../../inspect/filter/filter.ts';
import { groupLine, statsLines } from '../../inspect/view/stats.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { eachSession, findSession, type SessionRow } from '../../store/read/sessions.ts';
import { VERSION } from '../../version.ts';
import type { Command, Io } from '../io.ts';
import { DB_OPTION, FILTER_OPTION, JSON_OPTION, readFilter } from '../options.ts';
import { createProgress, withLineEnds, writeOutput } from '../output.ts';
import { openSide, withStore } from '../store.ts';

type StatsOptions = {
  session: string | undefined;
  all: boolean;
  by: 'tool' | 'method' | 'session';
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
};

export const statsCommand: Command<StatsOptions> = {
  command: 'stats [session]',
  describe: 'Show how many calls there were, how they ended and how long they took',
  builder: (args) =>
    args
      .positional('session', {
        type: 'string',
        describe: 'An id, the beginning of one, a name, or latest (the default)',
      })
      .options({
        db: DB_OPTION,
        all: { type: 'boolean', default: false, describe: 'All sessions together' },
        by: {
          choices: ['tool', 'method', 'session'] as const,
          default: 'tool' as const,
          describe: 'What a row is: a method, with tools and prompts apart; a method; a session',
          requiresArg: true,
        },
        filter: FILTER_OPTION,
        json: JSON_OPTION,
      })
      .check(({ session, all }) => {
        if (session === undefined || !all) return true;
        throw new TapedeckError('usage', 'Expected a session or `--all`, got both. Leave one out.');
      })
      .example('$0 stats', 'The newest session, by method and tool')
      .example('$0 stats --all --by session', 'All sessions, one row each')
      .example(
        "$0 stats --all --filter 'name=staging since=1d' --json",
        'The last day of some sessions, for a program',
      ),
  run: stats,
};

export async function stats(
  { session, all, by, db, filter: written, json }: StatsOptions,
  io: Io,
): Promise<void> {
  const filter = await readFilter(written);
  await withStore(io, db, async (store) => {
    const only = all ? null : findSession(store, session ?? 'latest');
    const figures =
      filter === undefined
        ? wholeFigures(io, store, only, eachSession(store), by !== 'session')
        : await filteredFigures(io, store, only, filter);
    const together = putTogether(withProgress(io, figures), by);
    const isPlain = io.stdout.isTTY !== true;
    await writeOutput(
      io,
      withLineEnds(
        json
          ? together.groups.map(groupLine)
          : statsLines(together, terminalStyle(io.stdout, io.env), isPlain),
      ),
    );
  });
}

/** Figures of whole sessions are stored, and need not be computed again. */
function* wholeFigures(
  io: Io,
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
  const side = openSide(io, store);
  const isSum = side !== null && canSum;
  yield* isSum
    ? summedFigures(store, side, [...sessions], VERSION)
    : eachFigures(store, side, sessions, VERSION);
  side?.close();
}

/** What a filter leaves; the filter language is loaded for it. */
async function filteredFigures(
  io: Io,
  store: Store,
  only: SessionRow | null,
  filter: Filter,
): Promise<Iterable<SomeFigures>> {
  const { isAboutSessions } = await import('../../inspect/filter/filter.ts');
  const { eachCandidate, eachSessionWith } = await import('../../inspect/filter/sql.ts');
  const { selectFrames } = await import('../../inspect/filter/sql.ts');
  return isAboutSessions(filter)
    ? wholeFigures(io, store, only, eachSessionWith(store, filter), false)
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

function* withProgress(io: Io, all: Iterable<SomeFigures>): Generator<SomeFigures> {
  const progress = createProgress(io, 'read', null);
  let frames = 0;
  for (const one of all) {
    yield one;
    frames += one.session?.frames ?? 0;
    progress.advance(frames);
  }
  progress.end();
}
