/**
 * Finds signs of secrets: places in some bytes where a secret could begin. Most traffic has none, and then nothing else is done
 * to it. So this is one pass over the bytes that looks at a third of them (the algorithm of Wu and Manber, with words of four
 * characters). Words that it finds are then compared with the literals they may belong to.
 *
 * Every secret that a rule finds has a sign at its beginning, or before it where its name tells it: bytes without a sign hold
 * no secret. A sign alone is not yet a secret.
 */

import { NAME_PIECES, NAMES_IN_BASE64, secretName } from './names.ts';
import type { ShapeRule } from './shapes.ts';

/**
 * `at`: where it stands. `rule`: the shape it may begin; null for the others. `headers`: the name of a member that holds headers.
 * `escape`: a letter or digit written as `\u0041`, behind which any secret may hide, or a URL's slashes.
 */
export type Sign = {
  at: number;
  kind: 'shape' | 'name' | 'headers' | 'base64' | 'escape';
  rule: ShapeRule | null;
};

export type SignFinder = {
  /** All signs, in order. */
  find(bytes: Uint8Array): Sign[];
  /** Whether there is any. */
  has(bytes: Uint8Array): boolean;
};

/** What a word stands for: a literal, and how many characters of it come before the word. */
type Meaning = { literal: string; before: number; kind: Sign['kind']; rule: ShapeRule | null };

const WORD = 4;

/** Of a character, for the tables: words are ASCII, and what only looks like one is told from it later. */
const BITS = 7;

const MASK = 0x7f;

const HASH_BITS = 14;

const MAX_NAME_SIDE = 64;

/** A property list has names in elements: `<key>password</key><string>…</string>`. */
const END_OF_KEY = '</key>';

export function createSignFinder(rules: readonly ShapeRule[], withNames: boolean): SignFinder {
  const shifts = new Uint8Array(1 << (2 * BITS)).fill(WORD - 1);
  const meanings = new Map<number, Meaning[]>();
  /** Whether a word with this hash may be among them. Mostly there is none, so this must be fast. */
  const known = new Uint8Array(1 << HASH_BITS);

  function add(word: string, meaning: Meaning): void {
    let code = word.charCodeAt(0);
    for (let i = 1; i < WORD; i += 1) {
      const pair = (word.charCodeAt(i - 1) << BITS) | word.charCodeAt(i);
      shifts[pair] = Math.min(shifts[pair] ?? 0, WORD - 1 - i);
      code = (code << BITS) | word.charCodeAt(i);
    }
    known[hashOf(code)] = 1;
    const others = meanings.get(code);
    if (others === undefined) meanings.set(code, [meaning]);
    else others.push(meaning);
  }

  const inBase64 = new Set<string>();
  for (const rule of rules) {
    for (const literal of rule.anchors) {
      const before = bestWord(literal);
      add(literal.slice(before, before + WORD), { literal, before, kind: 'shape', rule });
      for (const word of base64Words(literal)) inBase64.add(word);
    }
  }
  if (withNames) {
    const words = new Set(NAME_PIECES.flatMap((piece) => casesOf(piece.slice(0, WORD))));
    for (const word of words) add(word, { literal: word, before: 0, kind: 'name', rule: null });
    for (const literal of ['headers', 'Headers', 'HEADERS'])
      add(literal.slice(0, WORD), { literal, before: 0, kind: 'headers', rule: null });
    for (const name of NAMES_IN_BASE64) for (const word of base64Words(name)) inBase64.add(word);
  }
  for (const word of inBase64) add(word, { literal: word, before: 0, kind: 'base64', rule: null });
  add(ESCAPED_URL.slice(0, WORD), { literal: ESCAPED_URL, before: 0, kind: 'escape', rule: null });
  for (const digit of '234567') {
    const literal = `u00${digit}`;
    add(literal, { literal, before: 0, kind: 'escape', rule: null });
  }

  /** Calls `onSign` for each; stops where it says so. */
  function search(bytes: Uint8Array, onSign: (sign: Sign) => boolean): void {
    const { length } = bytes;
    let i = WORD - 1;
    while (i < length) {
      const last = bytes[i] as number;
      const previous = bytes[i - 1] as number;
      const shift = shifts[((previous & MASK) << BITS) | (last & MASK)] as number;
      if (shift > 0) {
        i += shift;
        continue;
      }
      const first = (((bytes[i - 3] as number) & MASK) << BITS) | ((bytes[i - 2] as number) & MASK);
      const code = (((first << BITS) | (previous & MASK)) << BITS) | (last & MASK);
      i += 1;
      if (known[hashOf(code)] === 0) continue;
      for (const meaning of meanings.get(code) ?? NONE) {
        const sign = signAt(bytes, i - WORD, meaning);
        if (sign !== null && onSign(sign)) return;
      }
    }
  }

  function signAt(bytes: Uint8Array, wordAt: number, { literal, before, kind, rule }: Meaning): Sign | null {
    const at = wordAt - before;
    if (at < 0) return null;
    if (kind === 'name') return isSecretNameAt(bytes, at) ? { at, kind, rule } : null;
    if (!standsAt(bytes, at, literal)) return null;
    if (kind === 'headers') return areHeadersAfter(bytes, at + literal.length) ? { at, kind, rule } : null;
    if (kind === 'escape' && literal !== ESCAPED_URL)
      return bytes[at - 1] === BACKSLASH ? { at: at - 1, kind, rule } : null;
    const mayFollow = kind !== 'shape' || (rule?.mayFollow?.(bytes, at + literal.length) ?? true);
    return mayFollow ? { at, kind, rule } : null;
  }

  return {
    find(bytes) {
      const signs: Sign[] = [];
      search(bytes, (sign) => {
        signs.push(sign);
        return false;
      });
      return signs.sort((a, b) => a.at - b.at);
    },
    has(bytes) {
      let isFound = false;
      search(bytes, () => {
        isFound = true;
        return true;
      });
      return isFound;
    },
  };
}

