/** What the files of several tools have in common: times, and messages as they stand. */
import { parseIsoTime } from '../protocol/iso-time.ts';
import { eachElement, type Span } from '../protocol/json.ts';
import { BadLine, type Members, required } from './members.ts';

/** A time of RFC 3339, or one without a zone, which is taken for UTC. Null: there is none. Throws `BadLine`. */
export function timeOf(members: Members, name: string): number | null {
  const text = members.text(name);
  if (text === null) return null;
  const at = parseTime(text);
  if (at !== null && at >= 0) return at;
  throw new BadLine(
    `expected a time like 2026-11-20T10:00:00.123Z as \`${name}\`, got ${JSON.stringify(text)}`,
  );
}

const TIME = /^([\d:T-]{19})(?:\.(\d{1,6})\d*)?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))?$/;

function parseTime(text: string): number | null {
  const [, seconds, fraction = '0', sign, hours = '0', minutes = '0'] = TIME.exec(text) ?? [];
  if (seconds === undefined) return null;
  const at = parseIsoTime(`${seconds}.${fraction}Z`);
  const ahead = (Number(hours) * 60 + Number(minutes)) * 60_000_000;
  return at === null ? null : at - (sign === '-' ? -ahead : ahead);
}

/** A value byte for byte. Throws `BadLine` where it is missing. */
export function sliceOf(members: Members, name: string): Buffer {
  const span = members.span(name);
  if (span === undefined) throw new BadLine(`expected \`${name}\` in ${members.where}, got none`);
  return members.bytes.subarray(span.start, span.end);
}

/** A value that is an object, byte for byte. Throws `BadLine`. */
export function messageOf(members: Members, name: string): Buffer {
  // Asks for it once more, because that says what was got instead.
  if (members.span(name)?.type !== 'object') required(members, name, members.object(name));
  return sliceOf(members, name);
}

/** Where the objects of an array stand; none where it is missing or null. Throws `BadLine` for anything else. */
export function objectsIn(members: Members, name: string): Span[] {
  const list = members.span(name);
  if (members.objects(name) === null || list === undefined) return [];
  const found: Span[] = [];
  eachElement(members.bytes, list.start, (element) => found.push(element));
  return found;
}
