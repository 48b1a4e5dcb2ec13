import { TapedeckError } from '../../errors.ts';
import { EVERYTHING, type Filter, parseFilter, textTerm } from '../../inspect/filter/filter.ts';
import { eachHit, type SearchHit } from '../../inspect/search.ts';
import { prepareFates } from '../../inspect/verdict/fate.ts';
import { frameJson } from '../../inspect/view/json.ts';
import { foundFrame, sessionHeading, textTests } from '../../inspect/view/search.ts';
import { formatCount, terminalStyle } from '../../inspect/view/text.ts';
import type { Store } from '../../store/file/open.ts';
import { createSearchIndex, type SearchIndex } from '../../store/keep/search-index.ts';
import type { SideFile } from '../../store/keep/side-file.ts';
import { unansweredPlaces } from '../../store/read/exchanges.ts';
import { eachFrame } from '../../store/read/frames.ts';
import { originalOf, prepareHttpSummary } from '../../store/read/http.ts';
import { countLackingPayloads } from '../../store/read/meta-only.ts';
import { stateOf } from '../../store/read/sessions.ts';
import { type Command, type Io, say } from '../io.ts';
import { FILTER_OPTION, JSON_OPTION, READ_OPTIONS } from '../options.ts';
import { createProgress, type ProgressLine, withLineEnds, writeOutput } from '../output.ts';
import { openSide, sayWithoutSide, withStore } from '../store.ts';

/** Texts that look like options come after `--`. */
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

export const searchCommand: Command<SearchOptions> = {
  command: 'search [text..]',
  describe: 'Find frames by their text, in all sessions, the newest first',
  builder: (args) =>
    args
      .positional('text', {
        type: 'string',
        array: true,
        describe: 'Texts that the frames must all contain, in upper or lower case',
      })
      .options({
        ...READ_OPTIONS,
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
      .example('$0 search timeout', 'Every frame that mentions it, in any session')
      .example(
        '$0 search "not found" --filter "tool=fetch since=1d"',
        'A phrase, in the calls of a tool since yesterday',
      )
      .example(
        "$0 search --filter 'text~/E[A-Z]{4,}/' --limit 0 --json",
        'A regular expression; for a program',
      ),
  run: search,
};

export async function search(options: SearchOptions, io: Io): Promise<void> {
  const { db, filter: written, json, limit } = options;
  const filter = filterOf(textsOf(options), written);
  let hasMore = false;
  let lacking = 0;
  const most = limit > 0 ? limit : Number.POSITIVE_INFINITY;
  await withStore(io, db, { of: 'matches', filter, mostFrames: most }, async (store) => {
    const side = openSide(io, db, store);
    try {
      const index = side === null ? null : upToDateIndex(io, side, store);
      const findings = eachHit(store, filter, index, most, () => {
        hasMore = true;
      });
      const lines = json ? jsonOf(store, findings) : withLineEnds(linesOf(io, store, findings, filter));
      await writeOutput(io, lines);
      if (textTests(filter).length > 0) lacking = countLackingPayloads(store);
    } finally {
      side?.close();
    }
  });
  if (lacking > 0)
    say(
      io,
      `in ${formatCount(lacking, 'session')} some frames have no payload, and so no text (--meta-for, --capture meta)`,
    );
  if (hasMore) say(io, `there is more; \`--limit ${limit * 5}\` shows more, \`--limit 0\` all`);
}

function filterOf(texts: readonly string[], written: string | undefined): Filter {
  const filter = written === undefined ? EVERYTHING : parseFilter(written, Date.now() * 1000);
  return { type: 'and', parts: [...texts.map(textTerm), filter] };
}

/** Null where the index cannot be kept: the search is slower then, and finds the same. */
function upToDateIndex(io: Io, side: SideFile, store: Store): SearchIndex | null {
  let progress: ProgressLine | undefined;
  try {
    const index = createSearchIndex(side, store);
    for (const { done, total } of index.catchUp()) {
      progress ??= createProgress(io, 'indexed', total);
      progress.advance(done);
    }
    return index;
  } catch (error) {
    sayWithoutSide(io, error);
    return null;
  } finally {
    progress?.end();
  }
}

function* jsonOf(store: Store, findings: Iterable<SearchHit>): Generator<string> {
  for (const { session, only } of findings) {
    const details = {
      summaryOf: prepareHttpSummary(store, session.number),
      originalOf: (seq: number) => originalOf(store, session.number, seq),
      fateOf: prepareFates(store, session),
    };
    for (const frame of eachFrame(store, session, only)) yield* frameJson(session.id, frame, details);
  }
}

function* linesOf(io: Io, store: Store, findings: Iterable<SearchHit>, filter: Filter): Generator<string> {
  const style = terminalStyle(io.stdout, io.env);
  const tests = textTests(filter);
  let isEmpty = true;
  for (const { session, only } of findings) {
    if (!isEmpty) yield '';
    isEmpty = false;
    yield* sessionHeading(session, style);
    const options = {
      style: style,
      payloadLines: 0,
      isOpen: stateOf(session) === 'open',
      isFull: false,
      unanswered: unansweredPlaces(store, session, only),
      originalOf: (seq: number) => originalOf(store, session.number, seq),
      fateOf: prepareFates(store, session),
    };
    for (const frame of eachFrame(store, session, only)) yield* foundFrame(session, frame, tests, options);
  }
  if (isEmpty) yield 'Nothing was found.';
}
