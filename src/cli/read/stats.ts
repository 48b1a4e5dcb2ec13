import type { Needs } from '../../engine/read/needs.ts';
import { TapedeckError } from '../../errors.ts';
import { chosenFigures } from '../../inspect/figures/chosen-figures.ts';
import type { SomeFigures } from '../../inspect/figures/kept-figures.ts';
import { putTogether, type Stats } from '../../inspect/figures/stats.ts';
import { isAboutSessions } from '../../inspect/filter/filter.ts';
import { groupJson, statsLines, totalJson } from '../../inspect/view/stats.ts';
import { terminalStyle } from '../../inspect/view/text.ts';
import { findSession } from '../../store/read/sessions.ts';
import { VERSION } from '../../version.ts';
import type { Command, Io } from '../io.ts';
import { FILTER_OPTION, JSON_OPTION, READ_OPTIONS, readFilter } from '../options.ts';
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
        ...READ_OPTIONS,
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
  const wanted: Needs = all
    ? { of: 'matches', filter, isCounted: true }
    : { of: 'sessions', references: [session ?? 'latest'], filter, isCounted: true };
  await withStore(io, db, wanted, async (store, counted) => {
    const only = all ? null : findSession(store, session ?? 'latest');
    const openFile = () => openSide(io, db, store);
    const figures = chosenFigures(store, openFile, {
      ...{ only, filter, by },
      version: VERSION,
      ...(counted !== undefined && { counted }),
    });
    const together = putTogether(withProgress(io, figures), by, all);
    const look = {
      isPlain: io.stdout.isTTY !== true,
      isWhole: filter === undefined || isAboutSessions(filter),
    };
    await writeOutput(
      io,
      withLineEnds(
        json
          ? jsonLines(together, look.isWhole)
          : statsLines(together, terminalStyle(io.stdout, io.env), look),
      ),
    );
  });
}

function* jsonLines(stats: Stats, isWhole: boolean): Generator<string> {
  for (const group of stats.groups) yield JSON.stringify(groupJson(group));
  if (isWhole) yield JSON.stringify(totalJson(stats));
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
