/** What is not ordinary about a stored frame, as words in one column. An ordinary one has none: a line that ends with "\n", a body that holds messages, an event that holds one. */
import type { Channel, Frame, FramePart, HttpMark, LineEnd } from '../protocol/frame.ts';

type Form = Pick<Frame, 'lineEnd' | 'part' | 'truncated'> & { marks: readonly HttpMark[] };

const LINE_END_WORDS: Record<LineEnd, string> = { '\n': '', '\r\n': 'crlf', '': 'no-line-end' };
const PARTS: readonly FramePart[] = ['lsp-header', 'lsp-body', 'foreign-body', 'block'];
const MARKS: readonly HttpMark[] = ['undecoded', 'wrong-type', 'incomplete', 'replayed'];
const NO_MARKS: readonly HttpMark[] = [];

export function flagsOf({ channel, lineEnd, part, truncated, http }: Frame): string | null {
  if (lineEnd === '\n' && part === 'line' && !truncated) return null;
  const words: string[] = [];
  if (http === null && LINE_END_WORDS[lineEnd] !== '') words.push(LINE_END_WORDS[lineEnd]);
  if (part !== ordinaryPart(channel)) words.push(part);
  if (truncated) words.push('truncated');
  if (http !== null) words.push(...http.marks);
  return words.length === 0 ? null : words.join(' ');
}

export function formOf(flags: string | null, channel: Channel): Form {
  const words = new Set(flags?.split(' '));
  const isStdio = ordinaryPart(channel) === 'line';
  const stdioLineEnd: LineEnd = words.has('crlf') ? '\r\n' : words.has('no-line-end') ? '' : '\n';
  return {
    lineEnd: isStdio ? stdioLineEnd : '',
    part: PARTS.find((part) => words.has(part)) ?? ordinaryPart(channel),
    truncated: words.has('truncated'),
    marks: isStdio || flags === null ? NO_MARKS : MARKS.filter((mark) => words.has(mark)),
  };
}

function ordinaryPart(channel: Channel): FramePart {
  switch (channel) {
    case 'request':
    case 'response':
      return 'body';
    case 'sse':
      return 'event';
    default:
      return 'line';
  }
}
