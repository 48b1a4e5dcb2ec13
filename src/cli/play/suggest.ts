/** `replay --suggest-ignore`: which arguments differ between two recordings of one scenario, as options that ignore them. */

import { TapedeckError } from '../../errors.ts';
import { escapeText } from '../../protocol/text.ts';
import { recordedKeys } from '../../replay/match/recording-keys.ts';
import { type Suggestion, type Suggestions, suggestIgnores } from '../../replay/match/suggest.ts';
import { joinRecordings } from '../../replay/recording/joined.ts';
import { readRecording } from '../../replay/recording/recording.ts';
import { type Io, say } from '../io.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { withSources } from './source.ts';

export const SUGGEST_OPTIONS = {
  'suggest-ignore': {
    type: 'string',
    describe: 'Serve nobody: compare with another recording of the same scenario, and print what to ignore',
    requiresArg: true,
  },
  json: { type: 'boolean', default: false, describe: 'With --suggest-ignore: one JSON object per line' },
} as const;

/** Options that say how a client is answered; each with the value that it has where it is not given. */
const OF_ANSWERING = {
  mode: 'none',
  'record-failures': false,
  repeat: 'error',
  speed: 'fast',
  listen: undefined,
  report: undefined,
  'fail-on-miss': false,
} as const;

type Options = {
  recording: string[];
  db: string | undefined;
  ignore: string[];
  'ignore-tool': string[];
  'suggest-ignore': string | undefined;
  json: boolean;
} & Record<keyof typeof OF_ANSWERING, unknown>;

/** Throws `TapedeckError` `usage` for options that do not go together. */
export function checkSuggestOptions(argv: Options): void {
  if (argv['suggest-ignore'] === undefined) {
    if (argv.json) throw new TapedeckError('usage', 'Expected `--suggest-ignore` with `--json`, got none.');
    return;
  }
  for (const [name, value] of Object.entries(OF_ANSWERING)) {
    if (argv[name as keyof typeof OF_ANSWERING] !== value) {
      const why = 'it answers nobody, and only compares';
      throw new TapedeckError('usage', `Expected no \`--${name}\` with \`--suggest-ignore\`: ${why}.`);
    }
  }
}

/** Prints suggestions for two recordings, without those that the given options ignore already. */
export async function suggestIgnore(io: Io, argv: Options, other: string): Promise<void> {
  const rules = { ignore: argv.ignore, ignoreTool: argv['ignore-tool'] };
  const found = await withSources(io, [...argv.recording, other], argv.db, (sources) => {
    const recordings = sources.map(({ store, session }) => readRecording(store, session));
    return suggestIgnores(
      recordedKeys(joinRecordings(recordings.slice(0, -1)), rules),
      recordedKeys(joinRecordings(recordings.slice(-1)), rules),
    );
  });
  await writeOutput(io, withLineEnds(found.suggestions.map(argv.json ? jsonOf : optionOf)));
  if (!argv.json) explain(io, found);
}

function optionOf({ option }: Suggestion): string {
  return escapeText(option);
}

function jsonOf({ option, method, target, differing, pairs, example }: Suggestion): string {
  return JSON.stringify({ option, method, target, differing, pairs, ...example });
}

/** For people, on stderr: the options alone can be piped on. */
function explain(io: Io, { suggestions, unpaired, isCut }: Suggestions): void {
  for (const { option, differing, pairs, example } of suggestions) {
    const values = `${example.first ?? 'nothing'} in the one, ${example.second ?? 'nothing'} in the other`;
    say(io, escapeText(`${option}: differs in ${differing} of ${pairs} pairs of calls, as in ${values}`));
  }
  if (suggestions.length === 0) say(io, 'nothing to ignore: the calls that have a counterpart are equal');
  const { first, second } = unpaired;
  if (first + second > 0)
    say(io, `calls without a counterpart that is like them: ${first} of the one, ${second} of the other`);
  if (isCut) say(io, 'of very many calls of one target the first were compared only');
}
