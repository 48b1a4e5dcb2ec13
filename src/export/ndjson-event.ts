/**
 * An event of a stream as its fields: possible where its lines are `event`, `id` and `retry` (each at most once, in any
 * order), then at most one line of data, each with one space after its colon and all with the same line end, and then the
 * empty line. Anything else (comments, several lines of data) stands as it came.
 */
import { BadLine } from './members.ts';

export type ReadableEvent = {
  lineEnd: '\n' | '\r\n';
  /** In the order in which they stood. */
  fields: readonly (readonly [name: string, value: string])[];
  /** Null where there is no line of data. */
  data: Buffer | null;
};

const LF = 0x0a;
const CR = 0x0d;
const DATA = Buffer.from('data: ');
const FIELD = /^(event|id|retry): (.*)$/s;
const FIELD_NAMES = new Set(['event', 'id', 'retry']);

/** Null where the block's bytes cannot be made of its fields again. The block must be UTF-8. */
export function readableEvent(block: Buffer): ReadableEvent | null {
  const firstEnd = block.indexOf(LF);
  if (firstEnd < 1) return null;
  const lineEnd = block[firstEnd - 1] === CR ? '\r\n' : '\n';
  const fields = new Map<string, string>();
  let data: Buffer | null = null;
  let from = 0;
  for (;;) {
    const lf = block.indexOf(LF, from);
    if (lf === -1) return null;
    const end = lf - (lineEnd.length - 1);
    if (end < from || (lineEnd === '\r\n' && block[end] !== CR)) return null;
    const line = block.subarray(from, end);
    from = lf + 1;
    if (line.includes(CR)) return null;
    if (line.length === 0) return from === block.length ? { lineEnd, fields: [...fields], data } : null;
    if (data !== null) return null;
    if (line.subarray(0, DATA.length).equals(DATA)) {
      data = line.subarray(DATA.length);
      continue;
    }
    const [, name, value] = FIELD.exec(line.toString()) ?? [];
    if (name === undefined || value === undefined || fields.has(name)) return null;
    fields.set(name, value);
  }
}

/** The bytes of the event. Throws `BadLine` where the fields or the data cannot stand in an event. */
export function encodeEvent({ lineEnd, fields, data }: ReadableEvent): Buffer {
  const lines = fields.map(([name, value]) => {
    if (!FIELD_NAMES.has(name)) {
      throw new BadLine(`expected \`event\`, \`id\` or \`retry\` in \`sse\`, got ${JSON.stringify(name)}`);
    }
    if (/[\r\n]/.test(value)) throw new BadLine(`expected one line as \`${name}\` in \`sse\`, got several`);
    return `${name}: ${value}${lineEnd}`;
  });
  const head = Buffer.from(lines.join(''));
  if (data === null) return Buffer.concat([head, Buffer.from(lineEnd)]);
  if (data.includes(LF) || data.includes(CR)) {
    throw new BadLine(
      'expected one line of data beside `sse`, got several; without `sse`, `text` is the whole block as it is on the wire',
    );
  }
  return Buffer.concat([head, DATA, data, Buffer.from(lineEnd + lineEnd)]);
}
