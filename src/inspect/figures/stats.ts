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
import type { SomeFigures } from './kept-figures.ts';

/** `tool`: by method, and calls of tools and prompts by their names. */
const GROUPINGS = ['tool', 'method', 'session'] as const;

export type Grouping = (typeof GROUPINGS)[number];

/** Shares of the calls for which `took` says how long they took at most. */
export const SHARES = [0.5, 0.95, 0.99, 1] as const;

export type Group = {
  figures: Figures;
  /** Microseconds, for each of `SHARES`; null where nothing was answered. */
  took: readonly (number | null)[];
  /** Null where the group is of several sessions. */
  session: SessionRow | null;
};

export type Stats = {
  /** Calls first, then notifications, each with the most frequent first; sessions as they came. */
  groups: Group[];
  /** All calls together. */
  calls: Figures;
  sessions: number;
};

const ALL_CALLS: Topic = { kind: 'request', askedBy: 'client', method: '', target: null };

export function putTogether(all: Iterable<SomeFigures>, by: Grouping): Stats {
  const groups = new Map<string, Group>();
  const calls = noFigures(ALL_CALLS);
  let sessions = 0;
  for (const { session, sessions: some, figures } of all) {
    sessions += some;
    for (const one of figures.topics) {
      if (one.kind === 'request') addFigures(calls, one);
      else if (by === 'session') continue;
      const topic = topicOf(one, by);
      const key = by === 'session' ? (session?.id ?? '') : topicKey(topic);
      const group = groups.get(key) ?? {
        figures: noFigures(topic),
        took: [],
        session: by === 'session' ? session : null,
      };
      groups.set(key, group);
      addFigures(group.figures, one);
      group.figures.atOnce = Math.max(group.figures.atOnce, atOnceOf(one, figures, by));
    }
  }
  const list = [...groups.values()].map((group) => ({
    ...group,
    took: percentiles(group.figures.latencies, SHARES),
  }));
  return { groups: by === 'session' ? list : list.toSorted(byFrequency), calls, sessions };
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
