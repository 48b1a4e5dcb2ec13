/** Text for terminals. Recorded text is hostile: it is escaped before it is measured, cut or shown. */
import stringWidth from 'string-width';

/** Text in which a character is a column, with our own ellipsis: by far the most, and quick to measure. */
const PLAIN = /^[\x20-\x7e…]*$/;
/** Control characters, format characters (direction marks, zero width), lone surrogates, line separators. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const SHORT: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Makes every character visible that could move the cursor, change colours, or reorder or hide text. */
export function escapeText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSAFE, escapeCharacter);
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return SHORT[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`);
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}

/** Columns that escaped text takes on a terminal. */
export function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text);
}

/** Cuts escaped text to at most `width` columns, with an ellipsis where something is missing. */
export function clip(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${takeColumns(text, width - 1)}…`;
}

/** Pads escaped text with spaces to `width` columns. */
export function pad(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - widthOf(text)));
}

/** Folds escaped text into lines of at most `width` columns, at most `maxLines` of them. */
export function fold(text: string, width: number, maxLines: number): { lines: string[]; rest: string } {
  const lines: string[] = [];
  let rest = text;
  while (rest.length > 0 && lines.length < maxLines) {
    // A line never needs more characters than this; cutting first keeps a long text from being measured whole.
    const some = rest.slice(0, width * 16);
    // Where not even one character fits, the fold must advance all the same.
    const line = takeColumns(some, width) || takeColumns(some, 2) || some;
    lines.push(line);
    rest = rest.slice(line.length);
  }
  return { lines, rest };
}

const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' });

/** The longest beginning of at most `width` columns. */
function takeColumns(text: string, width: number): string {
  if (PLAIN.test(text)) return text.slice(0, Math.max(0, width));
  let columns = 0;
  let end = 0;
  for (const { segment } of segmenter.segment(text)) {
    columns += stringWidth(segment);
    if (columns > width) break;
    end += segment.length;
  }
  return text.slice(0, end);
}
