/** The HTTP exchanges of a session, as `show --json --http` prints them. */

import { TapedeckError } from '../../errors.ts';
import { type Filter, parseFilter } from '../../inspect/filter/filter.ts';
import { selectFrames } from '../../inspect/filter/sql.ts';
import { httpExchangeJson } from '../../inspect/view/json.ts';
import type { Store } from '../../store/file/open.ts';
import {
  exchangesOf,
  type HttpExchangeRow,
  prepareHttpExchange,
  prepareHttpExchangesAfter,
} from '../../store/read/http.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { lastFrame, prepareFramesOfExchange } from '../../store/read/slices.ts';
import { breathe, emitFreshness, numberParam, sessionParam } from '../params.ts';
import type { Work } from '../work.ts';

const MOST_EXCHANGES = 500;

export const httpExchangesWork: Work = async (store, params, emit) => {
  const session = sessionParam(store, params);
  const after = numberParam(params, 'after', { most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
  const limit = numberParam(params, 'limit', { least: 1, most: MOST_EXCHANGES, otherwise: 100 });
  const written = params['filter'] ?? '';
  if (written === '' && (await emitFreshness(store, session, params, emit))) return;
  const rows =
    written === ''
      ? prepareHttpExchangesAfter(store, session.number, limit + 1)(after)
      : await exchangesWith(store, session, parseFilter(written, Date.now() * 1000), after, limit + 1);
  const shown = rows.slice(0, limit);
  const next = rows.length > limit ? shown.at(-1)?.number : null;
  const lines = shown.map((row) => httpExchangeJson(session.id, row));
  await emit(`{"http":[${lines.join(',')}],"next":${next ?? null}}`);
};

/** Those with a frame for which the filter holds: looking for them is no fast work. */
async function exchangesWith(
  store: Store,
  { number }: SessionRow,
  filter: Filter,
  after: number,
  limit: number,
): Promise<HttpExchangeRow[]> {
  const wanted = exchangesOf(store, number, selectFrames(store, filter));
  const rowsAfter = prepareHttpExchangesAfter(store, number, MOST_EXCHANGES);
  const found: HttpExchangeRow[] = [];
  for (let rows = rowsAfter(after); rows.length > 0 && found.length < limit; ) {
    found.push(...rows.filter((row) => wanted.has(row.number)));
    rows = rowsAfter(rows.at(-1)?.number ?? 0);
    await breathe();
  }
  return found.slice(0, limit);
}

export const httpExchangeWork: Work = async (store, params, emit) => {
  const session = sessionParam(store, params);
  const number = numberParam(params, 'number', { least: 1, most: Number.MAX_SAFE_INTEGER });
  const row = prepareHttpExchange(store, session.number)(number);
  if (row === undefined)
    throw new TapedeckError('not-found', `Session ${session.id} has no HTTP exchange ${number}.`);
  if (await emitFreshness(store, session, params, emit)) return;
  const frames = await framesOf(store, session.number, number);
  await emit(`${httpExchangeJson(session.id, row).slice(0, -1)},"frames":${JSON.stringify(frames)}}`);
};

const FRAMES_AT_ONCE = 4096;

/** More frames of one exchange than anybody looks through: of a stream of very many events the first ones. */
const MOST_FRAMES = 10_000;

async function framesOf(store: Store, session: number, exchange: number): Promise<number[]> {
  const last = lastFrame(store, session)?.seq ?? 0;
  const framesBetween = prepareFramesOfExchange(store, session, exchange);
  const frames: number[] = [];
  for (let after = 0; after < last && frames.length < MOST_FRAMES; after += FRAMES_AT_ONCE) {
    frames.push(...framesBetween(after, after + FRAMES_AT_ONCE));
    await breathe();
  }
  return frames.slice(0, MOST_FRAMES);
}
