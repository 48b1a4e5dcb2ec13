/** What is not ordinary about a stored frame, as words in one column: an ordinary line ("\n" at its end) has none. */
import type { Frame, FramePart, LineEnd } from '../protocol/frame.ts';

type Form = Pick<Frame, 'lineEnd' | 'part' | 'truncated'>;

const LINE_END_WORDS: Record<LineEnd, string> = { '\n': '', '\r\n': 'crlf', '': 'no-line-end' };

export function flagsOf({ lineEnd, part, truncated }: Form): string | null {
  if (lineEnd === '\n' && part === 'line' && !truncated) return null;
  const words = [LINE_END_WORDS[lineEnd], part === 'line' ? '' : part, truncated ? 'truncated' : ''];
  return words.filter(Boolean).join(' ');
}

export function formOf(flags: string | null): Form {
  const words = new Set(flags?.split(' '));
  const lineEnd: LineEnd = words.has('crlf') ? '\r\n' : words.has('no-line-end') ? '' : '\n';
  const part: FramePart = words.has('lsp-header')
    ? 'lsp-header'
    : words.has('lsp-body')
      ? 'lsp-body'
      : 'line';
  return { lineEnd, part, truncated: words.has('truncated') };
}
