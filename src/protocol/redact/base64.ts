/** Base64 that hides secrets, in one piece or in lines as `base64` and MIME (RFC 2045, 6.8) make them. */

import type { Redaction, TextSearch } from './edits.ts';
import type { Sign } from './signs.ts';

/** Longer base64 is an image, not a credential. */
const MAX_BASE64 = 64 * 1024;

/** Lines of base64 are at least so long, but the last one. */
const MIN_LINE = 40;

const NEXT_LINE = /(?:\\r)?\\n|\r?\n/y;

const INDENT = /[ \t>]{0,32}/y;

type Range = { start: number; end: number };

/** Replaces the whole of the base64: what is left could not be read any more. */
export function base64Edits(bytes: Buffer, signs: readonly Sign[], search: TextSearch): Redaction[] {
  const edits: Redaction[] = [];
  let searched = 0;
  for (const { at, kind } of signs) {
    if (kind !== 'base64' || at < searched || search.isDeepest) continue;
    const line = runAround(bytes, at);
    const { start, end } = withNextLines(bytes, line);
    searched = end;
    if (end - start >= MAX_BASE64) continue;
    const text = bytes.toString('latin1', start, end);
    const [found] = search.inside(Buffer.from(text.replaceAll(/\\[rn]|[\s>]/g, ''), 'base64'));
    if (found !== undefined) edits.push(search.edit(found.rule, start, end, text));
  }
  return edits;
}

function runAround(bytes: Buffer, at: number): Range {
  let start = at;
  let end = at;
  while (start > 0 && at - start < MAX_BASE64 && isBase64(bytes[start - 1])) start -= 1;
  while (end < bytes.length && end - at < MAX_BASE64 && isBase64(bytes[end])) end += 1;
  // The `n` of an escaped line end before it.
  if (bytes[start - 1] === BACKSLASH && end - start > 1) start += 1;
  return { start, end };
}

/** All lines but the last have one length, which is a multiple of four; only the first may have something before it. */
function withNextLines(bytes: Buffer, first: Range): Range {
  const { start } = first;
  let { end } = first;
  let width = 0;
  let previous = end - start;
  while (previous >= MIN_LINE && end - start < MAX_BASE64 && bytes[end - 1] !== PADDING) {
    const line = lineAfter(bytes, end);
    if (line === null) break;
    const length = line.end - line.start;
    const isWhole =
      length >= MIN_LINE && length % 4 === 0 && (width === 0 ? length >= previous : length === width);
    const isLast = previous % 4 === 0 && length <= previous && looksLikeBase64(bytes, line);
    if (!isWhole && !isLast) break;
    end = line.end;
    if (!isWhole) break;
    width = length;
    previous = length;
  }
  return { start, end };
}

/** The next line, if it is base64 from its indentation to its end. */
function lineAfter(bytes: Buffer, end: number): Range | null {
  const ahead = bytes.toString('latin1', end, end + LOOK_AHEAD);
  NEXT_LINE.lastIndex = 0;
  if (!NEXT_LINE.test(ahead)) return null;
  INDENT.lastIndex = NEXT_LINE.lastIndex;
  INDENT.test(ahead);
  const start = end + INDENT.lastIndex;
  let to = start;
  while (to < bytes.length && to - start < MAX_WIDTH && isBase64(bytes[to])) to += 1;
  const after = bytes[to];
  const isWhole = after === undefined || ENDS.has(after);
  return to > start && isWhole ? { start, end: to } : null;
}

/** A word in the line after some base64 is no end of it. */
function looksLikeBase64(bytes: Buffer, { start, end }: Range): boolean {
  const text = bytes.toString('latin1', start, end);
  return text.length % 4 === 0 ? /[=\d]|[a-z][A-Z]/.test(text) : text.length >= 16 && /\d/.test(text);
}

const BACKSLASH = 0x5c;

const PADDING = 0x3d;

const LOOK_AHEAD = 48;

const MAX_WIDTH = 1024;

const ENDS = new Set([...'\r\n\\"\' \t,'].map((character) => character.charCodeAt(0)));

function isBase64(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
  const isOther = byte === 0x2b || byte === 0x2f || byte === 0x2d || byte === 0x5f || byte === 0x3d;
  return isLetter || (byte >= 0x30 && byte <= 0x39) || isOther;
}
