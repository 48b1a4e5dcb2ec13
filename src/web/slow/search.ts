/** Frames of all sessions by their text and a filter, the newest first, as they are found. */

import { EVERYTHING, type Filter, textTerm } from '../../inspect/filter/filter.ts';
import { eachPlace } from '../../inspect/search.ts';
import { frameTitle } from '../../inspect/view/conversation.ts';
import { excerptsOf, textTests } from '../../inspect/view/search.ts';
import { formatIsoTime } from '../../protocol/text.ts';
import { directionOf } from '../../protocol/wire/frame.ts';
import { createSearchIndex, type SearchIndex } from '../../store/keep/search-index.ts';
import type { SideFile } from '../../store/keep/side-file.ts';
import { prepareFramesAfter, prepareMessagesBetween } from '../../store/read/frames.ts';
import { prepareSession, type SessionRow } from '../../store/read/sessions.ts';
import type { SearchHitView, SearchLine } from '../api.ts';
import { numberParam } from '../params.ts';
import { emitJson, filterOf, inSlices, type Job, sideOf, workOf } from './job.ts';

const MOST_HITS = 100_000;

/** Characters before and behind what was found. */
const AROUND = 120;

export const searchWork = workOf(search);

async function search(job: Job): Promise<void> {
  const limit = numberParam(job.params, 'limit', { most: MOST_HITS, otherwise: MOST_HITS });
  const filter = wholeFilter(job);
  const side = sideOf(job);
  try {
    const index = side === null ? null : await upToDateIndex(job, side);
    await findAll(job, filter, index, limit);
  } finally {
    side?.close();
  }
}

function wholeFilter(job: Job): Filter {
  const text = job.params['q'] ?? '';
  const filter = filterOf(job) ?? EVERYTHING;
  return text === '' ? filter : { type: 'and', parts: [textTerm(text), filter] };
}

/** Null where it cannot be kept: the search is slower then, and finds the same. */
async function upToDateIndex(job: Job, side: SideFile): Promise<SearchIndex | null> {
  const index = createSearchIndex(side, job.store);
  try {
    for await (const progress of inSlices(index.catchUp(), job)) await emitJson(job, { progress });
    return index;
  } catch (error) {
    if (error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE')) return null;
    throw error;
  }
}

async function findAll(job: Job, filter: Filter, index: SearchIndex | null, limit: number): Promise<void> {
  const sessionBy = prepareSession(job.store);
  const hitOf = new Map<number, ((seq: number) => SearchHitView | null) | null>();
  let hits = 0;
  let more = false;
  for await (const place of inSlices(eachPlace(job.store, filter, index), job)) {
    if (!place.holds) {
      await job.emit(null);
      continue;
    }
    if (hits === limit) {
      more = true;
      break;
    }
    if (!hitOf.has(place.session)) {
      const session = sessionBy(place.session);
      hitOf.set(place.session, session === undefined ? null : prepareHit(job, session, filter));
      if (session !== undefined) await emitJson(job, { session: headOf(session) } satisfies SearchLine);
    }
    // A session that was removed meanwhile is gone.
    const hit = hitOf.get(place.session)?.(place.seq) ?? null;
    if (hit === null) continue;
    hits += 1;
    await emitJson(job, { hit } satisfies SearchLine);
  }
  await emitJson(job, { done: true, hits, more } satisfies SearchLine);
}

function headOf({ id, name, target, transport, startedAt }: SessionRow) {
  return { session: id, name, target, transport, startedAt: formatIsoTime(startedAt) };
}

function prepareHit(
  { store }: Job,
  { id, number }: SessionRow,
  filter: Filter,
): (seq: number) => SearchHitView | null {
  const frameAfter = prepareFramesAfter(store, number, 1);
  const messagesBetween = prepareMessagesBetween(store, number);
  const tests = textTests(filter);
  return (seq) => {
    const [frame] = frameAfter(seq - 1);
    if (frame === undefined || frame.seq !== seq) return null;
    const rows = messagesBetween(seq - 1, seq);
    return {
      session: id,
      seq,
      at: formatIsoTime(frame.at),
      direction: directionOf(frame.channel),
      channel: frame.channel,
      line: frameTitle(frame, rows),
      outcome: rows.find(({ outcome }) => outcome !== null)?.outcome ?? null,
      excerpts: excerptsOf(frame.payload.toString('utf8'), tests, AROUND),
    };
  };
}
