/** Frames by their text and a filter, in all sessions that may be seen, the newest first. */

import { EVERYTHING, type Filter, textTerm } from '../../inspect/filter/filter.ts';
import { eachPlace, type SearchedPlace } from '../../inspect/search.ts';
import { type Excerpt, excerptsOf, textTests } from '../../inspect/view/search.ts';
import { formatIsoTime } from '../../protocol/text.ts';
import { directionOf } from '../../protocol/wire/frame.ts';
import type { Store } from '../../store/file/open.ts';
import { createSearchIndex, type SearchIndex } from '../../store/keep/search-index.ts';
import type { SideFile } from '../../store/keep/side-file.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { badCursor, sideFor, type ToolAnswer, type ToolQuestion } from './asked.ts';
import { prepareFrames, type SeenFrames } from './frames.ts';
import type { Opened } from './redacted.ts';
import { prepareAmong, readToolFilter, type SeenScope } from './scope.ts';

const HITS = 10;

/** So long one search may take, in milliseconds. */
const SEARCH_MS = 700;

/** An index that lacks more frames than this is left to the background (upkeep.ts). */
const MOST_LAG = 5000;

/** Characters before and behind what was found. */
const AROUND = 100;

export async function searchSessions({
  store,
  scope,
  room,
  args,
  keepsIndex,
}: ToolQuestion): Promise<ToolAnswer> {
  const until = performance.now() + SEARCH_MS;
  const { limit = HITS } = args;
  const from = readCursor(args.cursor);
  const filter = wholeFilter([args.text ?? []].flat(), readToolFilter(args.filter));
  const side = sideFor(store, keepsIndex);
  const hits: object[] = [];
  let last = args.cursor;
  try {
    const { index, behind } = side === null ? NO_INDEX : currentIndex(side, store, from?.isIndexed !== false);
    if (from?.isIndexed === true && index === null) throw badCursor(args.cursor ?? '');
    const seen = new Map(scope.sessions().map((session) => [session.number, session]));
    const hitOf = prepareHits(scope, filter);
    const after = from === null ? undefined : placeOf(from, seen);
    const whole = scope.within(filter) ?? EVERYTHING;
    for (const place of eachPlace(store, whole, index, after)) {
      const session = seen.get(place.session);
      const hit = place.holds && session !== undefined ? await hitOf(session, place.seq) : null;
      if (hit !== null) {
        const row = hits.length < limit ? room.admit(hit) : undefined;
        if (row === undefined)
          return {
            recorded: { hits },
            ...(last === undefined ? {} : { cursor: last }),
            leftOut: ['There are more frames: ask again with this cursor.'],
          };
        hits.push(row);
      }
      if (session !== undefined) last = cursorOf(place, session, index !== null);
      if (performance.now() > until) return unfinished(hits, last, place, seen, behind);
    }
    return { recorded: { hits } };
  } finally {
    side?.close();
  }
}

/** `behind`: what the index lacks, where it is being made; null: it does not help, or is not kept. */
function unfinished(
  hits: readonly object[],
  cursor: string | undefined,
  { session }: SearchedPlace,
  seen: ReadonlyMap<number, SessionRow>,
  behind: number | null,
): ToolAnswer {
  const done = [...seen.keys()].indexOf(session);
  const of = seen.size;
  const oldest = seen.get(session)?.startedAt;
  const where =
    oldest === undefined ? '' : `, and a part of the one of ${formatIsoTime(oldest).slice(0, 19)}Z`;
  const searched = { what: 'search', done: Math.max(0, done), of, unit: 'sessions' };
  const goOn = `Only the newest ${searched.done} of ${of} sessions${where} were searched, for want of time: ask again with this cursor for older ones.`;
  const frames = [...seen.values()].reduce((sum, one) => sum + one.frames, 0);
  const indexed = { what: 'index', done: Math.max(0, frames - (behind ?? 0)), of: frames, unit: 'frames' };
  return {
    recorded: { hits },
    ...(cursor === undefined ? {} : { cursor }),
    leftOut: [
      goOn,
      ...(behind === null
        ? []
        : [
            behind === 0
              ? 'The index for searching is ready: ask the same without a cursor, and all sessions are searched at once.'
              : `An index for searching is being made, and has ${indexed.done} of ${frames} frames: wait a little, ask the same without a cursor, and all sessions are searched at once.`,
          ]),
    ],
    incomplete: behind === null ? [searched] : [searched, indexed],
  };
}

function wholeFilter(texts: readonly string[], filter: Filter | undefined): Filter {
  return { type: 'and', parts: [...texts.filter((text) => text !== '').map(textTerm), filter ?? EVERYTHING] };
}

/** `index`: null where it is not up to date soon: then frames are read. `behind`: by so many frames. */
type CurrentIndex = { index: SearchIndex | null; behind: number | null };

const NO_INDEX: CurrentIndex = { index: null, behind: null };

/** `isWanted`: a search that was begun without an index goes on without. */
function currentIndex(side: SideFile, store: Store, isWanted: boolean): CurrentIndex {
  try {
    const index = createSearchIndex(side, store);
    const behind = index.lag();
    if (behind > MOST_LAG || !isWanted) return { index: null, behind };
    for (const _ of index.catchUp());
    return { index, behind: null };
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE')) return NO_INDEX;
    throw error;
  }
}

type Searched = { opened: Opened; frames: SeenFrames; holds: (seq: number) => boolean };

/** Makes the row of a frame; null where it may not be seen, or would not be found without its secrets. */
function prepareHits(
  scope: SeenScope,
  filter: Filter,
): (session: SessionRow, seq: number) => Promise<object | null> {
  const tests = textTests(filter);
  const known = new Map<number, Searched>();
  return async (session, seq) => {
    const searched = known.get(session.number) ?? (await begin(session));
    known.set(session.number, searched);
    const { frames, holds } = searched;
    const frame = holds(seq) ? frames.at(seq) : undefined;
    if (frame === undefined) return null;
    const excerpts = excerptsOf(frame.payload.toString('utf8'), tests, AROUND);
    return {
      ...{ session: session.id, seq, at: formatIsoTime(frame.at), direction: directionOf(frame.channel) },
      ...{ channel: frame.channel, bytes: frame.payload.length, says: frames.title(frame) },
      excerpts: excerpts.map((one: Excerpt) => one.join('')),
    };
  };

  async function begin(session: SessionRow): Promise<Searched> {
    const opened = await scope.open(session);
    const holds = prepareAmong(opened, scope.only(opened, filter));
    return { opened, frames: prepareFrames(opened, scope), holds };
  }
}

type Cursor = { isIndexed: boolean; session: string; seq: number };

function cursorOf({ seq }: SearchedPlace, { id }: SessionRow, isIndexed: boolean): string {
  return `${isIndexed ? 'i' : 's'}:${id}:${seq}`;
}

/** Throws `TapedeckError` `usage`. */
function readCursor(cursor: string | undefined): Cursor | null {
  if (cursor === undefined) return null;
  const [, kind, session = '', seq] = /^([is]):([^:]{1,100}):(\d{1,15})$/.exec(cursor) ?? [];
  if (kind === undefined) throw badCursor(cursor);
  return { isIndexed: kind === 'i', session, seq: Number(seq) };
}

function placeOf({ session: id, seq }: Cursor, seen: ReadonlyMap<number, SessionRow>) {
  const session = [...seen.values()].find((one) => one.id === id);
  if (session === undefined) throw badCursor(`${id}:${seq}`);
  return { session: session.number, seq };
}
