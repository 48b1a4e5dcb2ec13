/**
 * Canonical JSON (RFC 8785) straight from the bytes of a message: two values have the same canonical text exactly if
 * they are equal, whatever their white space, order of members and spelling of numbers and strings.
 *
 * - Numbers are exact. Members stand in the order of their names' UTF-16 code units.
 * - Of a duplicate name the last one counts, as JavaScript and Python readers have it.
 * - Bytes that are no UTF-8 stay as they are inside a value, so they equal themselves only. In a member's name they
 *   are refused: such names have no order.
 * - Nesting deeper than `MAX_DEPTH` is refused. Nothing here recurses.
 * - A filter leaves parts out. In place of an element stands `null`, so that those after it keep their numbers.
 *
 * Strings are copied once, from the message into the text. An object whose members come out of order is copied once more.
 */

import { isUtf8 } from 'node:buffer';
import { copyBytes } from './edit.ts';
import { nameText, type Span, skipScalar, skipSpace, skipValue } from './read.ts';

/** Far beyond any call. In the worst case every level costs one more copy of what is inside. */
export const MAX_DEPTH = 200;

/** Why a value has no canonical text, as a sentence about it. */
export const CANONICAL_PROBLEM = {
  'not-json': 'is not JSON',
  'too-deep': `is nested more than ${MAX_DEPTH} levels deep`,
  'name-not-utf8': "has a member's name that is not valid UTF-8",
  'number-too-long': 'has a number with an exponent of more than 1000 digits',
} as const;

export type CanonicalProblem = keyof typeof CANONICAL_PROBLEM;

/** Says on the way down which parts of a value are left out. */
export type MemberFilter = {
  /** The filter for the member or element of that name or number (as in the source), or null to leave it out. */
  enter(step: string | number): MemberFilter | null;
  /** Whether a member is left out if its value is an object or array with nothing in it, or nothing left of it. */
  dropsEmpty: boolean;
  /** `any value`: one text stands for whatever the value is. `any order`: the elements of an array are sorted. */
  takes?: 'any value' | 'any order' | undefined;
};

export const KEEP_ALL: MemberFilter = { enter: () => KEEP_ALL, dropsEmpty: false };

const ANY_VALUE = '"(any value)"';

const OPEN_OBJECT = 0x7b;

const OPEN_ARRAY = 0x5b;

const COMMA = 0x2c;

const COLON = 0x3a;

const QUOTE = 0x22;

const ZERO = 0x30;

const NINE = 0x39;

/** A member as written: a comma, the name, a colon, the value. One that was left out for being empty has no bytes. */
type Member = { name: string; start: number; end: number };

/** An object or array that is being written. Its first byte, a comma so far, becomes its bracket at the end. */
type Open = {
  /** What it stands in. */
  outer: Open | null;
  depth: number;
  filter: MemberFilter;
  start: number;
  /** Of an object, in the order of the source; undefined for an array. */
  members: Member[] | undefined;
  isSorted: boolean;
  count: number;
  /** Of an array in any order: where its elements begin, each with the comma before it. */
  elements: number[] | undefined;
};

export function canonicalText(
  bytes: Buffer,
  span: Span,
  filter: MemberFilter = KEEP_ALL,
): Buffer | CanonicalProblem {
  const out: Output = { bytes: Buffer.allocUnsafe(span.end - span.start + 16), length: 0 };
  const problem = writeValue(out, bytes, span.start, filter);
  return problem ?? out.bytes.subarray(0, out.length);
}

/** Whether a JSON text surely has a canonical one. It is not read: false says that it may have none. */
export function surelyHasCanonicalText(json: Buffer): boolean {
  let opened = 0;
  let digits = 0;
  for (const c of json) {
    if (c === OPEN_OBJECT || c === OPEN_ARRAY) opened += 1;
    digits = c >= ZERO && c <= NINE ? digits + 1 : 0;
    if (opened > MAX_DEPTH || digits >= MAX_EXPONENT_DIGITS) return false;
  }
  return isUtf8(json);
}

/** Where the writing has come to: the value that begins at `at`, with its own filter, and what it stands in. */
type Progress = { at: number; filter: MemberFilter; inner: Open | null };

