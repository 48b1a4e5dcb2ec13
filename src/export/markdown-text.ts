/** Recorded text within Markdown: none of it is markup. */
import { escapeText } from '../protocol/escape.ts';

/** Text of a table's cell or a heading. */
export function cell(text: string): string {
  return escapeText(text).replace(/[\\`*_[\]<>|#~&!]/g, '\\$&');
}

/** A block of code, whose fence is longer than any in the text. */
export function fenced(text: string, language: string): string {
  const lines = text.split('\n').map(escapeText).join('\n');
  const longest = Math.max(0, ...[...lines.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(Math.max(3, longest + 1));
  return `${fence}${language}\n${lines}\n${fence}\n`;
}
