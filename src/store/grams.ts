/**
 * Texts in terms of the search index, which knows of each frame which three characters follow one another somewhere. A
 * frame that has a text has all the grams of that text; one that has all grams need not have the text.
 */
import { foldCase } from '../protocol/fold-case.ts';

/** What a frame must hold to come into question. */
export type Wanted = { type: 'text'; text: string } | { type: 'and' | 'or'; parts: readonly Wanted[] };

/** Characters of a gram, as FTS5's tokenizer `trigram` makes them. */
const GRAM = 3;
/** More grams of one text hardly leave fewer frames. */
const MAX_GRAMS = 24;
/** A short text begins so many grams at most; a shorter one stands in most frames anyway. */
const MAX_BEGUN = 400;

/** As a text is put into the index. Its end is padded, so that its last characters begin grams too. */
export function gramText(text: string): string {
  // FTS5 stops reading at a NUL.
  return `${foldCase(text).replaceAll('\0', ' ')}  `;
}

/**
 * A query in FTS5's language for frames that may hold what is wanted; null where the index does not help.
 * `begunBy` gives the grams that begin with a text, at most `limit`.
 */
export function ftsQuery(
  wanted: Wanted,
  begunBy: (text: string, limit: number) => readonly string[],
): string | null {
  if (wanted.type === 'text') return textQuery(wanted.text, begunBy);
  const parts = wanted.parts.map((part) => ftsQuery(part, begunBy));
  const known = parts.filter((part) => part !== null);
  if (known.length === 0 || (wanted.type === 'or' && known.length < parts.length)) return null;
  return `(${known.join(wanted.type === 'and' ? ' AND ' : ' OR ')})`;
}

function textQuery(text: string, begunBy: (text: string, limit: number) => readonly string[]): string | null {
  const characters = [...foldCase(text).replaceAll('\0', ' ')];
  if (characters.length >= GRAM) return joined(gramsOf(characters), 'AND');
  if (characters.length === 0) return null;
  const begun = begunBy(characters.join(''), MAX_BEGUN + 1);
  return begun.length > MAX_BEGUN ? null : joined(begun, 'OR');
}

function gramsOf(characters: readonly string[]): string[] {
  const grams = new Set<string>();
  for (let at = 0; at + GRAM <= characters.length && grams.size < MAX_GRAMS; at += 1) {
    grams.add(characters.slice(at, at + GRAM).join(''));
  }
  return [...grams];
}

function joined(grams: readonly string[], operator: 'AND' | 'OR'): string {
  // No gram begins with the text: a query for what no frame has.
  if (grams.length === 0) return '"\u{10ffff}\u{10ffff}\u{10ffff}"';
  return `(${grams.map((gram) => `"${gram.replaceAll('"', '""')}"`).join(` ${operator} `)})`;
}