function writeValue(
  out: Output,
  bytes: Buffer,
  start: number,
  filter: MemberFilter,
): CanonicalProblem | undefined {
  const value: Progress = { at: start, filter, inner: null };
  for (;;) {
    if (value.filter.takes === 'any value') {
      writeText(out, ANY_VALUE);
      value.at = skipValue(bytes, value.at);
      if (value.at < 0) return 'not-json';
    } else if (isOpening(bytes[value.at])) {
      const { inner } = value;
      if (inner?.depth === MAX_DEPTH) return 'too-deep';
      value.inner = opened(out, bytes[value.at] === OPEN_OBJECT, value.filter, inner);
      value.at += 1;
    } else {
      const end = writeScalar(out, bytes, value.at);
      if (typeof end === 'string') return end;
      value.at = end;
    }
    const problem = goOn(out, bytes, value);
    if (problem !== undefined || value.inner === null) return problem;
  }
}

function opened(out: Output, isObject: boolean, filter: MemberFilter, outer: Open | null): Open {
  return {
    outer,
    depth: (outer?.depth ?? 0) + 1,
    filter,
    start: out.length,
    members: isObject ? [] : undefined,
    isSorted: true,
    count: 0,
    elements: filter.takes === 'any order' ? [] : undefined,
  };
}

/**
 * From the end of a value or of an opening bracket to the next value that is kept: closes what closes, skips what is left out,
 * writes names. Nothing is open any more where the whole value has ended.
 */
function goOn(out: Output, bytes: Buffer, value: Progress): CanonicalProblem | undefined {
  while (value.inner !== null) {
    const { inner } = value;
    value.at = skipSpace(bytes, value.at);
    if (isClosing(bytes[value.at], inner)) {
      close(out, inner);
      endMember(out, inner);
      value.inner = inner.outer;
      value.at += 1;
      continue;
    }
    if (inner.count > 0) {
      if (bytes[value.at] !== COMMA) return 'not-json';
      value.at = skipSpace(bytes, value.at + 1);
    }
    inner.count += 1;
    const filter =
      inner.members === undefined
        ? beginElement(out, inner)
        : beginMember(out, bytes, value, inner, inner.members);
    if (typeof filter === 'string') return filter;
    if (filter !== null) {
      value.filter = filter;
      return undefined;
    }
    value.at = skipValue(bytes, value.at);
    if (value.at < 0) return 'not-json';
  }
  return undefined;
}

/** Writes what stands before an element. Returns its filter; null where it is left out. */
function beginElement(out: Output, inner: Open): MemberFilter | null {
  const filter = inner.filter.enter(inner.count - 1);
  inner.elements?.push(out.length);
  writeText(out, filter === null ? ',null' : ',');
  return filter;
}

/** The same for the member whose name stands at `value`, which is moved to its value. */
function beginMember(
  out: Output,
  bytes: Buffer,
  value: Progress,
  inner: Open,
  members: Member[],
): MemberFilter | CanonicalProblem | null {
  const { at } = value;
  const end = bytes[at] === QUOTE ? skipScalar(bytes, at) : -1;
  const colon = end < 0 ? end : skipSpace(bytes, end);
  if (bytes[colon] !== COLON) return 'not-json';
  value.at = skipSpace(bytes, colon + 1);
  const name = nameText(bytes, at, end);
  if (name.includes('\ufffd') && !isUtf8(bytes.subarray(at, end))) return 'name-not-utf8';
  const filter = inner.filter.enter(name);
  if (filter !== null) {
    const before = members.at(-1);
    if (before !== undefined) {
      before.end = out.length;
      if (name <= before.name) inner.isSorted = false;
    }
    members.push({ name, start: out.length, end: out.length });
    writeByte(out, COMMA);
    writeString(out, bytes, at, end);
    writeByte(out, COLON);
  }
  return filter;
}

/** Takes the member back whose value `closed` is, where the filter says so and nothing is left of it. */
function endMember(out: Output, closed: Open): void {
  const member = closed.outer?.members?.at(-1);
  const isEmpty = out.length === closed.start + 2;
  if (member !== undefined && isEmpty && closed.filter.dropsEmpty) out.length = member.start;
}

function close(out: Output, inner: Open): void {
  const last = inner.members?.at(-1);
  if (last !== undefined) last.end = out.length;
  if (inner.members !== undefined && !inner.isSorted) sortMembers(out, inner.start, inner.members);
  if (inner.elements !== undefined && inner.elements.length > 1) sortElements(out, inner.elements);
  const bracket = inner.members === undefined ? OPEN_ARRAY : OPEN_OBJECT;
  if (out.length === inner.start) writeByte(out, bracket);
  else out.bytes[inner.start] = bracket;
  writeByte(out, bracket + 2);
}

