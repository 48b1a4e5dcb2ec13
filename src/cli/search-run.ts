/** What `search` does. In a file of its own, because it loads much that no other command needs. */
import { ALL, type Filter, parseFilter, textTerm } from '../inspect/filter.ts';
import { frameLine } from '../inspect/json-lines.ts';
import { lookOf } from '../inspect/look.ts';
import { eachFinding, type Finding } from '../inspect/search.ts';
import { foundFrame, sessionHeading, textTests } from '../inspect/search-view.ts';
import { openIndexed } from '../store/catch-up.ts';
import { originalOf, prepareHttpSummary } from '../store/http-reader.ts';
import { storePath } from '../store/location.ts';
import type { Store } from '../store/open.ts';
import { eachFrame, stateOf } from '../store/reader.ts';
import { createSearchIndex, type SearchIndex } from '../store/search-index.ts';
import type { SideFile } from '../store/side-file.ts';
import { unansweredPlaces } from '../store/unanswered.ts';
import { createProgress, NOTICES, type Progress, withLineEnds, writeOutput } from './output.ts';
import { type SearchOptions, textsOf } from './search.ts';
import { openSide, sayWithoutSide } from './side.ts';

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