function hashOf(code: number): number {
  return Math.imul(code, 0x9e3779b1) >>> (32 - HASH_BITS);
}

const BACKSLASH = 0x5c;

/** Some write `\/` for every slash. */
const ESCAPED_URL = ':\\/\\/';

const NONE: readonly Meaning[] = [];

function standsAt(bytes: Uint8Array, at: number, literal: string): boolean {
  for (let i = 0; i < literal.length; i += 1) if (bytes[at + i] !== literal.charCodeAt(i)) return false;
  return true;
}

/** Whether a literal stands there, as far as the bytes go. */
function mayStandAt(bytes: Uint8Array, at: number, literal: string): boolean {
  const there = Math.min(literal.length, bytes.length - at);
  return standsAt(bytes, at, literal.slice(0, there));
}

/** Whether the name that this is a piece of is a secret's. */
function isSecretNameAt(bytes: Uint8Array, at: number): boolean {
  const { start, end } = nameAround(bytes, at);
  if (!hasValueAfter(bytes, start, end)) return false;
  let name = '';
  for (let i = start; i < end; i += 1) name += String.fromCharCode(bytes[i] as number);
  return secretName(name) !== null;
}

/** Whether, as far as the bytes go, a name ends here whose value is an object or an array; its quotes may be escaped. */
function areHeadersAfter(bytes: Uint8Array, end: number): boolean {
  let hasColon = false;
  for (let i = end; i < end + MAX_NAME_SIDE; i += 1) {
    const byte = bytes[i];
    if (byte === undefined || (hasColon && (byte === OPEN_OBJECT || byte === OPEN_ARRAY))) return true;
    const isSpace = byte <= 0x20 || byte === BACKSLASH || (hasColon && (byte === LOW_N || byte === LOW_R));
    if (!isSpace && (hasColon || (byte !== 0x22 && byte !== COLON))) return false;
    hasColon ||= byte === COLON;
  }
  return false;
}

/**
 * As far as the bytes go, a value may follow: quotes and spaces, then `:` or `=`; `>` or a space after the name of an element or
 * of an option; `</key>` of a property list; or a quote and a comma after a name that is a value itself, as in
 * `{"name":"API_KEY","value":"…"}`.
 */
