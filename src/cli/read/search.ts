import type { CommandModule } from 'yargs';
import { TapedeckError } from '../../errors.ts';
import { ALL, type Filter, parseFilter, textTerm } from '../../inspect/filter/filter.ts';
import { eachFinding, type Finding } from '../../inspect/search.ts';
import { frameLine } from '../../inspect/view/json.ts';
import { foundFrame, sessionHeading, textTests } from '../../inspect/view/search.ts';
import { lookOf } from '../../inspect/view/text.ts';
import { type Store, storePath } from '../../store/file/open.ts';
import { openIndexed } from '../../store/keep/catch-up.ts';
import { createSearchIndex, type SearchIndex } from '../../store/keep/search-index.ts';
import type { SideFile } from '../../store/keep/side-file.ts';
import { unansweredPlaces } from '../../store/read/exchanges.ts';
import { eachFrame } from '../../store/read/frames.ts';
import { originalOf, prepareHttpSummary } from '../../store/read/http.ts';
import { stateOf } from '../../store/read/sessions.ts';
import { DB_OPTION, FILTER_OPTION, JSON_OPTION } from '../options.ts';
import { createProgress, NOTICES, type Progress, withLineEnds, writeOutput } from '../output.ts';
import { openSide, sayWithoutSide } from '../side.ts';

/** Texts that look like options stand behind `--`. */
type SearchOptions = {
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
  handler: async (options) => search(options),
};

/** What `search` does. In a file of its own, because it loads much that no other command needs. */

export async function search(options: SearchOptions): Promise<void> {
  const { db, filter: written, json, limit } = options;
  const filter = filterOf(textsOf(options), written);
  const store = openIndexed(storePath(db), NOTICES);
  const side = openSide(store);
  const index = side === null ? null : upToDateIndex(side, store);
  let hasMore = false;
  const findings = eachFinding(store, filter, index, limit > 0 ? limit : Number.POSITIVE_INFINITY, () => {
    hasMore = true;
  });
  await writeOutput(json ? jsonOf(store, findings) : withLineEnds(linesOf(store, findings, filter)));
  if (hasMore)
    process.stderr.write(`tapedeck: there is more; \`--limit ${limit * 5}\` shows more, \`--limit 0\` all\n`);
  side?.close();
  store.close();
}

function filterOf(texts: readonly string[], written: string | undefined): Filter {
  const filter = written === undefined ? ALL : parseFilter(written, Date.now() * 1000);
  return { type: 'and', parts: [...texts.map(textTerm), filter] };
}

/** Null where it cannot be kept, which costs time, not findings. */
function upToDateIndex(side: SideFile, store: Store): SearchIndex | null {
  let progress: Progress | undefined;
  try {
    const index = createSearchIndex(side, store);
    index.catchUp((done, total) => {
      progress ??= createProgress('indexed', total);
      progress.advance(done);
    });
    return index;
  } catch (error) {
    sayWithoutSide(error);
    return null;
  } finally {
    progress?.end();
  }
}

function* jsonOf(store: Store, findings: Iterable<Finding>): Generator<string> {
  for (const { session, only } of findings) {
    const details = {
      summaryOf: prepareHttpSummary(store, session.number),
      originalOf: (seq: number) => originalOf(store, session.number, seq),
    };
    for (const frame of eachFrame(store, session, only)) yield* frameLine(session.id, frame, details);
  }
}

function* linesOf(store: Store, findings: Iterable<Finding>, filter: Filter): Generator<string> {
  const look = lookOf(process.stdout);
  const tests = textTests(filter);
  let isEmpty = true;
  for (const { session, only } of findings) {
    if (!isEmpty) yield '';
    isEmpty = false;
    yield* sessionHeading(session, look);
    const options = {
      look,
      payloadLines: 0,
      isOpen: stateOf(session) === 'open',
      isFull: false,
      unanswered: unansweredPlaces(store, session, only),
      originalOf: (seq: number) => originalOf(store, session.number, seq),
    };
    for (const frame of eachFrame(store, session, only)) yield* foundFrame(session, frame, tests, options);
  }
  if (isEmpty) yield 'Nothing was found.';
}
