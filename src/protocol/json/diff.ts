/**
 * How two canonical texts differ: a list of what was added, removed and changed, in an order in which the changes can
 * be made one after the other (RFC 6902: add, remove, replace). Of arrays the equal beginning and end are left alone,
 * what is between is compared element by element. Values are pieces of the texts, so nothing is lost or copied.
 */
import { eachElement, membersOf, type Span, skipValue, typeAt } from './read.ts';

export type Difference = {
  change: 'added' | 'removed' | 'changed';
  path: readonly (string | number)[];
  /** The value in the first text; null where it has none. */
  from: Buffer | null;
  /** The value in the second text; null where it has none. */
  to: Buffer | null;
};

export type Diff = {
  differences: Difference[];
  /** From 0 to 1: which share of both texts is equal. Below 1 where anything differs. */
  similarity: number;
  /** Differences that were left out for being too many. */
  more: number;
};

/** What lies deeper is compared as a whole: every level costs another pass over what is inside. */
const MAX_DEPTH = 50;

export function diffOf(from: Buffer, to: Buffer, maxDifferences = Number.POSITIVE_INFINITY): Diff {
  const differences: Difference[] = [];
  let more = 0;
  let unequal = 0;

  function compare(a: Span, b: Span, path: readonly (string | number)[]): void {
    if (bytesOf(from, a).equals(bytesOf(to, b))) return;
    if (path.length === MAX_DEPTH) report('changed', path, bytesOf(from, a), bytesOf(to, b));
    else if (a.type === 'object' && b.type === 'object') compareObjects(a, b, path);
    else if (a.type === 'array' && b.type === 'array') compareArrays(a, b, path);
    else report('changed', path, bytesOf(from, a), bytesOf(to, b));
  }

  function compareObjects(a: Span, b: Span, path: readonly (string | number)[]): void {
    const before = membersOf(from, a);
    const after = membersOf(to, b);
    for (const [name, value] of before) {
      const other = after.get(name);
      if (other === undefined) report('removed', [...path, name], bytesOf(from, value), null);
      else compare(value, other, [...path, name]);
    }
    for (const [name, value] of after) {
      if (!before.has(name)) report('added', [...path, name], null, bytesOf(to, value));
    }
  }

  function compareArrays(a: Span, b: Span, path: readonly (string | number)[]): void {
    const before = elementsOf(from, a);
    const after = elementsOf(to, b);
    const isEqual = (i: number, k: number) => {
      const [x, y] = [before[i], after[k]];
      return x !== undefined && y !== undefined && bytesOf(from, x).equals(bytesOf(to, y));
    };
    let start = 0;
    while (isEqual(start, start)) start += 1;
    let rest = 0;
    const shorter = Math.min(before.length, after.length);
    while (rest < shorter - start && isEqual(before.length - 1 - rest, after.length - 1 - rest)) rest += 1;

    for (let i = start; i < shorter - rest; i += 1) {
      const [x, y] = [before[i], after[i]];
      if (x !== undefined && y !== undefined) compare(x, y, [...path, i]);
    }
    // From the last on, so that each stands where its path says when its turn comes.
    const removed = before.slice(shorter - rest, before.length - rest);
    for (const [i, value] of [...removed.entries()].reverse())
      report('removed', [...path, shorter - rest + i], bytesOf(from, value), null);
    const added = after.slice(shorter - rest, after.length - rest);
    for (const [i, value] of added.entries())
      report('added', [...path, shorter - rest + i], null, bytesOf(to, value));
  }

  function report(
    change: Difference['change'],
    path: readonly (string | number)[],
    before: Buffer | null,
    after: Buffer | null,
  ): void {
    unequal += unequalBytes(before, after);
    if (differences.length < maxDifferences) differences.push({ change, path, from: before, to: after });
    else more += 1;
  }

  compare(wholeOf(from), wholeOf(to), []);
  const similarity = Math.max(0, 1 - unequal / (from.length + to.length));
  return { differences, more, similarity: unequal === 0 ? 1 : Math.min(similarity, 0.999) };
}

/** Two values of one type are the nearer, the more of their beginning and end they share. */
function unequalBytes(before: Buffer | null, after: Buffer | null): number {
  const total = (before?.length ?? 0) + (after?.length ?? 0);
  if (before === null || after === null || typeAt(before, 0) !== typeAt(after, 0)) return total;
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start += 1;
  let rest = 0;
  while (rest < shorter - start && before[before.length - 1 - rest] === after[after.length - 1 - rest])
    rest += 1;
  return Math.max(1, total - 2 * (start + rest));
}

function wholeOf(text: Buffer): Span {
  return { start: 0, end: skipValue(text, 0), type: typeAt(text, 0) };
}

function bytesOf(text: Buffer, { start, end }: Span): Buffer {
  return text.subarray(start, end);
}

function elementsOf(text: Buffer, array: Span): Span[] {
  const elements: Span[] = [];
  eachElement(text, array.start, (value) => elements.push(value));
  return elements;
}

/** A JSON Pointer (RFC 6901). */
export function jsonPointer(path: readonly (string | number)[]): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}
