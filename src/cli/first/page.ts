/** A page of the documentation as text for a terminal: what its Markdown means, without the marks. Knows what our pages use. */

import { type Colors, fold, pad, widthOf } from '../../inspect/view/text.ts';

/** The lines of a page, each of at most `width` columns, but for what is to be copied: that stays as it is. */
export function* pageLines(markdown: string, width: number, colors: Colors): Generator<string> {
  const text = markdown.replaceAll(/^<picture>.*?^<\/picture>\n+/gms, '');
  for (const block of blocksIn(text)) yield* blockLines(block, width, colors);
}

/** Lines that belong together, without the empty ones between. */
function* blocksIn(text: string): Generator<string[]> {
  let block: string[] = [];
  let isCode = false;
  for (const line of text.split('\n')) {
    const isFence = line.startsWith('```');
    if (!isCode && (line === '' || isFence || line.startsWith('#')) && block.length > 0) {
      yield block;
      block = [];
    }
    if (isFence) isCode = !isCode;
    if (line !== '' || isCode) block.push(line);
    if (isFence && !isCode) {
      yield block;
      block = [];
    }
  }
  if (block.length > 0) yield block;
}

function* blockLines(block: readonly string[], width: number, colors: Colors): Generator<string> {
  const [first = ''] = block;
  const heading = /^(#+) (.*)$/.exec(first);
  if (heading !== null) {
    const [, marks = '', title = ''] = heading;
    yield* [colors.bold(marks.length === 1 ? plain(title).toUpperCase() : plain(title)), ''];
    if (block.length > 1) yield* blockLines(block.slice(1), width, colors);
    return;
  }
  if (first.startsWith('```')) yield* block.slice(1, -1).map((line) => `  ${line}`);
  else if (first.startsWith('|')) yield* tableLines(block, width);
  else for (const [mark, words] of itemsIn(block)) yield* hanging(mark, plain(words), width);
  yield '';
}

/** A paragraph is one item without a mark. */
function itemsIn(block: readonly string[]): [mark: string, words: string][] {
  const items: [string, string][] = [];
  for (const line of block) {
    const [, mark, words = ''] = /^( *(?:-|\d+\.) )(.*)$/.exec(line) ?? [];
    const last = items.at(-1);
    if (mark !== undefined) items.push([mark, words]);
    else if (last === undefined) items.push(['', line]);
    else last[1] += ` ${line.trim()}`;
  }
  return items;
}

/** Links become what they say, with the place where they lead if that can be gone to from a terminal. */
function plain(text: string): string {
  return text
    .replaceAll(/!?\[([^\]]*)\]\(([^)\s]*)\)/g, (_, words: string, target: string) => {
      const [, page] = /^([\w-]+)\.md(?:#|$)/.exec(target) ?? [];
      if (/^https?:/.test(target)) return `${words} (${target})`;
      return page === undefined ? words : `${words} (help ${page})`;
    })
    .replaceAll(/\*\*([^*]+)\*\*/g, '$1')
    .replaceAll('\\|', '|');
}

/** Of text beside a mark. Narrower columns cannot be read. */
const LEAST_WIDTH = 16;

/** Words in lines of at most `width` columns, behind a mark on the first of them, the others below its words. */
export function hanging(mark: string, words: string, width: number): string[] {
  const lines = wrapWords(words, Math.max(LEAST_WIDTH, width - widthOf(mark)));
  const gap = ' '.repeat(widthOf(mark));
  return lines.map((line, i) => `${i === 0 ? mark : gap}${line}`);
}

/** At least one line. A word that is wider than a line is cut. */
function wrapWords(text: string, width: number): string[] {
  const lines: string[] = [''];
  for (const word of text.split(/\s+/).flatMap((one) => fold(one, width, one.length).lines)) {
    const last = lines.at(-1) ?? '';
    if (last === '') lines[lines.length - 1] = word;
    else if (widthOf(last) + 1 + widthOf(word) <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const BETWEEN_COLUMNS = '  ';

function* tableLines(block: readonly string[], width: number): Generator<string> {
  const isRule = (line: string) => /^[|\s:-]+$/.test(line);
  const rows = block.filter((line) => !isRule(line)).map(cellsOf);
  const widths = columnWidths(rows, width);
  for (const [number, row] of rows.entries()) {
    const cells = widths.map((columns, i) => wrapWords(row[i] ?? '', columns));
    const height = Math.max(...cells.map(({ length }) => length));
    for (let i = 0; i < height; i += 1) {
      const line = cells.map((lines, column) => pad(lines[i] ?? '', widths[column] ?? 0));
      yield line.join(BETWEEN_COLUMNS).trimEnd();
    }
    if (number === 0) yield widths.map((columns) => '-'.repeat(columns)).join(BETWEEN_COLUMNS);
  }
}

function cellsOf(line: string): string[] {
  const inner = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return inner.split(/(?<!\\)\|/).map((cell) => plain(cell.trim()));
}

/** As wide as their cells, as long as there is room; the widest give way first. */
function columnWidths(rows: readonly (readonly string[])[], width: number): number[] {
  const count = Math.max(...rows.map(({ length }) => length));
  const widths = Array.from({ length: count }, (_, i) =>
    Math.max(1, ...rows.map((row) => widthOf(row[i] ?? ''))),
  );
  const room = width - BETWEEN_COLUMNS.length * (count - 1);
  const total = () => widths.reduce((sum, one) => sum + one, 0);
  for (let widest = Math.max(...widths); total() > room && widest > 1; widest = Math.max(...widths))
    widths[widths.indexOf(widest)] = widest - 1;
  return widths;
}
