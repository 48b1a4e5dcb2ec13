/** How many calls there were, how they ended and how long they took: of a session, or of all. */

import { TapedeckError } from '../../errors.ts';
import { logHistogram, percentiles } from '../../inspect/figures/call-figures.ts';
import { chosenFigures } from '../../inspect/figures/chosen-figures.ts';
import type { SomeFigures } from '../../inspect/figures/kept-figures.ts';
import { GROUPINGS, type Group, type Grouping, putTogether, SHARES } from '../../inspect/figures/stats.ts';
import { termText } from '../../inspect/filter/completion.ts';
import { isAboutSessions } from '../../inspect/filter/filter.ts';
import { groupJson, totalJson } from '../../inspect/view/stats.ts';
import { eachSession } from '../../store/read/sessions.ts';
import { VERSION } from '../../version.ts';
import type { StatsGroup, StatsLine } from '../api.ts';
import { emitJson, filterOf, inSlices, type Job, progressOf, sessionOf, sideOf, workOf } from './job.ts';
import { callsOverTime } from './over-time.ts';

export const statsWork = workOf(stats);

async function stats(job: Job): Promise<void> {
  const only = job.params['session'] !== undefined ? sessionOf(job) : null;
  const by = groupingOf(job);
  const filter = filterOf(job);
  const sessions = only === null ? [...eachSession(job.store)] : [only];
  const tell = progressOf(job, sessions.length);
  const figures: SomeFigures[] = [];
  const all = chosenFigures(job.store, () => sideOf(job), { only, filter, by, version: VERSION });
  for await (const one of inSlices(all, job)) {
    figures.push(one);
    await tell(figures.length);
  }
  const together = putTogether(figures, by, only === null);
  const { calls, groups, sessions: count } = together;
  const whole = {
    figures: calls,
    took: percentiles(calls.latencies, SHARES),
    session: null,
    costs: null,
    definitionBytes: null,
    isScaled: together.sample?.isScaled === true && together.sample.sampled > 0,
  };
  const shown = groups.map((group) => groupView(group, filterOfGroup(group, groups, by)));
  const isWhole = filter === undefined || isAboutSessions(filter);
  const total = isWhole ? totalJson(together) : null;
  await emitJson(job, {
    stats: { sessions: count, sample: together.sample, all: groupView(whole, ''), groups: shown, total },
  } satisfies StatsLine);
  await emitJson(job, { overTime: await callsOverTime(job, sessions, filter) } satisfies StatsLine);
  await emitJson(job, { done: true } satisfies StatsLine);
}

function groupingOf({ params }: Job): Grouping {
  const written = params['by'] ?? 'tool';
  const grouping = GROUPINGS.find((known) => known === written);
  if (grouping !== undefined) return grouping;
  throw new TapedeckError('usage', `Expected one of ${GROUPINGS.join(', ')} as \`by\`, got \`${written}\`.`);
}

function groupView(group: Group, filter: string): StatsGroup {
  const { histogram: _, ...figures } = { histogram: [], ...groupJson(group) };
  const bars = logHistogram(group.figures.latencies).map(({ from, to, count }) => ({
    fromMs: from / 1000,
    toMs: to / 1000,
    count,
    filter: `dur>=${from}us dur<${to}us`,
  }));
  return { ...figures, filter, bars };
}

/** The calls of a group, and what belongs to them. */
function filterOfGroup(
  { figures: { kind, askedBy, method, target }, session }: Group,
  groups: readonly Group[],
  by: Grouping,
): string {
  if (session !== null) return termText('session', '=', session.id);
  const terms = [termText('method', '=', method)];
  const field = method === 'prompts/get' ? 'prompt' : 'tool';
  const hasTargets = method === 'tools/call' || method === 'prompts/get';
  if (by === 'tool' && hasTargets)
    terms.push(target === null ? termText(field, '!~', '') : termText(field, '=', target));
  // What both sides ask is told apart by who sent the request, so its answer is left out.
  const isOfBoth = groups.some(({ figures: other }) => other.method === method && other.askedBy !== askedBy);
  if (isOfBoth) terms.push(`kind=${kind}`, `dir=${askedBy}`);
  return terms.join(' ');
}
