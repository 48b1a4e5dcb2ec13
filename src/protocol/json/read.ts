/**
 * A JSON reader over bytes that tells where things stand instead of building values: the source text of an id
 * survives (`12345678901234567890`, `1.0`, `1E3`), duplicate keys are seen, and a 64 MB message costs no copy.
 * Grammar: RFC 8259, complete. Bytes above 0x7F are accepted inside strings; whether they are valid UTF-8 is
 * the caller's question. Nothing here recurses, so no nesting can overflow the stack.
 *
 * Every function takes the position of a value's first byte and returns the position after its last, or, for
 * bytes that are no JSON, the bitwise complement of the position of the first wrong byte (so: negative).
 */

type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null';

/** Where a value stands: bytes `start` up to, not including, `end`. */
export type Span = { start: number; end: number; type: JsonType };

const QUOTE = 0x22;

const BACKSLASH = 0x5c;

const OPEN_OBJECT = 0x7b;

const CLOSE_OBJECT = 0x7d;

const OPEN_ARRAY = 0x5b;

const CLOSE_ARRAY = 0x5d;

const COLON = 0x3a;

const COMMA = 0x2c;

export function skipSpace(bytes: Uint8Array, from: number): number {
  let i = from;
  for (;;) {
    const c = bytes[i];
    if (c !== 0x20 && c !== 0x09 && c !== 0x0a && c !== 0x0d) return i;
    i += 1;
  }
}

const MOST_BITS = 1 << 29;

/** Skips one value of any type and depth. */
export function skipValue(bytes: Uint8Array, from: number): number {
  const first = bytes[from];
  return first === OPEN_OBJECT || first === OPEN_ARRAY ? skipContainer(bytes, from) : skipScalar(bytes, from);
}

function skipContainer(bytes: Uint8Array, from: number): number {
  // One bit per open container, the innermost last: 1 for an object, 0 for an array. In front of them stands a 1.
  let open = 1;
  // Those around them, where there are many.
  const around: number[] = [];
  let i = from;
  for (;;) {
    const c = bytes[i];
    if (c === OPEN_OBJECT || c === OPEN_ARRAY) {
      const isObject = c === OPEN_OBJECT;
      i = skipSpace(bytes, i + 1);
      if (bytes[i] === (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) i += 1;
      else {
        if (open >= MOST_BITS) {
          around.push(open);
          open = 1;
        }
        open = (open << 1) | Number(isObject);
        if (isObject) i = skipKey(bytes, i);
        if (i < 0) return i;
        continue;
      }
    } else {
      i = skipScalar(bytes, i);
      if (i < 0) return i;
    }
    // A value is complete: close what it closes, then go on to the next value of the container around it.
    for (;;) {
      if (open === 1) return i;
      const isObject = (open & 1) === 1;
      i = skipSpace(bytes, i);
      if (bytes[i] === COMMA) {
        i = skipSpace(bytes, i + 1);
        if (isObject) i = skipKey(bytes, i);
        if (i < 0) return i;
        break;
      }
      if (bytes[i] !== (isObject ? CLOSE_OBJECT : CLOSE_ARRAY)) return ~i;
      open >>= 1;
      if (open === 1) open = around.pop() ?? 1;
      i += 1;
    }
  }
}

/** Skips `"key" :` and the space after it. */
export function skipKey(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== QUOTE) return ~from;
  const end = skipString(bytes, from);
  if (end < 0) return end;
  const colon = skipSpace(bytes, end);
  return bytes[colon] === COLON ? skipSpace(bytes, colon + 1) : ~colon;
}

/** Skips one string, number, boolean or null. */
export function skipScalar(bytes: Uint8Array, from: number): number {
  switch (bytes[from]) {
    case QUOTE:
      return skipString(bytes, from);
    case 0x74:
      return skipWord(bytes, from, 'true');
    case 0x66:
      return skipWord(bytes, from, 'false');
    case 0x6e:
      return skipWord(bytes, from, 'null');
    default:
      return skipNumber(bytes, from);
  }
}

function skipWord(bytes: Uint8Array, from: number, word: string): number {
  for (let k = 1; k < word.length; k += 1) {
    if (bytes[from + k] !== word.charCodeAt(k)) return ~(from + k);
  }
  return from + word.length;
}

function skipString(bytes: Uint8Array, from: number): number {
  let i = from + 1;
  for (;;) {
    const c = bytes[i];
    if (c === undefined || c < 0x20) return ~i;
    if (c === QUOTE) return i + 1;
    if (c === BACKSLASH) {
      i = skipEscape(bytes, i);
      if (i < 0) return i;
    } else i += 1;
  }
}

