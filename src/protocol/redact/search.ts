/** What the searches for secrets in texts and in JSON share: the rules that are on, and how deep they are. */

import { isAscii, isUtf8 } from 'node:buffer';
import { TapedeckError } from '../../errors.ts';
import { type Followed, followInto, NO_PATHS } from '../json/path.ts';
import { skipKey, skipScalar, skipSpace, skipValue, stringText, typeAt } from '../json/read.ts';
import { byteOrderMarkLength } from '../text.ts';
import { addEdits, type Edit, movedBy, unescapeLoosely, unescapeString, withoutOverlaps } from './edits.ts';
import { isOAuthName, isPlaceholder, isSecretValue, schemeLength, secretName } from './names.ts';
import type { ShapeRule } from './shapes.ts';
import type { Sign, SignFinder } from './signs.ts';

type Search = {
  depth: number;
  signs: SignFinder;
  /** Whether everything is looked at, with signs or without. */
  isThorough: boolean;
  hasCustom: boolean;
  /** Where the values stand that are replaced wholly, whatever they are. */
  paths: Followed;
  isOn(rule: string): boolean;
  isOAuth(name: string): boolean;
  edit(rule: string, start: number, end: number, secret: string): Edit;
  customEdits(bytes: Buffer): Edit[];
  /** The edits of a text that stands inside another one. */
  inside(bytes: Buffer): Edit[];
};

export type SearchOptions = {
  signs: SignFinder;
  custom: readonly CustomRule[];
  paths: Followed;
  off: ReadonlySet<string>;
  placeholder: (rule: string, secret: string) => string;
};

/** JSON in a string in JSON in a string … is followed so far. */
const MAX_DEPTH = 6;

/** `isOAuth`: outside of MCP, where names such as `code` mean secrets. */
export function createSearch(options: SearchOptions, isOAuth: boolean, depth = 0): Search {
  const { signs, custom, off, placeholder } = options;
  const paths = depth === 0 ? options.paths : NO_PATHS;
  const search: Search = {
    depth,
    signs,
    paths,
    hasCustom: custom.length > 0,
    isThorough: custom.length > 0 || isOAuth || paths.length > 0,
    isOn: (rule) => !off.has(rule),
    isOAuth: (name) => isOAuth && isOAuthName(name),
    edit: (rule, start, end, secret) => ({ start, end, rule, text: placeholder(rule, secret) }),
    customEdits: (bytes) => customEdits(custom, bytes, search),
    inside: (bytes) =>
      depth < MAX_DEPTH
        ? editsOf(bytes, createSearch(options, isOAuth, depth + 1), false)
        : textEdits(bytes, search),
  };
  return search;
}

/** The edits of a text or of JSON, in order and without overlaps. `isMessage`: its outermost object may be a message. */
export function editsOf(bytes: Buffer, search: Search, isMessage: boolean): Edit[] {
  const start = skipSpace(bytes, byteOrderMarkLength(bytes));
  const isJson = (bytes[start] === 0x7b || bytes[start] === 0x5b) && isWhole(bytes, start);
  const edits = isJson ? jsonEdits(bytes, start, search, isMessage) : textEdits(bytes, search);
  return edits.length > 1 ? withoutOverlaps(edits) : edits;
}

function isWhole(bytes: Buffer, start: number): boolean {
  const end = skipValue(bytes, start);
  return end > 0 && skipSpace(bytes, end) === bytes.length;
}

/**
 * Secrets in JSON: in its strings, under names that say so, and where a path leads. Only whole strings (for a path: whole
 * values) and pieces inside of strings are replaced, so JSON stays JSON.
 */

const QUOTE = 0x22;

const OPEN_OBJECT = 0x7b;

const OPEN_ARRAY = 0x5b;

const COMMA = 0x2c;

/**
 * What messages are told apart and put together by is never replaced, whatever it looks like: without it a recording could
 * neither be read nor replayed.
 */
const KEPT: ReadonlySet<string> = new Set([
  'jsonrpc',
  'id',
  'method',
  'params.progressToken',
  'params.requestId',
  'params._meta.progressToken',
  'params._meta.io.modelcontextprotocol/subscriptionId',
]);

/** An object or array that is being read. `place`: the names that lead here from the message, of its first levels. */
type Open = { isObject: boolean; count: number; paths: Followed; place: string | null };

/** The edits of JSON that stands at `start`, and has been checked to be some. */
function jsonEdits(bytes: Buffer, start: number, search: Search, isMessage: boolean): Edit[] {
  const signs = search.signs.find(bytes);
  if (signs.length === 0 && !search.isThorough) return [];
  return new Walk(bytes, signs, search, isMessage).from(start);
}

