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

/** Equal for texts that differ in case alone. Without the final sigma, so that a part of a text folds as the whole does. */
export function foldCase(text: string): string {
  return text.toLowerCase().replaceAll('ς', 'σ');
}

/** A command as one line that a shell would read alike. */
export function commandLine(argv: readonly string[]): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : shellQuoted(word))).join(' ');
}

/** One word for `sh`: within single quotes nothing has a meaning but the quote. */
export function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Times as machines get them: ISO 8601 in UTC with microseconds. In code a time is microseconds since the Unix epoch. */

export function formatIsoTime(at: number): string {
  const seconds = Math.floor(at / 1_000_000);
  const micros = String(at - seconds * 1_000_000).padStart(6, '0');
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${micros}Z`;
}

const ISO_TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?Z$/;

/** Null for what is no such time, a day that does not exist among it. The fraction may be short, or missing. */
export function parseIsoTime(text: string): number | null {
  const [, seconds, fraction = ''] = ISO_TIME.exec(text) ?? [];
  if (seconds === undefined) return null;
  const ms = Date.parse(`${seconds}Z`);
  if (Number.isNaN(ms) || new Date(ms).toISOString().slice(0, 19) !== seconds) return null;
  return ms * 1000 + Number(fraction.padEnd(6, '0'));
}

/**
 * Returns how many bytes of a byte order mark stand at the beginning: 3, or 0 for none. Some editors begin files with one; it
 * is no part of the text, nor of JSON.
 */
export function byteOrderMarkLength(bytes: Uint8Array): number {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
}

export function withoutByteOrderMark(text: string): string {
  return text.startsWith('\ufeff') ? text.slice(1) : text;
}
