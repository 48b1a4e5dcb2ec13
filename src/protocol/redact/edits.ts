/** Replacements in a text: where they stand, what stands there instead, and what a search for them has at hand. */

import type { SignFinder } from './signs.ts';

/** Bytes `start` up to, not including, `end` become `text`, which is ASCII. `rule` says why. */
export type Redaction = { start: number; end: number; text: string; rule: string };

/** Makes the replacement that puts a placeholder of the rule in the place of a secret. */
export type MakeRedaction = (rule: string, start: number, end: number, secret: string) => Redaction;

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

/** Keeps, of replacements that overlap, the one that begins first, and of these the longest. */
export function withoutOverlaps(edits: readonly Redaction[]): Redaction[] {
  const sorted = edits.toSorted((a, b) => a.start - b.start || b.end - a.end);
  let end = -1;
  return sorted.filter((edit) => {
    if (edit.start < end) return false;
    end = edit.end;
    return true;
  });
}

/** The replacements must be in order, without overlaps. */
export function applyRedactions(bytes: Buffer, edits: readonly Redaction[]): Buffer {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const { start, end, text } of edits) {
    pieces.push(bytes.subarray(from, start), Buffer.from(text, 'latin1'));
    from = end;
  }
  pieces.push(bytes.subarray(from));
  return Buffer.concat(pieces);
}

/** Turns replacements in a piece into replacements in the whole. `at` says where in the whole each byte of the piece stands. */
export function movedBy(edits: readonly Redaction[], at: (i: number) => number): Redaction[] {
  return edits.map((edit) => ({ ...edit, start: at(edit.start), end: at(edit.end) }));
}

/** Adds them one by one: a text may have more replacements than a call can have arguments. */
export function addEdits(edits: Redaction[], more: readonly Redaction[]): void {
  for (const edit of more) edits.push(edit);
}

/** Escapes of JSON strings undone for the search, with the way back to where each byte stood. */

/** Undoing the escapes of more takes too much memory. */
export const MAX_UNESCAPED_BYTES = 8 * 1024 * 1024;

/** `at[i]`: where byte `i` stood, and after the last one where the text ended. Null: nothing was escaped. */
type Unescaped = { bytes: Buffer; at: Uint32Array | null };

const BACKSLASH = 0x5c;

const LOW_U = 0x75;

const SLASH = 0x2f;

const SIMPLE: Readonly<Record<number, number>> = {
  98: 0x08,
  102: 0x0c,
  110: 0x0a,
  114: 0x0d,
  116: 0x09,
};

/** The inside of a JSON string, unescaped once. */
export function unescapeString(raw: Buffer): Unescaped {
  return raw.includes(BACKSLASH) ? unescaped(raw, unescapeAt) : { bytes: raw, at: null };
}

/** A text that is no JSON but may quote some, at any depth: `\u0041` and `\/` only, with all their backslashes. */
export function unescapeLoosely(raw: Buffer): Unescaped {
  return raw.includes('\\u00') || raw.includes('\\/')
    ? unescaped(raw, unescapeLooselyAt)
    : { bytes: raw, at: null };
}

/** How many bytes an escape takes, and the text that it stands for; null where there is none. */
type Escape = { length: number; text: number } | null;

function unescaped(raw: Buffer, read: (raw: Buffer, i: number) => Escape): Unescaped {
  const bytes = Buffer.allocUnsafe(raw.length);
  const at = new Uint32Array(raw.length + 1);
  let length = 0;
  let i = 0;
  while (i < raw.length) {
    const found = raw[i] === BACKSLASH ? read(raw, i) : null;
    if (found === null) {
      at[length] = i;
      bytes[length] = raw[i] as number;
      length += 1;
      i += 1;
      continue;
    }
    // An escape is never shorter than the UTF-8 that it stands for.
    const written = bytes.write(String.fromCodePoint(found.text), length);
    at.fill(i, length, length + written);
    length += written;
    i += found.length;
  }
  at[length] = raw.length;
  return { bytes: bytes.subarray(0, length), at };
}

function unescapeAt(raw: Buffer, i: number): Escape {
  const next = raw[i + 1];
  if (next === undefined) return null;
  if (next !== LOW_U) return { length: 2, text: SIMPLE[next] ?? next };
  const unit = hexAt(raw, i + 2);
  if (unit === null) return null;
  const low =
    unit >= 0xd800 && unit < 0xdc00 && raw[i + 6] === BACKSLASH && raw[i + 7] === LOW_U
      ? hexAt(raw, i + 8)
      : null;
  if (low === null || low < 0xdc00 || low > 0xdfff) return { length: 6, text: unit };
  return { length: 12, text: 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00) };
}

function unescapeLooselyAt(raw: Buffer, i: number): Escape {
  let u = i;
  while (raw[u] === BACKSLASH) u += 1;
  if (raw[u] === SLASH) return { length: u + 1 - i, text: SLASH };
  if (raw[u] !== LOW_U) return null;
  const unit = hexAt(raw, u + 1);
  return unit === null || unit < 0x20 || unit > 0x7e ? null : { length: u + 5 - i, text: unit };
}

function hexAt(raw: Buffer, at: number): number | null {
  const text = raw.toString('latin1', at, at + 4);
  return /^[0-9a-fA-F]{4}$/.test(text) ? Number.parseInt(text, 16) : null;
}
