/** From what somebody asks for to the sessions that must be here, so that the answer is the same as if all of them were. */

import { TapedeckError } from '../../errors.ts';
import { filterField } from '../../inspect/filter/fields.ts';
import { EVERYTHING, type Filter, isAboutSessions } from '../../inspect/filter/filter.ts';
import { eachCandidate, eachSessionWith } from '../../inspect/filter/sql.ts';
import { eachHit } from '../../inspect/search.ts';
import type { Store } from '../../store/file/open.ts';
import { type SessionRow, sessionsBehind, stateOf } from '../../store/read/sessions.ts';
import { candidatesFor, type IndexedTexts } from './candidates.ts';
import { timesApart } from './counts.ts';
import type { FetchedStore } from './fetched.ts';
import type { Finder, Found } from './find.ts';
import type { Puller, PullNotices } from './pull.ts';

/** What is fetched, so that what is asked of it has the same answer as if everything were there. */
export type Needs =
  /**
   * These sessions, each by an id, the beginning of one, `host/id`, a name or `latest`, with all their frames. `isCounted`: figures
   * are all that is made of them, of the frames for which the filter holds.
   */
  | { of: 'sessions'; references: readonly string[]; isCounted?: boolean; filter?: Filter | undefined }
  /** What the rows of sessions say: of all of them, or of the newest. */
  | { of: 'rows'; most: number }
  /**
   * Every session with a frame for which the filter holds, with all its frames; or the newest of them, until there are `most` of
   * them, or more than `mostFrames` of their frames, for which it holds. `isList`: of the sessions no more than their rows is shown.
   * `isCounted`: figures are all that is made of them. `withRuns`: with the rows of the others in their runs.
   */
  | {
      of: 'matches';
      filter: Filter | undefined;
      most?: number;
      mostFrames?: number;
      isList?: boolean;
      isCounted?: boolean;
      withRuns?: boolean;
    }
  /** The sessions of a run of a client, by its id, the beginning of one, its name or `latest`. */
  | { of: 'run'; reference: string };

export type EngineOptions = {
  env: NodeJS.ProcessEnv;
  isInsecure: boolean;
  notices: PullNotices & { onIndexing(session: SessionRow): void };
};

export type Fetching = {
  finder: Finder;
  puller: Puller;
  fetched: FetchedStore;
  /** What the engine's index of texts says of a filter's. */
  texts(filter: Filter): Promise<IndexedTexts>;
  options: EngineOptions;
};

/** Fetches what is needed. Throws `TapedeckError` `ambiguous` where hosts share an id. */
export async function fetchNeeds(needs: Needs, work: Fetching): Promise<void> {
  const { finder, puller } = work;
  // What `latest` is, and whether there is any session, must be the same here.
  await puller.rows(await finder.newest(1));
  switch (needs.of) {
    case 'sessions':
      for (const reference of needs.references) await fetchNamed(reference, needs, work);
      return;
    case 'rows':
      await puller.rows(await finder.newest(needs.most));
      return fetchChangedTools(work);
    case 'run': {
      const sessions = await finder.inRun(needs.reference.replace(/\/\d+$/, ''));
      await fetchWhole(sessions, work);
      return puller.rows(await finder.beside(sessions));
    }
    default:
      return fetchMatches(needs, work);
  }
}

async function fetchNamed(
  reference: string,
  { filter = EVERYTHING, isCounted = false }: Extract<Needs, { of: 'sessions' }>,
  work: Fetching,
): Promise<void> {
  const { finder, puller, options } = work;
  const found = await finder.named(reference);
  const [one, another] = found;
  if (one === undefined) return;
  if (another !== undefined) {
    if (one.id === another.id) throw ambiguous(reference, found);
    return puller.rows(found);
  }
  const named = `${one.host}/${one.id}` === reference ? { ...one, id: reference } : one;
  await (isCounted ? fetchCounted([named], filter, work) : fetchWhole([named], work));
  if (!one.isSealed)
    options.notices.onNote(`session ${one.id} has not arrived whole yet${howFar(work, one)}`);
  const [, ...earlier] = await finder.ofSameServer(one, EARLIER_SESSIONS + 1);
  await puller.rows(earlier);
  await puller.tools(earlier);
}

/** So many earlier sessions of a server are looked at for its tools (`earlierTools`). */
const EARLIER_SESSIONS = 5;

function ambiguous(id: string, sessions: readonly Found[]): TapedeckError {
  const names = sessions.map(({ host }) => `${host}/${id}`);
  return new TapedeckError(
    'ambiguous',
    `Sessions of several hosts have the id ${id}. Give the host too: ${names.join(', ')}`,
  );
}

function howFar({ fetched }: Fetching, { key }: Found): string {
  const last = fetched.store
    .prepare<[number | undefined], { frames: number; at: number | null }>(
      'SELECT count(*) AS frames, max(at) AS at FROM frame WHERE session = ?',
    )
    .get(fetched.numberOf(key));
  if (last === undefined || last.at === null) return '';
  return `: ${last.frames} frames are here, the last of ${new Date(last.at / 1000).toISOString()}`;
}

