/** Makes texts for the keywords `pattern` and `format` of JSON Schema. */

/** Gives a whole number from 0 to below `below`. */
export type Draw = (below: number) => number;

/** Longer texts are not made, nor are patterns read that nest more deeply. */
const MAX_CHARS = 20_000;

const MAX_DEPTH = 50;

/** Where a pattern sets no upper limit, at most so many more than it asks for are drawn. */
const MORE = 3;

const CLASSES: Record<string, string> = {
  d: '0-9',
  w: 'A-Za-z0-9_',
  s: ' ',
  D: 'a-z',
  W: '!. -',
  S: 'a-z0-9',
};

const CONTROLS: Record<string, string> = { t: '\t', n: '\n', r: '\r', f: '\f', v: '\v', '0': '\0' };

/** By the first letter of a property: letters, digits, punctuation, symbols, separators, marks. */
const PROPERTIES: Record<string, string> = { L: 'a-z', N: '0-9', P: '!,.', S: '+=', Z: ' ', M: '\u0301' };

const SCRIPTS: Record<string, string> = { Latin: 'a-z', Greek: 'α-ω', Cyrillic: 'а-я', Han: '一-丐' };

/** What stands for “any but these”, the first that is none of them. */
const OTHERS =
  'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:;!?/@#$%&*+=~^|<>(){}[]\'"\\`éß€';

class Unreadable extends Error {}

/**
 * A text that a regular expression of ECMA-262 should match, made by reading the pattern. The pattern is never run, so none takes
 * long. What a text must not be (lookaheads, word boundaries) is not looked at: who needs to be sure asks a validator afterwards.
 *
 * Null for a pattern that is not understood, or whose texts are too long. `atLeast`: how many characters more than needed may
 * be in each part of a pattern that has no upper limit.
 */
export function textOfPattern(pattern: string, draw: Draw, atLeast = 0): string | null {
  try {
    return new PatternReader(pattern, draw, atLeast).text();
  } catch (error) {
    if (error instanceof Unreadable) return null;
    throw error;
  }
}

class PatternReader {
  readonly #pattern: string[];
  readonly #draw: Draw;
  readonly #more: number;
  readonly #groups = new Map<string, string>();
  #at = 0;
  #count = 0;
  #made = 0;

  constructor(pattern: string, draw: Draw, more: number) {
    this.#pattern = [...pattern];
    this.#draw = draw;
    this.#more = more;
  }

