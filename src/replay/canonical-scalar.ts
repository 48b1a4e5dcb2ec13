/**
 * The one text of a number or string in canonical JSON (RFC 8785, section 3.2.2), made from the source text and never
 * by way of a double: the digits of a number are laid out as ECMAScript lays out a double's, but all of them stay.
 * So what JSON.stringify writes is canonical already, and `12345678901234567890`, `1e400` or a long fraction
 * equals nothing but itself in other spellings. `-0` is `0`, as RFC 8785 has it.
 */

/** The text as it grows. Only numbers can make it longer than its source: `1e20` is written with 21 digits. */
export type Output = { bytes: Buffer; length: number };

/** An exponent of more digits is refused: adding to it would cost the square of its length. */
const MAX_EXPONENT_DIGITS = 1000;
/** Up to as many digits, integers are written out (ECMAScript, Number::toString). */
const MAX_WHOLE_DIGITS = 21;
const PLAIN_INTEGER = /^(?:0|-?[1-9]\d{0,20})$/;
const SAFE_DIGITS = 15;

const BACKSLASH = 0x5c;
/** The character that follows the backslash of a short escape, and what it denotes. */
const ESCAPED = new Map([
  [0x62, 0x08],
  [0x74, 0x09],
  [0x6e, 0x0a],
  [0x66, 0x0c],
  [0x72, 0x0d],
]);
const SHORT_ESCAPE = new Map([...ESCAPED].map(([letter, unit]) => [unit, letter]));

/** Undefined for a number whose exponent is too long to be computed with. */
export function canonicalNumber(text: string): string | undefined {
  if (PLAIN_INTEGER.test(text)) return text;
  const [mantissa = '', power = '0'] = text.toLowerCase().split('e');
  const sign = mantissa.startsWith('-') ? '-' : '';
  const [whole = '', fraction = ''] = mantissa.slice(sign.length).split('.');
  const all = whole + fraction;
  const first = all.search(/[1-9]/);
  if (first < 0) return '0';
  let end = all.length;
  while (all[end - 1] === '0') end -= 1;

  const exponent = power.replace(/^([+-]?)0+(?=\d)/, '$1');
  if (exponent.length > MAX_EXPONENT_DIGITS) return undefined;
  return sign + laidOut(all.slice(first, end), exponent, whole.length - first);
}

/** The number 0.`digits` times ten to the power of `exponent` + `shift`. */
function laidOut(digits: string, exponent: string, shift: number): string {
  if (exponent.length > SAFE_DIGITS) return scientific(digits, BigInt(exponent) + BigInt(shift) - 1n);
  const point = Number(exponent) + shift;
  if (digits.length <= point && point <= MAX_WHOLE_DIGITS) return digits.padEnd(point, '0');
  if (0 < point && point <= MAX_WHOLE_DIGITS) return `${digits.slice(0, point)}.${digits.slice(point)}`;
  if (-6 < point && point <= 0) return `0.${'0'.repeat(-point)}${digits}`;
  return scientific(digits, point - 1);
}

function scientific(digits: string, power: number | bigint): string {
  const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
  return `${digits[0]}${fraction}e${power < 0 ? '' : '+'}${power}`;
}

/**
 * Writes the string whose quotes stand at `start` and before `end`. Escapes are resolved but for those that JSON needs;
 * everything between them is copied as it is, in one piece, also bytes that are no UTF-8. The escape of half a
 * surrogate pair stays an escape, as UTF-8 has no bytes for it (RFC 8785 would refuse it).
 */
export function writeString(out: Output, bytes: Buffer, start: number, end: number): void {
  reserve(out, end - start);
  let from = start;
  let i = start + 1;
  while (i < end - 1) {
    if (bytes[i] !== BACKSLASH) i += 1;
    else {
      out.length += bytes.copy(out.bytes, out.length, from, i);
      i = writeEscape(out, bytes, i);
      from = i;
    }
  }
  out.length += bytes.copy(out.bytes, out.length, from, end);
}

/** Resolves the escape at `at`; gives the position after it. What is written is never longer than the escape. */
function writeEscape(out: Output, bytes: Buffer, at: number): number {
  const letter = bytes[at + 1] ?? 0;
  if (letter !== 0x75) {
    writeUnit(out, ESCAPED.get(letter) ?? letter);
    return at + 2;
  }
  const unit = unitAt(bytes, at);
  const isHigh = unit >= 0xd800 && unit <= 0xdbff;
  if (isHigh && bytes[at + 6] === BACKSLASH && bytes[at + 7] === 0x75) {
    const low = unitAt(bytes, at + 6);
    if (low >= 0xdc00 && low <= 0xdfff) {
      out.length += out.bytes.write(String.fromCharCode(unit, low), out.length, 'utf8');
      return at + 12;
    }
  }
  writeUnit(out, unit);
  return at + 6;
}

function unitAt(bytes: Buffer, at: number): number {
  return Number.parseInt(bytes.toString('latin1', at + 2, at + 6), 16);
}

function writeUnit(out: Output, unit: number): void {
  const letter = unit === 0x22 || unit === BACKSLASH ? unit : SHORT_ESCAPE.get(unit);
  const isAlone = unit >= 0xd800 && unit <= 0xdfff;
  if (letter !== undefined) {
    out.bytes[out.length] = BACKSLASH;
    out.bytes[out.length + 1] = letter;
    out.length += 2;
  } else if (unit < 0x20 || isAlone) {
    out.length += out.bytes.write(`\\u${unit.toString(16).padStart(4, '0')}`, out.length, 'latin1');
  } else out.length += out.bytes.write(String.fromCharCode(unit), out.length, 'utf8');
}

export function writeText(out: Output, text: string): void {
  reserve(out, text.length);
  out.length += out.bytes.write(text, out.length, 'latin1');
}

export function writeByte(out: Output, byte: number): void {
  reserve(out, 1);
  out.bytes[out.length] = byte;
  out.length += 1;
}

function reserve(out: Output, more: number): void {
  if (out.length + more <= out.bytes.length) return;
  const larger = Buffer.allocUnsafe(Math.max(out.length + more, out.bytes.length * 2));
  out.bytes.copy(larger, 0, 0, out.length);
  out.bytes = larger;
}
