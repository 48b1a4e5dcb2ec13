/**
 * Suggests which arguments to ignore, from two recordings of one scenario. Calls of the same method and target that are
 * equal in both are set aside, the others are paired by similarity, and whatever differs in the pairs is suggested. A
 * suggestion counts the pairs in which it differs; the user decides whether that is noise or meaning.
 */

import { type Diff, diffOf } from '../../protocol/json/diff.ts';
import type { CallTopic } from '../recording/topics.ts';
import { COMMAND_LINE_WORDS, ignoreHint, type Path } from './hints.ts';
import type { RequestKey } from './key.ts';
import { pathToIgnore } from './miss.ts';

export type Suggestion = CallTopic & {
  /** As typed in a shell. */
  option: string;
  /** In how many pairs of calls the path differs, and of how many of that method and target. */
  differing: number;
  pairs: number;
  /** The values of the first pair that differs, as JSON text; null where a side has none. */
  example: { first: string | null; second: string | null };
};

export type Suggestions = {
  suggestions: Suggestion[];
  /** Calls that have no counterpart in the other recording, or none that is like them. */
  unpaired: { first: number; second: number };
  /** There were more calls of one topic than were compared. */
  isCut: boolean;
};

/** Calls that share less than this are not the same call with other values. */
const MIN_SIMILARITY = 0.3;

/** How many calls of the other recording each call is compared with, in their order. */
const MAX_COMPARED = 32;

const MAX_EXAMPLE_BYTES = 200;

/** How many calls of one method and target are compared, from the first of each recording. */
const MAX_CALLS = 5000;

type Calls = { asked: CallTopic; first: RequestKey[]; second: RequestKey[] };

export function suggestIgnores(first: Iterable<RequestKey>, second: Iterable<RequestKey>): Suggestions {
  const topics = new Map<string, Calls>();
  let isCut = false;
  const add = (calls: RequestKey[], key: RequestKey) => {
    if (calls.length < MAX_CALLS) calls.push(key);
    else isCut = true;
  };
  for (const key of first) add(callsOf(topics, key).first, key);
  for (const key of second) add(callsOf(topics, key).second, key);

  const suggestions: Suggestion[] = [];
  const unpaired = { first: 0, second: 0 };
  for (const { asked, first: before, second: after } of topics.values()) {
    const equal = takeEqual(before, after);
    const { diffs, rest } = pair(equal.first, equal.second);
    unpaired.first += rest.first;
    unpaired.second += rest.second;
    suggestions.push(...suggestionsOf(asked, diffs, equal.count + diffs.length));
  }
  return { suggestions: suggestions.toSorted((a, b) => b.differing - a.differing), unpaired, isCut };
}

function callsOf(topics: Map<string, Calls>, { method, target }: RequestKey): Calls {
  const name = JSON.stringify([method, target]);
  const calls = topics.get(name) ?? { asked: { method, target }, first: [], second: [] };
  topics.set(name, calls);
  return calls;
}

/** Sets aside what both have, as often as both have it. */
function takeEqual(
  first: readonly RequestKey[],
  second: readonly RequestKey[],
): { first: RequestKey[]; second: RequestKey[]; count: number } {
  const counts = new Map<string, number>();
  const nameOf = ({ digest }: RequestKey) => digest;
  for (const key of second) counts.set(nameOf(key), (counts.get(nameOf(key)) ?? 0) + 1);
  const common = new Map<string, number>();
  const firstOnly = first.filter((key) => {
    const left = counts.get(nameOf(key)) ?? 0;
    if (left === 0) return true;
    counts.set(nameOf(key), left - 1);
    common.set(nameOf(key), (common.get(nameOf(key)) ?? 0) + 1);
    return false;
  });
  const secondOnly = second.filter((key) => {
    const left = common.get(nameOf(key)) ?? 0;
    if (left > 0) common.set(nameOf(key), left - 1);
    return left === 0;
  });
  return { first: firstOnly, second: secondOnly, count: first.length - firstOnly.length };
}

/** Each call of the first recording takes the most similar of the calls that are left of the second. */
function pair(
  first: readonly RequestKey[],
  second: readonly RequestKey[],
): { diffs: Diff[]; rest: { first: number; second: number } } {
  const left = [...second];
  const diffs: Diff[] = [];
  for (const key of first) {
    const compared = left.slice(0, MAX_COMPARED).map((other) => diffOf(key.params, other.params));
    const best = Math.max(...compared.map(({ similarity }) => similarity));
    const at = compared.findIndex(({ similarity }) => similarity === best);
    const diff = compared[at];
    if (diff === undefined || diff.similarity < MIN_SIMILARITY) continue;
    diffs.push(diff);
    left.splice(at, 1);
  }
  return { diffs, rest: { first: first.length - diffs.length, second: left.length } };
}

function suggestionsOf(asked: CallTopic, diffs: readonly Diff[], pairs: number): Suggestion[] {
  const general = generalised(diffs.flatMap(({ differences }) => differences.map(pathToIgnore)));
  const found = new Map<string, Suggestion>();
  for (const { differences } of diffs) {
    const counted = new Set<string>();
    for (const difference of differences) {
      const option = ignoreHint(asked, general(pathToIgnore(difference)), COMMAND_LINE_WORDS);
      const example = { first: exampleText(difference.from), second: exampleText(difference.to) };
      const suggestion = found.get(option) ?? { ...asked, option, differing: 0, pairs, example };
      if (!counted.has(option)) suggestion.differing += 1;
      counted.add(option);
      found.set(option, suggestion);
    }
  }
  return [...found.values()];
}

/** Where a path differs in more than one element of an array, it stands for all: `$.items[*].id`. */
function generalised(paths: readonly Path[]): (path: Path) => Path {
  const shapeOf = (path: Path) =>
    JSON.stringify(path.map((step) => (typeof step === 'number' ? null : step)));
  const written = new Map<string, Set<string>>();
  for (const path of paths) {
    const spellings = written.get(shapeOf(path)) ?? new Set();
    written.set(shapeOf(path), spellings.add(JSON.stringify(path)));
  }
  return (path) => {
    const isOne = (written.get(shapeOf(path))?.size ?? 0) < 2;
    return isOne ? path : path.map((step) => (typeof step === 'number' ? null : step));
  };
}

function exampleText(value: Buffer | null): string | null {
  if (value === null || value.length <= MAX_EXAMPLE_BYTES) return value?.toString() ?? null;
  return `${value.toString('utf8', 0, MAX_EXAMPLE_BYTES)}… (${value.length} bytes)`;
}
