/**
 * JSON with something left out, and all the rest byte for byte as it stands: it is not parsed and written again, so that
 * large numbers, key order, escapes and duplicate keys stay what they are. Input is valid JSON.
 */
import { eachMember, skipSpace } from './json.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;

/** Without the space between the tokens. */
export function withoutSpace(json: Buffer): Buffer {
  let kept: Buffer | null = null;
  let length = 0;
  let isInString = false;
  for (let i = 0; i < json.length; i += 1) {
    const c = json[i] as number;
    if (isInString) {
      if (c === BACKSLASH) {
        if (kept !== null) kept[length] = c;
        length += 1;
        i += 1;
      } else if (c === QUOTE) isInString = false;
    } else if (c === QUOTE) isInString = true;
    else if (c === 0x20 || c === 0x09 || c === 0x0a || c === 0x0d) {
      kept ??= Buffer.from(json);
      continue;
    }
    if (kept !== null) kept[length] = json[i] as number;
    length += 1;
  }
  return kept === null ? json : kept.subarray(0, length);
}

/** An object without its members of these names, each with one of the commas around it. */
export function withoutMembers(object: Buffer, names: readonly string[]): Buffer {
  const kept: Buffer[] = [];
  let from = 1;
  const end = eachMember(object, 0, (name, value) => {
    const member = object.subarray(from, value.end);
    from = value.end;
    if (!names.includes(name)) kept.push(kept.length === 0 ? withoutComma(member) : member);
  });
  return Buffer.concat([object.subarray(0, 1), ...kept, object.subarray(from, end)]);
}

/** Where the member before it went. */
function withoutComma(member: Buffer): Buffer {
  const start = skipSpace(member, 0);
  return member[start] === COMMA ? member.subarray(start + 1) : member;
}