function hasValueAfter(bytes: Uint8Array, start: number, end: number): boolean {
  let isQuoted = false;
  for (let i = end; i < end + MAX_NAME_SIDE; i += 1) {
    const byte = bytes[i];
    if (byte === undefined || byte === COLON || byte === EQUALS) return true;
    const isSpace = byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
    if (i === end && byte === LESS) return bytes[start - 1] === MORE && mayStandAt(bytes, end, END_OF_KEY);
    if (i === end && (isSpace || byte === MORE)) {
      const before = bytes[start - 1];
      if (before === LESS || (before === COLON && byte === MORE)) return true;
      if (isSpace && bytes[start] === HYPHEN && bytes[start + 1] === HYPHEN) return true;
    }
    if (isQuoted && (byte === COMMA || byte === CLOSE_OBJECT)) return isMemberAt(bytes, start - 1);
    const isQuote = byte === 0x22 || byte === 0x27;
    if (!isQuote && !isSpace && byte !== BACKSLASH) return false;
    isQuoted ||= isQuote;
  }
  return true;
}

/** Whether a quote, escaped or not, opens the value of a member. */
function isMemberAt(bytes: Uint8Array, quote: number): boolean {
  let i = quote - 1;
  while (bytes[i] === BACKSLASH || bytes[i] === 0x20) i -= 1;
  return bytes[i] === COLON;
}

const PERCENT = 0x25;

/** `[`, `]`, `_`, `-` and `.` */
const ENCODED_SIGNS: readonly string[] = ['5B', '5D', '5F', '2D', '2E'].flatMap((code) => [
  `%${code}`,
  `%${code.toLowerCase()}`,
]);

const COLON = 0x3a;

const EQUALS = 0x3d;

const LESS = 0x3c;

const MORE = 0x3e;

const HYPHEN = 0x2d;

const COMMA = 0x2c;

const OPEN_OBJECT = 0x7b;

const CLOSE_OBJECT = 0x7d;

const OPEN_ARRAY = 0x5b;

/** Of escaped line ends. */
const LOW_N = 0x6e;

const LOW_R = 0x72;

/** The name that a position is in. */
function nameAround(bytes: Uint8Array, at: number): { start: number; end: number } {
  let start = at;
  let end = at;
  while (start > 0 && at - start < MAX_NAME_SIDE && isInName(bytes, start - 1)) start -= 1;
  while (end < bytes.length && end - at < MAX_NAME_SIDE && isInName(bytes, end)) end += 1;
  return { start, end };
}

/** A form may have the signs of a name encoded: `user%5Bapi%5Fkey%5D`. */
function isInName(bytes: Uint8Array, at: number): boolean {
  const byte = bytes[at];
  if (byte === undefined) return false;
  if (byte === PERCENT) return ENCODED_SIGNS.some((literal) => mayStandAt(bytes, at, literal));
  const isLetter = (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a;
  return isLetter || (byte >= 0x30 && byte <= 0x39) || byte === 0x5f || byte === 0x2d;
}

/** Where the four characters of a literal begin that are rarest in texts: no small letters, and all different. */
function bestWord(literal: string): number {
  let best = 0;
  let bestScore = -1;
  for (let i = 0; i + WORD <= literal.length; i += 1) {
    const score = new Set(literal.slice(i, i + WORD).replaceAll(/[a-z]/g, '')).size;
    if (score > bestScore) [best, bestScore] = [i, score];
  }
  return best;
}

/**
 * What of a text's base64 does not depend on what stands before it: one word for each of the three ways in which it can
 * fall on the groups of three bytes; in both alphabets.
 */
function base64Words(literal: string): string[] {
  const words = [0, 2, 3].map((from, before) => {
    const coded = Buffer.from('\0'.repeat(before) + literal).toString('base64');
    return coded.slice(from, from + WORD);
  });
  return [...new Set(words.flatMap((word) => [word, word.replaceAll('+', '-').replaceAll('/', '_')]))];
}

/** The ways in which a piece of a name is written: `apik`, `APIK`, `Apik`, `apiK`, `ApiK`. */
function casesOf(word: string): string[] {
  const capital = (text: string) => text.slice(0, 1).toUpperCase() + text.slice(1);
  const camel = word.slice(0, -1) + word.slice(-1).toUpperCase();
  return [word, word.toUpperCase(), capital(word), camel, capital(camel)];
}