function skipEscape(bytes: Uint8Array, from: number): number {
  const c = bytes[from + 1];
  if (c === 0x75) {
    for (let k = 2; k < 6; k += 1) if (!isHexDigit(bytes[from + k])) return ~(from + k);
    return from + 6;
  }
  const isSimple =
    c === QUOTE ||
    c === BACKSLASH ||
    c === 0x2f ||
    c === 0x62 ||
    c === 0x66 ||
    c === 0x6e ||
    c === 0x72 ||
    c === 0x74;
  return isSimple ? from + 2 : ~(from + 1);
}

function isHexDigit(c: number | undefined): boolean {
  return (
    c !== undefined && ((c >= 0x30 && c <= 0x39) || (c >= 0x41 && c <= 0x46) || (c >= 0x61 && c <= 0x66))
  );
}

function skipNumber(bytes: Uint8Array, from: number): number {
  let i = from;
  if (bytes[i] === 0x2d) i += 1;
  if (bytes[i] === 0x30) i += 1;
  else {
    const digits = skipDigits(bytes, i);
    if (digits === i) return ~i;
    i = digits;
  }
  if (bytes[i] === 0x2e) {
    const digits = skipDigits(bytes, i + 1);
    if (digits === i + 1) return ~digits;
    i = digits;
  }
  if (bytes[i] === 0x65 || bytes[i] === 0x45) {
    i += 1;
    if (bytes[i] === 0x2b || bytes[i] === 0x2d) i += 1;
    const digits = skipDigits(bytes, i);
    if (digits === i) return ~i;
    i = digits;
  }
  return i;
}

function skipDigits(bytes: Uint8Array, from: number): number {
  let i = from;
  for (;;) {
    const c = bytes[i];
    if (c === undefined || c < 0x30 || c > 0x39) return i;
    i += 1;
  }
}

/** The type of the value that starts at `at`, told by its first byte. */
export function typeAt(bytes: Uint8Array, at: number): JsonType {
  switch (bytes[at]) {
    case OPEN_OBJECT:
      return 'object';
    case OPEN_ARRAY:
      return 'array';
    case QUOTE:
      return 'string';
    case 0x74:
    case 0x66:
      return 'boolean';
    case 0x6e:
      return 'null';
    default:
      return 'number';
  }
}

/**
 * Visits the members of the object that starts at `from`, in their order, duplicates included. Keys are given
 * decoded. The return value follows the rule above.
 */
export function eachMember(bytes: Buffer, from: number, visit: (key: string, value: Span) => void): number {
  let i = skipSpace(bytes, from + 1);
  if (bytes[i] === CLOSE_OBJECT) return i + 1;
  for (;;) {
    const keyStart = i;
    const start = skipKey(bytes, keyStart);
    if (start < 0) return start;
    const end = skipValue(bytes, start);
    if (end < 0) return end;
    visit(keyText(bytes, keyStart, start), { start, end, type: typeAt(bytes, start) });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_OBJECT) return i + 1;
    if (bytes[i] !== COMMA) return ~i;
    i = skipSpace(bytes, i + 1);
  }
}

/** Visits the elements of the array that starts at `from`, in their order. */
export function eachElement(bytes: Buffer, from: number, visit: (value: Span) => void): number {
  let i = skipSpace(bytes, from + 1);
  if (bytes[i] === CLOSE_ARRAY) return i + 1;
  for (;;) {
    const end = skipValue(bytes, i);
    if (end < 0) return end;
    visit({ start: i, end, type: typeAt(bytes, i) });
    i = skipSpace(bytes, end);
    if (bytes[i] === CLOSE_ARRAY) return i + 1;
    if (bytes[i] !== COMMA) return ~i;
    i = skipSpace(bytes, i + 1);
  }
}

/** Of the key before the value that starts at `before`; between them are a colon and space. */
function keyText(bytes: Buffer, keyStart: number, before: number): string {
  let end = before;
  while (bytes[end - 1] !== QUOTE) end -= 1;
  return nameText(bytes, keyStart, end);
}

const MAX_KNOWN_NAME = 32;

const KNOWN_NAMES = 1024;

/** Names that were read lately, each in the slot that its bytes say. */
const knownNames: string[] = Array.from({ length: KNOWN_NAMES }, () => '');

/**
 * The decoded text of the string whose quotes stand at `start` and before `end`. For names, of which the same few come again and
 * again: no string need be made for those.
 */
