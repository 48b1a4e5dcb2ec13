/**
 * Finds secrets in JSON: in its strings, under names that say so, and where a path leads. It replaces whole strings (for a path:
 * whole values) and pieces inside of strings only, so JSON stays JSON.
 */

import { followInto, type PathProgress } from '../json/path.ts';
import { skipKey, skipScalar, skipSpace, skipValue, stringText, typeAt } from '../json/read.ts';
import {
  addEdits,
  MAX_UNESCAPED_BYTES,
  movedBy,
  type Redaction,
  type TextSearch,
  unescapeString,
} from './edits.ts';
import { isPlaceholder, isSecretValue, schemeLength, secretName } from './names.ts';
import type { Sign } from './signs.ts';

export type JsonSearch = TextSearch & {
  hasCustom: boolean;
  /** Where the values stand that are replaced wholly, whatever they are. */
  paths: PathProgress;
};

const QUOTE = 0x22;

const OPEN_OBJECT = 0x7b;

const OPEN_ARRAY = 0x5b;

const COMMA = 0x2c;

/**
 * What messages are told apart and put together by is never replaced, whatever it looks like: without it a recording could
 * neither be read nor replayed.
 */
const NEVER_REDACTED: ReadonlySet<string> = new Set([
  'jsonrpc',
  'id',
  'method',
  'params.progressToken',
  'params.requestId',
  'params._meta.progressToken',
  'params._meta.io.modelcontextprotocol/subscriptionId',
]);

/** An object or array that is being read. `place`: the names that lead here from the message, on its first levels. */
type Container = { isObject: boolean; count: number; paths: PathProgress; place: string | null };

/** The edits of JSON that stands at `start`, and has been checked to be some. */
export function jsonEdits(bytes: Buffer, start: number, search: JsonSearch, isMessage: boolean): Redaction[] {
  const signs = search.signs.find(bytes);
  if (signs.length === 0 && !search.isThorough) return [];
  return new Walk(bytes, signs, search, isMessage).from(start);
}

class Walk {
  readonly #bytes: Buffer;
  readonly #signs: readonly Sign[];
  readonly #search: JsonSearch;
  readonly #isMessage: boolean;
  readonly #edits: Redaction[] = [];
  readonly #open: Container[] = [];
  #sign = 0;

  constructor(bytes: Buffer, signs: readonly Sign[], search: JsonSearch, isMessage: boolean) {
    this.#bytes = bytes;
    this.#signs = signs;
    this.#search = search;
    this.#isMessage = isMessage;
  }

  from(start: number): Redaction[] {
    let i = this.#enter(start, this.#search.paths, this.#isMessage ? '' : null, '');
    while (this.#open.length > 0) i = this.#next(i);
    return this.#edits;
  }

  /** Reads a value that has no members, or enters it. Returns where to go on. */
  #enter(at: number, paths: PathProgress, place: string | null, name: string): number {
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
    const inner = this.#open.at(-1) as Container;
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
    if (place !== null && NEVER_REDACTED.has(place)) return skipValue(bytes, value);
    if (hasSign || this.#search.hasCustom) this.#string(i, keyEnd);
    const paths = followInto(inner.paths, name);
    return paths === null ? this.#redact(value) : this.#enter(value, paths, place, name);
  }

  #element(at: number, inner: Container): number {
    // A batch: each element is a message, and paths begin at messages.
    if (inner.place === '') return this.#enter(at, inner.paths, '', '');
    const paths = followInto(inner.paths, inner.count - 1);
    return paths === null ? this.#redact(at) : this.#enter(at, paths, null, '');
  }

  #redact(at: number): number {
    const end = skipValue(this.#bytes, at);
    const edit = this.#placeholderFor(at, end, 'path');
    if (!isPlaceholder(this.#bytes.toString('latin1', at + 1, end - 1))) this.#edits.push(edit);
    return end;
  }

  /** A value of any type becomes a string. */
  #placeholderFor(start: number, end: number, rule: string): Redaction {
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
    const edit = this.#placeholderFor(start, end, 'secret-value');
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
