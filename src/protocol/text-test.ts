/**
 * What `~` means: a part of a text, whatever its case, or a regular expression. Patterns come from people and texts from
 * anywhere, so expressions run in RE2's engine: its time grows with the text, not with the pattern's cunning.
 */

import { compileRe2 } from './re2.ts';
import { foldCase } from './text.ts';

export type Pattern = { type: 'part'; text: string } | { type: 'regex'; source: string; flags: string };

export type TextTest = {
  /** Whether a text, or bytes in UTF-8, has it. */
  has(text: string | Buffer): boolean;
  /** Where it stands first. */
  find(text: string): { start: number; end: number } | null;
  /** Whether a text that comes in pieces has it. */
  begin(): PieceTest;
};

export type PieceTest = { feed(piece: Buffer): void; hasIt(): boolean };

/** How much of a text an expression is matched against; more would take seconds. */
const MAX_REGEX_BYTES = 16 * 1024 * 1024;

/** Throws `Error` with a reason in words for an expression that cannot be read. */
export function createTextTest(pattern: Pattern): TextTest {
  return pattern.type === 'part' ? partTest(foldCase(pattern.text)) : regexTest(pattern);
}

function partTest(part: string): TextTest {
  return {
    has: (text) => foldCase(typeof text === 'string' ? text : text.toString('utf8')).includes(part),
    find(text) {
      const folded = foldCase(text);
      const at = folded.indexOf(part);
      if (at < 0) return null;
      const isSameLength = folded.length === text.length;
      const start = isSameLength ? at : unfoldedLength(text, at);
      const end = isSameLength ? at + part.length : unfoldedLength(text, at + part.length);
      return { start, end };
    },
    begin() {
      const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
      let tail = '';
      let isFound = part === '';
      return {
        feed(piece) {
          if (isFound) return;
          const text = tail + foldCase(decoder.decode(piece, { stream: true }));
          isFound = text.includes(part);
          tail = text.slice(text.length - Math.min(text.length, part.length - 1));
        },
        hasIt: () => isFound,
      };
    },
  };
}

/** How much of a text folds to so many code units: a few characters fold to two. */
function unfoldedLength(text: string, foldedLength: number): number {
  let length = 0;
  let folded = 0;
  for (const character of text) {
    if (folded >= foldedLength) break;
    folded += foldCase(character).length;
    length += character.length;
  }
  return length;
}

function regexTest({ source, flags }: { source: string; flags: string }): TextTest {
  const regex = compileRe2(source, flags);
  const has = (text: string | Buffer) =>
    regex.test(typeof text === 'string' ? text : text.toString('utf8', 0, MAX_REGEX_BYTES));
  return {
    has,
    find(text) {
      const matcher = regex.matcher(text.slice(0, MAX_REGEX_BYTES));
      return matcher.find() ? { start: matcher.start(), end: matcher.end() } : null;
    },
    begin() {
      const pieces: Buffer[] = [];
      let bytes = 0;
      return {
        feed(piece) {
          if (bytes < MAX_REGEX_BYTES) pieces.push(piece);
          bytes += piece.length;
        },
        hasIt: () => has(Buffer.concat(pieces)),
      };
    },
  };
}
