/**
 * Redaction: replaces secrets in what is recorded by placeholders such as `[redacted:github-token:3f9a2c41d05b]`.
 *
 * - A secret gets the same placeholder wherever it stands, so equal secrets can still be recognised. A placeholder keeps no
 *   part of its secret.
 * - Bytes without a finding stay the very same. JSON stays JSON. Redacting twice is redacting once.
 * - What correlates messages (their ids, methods, progress tokens) is never replaced.
 */

import { parseJsonPath } from '../json/path.ts';
import { fieldName, fieldValue, linesOf } from '../wire/sse.ts';
import { readCustomRule } from './custom-rules.ts';
import { applyRedactions, movedBy, type Redaction, withoutOverlaps } from './edits.ts';
import { type Placeholder, redactHeader, redactUrl } from './heads.ts';
import { isPlaceholder, OAUTH_SIGN } from './names.ts';
import type { RedactionProfile } from './profile.ts';
import { createSearch, editsOf, type RedactionSearchOptions } from './search.ts';
import { SHAPE_RULES } from './shapes.ts';
import { createSignFinder } from './signs.ts';
import { cutEdits, textEdits } from './text-search.ts';

/** `rules`: the ids of those that found something, without repeats. */
export type RedactedPayload = { payload: Buffer; rules: readonly string[] };

export type Redactor = {
  /** A line, a body. `isForeign`: of an exchange without MCP, such as OAuth. `isCut`: it may end amid a secret. */
  payload(bytes: Buffer, isForeign: boolean, isCut: boolean): RedactedPayload | null;
  /** An event of a stream, with its fields. */
  event(bytes: Buffer, isCut: boolean): RedactedPayload | null;
  /** What `payload` and `event` would replace, in order. */
  payloadEdits(bytes: Buffer, isForeign: boolean, isCut: boolean): Redaction[];
  eventEdits(bytes: Buffer, isCut: boolean): Redaction[];
  text(text: string): string;
  header(name: string, value: string): string;
  url(url: string): string;
  /** Whether a rule is on. */
  isOn(rule: string): boolean;
  /** Where in the bytes the first secret could begin; null where none can. */
  firstSign(bytes: Buffer, isForeign: boolean): number | null;
  /** The placeholder of a secret that is given whole. */
  placeholder(rule: string, secret: string): string;
};

const NOTHING: Redaction[] = [];

/** Larger bodies are pages and downloads. */
const MAX_OAUTH_BYTES = 1024 * 1024;

