/** Figures put together: by tool, by method, or by session. */

import type { SessionRow } from '../../store/read/sessions.ts';
import {
  ALL_METHODS,
  addFigures,
  type Figures,
  methodKey,
  noFigures,
  percentiles,
  type SessionFigures,
  type Topic,
  topicKey,
} from './call-figures.ts';
import { addCosts, type Costs, noCosts } from './costs.ts';
import type { SomeFigures } from './kept-figures.ts';

/** `tool`: by method, and calls of tools and prompts by their names. */
export const GROUPINGS = ['tool', 'method', 'session'] as const;

export type Grouping = (typeof GROUPINGS)[number];

/** Shares of the calls for which `took` says how long they took at most. */
export const SHARES = [0.5, 0.95, 0.99, 1] as const;

export type Group = {
  figures: Figures;
  /** Microseconds, for each of `SHARES`; null where nothing was answered. */
  took: readonly (number | null)[];
  /** Null where the group is of several sessions. */
  session: SessionRow | null;
  /** Of a session. */
  costs: Costs | null;
  /** Of a tool: the bytes of its definition; null where no list has it. */
  definitionBytes: number | null;
};

export type Stats = {
  /** Calls first, then notifications, each with the most frequent first; sessions as they came. */
  groups: Group[];
  /** All calls together. */
  calls: Figures;
  costs: Costs;
  /** The tools that were called. */
  called: ReadonlySet<string>;
  sessions: number;
};

const ALL_CALLS: Topic = { kind: 'request', askedBy: 'client', method: '', target: null };

export function putTogether(all: Iterable<SomeFigures>, by: Grouping): Stats {
  const groups = new Map<string, Group>();
  const calls = noFigures(ALL_CALLS);
  const costs = noCosts();
  const called = new Set<string>();
  let sessions = 0;
  for (const { session, sessions: some, figures } of all) {
    sessions += some;
    addCosts(costs, figures.costs);
    for (const one of figures.topics) {
      if (isCallOfTool(one)) called.add(one.target);
      if (one.kind === 'request') addFigures(calls, one);
      else if (by === 'session') continue;
      const topic = topicOf(one, by);
      const key = by === 'session' ? (session?.id ?? '') : topicKey(topic);
      const group = groups.get(key) ?? {
        figures: noFigures(topic),
        took: [],
        session: by === 'session' ? session : null,
        costs: by === 'session' ? figures.costs : null,
        definitionBytes: null,
      };
      groups.set(key, group);
      addFigures(group.figures, one);
      group.figures.atOnce = Math.max(group.figures.atOnce, atOnceOf(one, figures, by));
    }
  }
  const list = [...groups.values()].map((group) => ({
    ...group,
    took: percentiles(group.figures.latencies, SHARES),
    definitionBytes: isCallOfTool(group.figures) ? (costs.tools.get(group.figures.target) ?? null) : null,
  }));
  return { groups: by === 'session' ? list : list.toSorted(byFrequency), calls, costs, called, sessions };
}

function isCallOfTool(topic: Topic): topic is Topic & { target: string } {
  return topic.askedBy === 'client' && topic.method === 'tools/call' && topic.target !== null;
}

function topicOf({ kind, askedBy, method, target }: Figures, by: Grouping): Topic {
  if (by === 'session') return ALL_CALLS;
  return { kind, askedBy, method, target: by === 'tool' ? target : null };
}

function atOnceOf(one: Figures, { atOnce }: SessionFigures, by: Grouping): number {
  if (by === 'tool') return one.atOnce;
  return atOnce[by === 'method' ? methodKey(one) : ALL_METHODS] ?? 0;
}

function byFrequency({ figures: one }: Group, { figures: other }: Group): number {
  if (one.kind !== other.kind) return one.kind === 'request' ? -1 : 1;
  return other.count - one.count || (nameOf(one) < nameOf(other) ? -1 : 1);
}

function nameOf({ askedBy, method, target }: Topic): string {
  return `${askedBy} ${method} ${target ?? ''}`;
}