  text(): string {
    const text = this.#alternatives(0);
    if (this.#at < this.#pattern.length) throw new Unreadable();
    return text;
  }

  /** All alternatives are read, and one is taken. */
  #alternatives(depth: number): string {
    if (depth > MAX_DEPTH) throw new Unreadable();
    const texts = [this.#sequence(depth)];
    while (this.#take('|')) texts.push(this.#sequence(depth));
    return texts[this.#draw(texts.length)] ?? '';
  }

  #sequence(depth: number): string {
    let text = '';
    while (this.#at < this.#pattern.length && !this.#isNext('|') && !this.#isNext(')'))
      text += this.#quantified(depth);
    return text;
  }

  #quantified(depth: number): string {
    const [start, count] = [this.#at, this.#count];
    const first = this.#atom(depth);
    const { least, most } = this.#quantifier();
    const end = this.#at;
    const drawn = least + this.#draw(Math.min(most - least, MORE) + 1);
    const wanted = Math.min(most, Math.max(drawn, least + this.#more));
    let text = wanted === 0 ? '' : first;
    // Each time anew, so that not all are alike.
    for (let n = 1; n < wanted; n += 1) {
      [this.#at, this.#count] = [start, count];
      text += this.#atom(depth);
      this.#spend();
    }
    this.#at = end;
    return text;
  }

  #quantifier(): { least: number; most: number } {
    const found = this.#bounds();
    if (found !== null) this.#take('?');
    return found ?? { least: 1, most: 1 };
  }

  #bounds(): { least: number; most: number } | null {
    if (this.#take('*')) return { least: 0, most: MAX_CHARS };
    if (this.#take('+')) return { least: 1, most: MAX_CHARS };
    if (this.#take('?')) return { least: 0, most: 1 };
    if (!this.#isNext('{')) return null;
    const [whole, least, comma, most] = /^\{(\d{1,9})(,?)(\d{0,9})\}/.exec(this.#rest(24)) ?? [];
    if (whole === undefined) return null;
    this.#at += whole.length;
    const upper = comma === '' ? Number(least) : most === '' ? MAX_CHARS : Number(most);
    if (Number(least) > MAX_CHARS) throw new Unreadable();
    return { least: Number(least), most: Math.max(Number(least), upper) };
  }

  #atom(depth: number): string {
    const char = this.#next();
    if (char === '^' || char === '$') return '';
    if (char === '.') return this.#oneOf('a-z');
    if (char === '(') return this.#group(depth);
    if (char === '[') return this.#class();
    if (char === '\\') return this.#escape();
    return this.#one(char);
  }

  #group(depth: number): string {
    const [opening] = /^\?(?:[:=!]|<[=!]|<([^>]{1,100})>)/.exec(this.#rest(110)) ?? [];
    if (opening === undefined && this.#isNext('?')) throw new Unreadable();
    this.#at += [...(opening ?? '')].length;
    const isLook = opening !== undefined && /[=!]$/.test(opening);
    const isKept = opening === undefined || opening.endsWith('>');
    if (isKept) this.#count += 1;
    const number = this.#count;
    const text = this.#alternatives(depth + 1);
    if (!this.#take(')')) throw new Unreadable();
    if (isKept) this.#groups.set(String(number), text);
    if (isKept && opening !== undefined) this.#groups.set(opening.slice(2, -1), text);
    return isLook ? '' : text;
  }

  #escape(): string {
    const char = this.#next();
    if (char === 'b' || char === 'B') return '';
    if (char === 'k') {
      const [whole, name = ''] = /^<([^>]{1,100})>/.exec(this.#rest(110)) ?? [''];
      this.#at += [...whole].length;
      return this.#groups.get(name) ?? '';
    }
    if (/[1-9]/.test(char)) return this.#groups.get(char) ?? '';
    const known = CLASSES[char] ?? this.#property(char);
    return known === null ? this.#one(this.#escaped(char)) : this.#oneOf(known);
  }

  /** A character by its number or its letter; any other stands for itself. */
  #escaped(char: string): string {
    if (char === 'c') return String.fromCharCode((this.#next().codePointAt(0) ?? 0) % 32);
    const forms: Record<string, RegExp> = {
      x: /^([0-9a-fA-F]{2})/,
      u: /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))/,
    };
    const [whole, braced, plain] = forms[char]?.exec(this.#rest(9)) ?? [];
    if (whole === undefined) return CONTROLS[char] ?? char;
    this.#at += whole.length;
    const code = Number.parseInt(braced ?? plain ?? '0', 16);
    if (code > 0x10ffff) throw new Unreadable();
    return String.fromCodePoint(code);
  }

  #property(char: string): string | null {
    if (char !== 'p' && char !== 'P') return null;
    const [whole, name = ''] = /^\{([\w=]{1,60})\}/.exec(this.#rest(64)) ?? [];
    if (whole === undefined) return null;
    this.#at += whole.length;
    const [, value = name] = name.split('=');
    if (char === 'P') return value.startsWith('L') ? '0-9' : 'a-z';
    if (value === 'Lu' || value === 'Uppercase') return 'A-Z';
    return SCRIPTS[value] ?? PROPERTIES[value[0] ?? ''] ?? 'a-z';
  }

  #class(): string {
    const isNegated = this.#take('^');
    const ranges: [number, number][] = [];
    while (!this.#isNext(']')) {
      const first = this.#classPart();
      const isRange = this.#isNext('-') && this.#pattern[this.#at + 1] !== ']';
      if (first.length > 1 || !isRange) {
        ranges.push(...first);
        continue;
      }
      this.#at += 1;
      const [to] = this.#classPart();
      ranges.push([first[0]?.[0] ?? 0, to?.[1] ?? 0]);
    }
    this.#at += 1;
    return isNegated ? this.#outside(ranges) : this.#inside(ranges);
  }

  #classPart(): [number, number][] {
    const char = this.#next();
    if (char !== '\\') return [[codeOf(char), codeOf(char)]];
    const escaped = this.#next();
    if (escaped === 'b') return [[8, 8]];
    const known = CLASSES[escaped] ?? this.#property(escaped);
    if (known !== null) return rangesIn(known);
    const code = codeOf(this.#escaped(escaped));
    return [[code, code]];
  }

  #oneOf(ranges: string): string {
    return this.#inside(rangesIn(ranges));
  }

  #inside(ranges: readonly [number, number][]): string {
    const [from, to] = ranges[this.#draw(ranges.length)] ?? [0, -1];
    if (to < from) throw new Unreadable();
    return this.#one(String.fromCodePoint(from + this.#draw(to - from + 1)));
  }

  #outside(ranges: readonly [number, number][]): string {
    const others = [...OTHERS].filter(
      (char) => !ranges.some(([from, to]) => from <= codeOf(char) && codeOf(char) <= to),
    );
    if (others.length === 0) throw new Unreadable();
    return this.#one(others[this.#draw(Math.min(others.length, 26))] ?? '');
  }

  #one(char: string): string {
    this.#spend();
    return char;
  }

  #spend(): void {
    this.#made += 1;
    if (this.#made > MAX_CHARS) throw new Unreadable();
  }

  #next(): string {
    const char = this.#pattern[this.#at];
    if (char === undefined) throw new Unreadable();
    this.#at += 1;
    return char;
  }

  #isNext(char: string): boolean {
    return this.#pattern[this.#at] === char;
  }

  #take(char: string): boolean {
    const is = this.#isNext(char);
    if (is) this.#at += 1;
    return is;
  }

  #rest(chars: number): string {
    return this.#pattern.slice(this.#at, this.#at + chars).join('');
  }
}

/** Of a list of characters and ranges, such as `a-z0-9_`. A dash that stands first is itself. */
function rangesIn(text: string): [number, number][] {
  return Array.from(text.matchAll(/(.)-(.)|(.)/gsu), ([, from, to, one]) =>
    one === undefined ? [codeOf(from ?? ''), codeOf(to ?? '')] : [codeOf(one), codeOf(one)],
  );
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}

/** A text of a format of JSON Schema 2020-12 (Validation, section 7.3); null for any other. Hosts are those of RFC 2606. */
export function textOfFormat(format: string, draw: Draw): string | null {
  const number = draw(1000);
  const two = (below: number) => String(draw(below)).padStart(2, '0');
  const date = `2026-${String(1 + draw(12)).padStart(2, '0')}-${String(1 + draw(28)).padStart(2, '0')}`;
  const time = `${two(24)}:${two(60)}:${two(60)}Z`;
  const hex = (digits: number) => Array.from({ length: digits }, () => draw(16).toString(16)).join('');
  const texts: Record<string, string> = {
    'date-time': `${date}T${time}`,
    date,
    time,
    duration: `PT${number}S`,
    email: `invented-${number}@example.com`,
    'idn-email': `invented-${number}@example.com`,
    hostname: `invented-${number}.example.com`,
    'idn-hostname': `invented-${number}.example.com`,
    // RFC 5737 and RFC 3849: addresses for examples.
    ipv4: `192.0.2.${draw(256)}`,
    ipv6: `2001:db8::${draw(0xffff).toString(16)}`,
    uri: `https://example.com/invented/${number}`,
    'uri-reference': `/invented/${number}`,
    iri: `https://example.com/invented/${number}`,
    'iri-reference': `/invented/${number}`,
    'uri-template': `https://example.com/invented/{id}`,
    url: `https://example.com/invented/${number}`,
    uuid: `${hex(8)}-${hex(4)}-4${hex(3)}-8${hex(3)}-${hex(12)}`,
    'json-pointer': `/invented/${number}`,
    'relative-json-pointer': `0/invented/${number}`,
    regex: `^invented-${number}$`,
    byte: 'aW52ZW50ZWQ=',
  };
  return Object.hasOwn(texts, format) ? (texts[format] ?? null) : null;
}
