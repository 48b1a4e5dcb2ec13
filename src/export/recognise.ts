/** Which format a file is of, told by how it begins. */
import { TapedeckError } from '../errors.ts';
import { eachMember, skipSpace, skipValue } from '../protocol/json.ts';
import { READER_NAMES, READERS, type ReaderName } from './readers.ts';
import { BYTE_ORDER_MARK, LONGEST } from './source-lines.ts';

/** Enough of a document that is one object over many lines to come to the names that tell. */
const DOCUMENT_BYTES = 1024 * 1024;
const LF = 0x0a;
const OPEN_OBJECT = 0x7b;

export type Recognised = { format: ReaderName; source: AsyncIterable<Buffer> };

/** Reads as much as it takes, and gives it with the rest. Throws `TapedeckError` `usage` for a file of no known format. */
export async function recognise(source: AsyncIterable<Buffer>, file: string): Promise<Recognised> {
  const chunks = source[Symbol.asyncIterator]();
  const whole = rejoined(chunks);
  const format = formatOf(await whole.beginning());
  if (format !== null) return { format, source: whole.source };
  await chunks.return?.();
  throw new TapedeckError('usage', `${file}, line 1: ${EXPECTED}.`);
}

const OTHERS = READER_NAMES.filter((name) => name !== 'ndjson').join(', ');
const EXPECTED = `expected a text recording, which begins with {"tapedeck":1,"session":{…}}, or a recording of one of ${OTHERS}, got neither`;

function formatOf(beginning: Buffer): ReaderName | null {
  const names = namesIn(beginning);
  return READER_NAMES.find((name) => READERS[name].signature.every((one) => names.has(one))) ?? null;
}

/** The names of the first object's members, as far as they have come and are JSON. */
function namesIn(beginning: Buffer): ReadonlySet<string> {
  const names = new Set<string>();
  const start = startOf(beginning);
  if (beginning[start] === OPEN_OBJECT) eachMember(beginning, start, (name) => names.add(name));
  return names;
}

function startOf(beginning: Buffer): number {
  return skipSpace(beginning, beginning.subarray(0, 3).equals(BYTE_ORDER_MARK) ? 3 : 0);
}

/** What was read of chunks, again, and then the others. */
function rejoined(chunks: AsyncIterator<Buffer>) {
  const read: Buffer[] = [];
  let length = 0;

  async function readUntil(isEnough: (chunk: Buffer) => boolean): Promise<Buffer> {
    for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) {
      read.push(next.value);
      length += next.value.length;
      if (isEnough(next.value)) break;
    }
    return Buffer.concat(read, length);
  }

  /** The first line; where that is no whole object, the beginning of a document. */
  async function beginning(): Promise<Buffer> {
    const line = await readUntil((chunk) => chunk.includes(LF) || length > LONGEST);
    return skipValue(line, startOf(line)) >= 0 ? line : readUntil(() => length > DOCUMENT_BYTES);
  }

  async function* source(): AsyncGenerator<Buffer> {
    try {
      yield* read;
      for (let next = await chunks.next(); next.done !== true; next = await chunks.next()) yield next.value;
    } finally {
      await chunks.return?.();
    }
  }

  return { beginning, source: source() };
}
