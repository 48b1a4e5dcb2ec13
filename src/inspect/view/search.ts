/** `search` for people: below each session the frames that were found, each with the text around what was looked for. */

import { escapeText } from '../../protocol/text.ts';
import type { TextTest } from '../../protocol/text-test.ts';
import type { StoredFrame } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import type { Filter } from '../filter/filter.ts';
import { INDENT, margin } from './block.ts';
import { frameBlock, type ViewOptions } from './conversation.ts';
import { clip, clipStart, formatTime, type TerminalStyle, widthOf } from './text.ts';

/** The tests of a filter that a text passes where the filter holds, or may. */
export function textTests(filter: Filter): TextTest[] {
  if (filter.type === 'not') return [];
  if (filter.type !== 'term') return filter.parts.flatMap(textTests);
  const isText = filter.field === 'text' && !filter.isNegated && filter.test.type === 'matches';
  return isText && filter.test.type === 'matches' ? [filter.test.text] : [];
}

export function* sessionHeading(
  { id, name, target, startedAt }: SessionRow,
  style: TerminalStyle,
): Generator<string> {
  const { colors, width } = style;
  const time = width < WIDE ? '' : `  ${colors.dim(formatTime(startedAt))}`;
  const title = clip(escapeText(name ?? target), width - id.length - (width < WIDE ? 2 : 23));
  yield `${colors.bold(id)}  ${title}${time}`;
}

/** On narrower terminals a heading has no time. */
const WIDE = 60;

/** A frame in a line or two, and for each test the text that passed it. */
export function* foundFrame(
  session: SessionRow,
  frame: StoredFrame,
  tests: readonly TextTest[],
  options: ViewOptions,
): Generator<string> {
  const { style } = options;
  const snippets = snippetsOf(frame.payload.toString('utf8'), tests, style);
  const [first, ...others] = snippets;
  if (frame.messages.length > 0 || first === undefined) {
    yield* frameBlock(session, frame, { ...options, payloadLines: 0 });
    for (const snippet of snippets) yield `${' '.repeat(INDENT)}${snippet}`;
    return;
  }
  yield `${margin(style, session, frame.at, style.colors.dim('┊'))}${first}`;
  for (const snippet of others) yield `${' '.repeat(INDENT)}${snippet}`;
}

/** Two that show the same are one. */
function snippetsOf(text: string, tests: readonly TextTest[], style: TerminalStyle): string[] {
  return [...new Set(excerptsOf(text, tests, CHARACTERS).map((excerpt) => snippetOf(excerpt, style)))];
}

/** What passed a test, with up to so many characters of the text before and behind it, and of itself. Nothing is escaped. */
export type Excerpt = [before: string, found: string, after: string];

/** Of each test that a text passes. */
export function excerptsOf(text: string, tests: readonly TextTest[], characters: number): Excerpt[] {
  return tests.flatMap((test) => {
    const found = test.find(text);
    if (found === null) return [];
    const { start, end } = found;
    const from = wholeCharacter(text, Math.max(0, start - characters));
    const until = wholeCharacter(text, Math.min(text.length, end + characters));
    return [
      [text.slice(from, start), text.slice(start, Math.min(end, start + characters)), text.slice(end, until)],
    ];
  });
}

/** Of the text before what was found, so much of the line at most. */
const BEFORE = 0.35;

/** No line needs more characters than this, whatever they turn into. */
const CHARACTERS = 400;

function snippetOf([textBefore, textFound, textAfter]: Excerpt, style: TerminalStyle): string {
  const columns = style.width - INDENT;
  const found = clip(escapeText(textFound), columns);
  const room = columns - widthOf(found);
  const before = clipStart(escapeText(textBefore), Math.floor(room * BEFORE));
  const after = clip(escapeText(textAfter), room - widthOf(before));
  return `${style.colors.dim(before)}${style.colors.yellow(style.colors.bold(found))}${style.colors.dim(after)}`;
}

/** The nearest place that does not cut a character of two code units. */
function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}
