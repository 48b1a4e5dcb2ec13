/** Finds secrets in a text that is no JSON: by shape, in assignments to secret names (`PASSWORD=…`), in base64 that hides them. */

import {
  addEdits,
  MAX_UNESCAPED_BYTES,
  type MakeRedaction,
  movedBy,
  type Redaction,
  unescapeLoosely,
} from './edits.ts';
import { isSecretValue, schemeLength, secretName } from './names.ts';
import type { ShapeRule } from './shapes.ts';
import type { Sign, SignFinder } from './signs.ts';

/** The rules that are on, as a search of a text needs them. */
export type TextSearch = {
  signs: SignFinder;
  /** Looks at everything, with signs or without. */
  isThorough: boolean;
  /** Too deep for another text inside this one. */
  isDeepest: boolean;
  isOn(rule: string): boolean;
  isOAuth(name: string): boolean;
  edit: MakeRedaction;
  customEdits(bytes: Buffer): Redaction[];
  /** The edits of a text that stands inside another one. */
  inside(bytes: Buffer): Redaction[];
};

/** What is searched around a sign at first, and again four times as much where a secret reaches to its end. */
const BEFORE = 512;

const AFTER = 8192;

/** So much without a space may be a secret that has its telling end further on. */
const LONG_TOKEN = 4096;

const MAX_TOKEN = 256 * 1024;

const LONG_TOKEN_AT_END = /^[\w.+/=%-]{4096}$/;

/** Longer base64 is an image, not a credential. */
const MAX_BASE64 = 64 * 1024;

const PLACEHOLDER = /\[redacted:[a-z0-9-]+:[0-9a-f]{12}\]|\bmasked-[0-9a-f]{12}\b/g;

/**
 * Name, `=` or `:` with quotes around it, value. The quotes may be escaped, as in a log of JSON.
 */
const ASSIGNMENT =
  /(?<![A-Za-z0-9_])([A-Za-z_][\w.-]{1,63})(?:\\{0,16}["'])?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}(?:(\\{0,16})"((?:(?!\\{0,16}").){1,4096})\2"|'([^'\r\n]{1,4096})'|(?:\\{0,16}["'])?((?:(?:bearer|basic|token) +)?[^\s"'`,;&<>\\(){}[\]]{2,4096}))/dgi;

export function textEdits(bytes: Buffer, search: TextSearch): Redaction[] {
  const signs = search.signs.find(bytes);
  if (signs.length === 0 && !search.isThorough) return [];
  if (bytes.length <= MAX_UNESCAPED_BYTES && signs.some(({ kind }) => kind === 'escape')) {
    const { bytes: text, at } = unescapeLoosely(bytes);
    if (at !== null)
      return movedBy(plainEdits(text, search.signs.find(text), search), (i) => at[i] ?? bytes.length);
  }
  return plainEdits(bytes, signs, search);
}

function plainEdits(bytes: Buffer, signs: readonly Sign[], search: TextSearch): Redaction[] {
  const edits: Redaction[] = search.customEdits(bytes);
  for (let i = 0; i < signs.length; ) {
    const from = Math.max(0, (signs[i] as Sign).at - BEFORE);
    let to = (signs[i] as Sign).at + AFTER;
    let next = i;
    for (; next < signs.length && (signs[next] as Sign).at + BEFORE <= to; next += 1)
      to = Math.max(to, (signs[next] as Sign).at + AFTER);
    addEdits(edits, windowEdits(bytes, from, to, signs.slice(i, next), search));
    i = next;
  }
  if (search.isThorough) addEdits(edits, assignments(bytes, 0, bytes.length, search));
  const kept = placeholders(bytes);
  return kept.length === 0 ? edits : edits.filter((edit) => !overlapsSome(edit, kept));
}

function windowEdits(
  bytes: Buffer,
  from: number,
  wanted: number,
  signs: readonly Sign[],
  search: TextSearch,
): Redaction[] {
  const to = Math.min(bytes.length, wanted);
  const text = bytes.toString('latin1', from, to);
  const edits: Redaction[] = [];
  for (const rule of new Set(signs.map((sign) => sign.rule))) {
    if (rule !== null) addEdits(edits, shapes(text, from, rule, search));
  }
  if (!search.isThorough && signs.some(({ kind }) => kind === 'name'))
    addEdits(edits, assignments(bytes, from, to, search));
  addEdits(edits, allBase64Edits(bytes, signs, search));
  const isOpen =
    to - from < MAX_TOKEN &&
    signs.some(({ rule }) => rule !== null) &&
    LONG_TOKEN_AT_END.test(text.slice(-LONG_TOKEN));
  const reachesEnd = to < bytes.length && (isOpen || edits.some(({ end }) => end >= to - 1));
  return reachesEnd ? windowEdits(bytes, from, from + (to - from) * 4, signs, search) : edits;
}

function shapes(text: string, from: number, { id, pattern }: ShapeRule, search: TextSearch): Redaction[] {
  return [...text.matchAll(pattern)].map(({ indices = [] }) => {
    const [whole, ...groups] = indices;
    const [start, end] = groups.find((group) => group !== undefined) ?? whole ?? [0, 0];
    return search.edit(id, from + start, from + end, text.slice(start, end));
  });
}

function assignments(bytes: Buffer, from: number, to: number, search: TextSearch): Redaction[] {
  if (!search.isOn('secret-value')) return [];
  const edits: Redaction[] = [];
  const text = bytes.toString('latin1', from, to);
  ASSIGNMENT.lastIndex = 0;
  for (let match = ASSIGNMENT.exec(text); match !== null; match = ASSIGNMENT.exec(text)) {
    const { 1: name = '', indices } = match;
    const [start, end] = indices?.[3] ?? indices?.[4] ?? indices?.[5] ?? [0, 0];
    const value = bytes.toString('utf8', from + start, from + end);
    const kind = search.isOAuth(name) ? 'password' : secretName(name);
    const scheme = schemeLength(value);
    if (kind !== null && isSecretValue(scheme > 0 ? 'password' : kind, value.slice(scheme)))
      edits.push(search.edit('secret-value', from + start + scheme, from + end, value.slice(scheme)));
    // What follows may be an assignment itself, as in `settings: PASSWORD=…`.
    else ASSIGNMENT.lastIndex = match.index + name.length;
  }
  return edits;
}

function allBase64Edits(bytes: Buffer, signs: readonly Sign[], search: TextSearch): Redaction[] {
  const edits: Redaction[] = [];
  let searched = 0;
  for (const { at, kind } of signs) {
    if (kind !== 'base64' || at < searched || search.isDeepest) continue;
    const { start, end } = base64Around(bytes, at);
    searched = end;
    const text = bytes.toString('latin1', start, end);
    const [found] = text.length < MAX_BASE64 ? search.inside(Buffer.from(text, 'base64')) : [];
    // The whole of it: what is left could not be read any more.
    if (found !== undefined) edits.push(search.edit(found.rule, start, end, text));
  }
  return edits;
}

function base64Around(bytes: Buffer, at: number): Range {
  let start = at;
  let end = at;
  while (start > 0 && at - start < MAX_BASE64 && isBase64(bytes[start - 1])) start -= 1;
  while (end < bytes.length && end - at < MAX_BASE64 && isBase64(bytes[end])) end += 1;
  return { start, end };
}

function isBase64(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
  const isOther = byte === 0x2b || byte === 0x2f || byte === 0x2d || byte === 0x5f || byte === 0x3d;
  return isLetter || (byte >= 0x30 && byte <= 0x39) || isOther;
}

type Range = { start: number; end: number };

/** `ranges` are in order. */
function overlapsSome({ start, end }: Range, ranges: readonly Range[]): boolean {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ranges[middle] as Range).end <= start) low = middle + 1;
    else high = middle;
  }
  return (ranges[low]?.start ?? Number.POSITIVE_INFINITY) < end;
}

