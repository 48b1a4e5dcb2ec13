/** Checks a test's expectations of its calls. The messages of failures escape recorded text and the client's own. */

import { TapedeckError } from '../errors.ts';
import { canonicalText } from '../protocol/json/canonical.ts';
import { type Diff, diffOf, jsonPointer } from '../protocol/json/diff.ts';
import { escapeText } from '../protocol/text.ts';
import type { Call, CallName, ExpectedParams, Miss, RecordedCall } from './deck.ts';

type Expected = CallName | readonly [call: CallName, params?: ExpectedParams | undefined];

type CallContent = Pick<Call, 'method' | 'target' | 'params'>;

const MAX_LISTED = 20;

const MAX_COMPARED = 3;

const MAX_DIFFERENCES = 20;

const MAX_VALUE = 400;

const MAX_LINE = 2000;

export function assertCalled(calls: readonly Call[], expected: Expected, times: number | null): void {
  const found = calls.filter((call) => isExpected(call, expected)).length;
  if (times === null ? found > 0 : found === times) return;
  const wanted = times === null ? 'a call' : `${times} ${times === 1 ? 'call' : 'calls'}`;
  fail(`Expected ${wanted} of ${textOf(expected)}, got ${found === 0 ? 'none' : found}.`, [
    ...nearest(calls, expected),
    ...listed('The calls that were made:', calls),
  ]);
}

export function assertNotCalled(calls: readonly Call[], expected: Expected): void {
  const found = calls.filter((call) => isExpected(call, expected));
  if (found.length === 0) return;
  fail(`Expected no call of ${textOf(expected)}, got ${found.length}.`, listed('It was called as:', found));
}

export function assertOrder(calls: readonly Call[], expected: readonly Expected[]): void {
  let from = 0;
  for (const [i, one] of expected.entries()) {
    const at = calls.findIndex((call, k) => k >= from && isExpected(call, one));
    if (at < 0) failOrder(calls, expected, i, calls[from - 1]);
    from = at + 1;
  }
}

function failOrder(
  calls: readonly Call[],
  expected: readonly Expected[],
  i: number,
  before: Call | undefined,
): never {
  const one = expected[i] ?? '';
  const after = before === undefined ? '' : ` after ${lineOf(before)}`;
  const cameAt = calls.findIndex((call) => isExpected(call, one));
  const why = cameAt < 0 ? 'it was not called' : `it was call ${cameAt + 1}, not called again later`;
  fail(`Expected ${textOf(one)} as number ${i + 1} of ${expected.length}${after}: ${why}.`, [
    ...(cameAt < 0 ? nearest(calls, one) : []),
    ...listed('The calls that were made:', calls),
  ]);
}

export function assertNoMisses(misses: readonly Miss[], notices: readonly string[]): void {
  const told = [...misses.map(({ report }) => report), ...notices];
  if (told.length === 0) return;
  const lines = told.slice(0, MAX_LISTED).flatMap((report) => report.split('\n'));
  fail([...missesOf(misses.length), ...noticesOf(notices.length)].join(' '), [
    ...lines.map((line) => clipped(line, MAX_LINE)),
    ...andMore(told.length - MAX_LISTED),
  ]);
}

function missesOf(count: number): string[] {
  if (count === 0) return [];
  return [`${count === 1 ? '1 call has' : `${count} calls have`} no answer in the recording.`];
}

function noticesOf(count: number): string[] {
  if (count === 0) return [];
  return [
    `${count === 1 ? '1 message of a client is' : `${count} messages of clients are`} not as recorded.`,
  ];
}

export function assertAllUsed(unused: readonly RecordedCall[], except: readonly CallName[]): void {
  const left = unused.filter((call) => !except.some((name) => isNamed(call, name)));
  if (left.length === 0) return;
  const many = left.length === 1 ? '1 recorded call was' : `${left.length} recorded calls were`;
  const lines = left.slice(0, MAX_LISTED).map((call) => `frame ${call.frame}: ${lineOf(call)}`);
  fail(`${many} never asked for.`, [...lines, ...andMore(left.length - MAX_LISTED)]);
}

