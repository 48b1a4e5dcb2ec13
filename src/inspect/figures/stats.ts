/** Figures put together: by tool, by method, or by session. */

import { mayLackPayloads } from '../../store/read/meta-only.ts';
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
import { roundCosts, roundFigures, scaledBy, weightOf } from './scaled.ts';

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
  /** Its figures are estimates, from a sample. */
  isScaled: boolean;
};

export type Stats = {
  /** Calls first, then notifications, each with the most frequent first; sessions as they came. */
  groups: Group[];
  /** All calls together. */
  calls: Figures;
  costs: Costs;
  /** The tools that were called. */
  called: ReadonlySet<string>;
  /** How many they are; about so many, where some stand for others. */
  sessions: number;
  /** Null: no session is one of a sample. */
  sample: SampleNote | null;
  /** Calls of so many recorded sessions may be missing, because frames have no payload (`record --meta-for`, `--capture meta`). */
  lacking: number;
};

/** `isScaled`: figures are estimates. */
export type SampleNote = {
  isScaled: boolean;
  /** So many sessions were recorded, */
  recorded: number;
  /** so many of these stand for more than themselves, */
  sampled: number;
  /** and so many more are no part of the sample, and count for nothing where figures are scaled. */
  leftOut: number;
};

const ALL_CALLS: Topic = { kind: 'request', askedBy: 'client', method: '', target: null };

/** `isAll`: sessions of a sample count for as many as they stand for. Rows of sessions never do: they are what they are. */
export function putTogether(all: Iterable<SomeFigures>, by: Grouping, isAll: boolean): Stats {
  const sample = { isScaled: isAll && by !== 'session', recorded: 0, sampled: 0, leftOut: 0 };
  const groups = new Map<string, Group>();
  const calls = noFigures(ALL_CALLS);
  const costs = noCosts();
  const called = new Set<string>();
  let [sessions, lacking] = [0, 0];
  for (const { session, standsFor, lacks, figures } of weighed(all, sample)) {
    sessions += standsFor;
    lacking += lacks;
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
        isScaled: false,
      };
      groups.set(key, group);
      addFigures(group.figures, one);
      group.figures.atOnce = Math.max(group.figures.atOnce, atOnceOf(one, figures, by));
    }
  }
  const isEstimate = sample.isScaled && sample.sampled > 0;
  const list = [...groups.values()].map((group) => ({
    ...group,
    figures: isEstimate ? roundFigures(group.figures) : group.figures,
    took: percentiles(group.figures.latencies, SHARES),
    definitionBytes: isCallOfTool(group.figures) ? (costs.tools.get(group.figures.target) ?? null) : null,
    isScaled: isEstimate,
  }));
  return {
    groups: by === 'session' ? list : list.toSorted(byFrequency),
    calls: isEstimate ? roundFigures(calls) : calls,
    costs: isEstimate ? roundCosts(costs) : costs,
    ...{ called, sessions: Math.round(sessions) },
    sample: sample.sampled + sample.leftOut > 0 ? sample : null,
    lacking,
  };
}

/** Counts in `note` what they are, and leaves out what others stand for. */
function* weighed(
  all: Iterable<SomeFigures>,
  note: SampleNote,
): Generator<{ session: SessionRow | null; standsFor: number; lacks: number; figures: SessionFigures }> {
  for (const some of all) {
    const { session, figures } = some;
    const weight = some.session === null ? 1 : weightOf(some.session);
    if (weight === 0) note.leftOut += 1;
    if (weight === 0 && note.isScaled) continue;
    note.recorded += some.sessions;
    note.sampled += some.session === null ? some.sampled : Number(weight > 1);
    if (some.session === null) {
      yield { session, standsFor: some.standsFor, lacks: some.lacking, figures };
      continue;
    }
    const lacks = Number(mayLackPayloads(some.session));
    if (!note.isScaled || weight === 1) yield { session, standsFor: 1, lacks, figures };
    else yield { session, standsFor: weight, lacks, figures: scaledBy(weight, figures) };
  }
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
