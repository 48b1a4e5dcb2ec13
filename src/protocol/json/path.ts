/**
 * A subset of JSONPath (RFC 9535): paths that can be followed on the way down through a text, without building its values.
 *
 *     $            the value itself          .name  ['name']  ["name"]    a member
 *     [0]          an element, from the start     .*  [*]     every member or element
 *     ..name  ..['name']  ..[0]  ..*  ..[*]     the same at any depth
 *
 * Not supported: filters, slices, unions, indexes from the end, space between the parts.
 */
import { TapedeckError } from '../../errors.ts';

/** One step: `selector` null takes every member and element, `next` null means that the path ends here. */
type Segment = { isAtAnyDepth: boolean; selector: string | number | null; next: Segment | null };

/** How far several paths have come on the way down: the steps that each could take next. */
export type PathProgress = readonly Segment[];

/** `isWhole`: the path is `$`. */
type JsonPath = { text: string; isWhole: boolean; start: PathProgress };

export const NO_PATHS: PathProgress = [];

const NAME = /[\p{L}_][\p{L}\p{M}\p{N}_]*/uy;

const IS_NAME = /^[\p{L}_][\p{L}\p{M}\p{N}_]*$/u;

const INDEX = /0|[1-9]\d{0,15}/y;

const QUOTED =
  /'(?:[^'\\\p{Cc}]|\\[bfnrt/\\']|\\u[\da-fA-F]{4})*'|"(?:[^"\\\p{Cc}]|\\[bfnrt/\\"]|\\u[\da-fA-F]{4})*"/uy;

/** Reads a path. Throws `TapedeckError` `usage`; its text names `option` as the place of the path. */
export function parseJsonPath(text: string, option = '--ignore'): JsonPath {
  if (text[0] !== '$') fail(text, 0, '`$`, the value from which the path starts', option);
  const steps: Omit<Segment, 'next'>[] = [];
  let i = 1;
  while (i < text.length) {
    const isAtAnyDepth = text.startsWith('..', i);
    const isBracket = text[isAtAnyDepth ? i + 2 : i] === '[';
    if (!isBracket && text[i] !== '.') fail(text, i, '`.`, `..` or `[`', option);
    i += isAtAnyDepth ? 2 : isBracket ? 0 : 1;
    const step = isBracket ? inBrackets(text, i + 1, option) : afterDot(text, i, option);
    steps.push({ isAtAnyDepth, selector: step.selector });
    i = step.end;
  }
  const first = steps.reduceRight<Segment | null>((next, step) => ({ ...step, next }), null);
  return { text, isWhole: first === null, start: first === null ? NO_PATHS : [first] };
}

type Step = { selector: string | number | null; end: number };

function afterDot(text: string, at: number, option: string): Step {
  if (text[at] === '*') return { selector: null, end: at + 1 };
  const name = matchAt(NAME, text, at);
  if (name === undefined) fail(text, at, "a name (others are written ['like this']) or `*`", option);
  return { selector: name, end: at + name.length };
}

function inBrackets(text: string, at: number, option: string): Step {
  const quoted = matchAt(QUOTED, text, at);
  const found = text[at] === '*' ? '*' : (quoted ?? matchAt(INDEX, text, at));
  if (found === undefined) fail(text, at, 'a name in quotes, an index from 0 on, or `*`', option);
  const end = at + found.length;
  if (text[end] !== ']') fail(text, end, '`]`', option);
  if (quoted !== undefined) return { selector: unquoted(quoted), end: end + 1 };
  return { selector: found === '*' ? null : Number(found), end: end + 1 };
}

function matchAt(pattern: RegExp, text: string, at: number): string | undefined {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0];
}

/** Two quotes around it, one escape more than JSON's (`\'`), one less in single quotes (`"`). */
function unquoted(quoted: string): string {
  const inner = quoted.slice(1, -1);
  if (quoted.startsWith('"')) return JSON.parse(quoted) as string;
  const json = inner.replace(/\\.|"/gs, (part) => (part === "\\'" ? "'" : part === '"' ? '\\"' : part));
  return JSON.parse(`"${json}"`) as string;
}

function fail(text: string, at: number, expected: string, option: string): never {
  const got = at < text.length ? `"${[...text.slice(at)].slice(0, 12).join('')}"` : 'the end';
  throw new TapedeckError(
    'usage',
    `${option} ${text}: expected ${expected} at character ${at + 1}, got ${got}. ` +
      "Paths look like $.a.b, $['a'], $.list[0], $.list[*].id, $..id.",
  );
}

/** Follows the paths into a member or element; null where one of them ends there. */
export function followInto(paths: PathProgress, step: string | number): PathProgress | null {
  const { isEnd, rest } = followThrough(paths, step);
  return isEnd ? null : rest;
}

/** The same, with the paths that go on where another one ends. */
export function followThrough(
  paths: PathProgress,
  step: string | number,
): { isEnd: boolean; rest: PathProgress } {
  if (paths.length === 0) return { isEnd: false, rest: NO_PATHS };
  const after = new Set<Segment>();
  let isEnd = false;
  for (const segment of paths) {
    if (segment.isAtAnyDepth) after.add(segment);
    if (segment.selector !== null && segment.selector !== step) continue;
    if (segment.next === null) isEnd = true;
    else after.add(segment.next);
  }
  return { isEnd, rest: after.size === 0 ? NO_PATHS : [...after] };
}

/** The path that takes these steps and no others; null stands for every element. */
export function jsonPathText(steps: readonly (string | number | null)[]): string {
  return steps.reduce<string>((path, step) => path + stepText(step), '$');
}

function stepText(step: string | number | null): string {
  if (step === null) return '[*]';
  if (typeof step === 'number') return `[${step}]`;
  return IS_NAME.test(step) ? `.${step}` : `[${JSON.stringify(step).replace(/[\u007f-\u009f]/g, escaped)}]`;
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
