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
import { isPlaceholder, isSecretValue, type SecretName, schemeLength, secretName } from './names.ts';
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

const LOW_V = 0x76;

/** No member that holds a name has a longer one itself, with its quotes. */
const MAX_NAMING = 16;

const MAX_NAMED = 128;

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

/**
 * An object or array that is being read. `place`: the names that lead here from the message, on its first levels. `kind`: what
 * its name, or a member that names its value, says of the values in it. `valueAt`: where the value of a pair stands, or -1.
 */
type Container = {
  isObject: boolean;
  count: number;
  paths: PathProgress;
  place: string | null;
  kind: SecretName | null;
  valueAt: number;
};

/** Members that hold the value of a secret whose name stands outside, or beside: `{"name":"API_KEY","value":"…"}`. */
const VALUE_NAME = /^(?:value|plain|plaintext|raw|current)$/i;

/** Members that hold such a name. */
const NAMING_NAME = /^(?:name|key|env|field|header|option|param|parameter|property|setting|var|variable)$/i;

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
    let i = this.#enter(start, this.#search.paths, this.#isMessage ? '' : null, null, null);
    while (this.#open.length > 0) i = this.#next(i);
    return this.#edits;
  }

  /** Reads a value that has no members, or enters it. `inside`: what its members' values then are. Returns where to go on. */
  #enter(
    at: number,
    paths: PathProgress,
    place: string | null,
    own: SecretName | null,
    inside: SecretName | null,
  ): number {
    const byte = this.#bytes[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      const isObject = byte === OPEN_OBJECT;
      this.#open.push({ isObject, count: 0, paths, place, kind: isObject ? own : inside, valueAt: -1 });
      return at + 1;
    }
    const end = skipScalar(this.#bytes, at);
    this.#scalar(at, end, own);
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
    const needsName =
      hasSign ||
      inner.kind !== null ||
      inner.paths.length > 0 ||
      inner.place !== null ||
      this.#search.isThorough;
    const name = needsName ? stringText(bytes, { start: i, end: keyEnd, type: 'string' }) : '';
    const place = placeOf(inner.place, name);
    if (place !== null && NEVER_REDACTED.has(place)) return skipValue(bytes, value);
    if (hasSign || this.#search.hasCustom) this.#string(i, keyEnd);
    const paths = followInto(inner.paths, name);
    if (paths === null) return this.#redact(value);
    this.#pair(inner, { start: i, end: keyEnd }, value);
    const own = name === '' ? null : this.#kindOf(name);
    const isValue = own === null && inner.kind !== null && VALUE_NAME.test(name);
    // Of one password an array tells something else, such as what is wrong with it.
    const inArray = own !== null && /s$/i.test(name) ? (own === 'password' ? 'secret' : 'token') : null;
    return this.#enter(value, paths, place, isValue ? inner.kind : own, inArray);
  }

  #kindOf(name: string): SecretName | null {
    return this.#search.isOAuth(name) ? 'password' : secretName(name);
  }

  /** Looks for a member that names the value in another one, which may stand before it. */
  #pair(inner: Container, key: { start: number; end: number }, value: number): void {
    const bytes = this.#bytes;
    const isShort = key.end - key.start < MAX_NAMING;
    const first = (bytes[key.start + 1] ?? 0) | 0x20;
    if (isShort && first === LOW_V && inner.valueAt < 0 && VALUE_NAME.test(nameAt(bytes, key)))
      inner.valueAt = value;
    if (!isShort || bytes[value] !== QUOTE || inner.kind !== null) return;
    if (!this.#hasSign(value, value + MAX_NAMED)) return;
    const end = skipScalar(bytes, value);
    if (!NAMING_NAME.test(nameAt(bytes, key))) return;
    const kind = secretName(nameAt(bytes, { start: value, end }));
    // Forms and translations have words in such pairs.
    inner.kind = kind === 'password' ? 'secret' : kind;
    if (inner.kind !== null && inner.valueAt >= 0) {
      const valueEnd = skipValue(bytes, inner.valueAt);
      this.#isSecret(inner.valueAt, valueEnd, inner.kind);
    }
  }

  #element(at: number, inner: Container): number {
    // A batch: each element is a message, and paths begin at messages.
    if (inner.place === '') return this.#enter(at, inner.paths, '', null, null);
    const paths = followInto(inner.paths, inner.count - 1);
    return paths === null ? this.#redact(at) : this.#enter(at, paths, null, inner.kind, null);
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

  #scalar(start: number, end: number, kind: SecretName | null): void {
    if (kind !== null && this.#isSecret(start, end, kind)) return;
    if (this.#bytes[start] !== QUOTE) return;
    if (this.#search.hasCustom || this.#search.isThorough || this.#hasSign(start, end))
      this.#string(start, end);
  }

  /** Replaces a value whose name says that it is a secret. */
  #isSecret(start: number, end: number, kind: SecretName): boolean {
    if (!this.#search.isOn('secret-value')) return false;
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

function nameAt(bytes: Buffer, { start, end }: { start: number; end: number }): string {
  return end - start > MAX_NAMED ? '' : stringText(bytes, { start, end, type: 'string' });
}

function placeOf(outer: string | null, name: string): string | null {
  if (outer === null) return null;
  if (outer === '') return name;
  return outer === 'params' || outer === 'params._meta' ? `${outer}.${name}` : null;
}
