/** Text for terminals. Recorded text is hostile: it is escaped (protocol/text.ts) before it is measured, cut or shown. */

import { createRequire } from 'node:module';
import pc from 'picocolors';

/** Text in which a character is a column, with our own ellipsis and arrows: by far the most, and quick to measure. */
const PLAIN = /^[\x20-\x7e…→←]*$/;

const PLAIN_START = /^[\x20-\x7e…→←]*/;

/** Columns that escaped text takes on a terminal. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  stringWidth ??= createRequire(import.meta.url)('string-width').default as (text: string) => number;
  return stringWidth(text);
}

/** Loaded with the first text that is not plain: that takes longer than many a command. */
let stringWidth: ((text: string) => number) | undefined;

/** Cuts escaped text to at most `width` columns, with an ellipsis where something is missing. */
export function clip(text: string, width: number): string {
  if (fits(text, width)) return text;
  return width < 1 ? '' : `${takeColumns(text.slice(0, mostCharacters(width)), width - 1)}…`;
}

/** A text of more characters is too wide, so that a long one is not measured whole. */
function mostCharacters(width: number): number {
  return Math.max(1024, width * 16);
}

function fits(text: string, width: number): boolean {
  return text.length <= mostCharacters(width) && widthOf(text) <= width;
}

/** The same, but keeps the end. */
export function clipStart(text: string, width: number): string {
  if (fits(text, width)) return text;
  if (width < 1) return '';
  // Cutting first keeps a long text from being measured whole.
  const end = text.slice(-width * 16).replace(/^[\udc00-\udfff]/, '');
  if (PLAIN.test(end)) return `…${width === 1 ? '' : end.slice(1 - width)}`;
  let columns = 1;
  let start = end.length;
  for (const { segment } of [...graphemesOf(end)].reverse()) {
    columns += graphemeWidth(segment);
    if (columns > width) break;
    start -= segment.length;
  }
  return `…${end.slice(start)}`;
}

/** The same, but keeps both ends, more of the last one: the names of a family begin alike. */
export function clipMiddle(text: string, width: number): string {
  if (fits(text, width)) return text;
  const tail = Math.floor(0.6 * (width - 1));
  return tail < 1
    ? clip(text, width)
    : `${takeColumns(text.slice(0, mostCharacters(width)), width - 1 - tail)}${clipStart(text, tail + 1)}`;
}

/**
 * Cuts each of the texts to at most `width` columns, so that different ones stay different where that can be: in the middle,
 * and where several come to the same by that, what they begin with alike.
 */
export function clipApart(texts: readonly string[], width: number): string[] {
  const cut = new Map(texts.map((text) => [text, clipMiddle(text, width)]));
  const alike = new Map<string, string[]>();
  for (const [text, short] of cut) alike.set(short, [...(alike.get(short) ?? []), text]);
  for (const group of alike.values()) {
    if (group.length === 1) continue;
    const same = commonBeginning(group);
    for (const text of group) cut.set(text, clip(`…${text.slice(same)}`, width));
  }
  return texts.map((text) => cut.get(text) ?? text);
}

/** How many characters the texts begin with alike; never half of one that takes two. */
function commonBeginning([first = '', ...others]: readonly string[]): number {
  let length = first.length;
  for (const other of others) {
    let same = 0;
    while (same < length && first[same] === other[same]) same += 1;
    length = same;
  }
  return /[\ud800-\udbff]/.test(first[length - 1] ?? '') ? length - 1 : length;
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

let segmenter: Intl.Segmenter | undefined;

/** The characters of text as a reader counts them. */
function graphemesOf(text: string): Intl.Segments {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** Widths of characters that were measured: to measure one takes a hundred times as long as to look it up. */
const widths = new Map<string, number>();

/** Texts have few different characters; hostile ones have as many as they like. */
const MOST_WIDTHS = 4096;

/** With more marks than this, a character is not kept. */
const LONGEST_KEPT = 16;

function graphemeWidth(segment: string): number {
  if (PLAIN.test(segment)) return segment.length;
  const known = widths.get(segment);
  if (known !== undefined) return known;
  const width = widthOf(segment);
  if (widths.size >= MOST_WIDTHS) widths.clear();
  if (segment.length <= LONGEST_KEPT) widths.set(segment, width);
  return width;
}

/** The longest beginning of at most `width` columns. */
function takeColumns(text: string, width: number): string {
  const plain = PLAIN_START.exec(text)?.[0].length ?? 0;
  // What stands behind the last of them may belong to it.
  if (plain > width || plain === text.length) return text.slice(0, Math.max(0, width));
  let columns = 0;
  let end = 0;
  for (const { segment } of graphemesOf(text)) {
    columns += graphemeWidth(segment);
    if (columns > width) break;
    end += segment.length;
  }
  return text.slice(0, end);
}

/** Colour and width of the output. The command decides them once, and every formatter takes them as arguments. */

export type Colors = ReturnType<typeof pc.createColors>;

export type TerminalStyle = { colors: Colors; width: number };

const WIDTH_WITHOUT_TERMINAL = 120;

const LEAST_WIDTH = 40;

/** Colour only on a terminal, and never against NO_COLOR; width from the terminal, else COLUMNS, else 120. */
export function terminalStyle(
  stream: { isTTY?: boolean; columns?: number },
  env: NodeJS.ProcessEnv,
): TerminalStyle {
  const { NO_COLOR, TERM, COLUMNS } = env;
  const hasColor = stream.isTTY === true && !NO_COLOR && TERM !== 'dumb';
  const width = stream.columns || Number(COLUMNS) || WIDTH_WITHOUT_TERMINAL;
  return { colors: pc.createColors(hasColor), width: Math.max(LEAST_WIDTH, width) };
}

/** Figures for people: durations, sizes, counts, times. */

/** A duration of `ms` milliseconds in at most three significant digits or two units. */
export function formatDuration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(2)} ms`;
  if (ms < 1000) return `${ms.toFixed(0)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? value.toFixed(0) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** `1 error`, `2 errors`. */
export function formatCount(count: number, noun: string): string {
  return `${formatNumber(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `12,345`. Without Intl, which takes longer to load than many a command takes to run. */
export function formatNumber(count: number): string {
  return String(count).replaceAll(/\B(?=(?:\d{3})+$)/g, ',');
}

/** Local date and time, to the second. `at` in microseconds since the Unix epoch. */
export function formatTime(at: number): string {
  const date = new Date(at / 1000);
  const two = (n: number) => String(n).padStart(2, '0');
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}
