/** Text for terminals. Recorded text is hostile: it is escaped (src/protocol/escape.ts) before it is measured, cut or shown. */
import stringWidth from 'string-width';

/** Text in which a character is a column, with our own ellipsis and arrows: by far the most, and quick to measure. */
const PLAIN = /^[\x20-\x7e…→←]*$/;

/** Columns that escaped text takes on a terminal. */
export function widthOf(text: string): number {
  return PLAIN.test(text) ? text.length : stringWidth(text);
}

/** Cuts escaped text to at most `width` columns, with an ellipsis where something is missing. */
export function clip(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? '' : `${takeColumns(text, width - 1)}…`;
}

/** The same, but keeps the end. */
export function clipStart(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let rest = PLAIN.test(text) ? text.slice(text.length - Math.max(0, width - 1)) : text;
  while (widthOf(rest) > width - 1 && rest !== '') rest = rest.slice(firstGrapheme(rest).length);
  return width < 1 ? '' : `…${rest}`;
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

function firstGrapheme(text: string): string {
  for (const { segment } of segmenter.segment(text.slice(0, 64))) return segment;
  return text;
}

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