export function isExpected(call: CallContent, expected: Expected): boolean {
  const [name, params] = partsOf(expected);
  return isNamed(call, name) && (params === undefined || diffTo(call, params).similarity === 1);
}

function partsOf(expected: Expected): readonly [CallName, (ExpectedParams | undefined)?] {
  return typeof expected === 'string' ? [expected] : expected;
}

function isNamed({ method, target }: CallContent, name: CallName): boolean {
  return name === method || (target !== null && name === `${method} ${target}`);
}

/** Compares the expected members with those of the call. */
function diffTo({ params }: CallContent, expected: ExpectedParams): Diff {
  const live = (params ?? {}) as Record<string, unknown>;
  const named = Object.keys(expected).filter((name) => expected[name] !== undefined);
  const picked = named.filter((name) => Object.hasOwn(live, name)).map((name) => [name, live[name]]);
  return diffOf(canonical(expected), canonical(Object.fromEntries(picked)));
}

function canonical(value: object): Buffer {
  const json = Buffer.from(JSON.stringify(value));
  const text = canonicalText(json, { start: 0, end: json.length, type: 'object' });
  // Some values have no canonical text, such as very deep ones. Then equal texts still are equal.
  return typeof text === 'string' ? json : text;
}

/** How the nearest calls differ. */
function nearest(calls: readonly Call[], expected: Expected): string[] {
  const [name, params] = partsOf(expected);
  if (params === undefined) return [];
  const compared = calls.flatMap((call, i) =>
    isNamed(call, name) ? [{ number: i + 1, diff: diffTo(call, params) }] : [],
  );
  const near = compared.filter(({ diff }) => diff.similarity < 1);
  near.sort((a, b) => b.diff.similarity - a.diff.similarity);
  return near.slice(0, MAX_COMPARED).flatMap(({ number, diff }) => [
    `Call ${number} differs:`,
    ...diff.differences.slice(0, MAX_DIFFERENCES).map(({ path, from, to }) => {
      const [wanted, got] = [from, to].map((value) => (value === null ? 'nothing' : valueText(value)));
      return `  ${escapeText(jsonPointer(path))}: expected ${wanted}, got ${got}`;
    }),
    ...andMore(diff.differences.length - MAX_DIFFERENCES),
  ]);
}

function listed(title: string, calls: readonly Call[]): string[] {
  if (calls.length === 0) return ['No call was made.'];
  const lines = calls.slice(0, MAX_LISTED).map((call, i) => `  ${i + 1}. ${lineOf(call)}  ${call.outcome}`);
  return [title, ...lines, ...andMore(calls.length - MAX_LISTED)];
}

function andMore(count: number): string[] {
  return count > 0 ? [`  and ${count} more`] : [];
}

function textOf(expected: Expected): string {
  const [name, params] = partsOf(expected);
  return params === undefined ? escapeText(name) : `${escapeText(name)} with ${valueText(params)}`;
}

function lineOf({ method, target, params }: CallContent): string {
  const name = escapeText(target === null ? method : `${method} ${target}`);
  return params === undefined ? name : `${name} ${valueText(params)}`;
}

function valueText(value: Buffer | object | unknown): string {
  const text = Buffer.isBuffer(value) ? value.toString() : jsonText(value);
  return clipped(escapeText(text), MAX_VALUE);
}

function jsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? '';
  } catch {
    // Such as a value that is nested too deep.
    return '(cannot be shown)';
  }
}

function clipped(text: string, max: number): string {
  return text.length <= max ? text : `${text.slice(0, max)}… (${text.length} characters)`;
}

function fail(what: string, details: readonly string[]): never {
  throw new TapedeckError('assertion', [what, ...details].join('\n'));
}
