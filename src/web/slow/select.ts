/** The frames of a session for which a filter holds, as runs of their numbers; with `after`, those behind that one. */

import { EVERYTHING } from '../../inspect/filter/filter.ts';
import { selectFrames } from '../../inspect/filter/sql.ts';
import { type FrameSelection, lastSeqOf, unfinishedFrames } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import type { SelectLine } from '../api.ts';
import { numberParam } from '../params.ts';
import { emitJson, filterOf, inSlices, type Job, sessionOf, workOf } from './job.ts';

/** So many frames are looked at in one statement. */
const FRAMES_A_STEP = 1000;

/** The first runs go out soon, the others together. */
const RUNS_A_LINE = 500;

export const selectWork = workOf(select);

async function select(job: Job): Promise<void> {
  const session = sessionOf(job);
  const only = selectFrames(job.store, filterOf(job) ?? EVERYTHING);
  let count = 0;
  let runs: [from: number, to: number][] = [];
  let isFirst = true;
  const flush = async () => {
    if (runs.length > 0) await emitJson(job, { runs } satisfies SelectLine);
    runs = [];
    isFirst = false;
  };
  for await (const seqs of inSlices(eachStep(job, session, only), job)) {
    for (const seq of seqs) {
      const last = runs.at(-1);
      if (last?.[1] === seq - 1) last[1] = seq;
      else runs.push([seq, seq]);
    }
    count += seqs.length;
    if (isFirst || runs.length >= RUNS_A_LINE) await flush();
    await job.emit(null);
  }
  await flush();
  await emitJson(job, { done: true, count } satisfies SelectLine);
}

function* eachStep({ store, params }: Job, session: SessionRow, only: FrameSelection): Generator<number[]> {
  const { number } = session;
  const first = numberParam(params, 'after', { most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
  const last = lastSeqOf(store, number);
  const among = store
    .prepare<[object], number>(
      `SELECT DISTINCT seq FROM (${only.sql}) WHERE seq > @after AND seq <= @upTo ORDER BY seq`,
    )
    .pluck();
  for (let after = first; after < last; after += FRAMES_A_STEP)
    yield among.all({ ...only.values, session: number, after, upTo: after + FRAMES_A_STEP });
  yield [...unfinishedFrames(store, number, last)]
    .filter((frame) => only.hasUnfinished(session, frame))
    .map(({ seq }) => seq);
}
