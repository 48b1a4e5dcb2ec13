/** Text within XML. */
import { escapeText } from '../protocol/escape.ts';

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** For element content and attributes. What XML cannot hold is escaped as for a terminal. Line ends are ours. */
export function xml(text: string): string {
  const lines = text.split('\n').map(escapeText);
  return lines
    .join('\n')
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
    .replace(/[\ufffe\uffff]/g, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}