class Walk {
  readonly #bytes: Buffer;
  readonly #signs: readonly Sign[];
  readonly #search: Search;
  readonly #isMessage: boolean;
  readonly #edits: Edit[] = [];
  readonly #open: Open[] = [];
  #sign = 0;

  constructor(bytes: Buffer, signs: readonly Sign[], search: Search, isMessage: boolean) {
    this.#bytes = bytes;
    this.#signs = signs;
    this.#search = search;
    this.#isMessage = isMessage;
  }

  from(start: number): Edit[] {
    let i = this.#enter(start, this.#search.paths, this.#isMessage ? '' : null, '');
    while (this.#open.length > 0) i = this.#next(i);
    return this.#edits;
  }

  /** Reads a value as far as it has no members; gives where to go on. */
  #enter(at: number, paths: Followed, place: string | null, name: string): number {
    const byte = this.#bytes[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      this.#open.push({ isObject: byte === OPEN_OBJECT, count: 0, paths, place });
      return at + 1;
    }
    const end = skipScalar(this.#bytes, at);
    this.#scalar(at, end, name);
    return end;
  }

  /** The next member or element of the innermost container, or its end. */
  #next(from: number): number {
    const inner = this.#open.at(-1) as Open;
    const bytes = this.#bytes;
    let i = skipSpace(bytes, from);
    if (bytes[i] === (inner.isObject ? OPEN_OBJECT : OPEN_ARRAY) + 2) {
      this.#open.pop();
      return i + 1;
    }
    if (bytes[i] === COMMA) i = skipSpace(bytes, i + 1);
    inner.count += 1;
    if (!inner.isObject) return this.#element(i, inner);
    const value = skipKey(bytes, i);
    const keyEnd = skipScalar(bytes, i);
    const hasSign = this.#hasSign(i, keyEnd);
    const needsName = hasSign || inner.paths.length > 0 || inner.place !== null || this.#search.isThorough;
    const name = needsName ? stringText(bytes, { start: i, end: keyEnd, type: 'string' }) : '';
    const place = placeOf(inner.place, name);
    if (place !== null && KEPT.has(place)) return skipValue(bytes, value);
    if (hasSign || this.#search.hasCustom) this.#string(i, keyEnd);
    const paths = followInto(inner.paths, name);
    return paths === null ? this.#mask(value) : this.#enter(value, paths, place, name);
  }