/** Brings sessions with all their frames, and completes their indexes as for a store of one's own. */
async function fetchWhole(sessions: readonly Found[], { puller, fetched, options }: Fetching): Promise<void> {
  await puller.frames(sessions);
  const wanted = new Set(sessions.map(({ key }) => fetched.numberOf(key)));
  const behind = sessionsBehind(fetched.store).filter(
    (session) => wanted.has(session.number) && stateOf(session) !== 'open',
  );
  if (behind.length === 0) return;
  const { reindexSession } = await import('../../store/write/index.ts');
  for (const session of behind) {
    options.notices.onIndexing(session);
    reindexSession(fetched.store, session.number);
  }
}

/** Brings the figures of the calls for which the filter holds, or what they are made of. */
async function fetchCounted(sessions: readonly Found[], filter: Filter, work: Fetching): Promise<void> {
  const apart = timesApart(filter);
  if (apart === null) {
    await (asksForText(filter) ? fetchWhole(sessions, work) : fetchLight(sessions, work));
    return;
  }
  const { puller, fetched } = work;
  await puller.rows(sessions);
  const held = new Set([...eachCandidate(fetched.store, apart.ofSessions)].map(({ number }) => number));
  // Of the others nothing counts, whatever they have.
  const wanted = sessions.filter(({ key }) => held.has(Number(fetched.numberOf(key))));
  const [sealed, others] = [true, false].map((is) => wanted.filter(({ isSealed }) => isSealed === is));
  const left = await puller.counts(sealed ?? [], apart.times);
  await fetchLight([...(others ?? []), ...left], work);
}

/** Brings everything but payloads and headers. Where an index is not complete it takes the payloads to complete it. */
async function fetchLight(sessions: readonly Found[], work: Fetching): Promise<void> {
  const { puller } = work;
  await puller.figures(sessions.filter(({ isIndexed }) => isIndexed));
  await fetchWhole(
    sessions.filter(({ isIndexed }) => !isIndexed),
    work,
  );
}

function asksForText(filter: Filter): boolean {
  if (filter.type === 'term') return filterField(filter.field).type === 'payload';
  return (filter.type === 'not' ? [filter.part] : filter.parts).some(asksForText);
}

/** So many sessions come at first, then twice as many each time. */
const FIRST_WAVE = 20;

const MOST_IN_A_WAVE = 500;

async function fetchMatches(needs: Extract<Needs, { of: 'matches' }>, work: Fetching): Promise<void> {
  const { finder, puller, fetched, texts } = work;
  const { filter = EVERYTHING, isList = false, isCounted = false, withRuns = false } = needs;
  const { most, mostFrames } = needs;
  const condition = candidatesFor(filter, await texts(filter));
  const needsFrames = !isList || !isAboutSessions(filter);
  const isBounded = most !== undefined || mostFrames !== undefined;
  let size = isBounded ? FIRST_WAVE : MOST_IN_A_WAVE;
  let last: Found | undefined;
  for (;;) {
    const wave = await finder.newest(size, condition, last);
    if (!needsFrames) await puller.rows(wave);
    else if (isCounted) await fetchCounted(wave, filter, work);
    else if (isList && !asksForText(filter)) await fetchLight(wave, work);
    else await fetchWhole(wave, work);
    if (withRuns) await puller.rows(await finder.inRunsOf(wave));
    last = wave.at(-1);
    if (wave.length < size || isEnough(fetched.store, filter, most, mostFrames)) break;
    size = Math.min(2 * size, MOST_IN_A_WAVE);
  }
  if (isList) await fetchChangedTools(work);
}

function isEnough(store: Store, filter: Filter, most = Infinity, mostFrames = Infinity): boolean {
  if (mostFrames < Infinity) {
    let hasMore = false;
    const onMore = () => {
      hasMore = true;
    };
    for (const _ of eachHit(store, filter, null, mostFrames, onMore)) if (hasMore) break;
    return hasMore;
  }
  if (most === Infinity) return false;
  let count = 0;
  for (const _ of eachSessionWith(store, filter)) {
    count += 1;
    if (count >= most) return true;
  }
  return false;
}

/** `list` says what has changed in the tools of the newest sessions: of so many servers, among so many sessions. */
const SERVERS = 10;

const SESSIONS = 1000;

const WITH_SERVER = {
  sql: `s.server_name IS NOT NULL AND NOT coalesce(s.labels ? 'imported', false)`,
  values: [],
};

/** Beyond that `list` looks at no lists. */
const MOST_FRAMES = 2000;

async function fetchChangedTools({ finder, puller, fetched }: Fetching): Promise<void> {
  const newest = await finder.newest(SESSIONS, WITH_SERVER);
  await puller.rows(newest);
  const serverOf = fetched.store
    .prepare<[number | undefined], string>(
      'SELECT json_array(target, transport, server_name, redaction) FROM session WHERE number = ?',
    )
    .pluck();
  const byServer = new Map<string, Found[]>();
  for (const session of newest) {
    const server = serverOf.get(fetched.numberOf(session.key)) ?? '';
    const known = byServer.get(server);
    if (known !== undefined) known.push(session);
    else if (byServer.size < SERVERS) byServer.set(server, [session]);
  }
  const looked = [...byServer.values()].flatMap((sessions) =>
    sessions.length < 2 ? [] : sessions.slice(0, EARLIER_SESSIONS + 1),
  );
  await puller.tools(looked.filter(({ frames }) => frames <= MOST_FRAMES));
}
