/**
 * The members of a JSON object that people may have written by hand: read by name and type. Members that nobody knows are
 * refused, because a misspelt name must not pass for a missing one.
 */
import {
  eachElement,
  eachMember,
  type Span,
  skipSpace,
  sourceText,
  stringText,
} from '../../protocol/json/read.ts';

/** A line that cannot be read. Its message says what was expected and what was there. */
export class BadLine extends Error {
  override name = 'BadLine';
}

/** The file was written by a newer program than this one knows. */
export class NewerFormat extends BadLine {}

export type Members = {
  /** Where the object stands: `the line`, or the member that it is the value of. */
  where: string;
  bytes: Buffer;
  has(name: string): boolean;
  /** A member of any type, `null` too. */
  span(name: string): Span | undefined;
  /** Each returns null if the member is missing or null, and throws `BadLine` if it is of another type. */
  text(name: string): string | null;
  number(name: string): number | null;
  /** A whole number that is not negative. */
  count(name: string): number | null;
  flag(name: string): boolean | null;
  object(name: string): Members | null;
  texts(name: string): string[] | null;
  /** An array of [name, value] as name, value, name, value … */
  pairs(name: string): string[] | null;
  objects(name: string): Members[] | null;
  /** The value, if it is one of those. */
  oneOf<T extends string>(name: string, values: Readonly<Record<T, unknown>>): T | null;
  /** All names in their order. */
  names(): string[];
  /** Throws `BadLine` for a member of another name. */
  only(...names: readonly string[]): void;
};

/** The value of a member that must be there. Throws `BadLine` where it is not. */
export function required<T>({ where }: Members, name: string, value: T | null): T {
  if (value === null) throw new BadLine(`expected \`${name}\` in ${where}, got none`);
  return value;
}

/** Reads a line that is one JSON object. */
export function readLine(line: Buffer): Members {
  const start = skipSpace(line, 0);
  if (line[start] !== 0x7b) throw new BadLine(`expected a JSON object, got ${shown(line, start)}`);
  const members = collect(line, start, 'the line');
  const end = skipSpace(line, members.end);
  if (end < line.length) throw new BadLine(`expected the end of the line, got ${shown(line, end)}`);
  return members.object;
}

/** The object that starts at byte `start`; messages call it `where`. */
export function readObject(bytes: Buffer, start: number, where: string): Members {
  return collect(bytes, start, where).object;
}

function collect(bytes: Buffer, start: number, where: string): { object: Members; end: number } {
  const spans = new Map<string, Span>();
  let twice: string | null = null;
  const end = eachMember(bytes, start, (name, span) => {
    if (spans.has(name)) twice = name;
    spans.set(name, span);
  });
  if (end < 0) {
    const at = ~end;
    throw new BadLine(
      at >= bytes.length
        ? 'expected JSON, got a line that breaks off'
        : `expected JSON, got ${shown(bytes, at)} in column ${at + 1}`,
    );
  }
  if (twice !== null) throw new BadLine(`expected \`${twice}\` once in ${where}, got it twice`);
  return { object: createMembers(bytes, spans, where), end };
}

function createMembers(bytes: Buffer, spans: ReadonlyMap<string, Span>, where: string): Members {
  function typed(name: string, types: readonly Span['type'][], expected: string): Span | null {
    const found = spans.get(name);
    if (found === undefined || found.type === 'null') return null;
    if (!types.includes(found.type)) throw wrong(name, expected, found);
    return found;
  }

  function wrong(name: string, expected: string, found: Span): BadLine {
    return new BadLine(
      `expected ${expected} as \`${name}\` in ${where}, got ${shown(bytes, found.start, found.end)}`,
    );
  }

  function text(name: string): string | null {
    const found = typed(name, ['string'], 'a string');
    return found === null ? null : wellFormed(stringText(bytes, found), name);
  }

  function number(name: string): number | null {
    const found = typed(name, ['number'], 'a number');
    if (found === null) return null;
    const value = Number(sourceText(bytes, found));
    if (!Number.isFinite(value)) throw wrong(name, 'a finite number', found);
    return value;
  }

  function elements(name: string, expected: string): Span[] | null {
    const found = typed(name, ['array'], expected);
    if (found === null) return null;
    const all: Span[] = [];
    eachElement(bytes, found.start, (element) => all.push(element));
    return all;
  }

  function stringAt(name: string, element: Span, expected: string): string {
    if (element.type !== 'string') throw wrong(name, expected, element);
    return wellFormed(stringText(bytes, element), name);
  }

  function nested(name: string, found: Span): Members {
    return collect(bytes, found.start, `\`${name}\``).object;
  }

  return {
    where,
    bytes,
    has: (name) => spans.has(name),
    span: (name) => spans.get(name),
    text,
    number,
    count(name) {
      const value = number(name);
      const found = spans.get(name);
      if (value === null || found === undefined) return null;
      if (!Number.isSafeInteger(value) || value < 0) throw wrong(name, 'a whole number from 0 on', found);
      return value;
    },
    flag(name) {
      const found = typed(name, ['boolean'], 'true or false');
      return found === null ? null : sourceText(bytes, found) === 'true';
    },
    object(name) {
      const found = typed(name, ['object'], 'an object');
      return found === null ? null : nested(name, found);
    },
    texts(name) {
      const expected = 'an array of strings';
      return elements(name, expected)?.map((element) => stringAt(name, element, expected)) ?? null;
    },
    pairs(name) {
      const expected = 'an array of [name, value]';
      const found = elements(name, expected);
      return (
        found?.flatMap((pair) => {
          const two: string[] = [];
          if (pair.type !== 'array') throw wrong(name, expected, pair);
          eachElement(bytes, pair.start, (element) => two.push(stringAt(name, element, expected)));
          if (two.length !== 2) throw wrong(name, expected, pair);
          return two;
        }) ?? null
      );
    },
    objects(name) {
      const expected = 'an array of objects';
      return (
        elements(name, expected)?.map((element) => {
          if (element.type !== 'object') throw wrong(name, expected, element);
          return nested(name, element);
        }) ?? null
      );
    },
    oneOf<T extends string>(name: string, values: Readonly<Record<T, unknown>>): T | null {
      const value = text(name);
      if (value === null) return null;
      if (!Object.hasOwn(values, value)) {
        const known = Object.keys(values).map((one) => JSON.stringify(one));
        throw new BadLine(
          `expected ${known.join(' or ')} as \`${name}\` in ${where}, got ${JSON.stringify(value)}`,
        );
      }
      return value as T;
    },
    names: () => [...spans.keys()],
    only(...names) {
      const unknown = [...spans.keys()].find((name) => !names.includes(name));
      if (unknown === undefined) return;
      const known = names.map((name) => `\`${name}\``).join(', ');
      throw new BadLine(`unknown member ${JSON.stringify(unknown)} in ${where}: expected some of ${known}`);
    },
  };
}

const LONE_SURROGATE = /\p{Cs}/u;

/** Text that UTF-8 can hold. */
export function wellFormed(text: string, name: string): string {
  if (!LONE_SURROGATE.test(text)) return text;
  throw new BadLine(`expected text in \`${name}\`, got half of a surrogate pair, which no UTF-8 can hold`);
}

const SHOWN_BYTES = 40;

function shown(bytes: Buffer, start: number, end = bytes.length): string {
  if (start >= bytes.length) return 'nothing';
  const text = bytes.toString('utf8', start, Math.min(end, start + SHOWN_BYTES));
  // A cut character shows as U+FFFD; control characters must not reach the terminal.
  const visible = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return end - start > SHOWN_BYTES ? `${visible}…` : visible;
}
