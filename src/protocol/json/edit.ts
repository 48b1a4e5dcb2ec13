/** Replaces values in a JSON text. Every other byte stays as it is: a recorded message keeps its spelling around live values. */
import { eachMember, findMember, type Span, skipSpace, typeAt } from './read.ts';

/** The member at `path` (names from the outside in) becomes this JSON text. */
export type Substitution = { path: readonly string[]; text: string };

/** Returns the bytes with those members substituted that are there. */
export function substitute(json: Buffer, substitutions: readonly Substitution[]): Buffer {
  const found: { span: Span; text: string }[] = [];
  for (const { path, text } of substitutions) {
    const span = memberAt(json, path);
    if (span !== undefined) found.push({ span, text });
  }
  if (found.length === 0) return json;
  found.sort((a, b) => a.span.start - b.span.start);
  const pieces: Buffer[] = [];
  let copied = 0;
  for (const { span, text } of found) {
    pieces.push(json.subarray(copied, span.start), Buffer.from(text));
    copied = span.end;
  }
  return Buffer.concat([...pieces, json.subarray(copied)]);
}

/** As `substitute`, for one member: fast, since most messages need no more. */
export function substituteOne(json: Buffer, path: readonly string[], text: string): Buffer {
  const span = memberAt(json, path);
  if (span === undefined) return json;
  const length = Buffer.byteLength(text);
  const bytes = Buffer.allocUnsafe(json.length - (span.end - span.start) + length);
  copyBytes(bytes, 0, json, 0, span.start);
  writeText(bytes, span.start, text, length);
  copyBytes(bytes, span.start + length, json, span.end, json.length);
  return bytes;
}

/** Ids are a few digits: to write these takes less than a call out of JavaScript. */
function writeText(bytes: Buffer, at: number, text: string, length: number): void {
  if (length > text.length || length > FEW) bytes.write(text, at);
  else for (let i = 0; i < length; i += 1) bytes[at + i] = text.charCodeAt(i);
}

const FEW = 128;

/** As `Buffer.copy`, which costs more than the copying where the bytes are few. */
export function copyBytes(to: Buffer, at: number, from: Buffer, start: number, end: number): void {
  if (end - start > FEW) from.copy(to, at, start, end);
  else for (let i = start, k = at; i < end; i += 1, k += 1) to[k] = from[i] as number;
}

/** The source text of the member at `path`; undefined where there is none. */
export function sourceAt(json: Buffer, path: readonly string[]): string | undefined {
  const span = memberAt(json, path);
  return span === undefined ? undefined : json.toString('utf8', span.start, span.end);
}

/** The text must be JSON. */
export function memberAt(json: Buffer, path: readonly string[]): Span | undefined {
  const start = skipSpace(json, 0);
  let span: Span | undefined = { start, end: json.length, type: typeAt(json, start) };
  for (const name of path) {
    if (span?.type !== 'object') return undefined;
    span = findMember(json, span.start, name);
  }
  return span;
}

/**
 * Leaves something out of a JSON text; the rest stays byte for byte. The text is not parsed and written again, so large numbers,
 * key order, escapes and duplicate keys survive. Input is valid JSON.
 */

const QUOTE = 0x22;

const BACKSLASH = 0x5c;

const COMMA = 0x2c;

/** Without the space between the tokens. */
export function withoutSpace(json: Buffer): Buffer {
  let kept: Buffer | null = null;
  let length = 0;
  let isInString = false;
  for (let i = 0; i < json.length; i += 1) {
    const c = json[i] as number;
    if (isInString) {
      if (c === BACKSLASH) {
        if (kept !== null) kept[length] = c;
        length += 1;
        i += 1;
      } else if (c === QUOTE) isInString = false;
    } else if (c === QUOTE) isInString = true;
    else if (c === 0x20 || c === 0x09 || c === 0x0a || c === 0x0d) {
      kept ??= Buffer.from(json);
      continue;
    }
    if (kept !== null) kept[length] = json[i] as number;
    length += 1;
  }
  return kept === null ? json : kept.subarray(0, length);
}

/** An object without its members of these names, each with one of the commas around it. */
export function withoutMembers(object: Buffer, names: readonly string[]): Buffer {
  const kept: Buffer[] = [];
  let from = 1;
  const end = eachMember(object, 0, (name, value) => {
    const member = object.subarray(from, value.end);
    from = value.end;
    if (!names.includes(name)) kept.push(kept.length === 0 ? withoutComma(member) : member);
  });
  return Buffer.concat([object.subarray(0, 1), ...kept, object.subarray(from, end)]);
}

/** Where the member before it went. */
function withoutComma(member: Buffer): Buffer {
  const start = skipSpace(member, 0);
  return member[start] === COMMA ? member.subarray(start + 1) : member;
}
