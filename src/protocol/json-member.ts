/** One member of an object, found without reading the names of the others. */
import { keyText, type Span, skipKey, skipSpace, skipValue, typeAt } from './json.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const CLOSE_OBJECT = 0x7d;
const COMMA = 0x2c;

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