/** Writes them in order behind themselves, and moves that to their place. */
function sortMembers(out: Output, start: number, members: Member[]): void {
  const end = out.length;
  reserve(out, end - start);
  putInOrder(members);
  for (let k = 0; k < members.length; k += 1) {
    const { name, start: from, end: to } = members[k] as Member;
    if (members[k + 1]?.name === name) continue;
    copyBytes(out.bytes, out.length, out.bytes, from, to);
    out.length += to - from;
  }
  copyBytes(out.bytes, start, out.bytes, end, out.length);
  out.length -= end - start;
}

const FEW_MEMBERS = 16;

/** By their names; those of one name stay in the order of the source. */
function putInOrder(members: Member[]): void {
  if (members.length > FEW_MEMBERS) {
    members.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
    return;
  }
  // Before it looks at a few, `sort` has taken more memory than all else here.
  for (let k = 1; k < members.length; k += 1) {
    const member = members[k] as Member;
    let i = k;
    for (; i > 0 && member.name < (members[i - 1] as Member).name; i -= 1)
      members[i] = members[i - 1] as Member;
    members[i] = member;
  }
}

function sortElements(out: Output, starts: readonly number[]): void {
  const [first = 0] = starts;
  const elements = starts.map((start, i) =>
    Buffer.from(out.bytes.subarray(start, starts[i + 1] ?? out.length)),
  );
  out.length = first;
  for (const element of elements.toSorted(Buffer.compare)) out.length += element.copy(out.bytes, out.length);
}

/** The position after the scalar, which may be anything that is no container. */
function writeScalar(out: Output, bytes: Buffer, at: number): number | CanonicalProblem {
  const end = skipScalar(bytes, at);
  if (end < 0) return 'not-json';
  const first = bytes[at] ?? 0;
  if (first === QUOTE) writeString(out, bytes, at, end);
  else if (first > NINE) writeText(out, bytes.toString('latin1', at, end));
  else {
    const text = canonicalNumber(bytes.toString('latin1', at, end));
    if (text === undefined) return 'number-too-long';
    writeText(out, text);
  }
  return end;
}

function isOpening(byte: number | undefined): boolean {
  return byte === OPEN_OBJECT || byte === OPEN_ARRAY;
}

function isClosing(byte: number | undefined, { members }: Open): boolean {
  return byte === (members === undefined ? OPEN_ARRAY : OPEN_OBJECT) + 2;
}

/**
 * The one text of a number or string in canonical JSON (RFC 8785, section 3.2.2), made from the source text and never
 * by way of a double: the digits of a number are laid out as ECMAScript lays out a double's, but all of them stay.
 * So what JSON.stringify writes is canonical already, and `12345678901234567890`, `1e400` or a long fraction
 * equals nothing but itself in other spellings. `-0` is `0`, as RFC 8785 has it.
 */

/** The text as it grows. Only numbers can make it longer than its source: `1e20` is written with 21 digits. */
type Output = { bytes: Buffer; length: number };

/** An exponent of more digits is refused: adding to it would cost the square of its length. */
const MAX_EXPONENT_DIGITS = 1000;

/** Up to as many digits, integers are written out (ECMAScript, Number::toString). */
const MAX_WHOLE_DIGITS = 21;

const PLAIN_INTEGER = /^(?:0|-?[1-9]\d{0,20})$/;

const SAFE_DIGITS = 15;

const BACKSLASH = 0x5c;

/** The character that follows the backslash of a short escape, and what it denotes. */
const ESCAPED = new Map([
  [0x62, 0x08],
  [0x74, 0x09],
  [0x6e, 0x0a],
  [0x66, 0x0c],
  [0x72, 0x0d],
]);

const SHORT_ESCAPE = new Map([...ESCAPED].map(([letter, unit]) => [unit, letter]));

/** Undefined for a number whose exponent is too long to be computed with. */
export function canonicalNumber(text: string): string | undefined {
  if (PLAIN_INTEGER.test(text)) return text;
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.slice(sign.length).split('.');
  const all = whole + fraction;
  const first = all.search(/[1-9]/);
  if (first < 0) return '0';
  let end = all.length;
  while (all[end - 1] === '0') end -= 1;

  const exponent = power.replace(/^([+-]?)0+(?=\d)/, '$1');
  if (exponent.length > MAX_EXPONENT_DIGITS) return undefined;
  return sign + laidOut(all.slice(first, end), exponent, whole.length - first);
}

