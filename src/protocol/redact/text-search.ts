/** Finds secrets in a text that is no JSON: by shape, by the names of values (assignments.ts), in base64 that hides them. */

import { assignmentEdits } from './assignments.ts';
import { base64Edits } from './base64.ts';
import {
  addEdits,
  MAX_UNESCAPED_BYTES,
  movedBy,
  type Redaction,
  type TextSearch,
  unescapeLoosely,
} from './edits.ts';
import type { ShapeRule } from './shapes.ts';
import type { Sign } from './signs.ts';

/** What is searched around a sign at first, and again four times as much where a secret reaches to its end. */
const BEFORE = 512;

const AFTER = 8192;

/** So much without a space may be a secret that has its telling end further on. */
const LONG_TOKEN = 4096;

const MAX_TOKEN = 256 * 1024;

const LONG_TOKEN_AT_END = /^[\w.+/=%-]{4096}$/;

const PLACEHOLDER = /\[redacted:[a-z0-9-]+:[0-9a-f]{12}\]|\bmasked-[0-9a-f]{12}\b/g;

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
    const window = windowEdits(bytes, signs, i, search);
    addEdits(edits, window.edits);
    i = window.next;
  }
  if (search.isThorough) addEdits(edits, assignmentEdits(bytes, 0, bytes.length, search));
  return besidePlaceholders(bytes, edits);
}

/** What stands around a sign and those that follow closely. `next`: the first sign after that. */
function windowEdits(
  bytes: Buffer,
  signs: readonly Sign[],
  first: number,
  search: TextSearch,
): { edits: Redaction[]; next: number } {
  const from = Math.max(0, (signs[first] as Sign).at - BEFORE);
  let wanted = (signs[first] as Sign).at + AFTER;
  let next = first;
  for (;;) {
    for (; next < signs.length && (signs[next] as Sign).at + BEFORE <= wanted; next += 1)
      wanted = Math.max(wanted, (signs[next] as Sign).at + AFTER);
    const to = Math.min(bytes.length, wanted);
    const own = signs.slice(first, next);
    const text = bytes.toString('latin1', from, to);
    const edits = editsBetween(bytes, text, from, own, search);
    const isOpen =
      to - from < MAX_TOKEN &&
      own.some(({ rule }) => rule !== null) &&
      LONG_TOKEN_AT_END.test(text.slice(-LONG_TOKEN));
    if (to === bytes.length || !(isOpen || edits.some(({ end }) => end >= to - 1))) return { edits, next };
    wanted = from + (to - from) * 4;
  }
}

/** `text`: the bytes from `from` on, as Latin-1. */
function editsBetween(
  bytes: Buffer,
  text: string,
  from: number,
  signs: readonly Sign[],
  search: TextSearch,
): Redaction[] {
  const edits: Redaction[] = [];
  for (const rule of new Set(signs.map((sign) => sign.rule))) {
    if (rule !== null) addEdits(edits, shapes(text, from, rule, search));
  }
  if (!search.isThorough && signs.some(({ kind }) => kind === 'name'))
    addEdits(edits, assignmentEdits(bytes, from, from + text.length, search));
  addEdits(edits, base64Edits(bytes, signs, search));
  return edits;
}

function shapes(text: string, from: number, { id, pattern }: ShapeRule, search: TextSearch): Redaction[] {
  return [...text.matchAll(pattern)].map(({ indices = [] }) => {
    const [whole, ...groups] = indices;
    const [start, end] = groups.find((group) => group !== undefined) ?? whole ?? [0, 0];
    return search.edit(id, from + start, from + end, text.slice(start, end));
  });
}

type Range = { start: number; end: number };

const LETTER_OR_DIGIT = /[^\0-/:-@[-`{-\x7f]/;

/**
 * What was replaced before stays as it is, and does not shield what stands beside it: of an edit that reaches into a
 * placeholder, the part outside of it is left; one that a placeholder is only a part of replaces that too.
 */
function besidePlaceholders(bytes: Buffer, edits: Redaction[]): Redaction[] {
  const kept = edits.length === 0 ? [] : placeholders(bytes);
  return kept.length === 0 ? edits : edits.flatMap((edit) => besideOf(bytes, edit, kept));
}

function besideOf(bytes: Buffer, edit: Redaction, kept: readonly Range[]): Redaction[] {
  let { start, end } = edit;
  let rest = '';
  let at = start;
  for (let i = firstAfter(kept, start); (kept[i]?.start ?? Number.POSITIVE_INFINITY) < end; i += 1) {
    const placeholder = kept[i] as Range;
    // The name before a placeholder is no secret, as in `Cookie: sid=masked-…`.
    if (placeholder.start > at)
      rest += bytes.toString('latin1', at, placeholder.start).replace(/[\w.-]+=$/, '');
    if (placeholder.start < start) start = placeholder.end;
    at = placeholder.end;
    if (at > end) end = placeholder.start;
  }
  if (at === edit.start) return [edit];
  if (at < edit.end) rest += bytes.toString('latin1', at, edit.end);
  return LETTER_OR_DIGIT.test(rest) ? [{ ...edit, start, end }] : [];
}

/** The first of the ranges, which are in order, that ends after a position. */
function firstAfter(ranges: readonly Range[], position: number): number {
  let low = 0;
  let high = ranges.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((ranges[middle] as Range).end <= position) low = middle + 1;
    else high = middle;
  }
  return low;
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
