/** Text within XML. */
import { escapeText } from '../protocol/escape.ts';

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** For element content and attributes. Control characters are escaped as for a terminal: XML cannot hold them. Line ends are ours. */
export function xml(text: string): string {
  const lines = text.split('\n').map(escapeText);
  return lines.join('\n').replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