/** The number 0.`digits` times ten to the power of `exponent` + `shift`. */
function laidOut(digits: string, exponent: string, shift: number): string {
  if (exponent.length > SAFE_DIGITS) return scientific(digits, BigInt(exponent) + BigInt(shift) - 1n);
  const point = Number(exponent) + shift;
  if (digits.length <= point && point <= MAX_WHOLE_DIGITS) return digits.padEnd(point, '0');
  if (0 < point && point <= MAX_WHOLE_DIGITS) return `${digits.slice(0, point)}.${digits.slice(point)}`;
  if (-6 < point && point <= 0) return `0.${'0'.repeat(-point)}${digits}`;
  return scientific(digits, point - 1);
}

function scientific(digits: string, power: number | bigint): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
  return `${digits[0]}${fraction}e${power < 0 ? '' : '+'}${power}`;
}

/**
 * Writes the string whose quotes stand at `start` and before `end`. Escapes are resolved but for those that JSON needs;
 * everything between them is copied as it is, in one piece, also bytes that are no UTF-8. The escape of half a
 * surrogate pair stays an escape, as UTF-8 has no bytes for it (RFC 8785 would refuse it).
 */
function writeString(out: Output, bytes: Buffer, start: number, end: number): void {
  reserve(out, end - start);
  let from = start;
  let i = start + 1;
  while (i < end - 1) {
    if (bytes[i] !== BACKSLASH) i += 1;
    else {
      write(out, bytes, from, i);
      i = writeEscape(out, bytes, i);
      from = i;
    }
  }
  write(out, bytes, from, end);
}

/** There is room for it. */
function write(out: Output, bytes: Buffer, start: number, end: number): void {
  copyBytes(out.bytes, out.length, bytes, start, end);
  out.length += end - start;
}

/** Resolves the escape at `at`. Returns the position after it. What it writes is never longer than the escape. */
function writeEscape(out: Output, bytes: Buffer, at: number): number {
  const letter = bytes[at + 1] ?? 0;
  if (letter !== 0x75) {
    writeUnit(out, ESCAPED.get(letter) ?? letter);
    return at + 2;
  }
  const unit = unitAt(bytes, at);
  const isHigh = unit >= 0xd800 && unit <= 0xdbff;
  if (isHigh && bytes[at + 6] === BACKSLASH && bytes[at + 7] === 0x75) {
    const low = unitAt(bytes, at + 6);
    if (low >= 0xdc00 && low <= 0xdfff) {
      out.length += out.bytes.write(String.fromCharCode(unit, low), out.length, 'utf8');
      return at + 12;
    }
  }
  writeUnit(out, unit);
  return at + 6;
}

function unitAt(bytes: Buffer, at: number): number {
  return Number.parseInt(bytes.toString('latin1', at + 2, at + 6), 16);
}

function writeUnit(out: Output, unit: number): void {
  const letter = unit === 0x22 || unit === BACKSLASH ? unit : SHORT_ESCAPE.get(unit);
  const isAlone = unit >= 0xd800 && unit <= 0xdfff;
  if (letter !== undefined) {
    out.bytes[out.length] = BACKSLASH;
    out.bytes[out.length + 1] = letter;
    out.length += 2;
  } else if (unit < 0x20 || isAlone) {
    out.length += out.bytes.write(`\\u${unit.toString(16).padStart(4, '0')}`, out.length, 'latin1');
  } else out.length += out.bytes.write(String.fromCharCode(unit), out.length, 'utf8');
}

function writeText(out: Output, text: string): void {
  reserve(out, text.length);
  out.length += out.bytes.write(text, out.length, 'latin1');
}

function writeByte(out: Output, byte: number): void {
  reserve(out, 1);
  out.bytes[out.length] = byte;
  out.length += 1;
}

function reserve(out: Output, more: number): void {
  if (out.length + more <= out.bytes.length) return;
  const larger = Buffer.allocUnsafe(Math.max(out.length + more, out.bytes.length * 2));
  out.bytes.copy(larger, 0, 0, out.length);
  out.bytes = larger;
}
