/** The runs of clients, and one of them: all its servers on one clock. */

import { TapedeckError } from '../../errors.ts';
import { selectFrames } from '../../inspect/filter/sql.ts';
import { readTimeline } from '../../inspect/run/timeline.ts';
import { runSummary } from '../../inspect/run/view.ts';
import { findRun, runsOf } from '../../store/read/runs.ts';
import type { RunDetail, RunList } from '../api.ts';
import { numberParam } from '../params.ts';
import type { Params, Work } from '../work.ts';
import { emitJson, filterOf, workOf } from './job.ts';

const MOST_RUNS = 500;

export const runsWork: Work = async (store, params, emit) => {
  const limit = numberParam(params, 'limit', { least: 1, most: MOST_RUNS, otherwise: MOST_RUNS });
  const runs: RunList = { runs: runsOf(store).slice(0, limit).map(runSummary) };
  await emit(JSON.stringify(runs));
};

/** Of one stretch, in one answer. */
const MOST_CALLS = 20_000;

const MINUTE = 60_000_000;

const MOST_MINUTES = 60 * 24 * 365;

export const runWork = workOf(async (job) => {
  const { store, params } = job;
  const gap = MINUTE * numberParam(params, 'gap', { least: 1, most: MOST_MINUTES, otherwise: 5 });
  const after = numberParam(params, 'after', { most: Number.MAX_SAFE_INTEGER, otherwise: 0 });
  const limit = numberParam(params, 'limit', { least: 1, most: MOST_CALLS, otherwise: MOST_CALLS });
  const filter = filterOf(job);
  const only = filter && selectFrames(store, filter);
  const offsets = offsetsIn(params);
  const timeline = readTimeline(store, findRun(store, params['run'] ?? ''), { gap, offsets, only });
  const { calls, stretches } = timeline;
  const most = Math.max(1, stretches.length);
  const number = numberParam(params, 'stretch', { least: 1, most, otherwise: most });
  const { first = 0, calls: count = 0 } = stretches[number - 1] ?? {};
  const upTo = Math.min(count, after + limit);
  await emitJson(job, {
    ...timeline,
    stretch: stretches.length === 0 ? 0 : number,
    stretches: stretches.map(({ first: _, ...stretch }) => stretch),
    calls: calls.slice(first + after, first + upTo).map(({ next, ...call }) => ({
      ...call,
      next: next && { ...next, call: next.call - first },
    })),
    next: upTo < count ? upTo : null,
  } satisfies RunDetail);
});

/** `1:-2500000,2:40`. Throws `TapedeckError` `usage`. */
function offsetsIn({ offset = '' }: Params): Map<number, number> {
  const pairs = offset.split(',').filter((pair) => pair !== '');
  return new Map(
    pairs.map((pair) => {
      const [, clock, micros] = /^(\d{1,3}):(-?\d{1,15})$/.exec(pair) ?? [];
      if (clock !== undefined && micros !== undefined) return [Number(clock), Number(micros)];
      throw new TapedeckError(
        'usage',
        `Expected clocks and microseconds as \`offset\`, like 1:-2500000, got \`${pair}\`.`,
      );
    }),
  );
}
