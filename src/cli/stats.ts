import type { CommandModule } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { FILTER_OPTION } from './filter-option.ts';
import { DB_OPTION, JSON_OPTION } from './shared-options.ts';

export type StatsOptions = {
  session: string | undefined;
  all: boolean;
  by: 'tool' | 'method' | 'session';
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
};

export const statsCommand: CommandModule<object, StatsOptions> = {
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
        all: { type: 'boolean', default: false, describe: 'Of all sessions together' },
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
      .example('$0 stats --all --by session', 'All sessions, a row each')
      .example(
        "$0 stats --all --filter 'name=staging since=1d' --json",
        'A day of some sessions, for a program',
      ),
  handler: async (options) => (await import('./stats-run.ts')).stats(options),
};
