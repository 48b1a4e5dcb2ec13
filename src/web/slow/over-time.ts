/** How many calls there were in each stretch of time. */

import type { Filter } from '../../inspect/filter/filter.ts';
import { selectFrames } from '../../inspect/filter/sql.ts';
import { formatIsoTime } from '../../protocol/text.ts';
import type { Store } from '../../store/file/open.ts';
import { lastSeqOf } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import type { StatsLine } from '../api.ts';
import { inSlices, type Job } from './job.ts';

type OverTime = Extract<StatsLine, { overTime: unknown }>['overTime'];

const MOST_BARS = 80;

const MS = 1000;

const [SECOND, MINUTE, HOUR] = [1000 * MS, 60_000 * MS, 3_600_000 * MS];

/** Widths that people count in, in microseconds. */
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((ms) => ms * MS),
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * MINUTE),
  ...[1, 2, 3, 6, 12, 24, 48, 168, 336].map((hours) => hours * HOUR),
];

/** Calls count where they begin. The bars are without gaps, from the first call to the last. */
export async function callsOverTime(
  job: Job,
  sessions: readonly SessionRow[],
  filter: Filter | undefined,
): Promise<OverTime> {
  const { store } = job;
  const span = spanOf(store, sessions);
  const step = STEPS.find((one) => (span.to - span.from) / one < MOST_BARS) ?? span.to - span.from + 1;
  const first = Math.floor(span.from / step);
  const counts = new Map<number, { calls: number; errors: number }>();
  for await (const rows of inSlices(eachCount(store, sessions, filter, step), job))
    for (const { bin, calls, errors } of rows) {
      const known = counts.get(bin) ?? { calls: 0, errors: 0 };
      counts.set(bin, { calls: known.calls + calls, errors: known.errors + errors });
    }
  const last = counts.size === 0 ? first - 1 : Math.max(...counts.keys());
  const least = counts.size === 0 ? first : Math.min(...counts.keys());
  // A clock that was set leaves no room for all bars between.
  const bins = last - least < 10 * MOST_BARS ? range(least, last) : [...counts.keys()].sort((a, b) => a - b);
  const bars = bins.map((bin) => ({
    at: formatIsoTime(bin * step),
    ...(counts.get(bin) ?? { calls: 0, errors: 0 }),
    filter: `kind=request since=${formatIsoTime(bin * step)} until=${formatIsoTime((bin + 1) * step)}`,
  }));
  return { stepMs: step / MS, bars };
}

function range(from: number, to: number): number[] {
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, i) => from + i);
}

/** From the first frame to the last. */
function spanOf(store: Store, sessions: readonly SessionRow[]): { from: number; to: number } {
  const end = store
    .prepare<[number], number>('SELECT at FROM frame WHERE session = ? ORDER BY seq DESC LIMIT 1')
    .pluck();
  let [from, to] = [Number.POSITIVE_INFINITY, 0];
  for (const { number, startedAt } of sessions) {
    from = Math.min(from, startedAt);
    to = Math.max(to, end.get(number) ?? startedAt);
  }
  return to === 0 ? { from: 0, to: 0 } : { from, to };
}

type Count = { bin: number; calls: number; errors: number };

/** So many frames are looked at in one statement. */
const FRAMES_A_STEP = 5000;

function* eachCount(
  store: Store,
  sessions: readonly SessionRow[],
  filter: Filter | undefined,
  step: number,
): Generator<Count[]> {
  const only = filter === undefined ? undefined : selectFrames(store, filter);
  const select = store.prepare<[object], Count>(`
    SELECT f.at / @step AS bin, count(*) AS calls,
      sum(ifnull(coalesce(a.outcome, m.outcome) IN ('error', 'tool-error'), 0)) AS errors
    FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
    LEFT JOIN message AS a ON a.session = m.session AND a.to_seq = m.seq AND a.to_n = m.n AND a.relation = 'reply'
    WHERE m.session = @session AND m.kind = 'request' AND m.seq > @after AND m.seq <= @upTo
      ${only === undefined ? '' : `AND m.seq IN (SELECT seq FROM (${only.sql}) WHERE seq > @after AND seq <= @upTo)`}
    GROUP BY bin`);
  for (const { number: session } of sessions) {
    const last = lastSeqOf(store, session);
    for (let after = 0; after < last; after += FRAMES_A_STEP)
      yield select.all({ ...only?.values, session, after, upTo: after + FRAMES_A_STEP, step: BigInt(step) });
  }
}
