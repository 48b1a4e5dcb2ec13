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
import {
  headerName,
  isHeadersName,
  isPlaceholder,
  isSecretValue,
  type SecretName,
  schemeLength,
  secretName,
} from './names.ts';
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

/** Headers: an object with one for each member, a list of pairs, or one pair of it. */
type Headers = 'members' | 'list' | 'pair';

/** What is known of a value before it is read, from its name and from what it stands in. */
type Known = {
  /** The names that lead here from the message, on its first levels. */
  place: string | null;
  /** What its name says of it, and of the value in it: `{"password":{"value":"…"}}`. */
  own: SecretName | null;
  /** The same of its elements. */
  inArray: SecretName | null;
  headers: Headers | null;
};

const NOTHING_KNOWN: Known = { place: null, own: null, inArray: null, headers: null };

const MESSAGE: Known = { ...NOTHING_KNOWN, place: '' };

/**
 * An object or array that is being read. `kind`: what its name, or a member that names its value, says of the values in it.
 * `valueAt`: where the value of a pair stands, or -1.
 */
type Container = {
  isObject: boolean;
  count: number;
  paths: PathProgress;
  place: string | null;
  kind: SecretName | null;
  headers: Headers | null;
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
    let i = this.#enter(start, this.#search.paths, this.#isMessage ? MESSAGE : NOTHING_KNOWN);
    while (this.#open.length > 0) i = this.#next(i);
    return this.#edits;
  }

  /** Reads a value that has no members, or enters it. Returns where to go on. */
  #enter(at: number, paths: PathProgress, { place, own, inArray, headers }: Known): number {
    const byte = this.#bytes[at];
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      const isObject = byte === OPEN_OBJECT;
      const kind = isObject ? own : inArray;
      const inner = isObject || headers === null ? headers : 'list';
      this.#open.push({ isObject, count: 0, paths, place, kind, headers: inner, valueAt: -1 });
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
      inner.headers === 'members' ||
      this.#search.isThorough;
    const name = needsName ? stringText(bytes, { start: i, end: keyEnd, type: 'string' }) : '';
    const place = placeOf(inner.place, name);
    if (place !== null && NEVER_REDACTED.has(place)) return skipValue(bytes, value);
    if (hasSign || this.#search.hasCustom) this.#string(i, keyEnd);
    const paths = followInto(inner.paths, name);
    if (paths === null) return this.#redact(value);
    this.#pair(inner, { start: i, end: keyEnd }, value);
    return this.#enter(value, paths, this.#known(inner, name, place));
  }

  #known(inner: Container, name: string, place: string | null): Known {
    if (name === '') return place === null ? NOTHING_KNOWN : { ...NOTHING_KNOWN, place };
    const own = this.#kindOf(name, inner.headers === 'members');
    const isValue = own === null && inner.kind !== null && VALUE_NAME.test(name);
    return {
      place,
      own: isValue ? inner.kind : own,
      inArray: own && inArrayOf(own, name, inner.headers),
      headers: isHeadersName(name) ? 'members' : null,
    };
  }

  #kindOf(name: string, isHeader: boolean): SecretName | null {
    if (this.#search.isOAuth(name)) return 'password';
    return isHeader ? headerName(name) : secretName(name);
  }

  /** Looks for a member that names the value in another one, which may stand before it. */
  #pair(inner: Container, key: { start: number; end: number }, value: number): void {
    const bytes = this.#bytes;
    const isShort = key.end - key.start < MAX_NAMING;
    const first = (bytes[key.start + 1] ?? 0) | 0x20;
    if (isShort && first === LOW_V && inner.valueAt < 0 && VALUE_NAME.test(nameAt(bytes, key)))
      inner.valueAt = value;
    if (!isShort || bytes[value] !== QUOTE || inner.kind !== null) return;
    const isHeader = inner.headers === 'pair';
    if (!isHeader && !this.#hasSign(value, value + MAX_NAMED)) return;
    const end = skipScalar(bytes, value);
    if (!NAMING_NAME.test(nameAt(bytes, key))) return;
    const named = nameAt(bytes, { start: value, end });
    const kind = isHeader ? headerName(named) : secretName(named);
    // Forms and translations have words in such pairs.
    inner.kind = kind === 'password' ? 'secret' : kind;
    if (inner.kind !== null && inner.valueAt >= 0) {
      const valueEnd = skipValue(bytes, inner.valueAt);
      this.#isSecret(inner.valueAt, valueEnd, inner.kind);
    }
  }

  #element(at: number, inner: Container): number {
    // A batch: each element is a message, and paths begin at messages.
    if (inner.place === '') return this.#enter(at, inner.paths, MESSAGE);
    const paths = followInto(inner.paths, inner.count - 1);
    if (paths === null) return this.#redact(at);
    const headers = inner.headers === 'list' ? 'pair' : null;
    return this.#enter(at, paths, { ...NOTHING_KNOWN, own: inner.kind, headers });
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

/** What the name of a list says of its elements. */
function inArrayOf(own: SecretName, name: string, headers: Headers | null): SecretName | null {
  // A header that came several times.
  if (headers === 'members') return own;
  // Of one password an array tells something else, such as what is wrong with it.
  if (!/s$/i.test(name)) return null;
  return own === 'password' ? 'secret' : 'token';
}

function nameAt(bytes: Buffer, { start, end }: { start: number; end: number }): string {
  return end - start > MAX_NAMED ? '' : stringText(bytes, { start, end, type: 'string' });
}

function placeOf(outer: string | null, name: string): string | null {
  if (outer === null) return null;
  if (outer === '') return name;
  return outer === 'params' || outer === 'params._meta' ? `${outer}.${name}` : null;
}
