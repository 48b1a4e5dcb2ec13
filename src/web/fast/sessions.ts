/** The list of sessions, page by page, and the store as a whole. */

import { TapedeckError } from '../../errors.ts';
import { parseFilter } from '../../inspect/filter/filter.ts';
import { prepareSessionTest } from '../../inspect/filter/sql.ts';
import { sessionFacts } from '../../inspect/view/json.ts';
import type { Store } from '../../store/file/open.ts';
import { countSessions, type RankedPlace, rankedSessions, SESSION_RANKS } from '../../store/read/ranking.ts';
import { prepareSession, type SessionRow, stateOf } from '../../store/read/sessions.ts';
import { lastFrame } from '../../store/read/slices.ts';
import { typedName, VERSION } from '../../version.ts';
import type { About, SessionPage, SessionSummary } from '../api.ts';
import { breathe, numberParam } from '../params.ts';
import type { Params, Work } from '../work.ts';
import { createErrorLines } from './error-lines.ts';

export const aboutWork: Work = async (store, params, emit) => {
  const about: About = {
    version: VERSION,
    typed: typedName(process.env),
    store: params['store'] ?? '',
    sessions: countSessions(store),
    can: { search: true, live: true, stats: true, compare: true, runs: true, export: true },
    report: null,
  };
  await emit(JSON.stringify(about));
};

const MOST_SESSIONS = 500;

/** A filter may have to look at every frame: with one this is no fast work. */
export const sessionsWork: Work = async (store, params, emit, isLeft) => {
  const { by, isDescending } = orderOf(params);
  const limit = numberParam(params, 'limit', { least: 1, most: MOST_SESSIONS, otherwise: 100 });
  const after = readPlace(params['after']);
  const among = await sessionsWith(store, params['filter'], isLeft);
  const places = rankedSessions(store, by, { isDescending, after, limit: limit + 1, among });
  const shown = places.slice(0, limit);
  const sessionOf = prepareSession(store);
  const rows = shown.flatMap(({ number }) => sessionOf(number) ?? []);
  const last = shown.at(-1);
  const lines = createErrorLines(store);
  const page: SessionPage = {
    sessions: rows.map((session) => listedSession(store, session, lines.inTime)),
    next: places.length > limit && last !== undefined ? writePlace(last) : null,
    total: among?.length ?? countSessions(store),
  };
  await emit(JSON.stringify(page));
  lines.completeLater();
};

function orderOf({ sort = '-started' }: Params): { by: keyof typeof SESSION_RANKS; isDescending: boolean } {
  const by = sort.replace(/^-/, '');
  if (Object.hasOwn(SESSION_RANKS, by))
    return { by: by as keyof typeof SESSION_RANKS, isDescending: sort.startsWith('-') };
  const names = Object.keys(SESSION_RANKS).join(', ');
  throw new TapedeckError(
    'usage',
    `Expected one of ${names} as \`sort\`, with a \`-\` before it for the largest first; got \`${sort}\`.`,
  );
}

/** A place as it stands in a URL. */
function writePlace({ key, number }: RankedPlace): string {
  return Buffer.from(JSON.stringify([key, number])).toString('base64url');
}

function readPlace(text: string | undefined): RankedPlace | null {
  if (text === undefined) return null;
  try {
    const [key, number] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[];
    if (typeof number === 'number' && (typeof key === 'number' || typeof key === 'string'))
      return { key, number };
  } catch {
    // It is said below.
  }
  throw new TapedeckError('usage', 'Expected what `next` of the page before was, as `after`.');
}

/** The numbers of the sessions with a frame for which the filter holds; undefined without a filter. */
async function sessionsWith(
  store: Store,
  written: string | undefined,
  isLeft: () => boolean,
): Promise<number[] | undefined> {
  if (written === undefined || written.trim() === '') return undefined;
  const { candidates, holds } = prepareSessionTest(store, parseFilter(written, Date.now() * 1000));
  const found: number[] = [];
  for (const number of candidates) {
    if (isLeft()) return found;
    if (holds({ number })) found.push(number);
    await breathe();
  }
  return found;
}

/** A session as a row of the list; its line of errors as far as `errorLine` gives it. */
export function listedSession(
  store: Store,
  session: SessionRow,
  errorLine: (session: SessionRow, end: number) => number[] | null,
): SessionSummary {
  const { startedAt, endedAt, number } = session;
  const end = endedAt ?? lastFrame(store, number)?.at ?? null;
  return {
    ...sessionFacts(session),
    state: stateOf(session),
    lasted: end === null ? null : Math.max(0, end - startedAt),
    errorsOverTime: end === null ? null : errorLine(session, end),
  };
}
