/**
 * Figures of a sample as estimates for all: what a session counts for is multiplied by how many it stands for. Rounded once, at the
 * end.
 */

import type { SessionRow } from '../../store/read/sessions.ts';
import type { Figures, SessionFigures } from './call-figures.ts';
import type { Costs } from './costs.ts';

/** How many sessions this one stands for: of one in ten it is ten. 0: it is no part of the sample that others stand for it in. */
export function weightOf({ sample }: Pick<SessionRow, 'sample'>): number {
  if (sample === null) return 1;
  return sample === 0 ? 0 : 1 / sample;
}

/** What many sessions like this one would have together; shares, the most at once and the latencies themselves stay. */
export function scaledBy(weight: number, { topics, atOnce, costs }: SessionFigures): SessionFigures {
  const times = (value: number) => value * weight;
  return { topics: topics.map((one) => mapFigures(one, times)), atOnce, costs: mapCosts(costs, times) };
}

export function roundFigures(figures: Figures): Figures {
  return mapFigures(figures, Math.round);
}

export function roundCosts(costs: Costs): Costs {
  return mapCosts(costs, Math.round);
}

function mapFigures(figures: Figures, change: (value: number) => number): Figures {
  const { count, bytes, answerBytes, outcomes, latencies } = figures;
  return {
    ...figures,
    count: change(count),
    bytes: change(bytes),
    answerBytes: change(answerBytes),
    outcomes: mapValues(outcomes, change),
    latencies: {
      ...latencies,
      classes: mapValues(latencies.classes, change),
      count: change(latencies.count),
    },
  };
}

/** What tools weigh is no matter of how many sessions list them. */
function mapCosts(costs: Costs, change: (value: number) => number): Costs {
  const { server, person, client } = costs.times;
  return {
    times: { server: change(server), person: change(person), client: change(client) },
    lists: change(costs.lists),
    listBytes: change(costs.listBytes),
    tools: costs.tools,
    lost: mapValues(costs.lost, change),
  };
}

function mapValues<K>(values: ReadonlyMap<K, number>, change: (value: number) => number): Map<K, number> {
  return new Map([...values].map(([key, value]) => [key, change(value)]));
}
