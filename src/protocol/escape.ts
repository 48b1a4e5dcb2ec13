/** Recorded text is hostile: what could move a cursor, change colours, reorder or hide text is made visible first. */

/** Text in which a character is a column, with our own ellipsis and arrows: by far the most. */
const PLAIN = /^[\x20-\x7e…→←]*$/;
/** Control characters, format characters (direction marks, zero width), lone surrogates, line separators. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const SHORT: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Makes every character visible that could move the cursor, change colours, or reorder or hide text: one line of it. */
export function escapeText(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNSAFE, escapeCharacter);
}

function escapeCharacter(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  return SHORT[character] ?? (code < 0x100 ? `\\x${hex(code, 2)}` : `\\u{${hex(code, 4)}}`);
}

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, '0');
}