/** `digest` makes twelve hexadecimal digits of a secret, from which nobody can tell it. */
export function createRedactor(profile: RedactionProfile, digest: (secret: string) => string): Redactor {
  const off = new Set(profile.without);
  const custom = profile.rules.map(readCustomRule);
  const paths = profile.paths.flatMap((path) => parseJsonPath(path).start);
  const signs = createSignFinder(
    SHAPE_RULES.filter(({ id }) => !off.has(id)),
    !off.has('secret-value'),
  );
  const placeholder = (rule: string, secret: string) => `[redacted:${rule}:${digest(secret)}]`;
  const options: RedactionSearchOptions = { signs, custom, paths, off, placeholder };
  const search = createSearch(options, false);
  const foreign = createSearch(options, true);
  const headPlaceholder: Placeholder = (secret) =>
    isPlaceholder(secret) ? secret : `masked-${digest(secret)}`;
  const always = custom.length > 0 || paths.length > 0;
  /** Headers repeat arguments, of which nobody can tell the path here, or whether their frame keeps its payload. */
  const hidesArguments = paths.length > 0 || profile.metaFor !== undefined;

  function payloadEdits(bytes: Buffer, isForeign: boolean, isCut: boolean): Redaction[] {
    const isOAuth = isForeign && bytes.length <= MAX_OAUTH_BYTES;
    if (!always && !isOAuth && !signs.has(bytes)) return NOTHING;
    const edits = editsOf(bytes, isOAuth ? foreign : search, !isForeign);
    return isCut ? withCut(bytes, edits) : edits;
  }

  function eventEdits(bytes: Buffer, isCut: boolean): Redaction[] {
    if (!always && !signs.has(bytes)) return NOTHING;
    const data = dataOf(bytes);
    const isOneLine = data !== null && !isCut;
    const edits = isOneLine ? editsByField(bytes, data.start, data.end) : textEdits(bytes, search);
    return isCut ? withCut(bytes, edits) : withoutOverlaps(edits);
  }

  function withCut(bytes: Buffer, edits: readonly Redaction[]): Redaction[] {
    return withoutOverlaps([...edits, ...cutEdits(bytes, edits, search)]);
  }

  function editsByField(bytes: Buffer, start: number, end: number): Redaction[] {
    const inData = editsOf(bytes.subarray(start, end), search, true);
    const before = textEdits(bytes.subarray(0, start), search);
    const after = textEdits(bytes.subarray(end), search);
    return [...before, ...movedBy(inData, (i) => start + i), ...movedBy(after, (i) => end + i)];
  }

  function made(bytes: Buffer, edits: readonly Redaction[]): RedactedPayload | null {
    if (edits.length === 0) return null;
    return { payload: applyRedactions(bytes, edits), rules: [...new Set(edits.map(({ rule }) => rule))] };
  }

  const payload: Redactor['payload'] = (bytes, isForeign, isCut) =>
    made(bytes, payloadEdits(bytes, isForeign, isCut));

  function text(value: string): string {
    const bytes = Buffer.from(value);
    return payload(bytes, false, false)?.payload.toString() ?? value;
  }

  return {
    payload,
    event: (bytes, isCut) => made(bytes, eventEdits(bytes, isCut)),
    payloadEdits,
    eventEdits,
    text,
    header(name, value) {
      const redacted = off.has('http-header') ? value : redactHeader(name, value, headPlaceholder);
      if (redacted !== value) return redacted;
      const isArgument = hidesArguments && value !== '' && /^mcp-param-/i.test(name);
      return isArgument ? headPlaceholder(value) : text(value);
    },
    url: (url) => text(off.has('url-secret') ? url : redactUrl(url, headPlaceholder)),
    isOn: (rule) => !off.has(rule),
    firstSign(bytes, isForeign) {
      const sign = always ? 0 : (signs.find(bytes)[0]?.at ?? null);
      const inForeign = isForeign ? bytes.toString('latin1').search(OAUTH_SIGN) : -1;
      return inForeign === -1 || (sign !== null && sign < inForeign) ? sign : inForeign;
    },
    placeholder,
  };
}

/** Where the value of a block's data stands, if it is one line; null: there is none, or there are several. */
function dataOf(block: Buffer): { start: number; end: number } | null {
  const lines = [...linesOf(block)].filter((line) => fieldName(line) === 'data');
  const [line] = lines;
  const value = line === undefined ? null : fieldValue(line);
  if (value === null || value.length === 0 || lines.length > 1) return null;
  const start = value.byteOffset - block.byteOffset;
  return { start, end: start + value.length };
}

/**
 * Recording without payloads: a placeholder of the whole stands in the place of everything that may hold user data. Sizes, times
 * and equality are kept, and nothing else.
 */

/** The rule of a frame whose payload was not kept. */
export const META_RULE = 'meta';

export function createMetaRedactor(digest: (secret: string) => string): Redactor {
  const placeholder = (rule: string, secret: string) => `[redacted:${rule}:${digest(secret)}]`;
  const headPlaceholder = (text: string) =>
    text === '' || isPlaceholder(text) ? text : `masked-${digest(text)}`;

  function payload(bytes: Buffer): RedactedPayload | null {
    if (bytes.length === 0) return null;
    const text = placeholder(META_RULE, bytes.toString('latin1'));
    return { payload: Buffer.from(text), rules: [META_RULE] };
  }

  return {
    payload,
    event: payload,
    payloadEdits: () => [],
    eventEdits: () => [],
    text: headPlaceholder,
    header: (_name, value) => headPlaceholder(value),
    url: (url) => url.replace(/[?#].*$/s, (rest) => rest.slice(0, 1) + headPlaceholder(rest.slice(1))),
    isOn: () => true,
    firstSign: () => 0,
    placeholder,
  };
}
