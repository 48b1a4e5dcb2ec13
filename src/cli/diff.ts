import type { CommandModule } from 'yargs';
import { lookOf } from '../inspect/look.ts';
import { readIgnoreRules } from '../replay/ignore.ts';
import { diffSessions } from '../replay/session-diff.ts';
import { readResultRules } from '../replay/verify-compare.ts';
import { diffJson, diffLines, isEqual } from './diff-report.ts';
import { withLineEnds, writeOutput } from './output.ts';
import { DB_OPTION, JSON_OPTION } from './shared-options.ts';
import { openSource, RECORDING } from './source.ts';

type Options = {
  a: string;
  b: string;
  db: string | undefined;
  json: boolean;
  ignore: string[];
  'ignore-tool': string[];
  'ignore-result': string[];
};

const PATHS = { type: 'string', array: true, default: [] as string[], requiresArg: true } as const;

export const diffCommand: CommandModule<object, Options> = {
  command: 'diff <a> <b>',
  describe: 'Compare two sessions: what the servers offer, what was asked, answered, and how fast',
  builder: (args) =>
    args
      .positional('a', RECORDING)
      .positional('b', RECORDING)
      .options({
        db: DB_OPTION,
        json: JSON_OPTION,
        ignore: { ...PATHS, describe: 'A JSON path in params that does not count (may be repeated)' },
        'ignore-tool': {
          ...PATHS,
          describe: 'The same in the arguments of one tool: NAME:PATH (may be repeated)',
        },
        'ignore-result': {
          ...PATHS,
          describe: 'A JSON path in results that does not count, or of one tool: NAME:PATH (may be repeated)',
        },
      })
      .example('$0 diff before.ndjson latest', 'A text recording with the newest session')
      .example("$0 diff monday tuesday --ignore-tool 'search:$.now'", 'Two sessions by name, but for a time'),
  async handler(options) {
    const ignore = readIgnoreRules(options.ignore, options['ignore-tool']);
    const results = readResultRules(options['ignore-result']);
    const [a, b] = [await openSource(options.a, options.db), await openSource(options.b, options.db)];
    const diff = diffSessions(a, b, ignore, results);
    await writeOutput(withLineEnds(options.json ? diffJson(diff) : diffLines(diff, lookOf(process.stdout))));
    a.close();
    b.close();
    if (!isEqual(diff)) process.exitCode = 1;
  },
};
