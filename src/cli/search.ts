import type { CommandModule } from 'yargs';
import { TapedeckError } from '../errors.ts';
import { FILTER_OPTION } from './filter-option.ts';
import { DB_OPTION, JSON_OPTION } from './shared-options.ts';

/** Texts that look like options stand behind `--`. */
export type SearchOptions = {
  '--'?: string[];
  text: string[] | undefined;
  db: string | undefined;
  filter: string | undefined;
  json: boolean;
  limit: number;
};

export function textsOf({
  text = [],
  '--': behindDashes = [],
}: Pick<SearchOptions, 'text' | '--'>): string[] {
  return [...text, ...behindDashes].map(String).filter((one) => one !== '');
}

export const searchCommand: CommandModule<object, SearchOptions> = {
  command: 'search [text..]',
  describe: 'Find frames by their text, in all sessions, the newest first',
  builder: (args) =>
    args
      .positional('text', {
        type: 'string',
        array: true,
        describe: 'What the frames must hold, all of it, whatever its case',
      })
      .options({
        db: DB_OPTION,
        filter: FILTER_OPTION,
        json: JSON_OPTION,
        limit: {
          type: 'number',
          default: 20,
          describe: 'Find at most this many frames; 0 finds all',
          requiresArg: true,
        },
      })
      .check((argv) => {
        const { filter, limit } = argv;
        if (!Number.isInteger(limit) || limit < 0)
          throw new TapedeckError('usage', 'Expected a whole number after `--limit`. Example: --limit 100');
        if (textsOf(argv).length === 0 && filter === undefined)
          throw new TapedeckError('usage', 'Expected a text to search for. Example: tapedeck search timeout');
        return true;
      })
      .example('$0 search timeout', 'Whatever mentions it, in any session')
      .example(
        '$0 search "not found" --filter "tool=fetch since=1d"',
        'A phrase, in the calls of a tool since yesterday',
      )
      .example(
        "$0 search --filter 'text~/E[A-Z]{4,}/' --limit 0 --json",
        'A regular expression; for a program',
      ),
  handler: async (options) => (await import('./search-run.ts')).search(options),
};