function placeholders(bytes: Buffer): Range[] {
  if (!bytes.includes('[redacted:') && !bytes.includes('masked-')) return [];
  return [...bytes.toString('latin1').matchAll(PLACEHOLDER)].map(({ index, 0: text }) => ({
    start: index,
    end: index + text.length,
  }));
}

/** How far back from the end a secret is looked for that has no end itself. */
const LAST_BYTES = 8192;

/** From a name on to the end of the text: its value, the quotation still open. */
const OPEN_VALUE = /^[\w.-]*(?:\\*["'])?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}(?:\\*["'])?([^"'\r\n]+)$/d;

const OPEN_TOKEN = /^[^\s"'<>,;]+$/;

const BASE64_BEFORE = /[A-Za-z0-9+/_-]*$/;

/**
 * Secrets that a text breaks off in: too short for their rule, and a part of them all the same. `edits`: what the rules found.
 */
export function cutEdits(bytes: Buffer, edits: readonly Redaction[], search: TextSearch): Redaction[] {
  const from = Math.max(0, bytes.length - LAST_BYTES);
  const text = bytes.toString('latin1', from);
  for (const { at, kind, rule } of search.signs.find(bytes.subarray(from))) {
    const id = rule?.id ?? 'secret-value';
    const start = kind === 'base64' ? at - (BASE64_BEFORE.exec(text.slice(0, at))?.[0].length ?? 0) : at;
    const rest = text.slice(start);
    const open =
      kind === 'name' ? OPEN_VALUE.exec(rest)?.indices?.[1]?.[0] : OPEN_TOKEN.test(rest) ? 0 : undefined;
    if (open === undefined) continue;
    const begin = from + start + open;
    if (edits.some((edit) => (edit.start < begin ? edit.end > begin : edit.end === bytes.length))) continue;
    return [search.edit(id, begin, bytes.length, text.slice(begin - from))];
  }
  return [];
}
