/** What a comparison of sessions says as a whole, and how programs get it. */

import { type Difference, jsonPointer } from '../../protocol/json/diff.ts';
import type { PairedCall, SessionDiff } from './sessions.ts';

export function isEqual({ lists, calls }: SessionDiff): boolean {
  return lists.length === 0 && calls.every(({ verdict }) => verdict === 'equal');
}

export function median(values: readonly number[]): number | null {
  return quantile(values, 0.5);
}

export function p95(values: readonly number[]): number | null {
  return quantile(values, 0.95);
}

/** The smallest value that this share of the values does not exceed. */
function quantile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((x, y) => x - y);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

/** `3 calls equal, 1 differs`. */
export function diffSummary({ lists, calls }: SessionDiff): string {
  const count = (verdict: PairedCall['verdict']) => calls.filter((call) => call.verdict === verdict).length;
  const breaking = lists.filter((change) => change.breaking.length > 0).length;
  const parts = [`${count('equal')} calls equal`];
  for (const verdict of ['differs', 'other arguments', 'only in a', 'only in b'] as const)
    if (count(verdict) > 0) parts.push(`${count(verdict)} ${verdict}`);
  if (lists.length > 0)
    parts.push(`${lists.length} of what the servers offer changed (${breaking} breaking)`);
  return parts.join(', ');
}

/** The objects of `diff --json`. */
export function* diffJson(diff: SessionDiff): Generator<object> {
  for (const { breaking, differences, ...rest } of diff.lists)
    yield {
      type: 'list',
      ...rest,
      breaking: breaking.length > 0,
      reasons: breaking,
      differences: differences.map(data),
    };
  for (const { differences, more, ...rest } of diff.calls)
    yield {
      type: 'call',
      ...rest,
      differences: differences.map(data),
      moreDifferences: more,
    };
  for (const { method, target, a, b } of diff.timings)
    yield { type: 'timing', method, target, a: figures(a), b: figures(b) };
  yield { type: 'summary', isEqual: isEqual(diff), notCompared: diff.unknownLists };
}

function figures(values: readonly number[]): { count: number; p50Ms: number | null; p95Ms: number | null } {
  const ms = (microseconds: number | null) => (microseconds === null ? null : microseconds / 1000);
  return { count: values.length, p50Ms: ms(median(values)), p95Ms: ms(p95(values)) };
}

/** Values as JSON text, so that no number loses digits; null where there is none. */
function data({ change, path, from, to }: Difference) {
  return { change, pointer: jsonPointer(path), a: from?.toString() ?? null, b: to?.toString() ?? null };
}