  #element(at: number, inner: Open): number {
    // A batch: each element is a message, and paths begin at messages.
    if (inner.place === '') return this.#enter(at, inner.paths, '', '');
    const paths = followInto(inner.paths, inner.count - 1);
    return paths === null ? this.#mask(at) : this.#enter(at, paths, null, '');
  }

  #mask(at: number): number {
    const end = skipValue(this.#bytes, at);
    const edit = this.#masked(at, end, 'path');
    if (!isPlaceholder(this.#bytes.toString('latin1', at + 1, end - 1))) this.#edits.push(edit);
    return end;
  }

  /** A value of any type becomes a string. */
  #masked(start: number, end: number, rule: string): Edit {
    const isString = this.#bytes[start] === QUOTE;
    const secret = isString
      ? stringText(this.#bytes, { start, end, type: 'string' })
      : this.#bytes.toString('utf8', start, end);
    const edit = this.#search.edit(rule, start, end, secret);
    return { ...edit, text: `"${edit.text}"` };
  }

  #scalar(start: number, end: number, name: string): void {
    if (name !== '' && this.#isSecret(start, end, name)) return;
    if (this.#bytes[start] !== QUOTE) return;
    if (this.#search.hasCustom || this.#search.isThorough || this.#hasSign(start, end))
      this.#string(start, end);
  }

  /** Replaces a value whose name says that it is a secret. */
  #isSecret(start: number, end: number, name: string): boolean {
    const kind = this.#search.isOAuth(name) ? 'password' : secretName(name);
    if (kind === null || !this.#search.isOn('secret-value')) return false;
    const type = typeAt(this.#bytes, start);
    if (type !== 'string' && !(type === 'number' && kind === 'password')) return false;
    const text = type === 'string' ? stringText(this.#bytes, { start, end, type }) : '0';
    const scheme = schemeLength(text);
    if (!isSecretValue(scheme > 0 ? 'password' : kind, text.slice(scheme))) return false;
    const edit = this.#masked(start, end, 'secret-value');
    if (scheme === 0) this.#edits.push(edit);
    else {
      const { text: placeholder } = this.#search.edit('secret-value', start, end, text.slice(scheme));
      this.#edits.push({ ...edit, text: `"${text.slice(0, scheme)}${placeholder}"` });
    }
    return true;
  }

  /** Secrets inside a string. */
  #string(start: number, end: number): void {
    const raw = this.#bytes.subarray(start + 1, end - 1);
    const { bytes, at } = raw.length <= MAX_UNESCAPED_BYTES ? unescapeString(raw) : { bytes: raw, at: null };
    const found = this.#search
      .inside(bytes)
      .map((edit) => ({ ...edit, text: JSON.stringify(edit.text).slice(1, -1) }));
    addEdits(
      this.#edits,
      movedBy(found, (i) => start + 1 + (at === null ? i : (at[i] ?? 0))),
    );
  }

  #hasSign(start: number, end: number): boolean {
    const signs = this.#signs;
    while ((signs[this.#sign]?.at ?? Number.POSITIVE_INFINITY) < start) this.#sign += 1;
    return (signs[this.#sign]?.at ?? Number.POSITIVE_INFINITY) < end;
  }
}

function placeOf(outer: string | null, name: string): string | null {
  if (outer === null) return null;
  if (outer === '') return name;
  return outer === 'params' || outer === 'params._meta' ? `${outer}.${name}` : null;
}

/** Secrets in a text that is no JSON: shapes, assignments to secret names (`PASSWORD=…`), base64 that hides such. */

/** What is searched around a sign at first, and again four times as much where a secret reaches to its end. */
const BEFORE = 512;

const AFTER = 8192;

/** So much without a space may be a secret that has its telling end further on. */
const LONG_TOKEN = 4096;

const MAX_TOKEN = 256 * 1024;

const LONG_TOKEN_AT_END = /^[\w.+/=%-]{4096}$/;

/** Longer base64 is an image, not a credential. */
const MAX_BASE64 = 64 * 1024;

/** Undoing the escapes of more takes too much memory. */
const MAX_UNESCAPED_BYTES = 8 * 1024 * 1024;

const PLACEHOLDER = /\[redacted:[a-z0-9-]+:[0-9a-f]{12}\]|\bmasked-[0-9a-f]{12}\b/g;

/**
 * Name, `=` or `:` with quotes around it, value. The quotes may be escaped, as in a log of JSON.
 */
const ASSIGNMENT =
  /(?<![A-Za-z0-9_])([A-Za-z_][\w.-]{1,63})(?:\\{0,16}["'])?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}(?:(\\{0,16})"((?:(?!\\{0,16}").){1,4096})\2"|'([^'\r\n]{1,4096})'|(?:\\{0,16}["'])?((?:(?:bearer|basic|token) +)?[^\s"'`,;&<>\\(){}[\]]{2,4096}))/dgi;

export function textEdits(bytes: Buffer, search: Search): Edit[] {
  const signs = search.signs.find(bytes);
  if (signs.length === 0 && !search.isThorough) return [];
  if (bytes.length <= MAX_UNESCAPED_BYTES && signs.some(({ kind }) => kind === 'escape')) {
    const { bytes: text, at } = unescapeLoosely(bytes);
    if (at !== null)
      return movedBy(plainEdits(text, search.signs.find(text), search), (i) => at[i] ?? bytes.length);
  }
  return plainEdits(bytes, signs, search);
}

function plainEdits(bytes: Buffer, signs: readonly Sign[], search: Search): Edit[] {
  const edits: Edit[] = search.customEdits(bytes);
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
  search: Search,
): Edit[] {
  const to = Math.min(bytes.length, wanted);
  const text = bytes.toString('latin1', from, to);
  const edits: Edit[] = [];
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

function shapes(text: string, from: number, { id, pattern }: ShapeRule, search: Search): Edit[] {
  return [...text.matchAll(pattern)].map(({ indices = [] }) => {
    const [whole, ...groups] = indices;
    const [start, end] = groups.find((group) => group !== undefined) ?? whole ?? [0, 0];
    return search.edit(id, from + start, from + end, text.slice(start, end));
  });
}

function assignments(bytes: Buffer, from: number, to: number, search: Search): Edit[] {
  if (!search.isOn('secret-value')) return [];
  const edits: Edit[] = [];
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

function allBase64Edits(bytes: Buffer, signs: readonly Sign[], search: Search): Edit[] {
  const edits: Edit[] = [];
  let searched = 0;
  for (const { at, kind } of signs) {
    if (kind !== 'base64' || at < searched || search.depth >= MAX_DEPTH) continue;
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

/** Rules that people add: `--redact-rule 'id=/pattern/flags'`. */

type CustomRule = { id: string; pattern: RegExp };

const FORM = /^([a-z][a-z0-9-]{0,39})=\/(.*)\/([a-z]*)$/s;

const FLAGS = /^[imsu]*$/;

/** Throws `TapedeckError` `usage`. What a group of the pattern matched is replaced, else all that it matched. */
export function readCustomRule(text: string): CustomRule {
  const [, id, source, flags = ''] = FORM.exec(text) ?? [];
  if (id === undefined || source === undefined || source === '')
    throw wrong(
      text,
      'expected id=/pattern/flags, the id of small letters, digits and hyphens, as in ticket=/TCK-\\d{8}/i',
    );
  if (!FLAGS.test(flags)) throw wrong(text, `expected some of the flags i, m, s, u, got \`${flags}\``);
  const offset = id.length + 2;
  const nested = nestedRepeat(source);
  if (nested !== null)
    throw wrong(
      text,
      `at character ${offset + nested + 1}: a repeated group that repeats inside, like (a+)+, may take for ever`,
    );
  try {
    const pattern = new RegExp(source, `dg${flags}`);
    if (new RegExp(`(?:${source})`).test('')) throw wrong(text, 'it matches the empty text');
    return { id, pattern };
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    const [, reason = 'it is no pattern'] = /: ([^:]*)$/.exec((error as Error).message) ?? [];
    throw wrong(text, `at character ${offset + validLength(source) + 1}: ${reason.toLowerCase()}`);
  }
}

function wrong(text: string, why: string): TapedeckError {
  return new TapedeckError('usage', `--redact-rule ${text}: ${why}.`);
}

/** How much of a pattern is one by itself. */
function validLength(source: string): number {
  for (let length = source.length; length > 0; length -= 1) {
    try {
      new RegExp(source.slice(0, length));
      return length;
    } catch {}
  }
  return 0;
}

/** Where a group with an unbounded repeat in it is repeated without bound itself; null where none is. */
function nestedRepeat(source: string): number | null {
  const groups: { start: number; repeats: boolean }[] = [];
  const bare = source.replaceAll(/\\.|\[(?:\\.|[^\]])*\]/gs, (part) => 'x'.padEnd(part.length, '_'));
  for (const { index, 0: token } of bare.matchAll(
    /\((?:\?(?:[:=!]|<[=!]|<\w+>))?|\)?(?:[*+]|\{\d+,\})|\)/g,
  )) {
    const repeats = /[*+}]$/.test(token);
    if (token.startsWith('(')) groups.push({ start: index, repeats: false });
    else if (token.startsWith(')')) {
      const group = groups.pop();
      if (repeats && group?.repeats) return group.start;
      const outer = groups.at(-1);
      if (outer !== undefined) outer.repeats ||= repeats || (group?.repeats ?? false);
    } else {
      const outer = groups.at(-1);
      if (outer !== undefined) outer.repeats = true;
    }
  }
  return null;
}

function customEdits(rules: readonly CustomRule[], bytes: Buffer, search: Search): Edit[] {
  if (rules.length === 0) return [];
  const isText = isUtf8(bytes);
  const text = bytes.toString(isText ? 'utf8' : 'latin1');
  const offsetOf =
    !isText || isAscii(bytes) ? (i: number) => i : (i: number) => Buffer.byteLength(text.slice(0, i));
  return rules.flatMap(({ id, pattern }) =>
    [...text.matchAll(pattern)].flatMap(({ indices = [] }) => {
      const [whole, ...groups] = indices;
      const [start, end] = groups.find((group) => group !== undefined) ?? whole ?? [0, 0];
      return start === end ? [] : [search.edit(id, offsetOf(start), offsetOf(end), text.slice(start, end))];
    }),
  );
}

/** Secrets that a text breaks off in: too short for their rule, and a part of them all the same. */

/** How far back from the end a secret is looked for that has no end itself. */
const LAST_BYTES = 8192;

/** From a name on to the end of the text: its value, the quotation still open. */
const OPEN_VALUE = /^[\w.-]*(?:\\*["'])?[ \t]{0,3}(?:=>|[:=])[ \t]{0,3}(?:\\*["'])?([^"'\r\n]+)$/d;

const OPEN_TOKEN = /^[^\s"'<>,;]+$/;

const BASE64_BEFORE = /[A-Za-z0-9+/_-]*$/;

/** `edits`: what was found by the rules. */
export function cutEdits(bytes: Buffer, edits: readonly Edit[], search: Search): Edit[] {
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
