/** JSON as lines to compare: one value a line, indented, every character of a value as it was written. */
import { diffArrays } from 'diff';
import { createScanner } from 'jsonc-parser';

export type JsonLine = { depth: number; text: string };

/** What is no JSON becomes lines as well. */
function jsonLines(json: string): JsonLine[] {
  const lines: JsonLine[] = [];
  let depth = 0;
  let text = '';
  /** The last token has opened an object or an array. */
  let isFresh = false;
  const end = () => {
    if (text !== '') lines.push({ depth, text });
    text = '';
  };
  for (const token of tokensOf(json)) {
    const isClosing = token === '}' || token === ']';
    // Nothing stands between the brackets.
    if (isFresh && isClosing) depth -= 1;
    else if (isFresh) {
      depth -= 1;
      end();
      depth += 1;
    } else if (isClosing) {
      end();
      depth -= 1;
    }
    text += token === ':' ? ': ' : token;
    isFresh = token === '{' || token === '[';
    if (isFresh) depth += 1;
    if (token === ',') end();
  }
  end();
  return lines;
}

function* tokensOf(json: string): Generator<string> {
  const scanner = createScanner(json, true);
  for (;;) {
    scanner.scan();
    const [at, length] = [scanner.getTokenOffset(), scanner.getTokenLength()];
    if (at >= json.length || length === 0) return;
    yield json.slice(at, at + length);
  }
}

export type LinePair = { a: JsonLine | null; b: JsonLine | null; isEqual: boolean };

/** More lines are not laid side by side: that would take seconds. */
const MOST_LINES = 4000;

/** Equal lines that stay around a difference. */
const AROUND = 3;

/** The lines of two JSON texts, equal ones beside each other; null where there are too many. */
export function pairedLines(from: string, to: string): LinePair[] | null {
  const [a, b] = [jsonLines(from), jsonLines(to)];
  if (a.length + b.length > MOST_LINES) return null;
  const keyOf = ({ depth, text }: JsonLine) => `${depth} ${text.replace(/,$/, '')}`;
  const pairs: LinePair[] = [];
  let [at, bt] = [0, 0];
  let removed: JsonLine[] = [];
  let added: JsonLine[] = [];
  const flush = () => {
    for (let i = 0; i < Math.max(removed.length, added.length); i += 1)
      pairs.push({ a: removed[i] ?? null, b: added[i] ?? null, isEqual: false });
    [removed, added] = [[], []];
  };
  for (const change of diffArrays(a.map(keyOf), b.map(keyOf))) {
    const { length } = change.value;
    if (change.added) added.push(...b.slice(bt, bt + length));
    else if (change.removed) removed.push(...a.slice(at, at + length));
    else {
      flush();
      for (let i = 0; i < length; i += 1)
        pairs.push({ a: a[at + i] ?? null, b: b[bt + i] ?? null, isEqual: true });
    }
    if (!change.added) at += length;
    if (!change.removed) bt += length;
  }
  flush();
  return pairs;
}

/** Differences with some lines around them; a number is how many equal ones were left out there. */
export function piecesOf(pairs: readonly LinePair[]): (LinePair[] | number)[] {
  const near = new Set<number>();
  for (const [i, { isEqual }] of pairs.entries())
    if (!isEqual) for (let k = i - AROUND; k <= i + AROUND; k += 1) near.add(k);
  const pieces: (LinePair[] | number)[] = [];
  for (const [i, pair] of pairs.entries()) {
    const last = pieces.at(-1);
    if (near.has(i)) {
      if (Array.isArray(last)) last.push(pair);
      else pieces.push([pair]);
    } else if (typeof last === 'number') pieces[pieces.length - 1] = last + 1;
    else pieces.push(1);
  }
  return pieces;
}
