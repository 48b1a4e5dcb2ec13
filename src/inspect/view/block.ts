/** How a conversation is set: in front the time and who spoke, below what was said, folded and cut. */

import { escapeText } from '../../protocol/text.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { clip, fold, formatSize, type TerminalStyle } from './text.ts';

/** Columns before a text: the time and the mark. */
export const INDENT = 14;

/** Text beyond this is never escaped or measured, however many lines are wanted. */
const MAX_LINES = 1_000_000;

/** What stands before the first line: when, since the session began, and a mark of one column. */
export function margin(
  { colors }: TerminalStyle,
  { startedAt }: SessionRow,
  at: number,
  mark: string,
): string {
  return `${colors.dim(secondsSince(startedAt, at).padStart(9))}  ${mark}  `;
}

export function secondsSince(startedAt: number, at: number): string {
  return ((at - startedAt) / 1_000_000).toFixed(3);
}

/** Tells the HTTP exchanges apart; nothing for stdio. */
export function tagOf(exchange: number | undefined): string {
  return exchange === undefined ? '' : `#${exchange}  `;
}

/** The lines below: recorded text, escaped, in at most `maxLines` lines. */
export function* dimBlock(
  text: string,
  { colors, width }: TerminalStyle,
  maxLines: number,
): Generator<string> {
  if (maxLines === 0) return;
  const columns = width - INDENT;
  const shown = text.slice(0, Math.min(maxLines, MAX_LINES) * columns);
  const { lines, rest } = fold(escapeText(shown), columns, maxLines);
  const missing = text.length - shown.length + rest.length;
  if (missing > 0) {
    const more = ` ${formatSize(missing)} more`;
    lines.push(clip(`${lines.pop() ?? ''}…`, columns - more.length) + more);
  }
  for (const line of lines) yield `${' '.repeat(INDENT)}${colors.dim(line)}`;
}

/** A line below that says what is odd. */
export function noteLine(note: string, { colors, width }: TerminalStyle): string {
  return ' '.repeat(INDENT) + colors.yellow(clip(`! ${escapeText(note)}`, width - INDENT));
}