export function nameText(bytes: Buffer, start: number, end: number): string {
  const length = end - start - 2;
  if (length > MAX_KNOWN_NAME) return stringText(bytes, { start, end, type: 'string' });
  let slot = length;
  for (let i = start + 1; i < end - 1; i += 1) slot = (Math.imul(slot, 31) + (bytes[i] as number)) | 0;
  slot = (slot ^ (slot >>> 15)) & (KNOWN_NAMES - 1);
  const known = knownNames[slot] as string;
  if (known.length === length && isText(bytes, start + 1, known)) return known;
  const text = stringText(bytes, { start, end, type: 'string' });
  // Of plain ASCII without escapes: what is compared is bytes.
  if (text.length === length && isText(bytes, start + 1, text)) knownNames[slot] = asKey(text);
  return text;
}

/** The same text as the key of an object: V8 holds each of those once, and compares them by their address. */
function asKey(text: string): string {
  return Object.keys({ [text]: 0 })[0] ?? text;
}

function isText(bytes: Uint8Array, at: number, text: string): boolean {
  for (let k = 0; k < text.length; k += 1) if (bytes[at + k] !== text.charCodeAt(k)) return false;
  return true;
}

/** The decoded text of a string value. */
export function stringText(bytes: Buffer, span: Span): string {
  const raw = bytes.toString('utf8', span.start + 1, span.end - 1);
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw;
}

/** The source text of a value, as it stands on the wire. */
export function sourceText(bytes: Buffer, span: Span): string {
  return bytes.toString('utf8', span.start, span.end);
}

/** The members of an object by key; of a duplicate key the last one, as JavaScript and Python readers have it. */
export function membersOf(bytes: Buffer, object: Span): Map<string, Span> {
  const members = new Map<string, Span>();
  eachMember(bytes, object.start, (key, value) => members.set(key, value));
  return members;
}

/** One member of an object, found without reading the names of the others. */

/**
 * The member of the object that starts at `from`, of a duplicate key the last one; undefined where there is none.
 * `name` must be ASCII without quotes and backslashes, as those of JSON-RPC and MCP are.
 */
export function findMember(bytes: Buffer, from: number, name: string): Span | undefined {
  let found: Span | undefined;
  let i = skipSpace(bytes, from + 1);
  while (bytes[i] !== CLOSE_OBJECT) {
    const start = skipKey(bytes, i);
    const end = start < 0 ? start : skipValue(bytes, start);
    if (end < 0) return found;
    if (isKey(bytes, i, start, name)) found = { start, end, type: typeAt(bytes, start) };
    i = skipSpace(bytes, end);
    if (bytes[i] === COMMA) i = skipSpace(bytes, i + 1);
    else if (bytes[i] !== CLOSE_OBJECT) return found;
  }
  return found;
}

/** A key may be written with escapes, so that counts as well. */
function isKey(bytes: Buffer, keyStart: number, valueStart: number, name: string): boolean {
  for (let k = 0; k < name.length; k += 1) {
    const c = bytes[keyStart + 1 + k];
    if (c === BACKSLASH) return keyText(bytes, keyStart, valueStart) === name;
    if (c !== name.charCodeAt(k)) return false;
  }
  const next = bytes[keyStart + 1 + name.length];
  return next === QUOTE || (next === BACKSLASH && keyText(bytes, keyStart, valueStart) === name);
}

/** Where in a JSON text a byte stands, as a JSON Pointer (RFC 6901). */

/** The pointer of the innermost value that byte `offset` belongs to, a member's name too; `''` for no JSON. */
export function pointerAt(json: Buffer, offset: number): string {
  let pointer = '';
  let value: Span | null = {
    start: skipSpace(json, 0),
    end: json.length,
    type: typeAt(json, skipSpace(json, 0)),
  };
  while (value !== null) {
    const found = stepInto(json, value, offset);
    if (found !== null) pointer += `/${found.step.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    value = found?.value ?? null;
  }
  return pointer;
}

function stepInto(json: Buffer, { start, type }: Span, offset: number): { step: string; value: Span } | null {
  let found: { step: string; value: Span } | null = null;
  let index = 0;
  const visit = (step: string, value: Span) => {
    if (found === null && offset < value.end && offset >= start) found = { step, value };
  };
  if (type === 'object') eachMember(json, start, visit);
  else if (type === 'array') {
    eachElement(json, start, (value) => {
      visit(String(index), value);
      index += 1;
    });
  }
  return found;
}

/** A parsed JSON object. */
export type JsonObject = Record<string, unknown>;

/** Whether a parsed value is an object, and no array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
