/** The formats in which sessions come into the store. Those in which they leave it: formats.ts. */

import { TapedeckError } from '../../errors.ts';
import { eachMember, skipSpace, skipValue } from '../../protocol/json/read.ts';
import { byteOrderMarkLength } from '../../protocol/text.ts';
import type { Store } from '../../store/file/open.ts';
import { LONGEST } from '../text/lines.ts';
import { type ImportOptions, readNdjson } from '../text/read.ts';
import { isReport, recordingIn } from '../text/report.ts';
import { readCassette } from './cassette.ts';
import { readMcporter } from './mcporter.ts';
import { readMcpsnoop } from './mcpsnoop.ts';
import { readVcr } from './vcr.ts';

type Reader = {
  describe: string;
  /** The first JSON object of such a file has members of all these names. Null: it begins otherwise. */
  signature: readonly string[] | null;
  /**
   * Stores the sessions of the source and returns their public ids. Throws `TapedeckError` `corrupt` or `newer` for a
   * source that cannot be read; then nothing of it is stored.
   */
  read(store: Store, source: AsyncIterable<Buffer>, options: ImportOptions): Promise<string[]>;
};

export const READERS = {
  ndjson: {
    describe: 'a text recording',
    signature: ['tapedeck'],
    read: readRecording,
  },
  'mcp-cassette': {
    describe: 'JSON Lines of ivermin1123/mcp-cassette, version 1 and 2',
    signature: ['type', 'cassetteVersion'],
    read: readCassette,
  },
  html: {
    describe: 'a report, which `export --format html` wrote',
    signature: null,
    read: readReport,
  },
  mcpsnoop: {
    describe: 'JSON Lines of kerlenton/mcpsnoop',
    signature: ['session_id', 'direction'],
    read: readMcpsnoop,
  },
  mcporter: {
    describe: 'NDJSON of openclaw/mcporter',
    signature: ['jsonrpc', '_meta'],
    read: readMcporter,
  },
  'agent-vcr': {
    describe: 'a .vcr file of Jarvis2021/agent-vcr, format 1',
    signature: ['format_version', 'metadata'],
    read: readVcr,
  },
} as const satisfies Record<string, Reader>;

async function readRecording(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  return [await readNdjson(store, source, options)];
}
/** A report holds the text recording that it was made of. */
async function readReport(
  store: Store,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<string[]> {
  return [await readNdjson(store, recordingIn(source, options.file), options)];
}

export type ReaderName = keyof typeof READERS;

export const READER_NAMES = Object.keys(READERS) as ReaderName[];

/** Recognises the format of a file by its beginning. */

/** Enough of a document that is one object over many lines to come to the names that tell. */
const DOCUMENT_BYTES = 1024 * 1024;

const LF = 0x0a;

const OPEN_OBJECT = 0x7b;

type SourceFormat = { format: ReaderName; source: AsyncIterable<Buffer> };

/** Reads as much as is needed; the returned source has all of it. Throws `TapedeckError` `corrupt` for a file of no known format. */
export async function recognise(source: AsyncIterable<Buffer>, file: string): Promise<SourceFormat> {
  const chunks = source[Symbol.asyncIterator]();
  const whole = rejoined(chunks);
  const format = formatOf(await whole.beginning());
  if (format !== null) return { format, source: whole.source };
  await chunks.return?.();
  throw new TapedeckError('corrupt', `${file}, line 1: ${EXPECTED}.`);
}

const OTHERS = READER_NAMES.filter((name) => name !== 'ndjson' && name !== 'html').join(', ');

const EXPECTED = `expected a text recording, which begins with {"tapedeck":1,"session":{…}}, a report of tapedeck, or a recording of one of ${OTHERS}, got none of them`;

function formatOf(beginning: Buffer): ReaderName | null {
  if (isReport(beginning)) return 'html';
  const names = namesIn(beginning);
  const isOf = (name: ReaderName) => READERS[name].signature?.every((one) => names.has(one)) === true;
  return READER_NAMES.find(isOf) ?? null;
}

/** The names of the first object's members, as far as they have come and are JSON. */
function namesIn(beginning: Buffer): ReadonlySet<string> {
  const names = new Set<string>();
  const start = startOf(beginning);
  if (beginning[start] === OPEN_OBJECT) eachMember(beginning, start, (name) => names.add(name));
  return names;
}

function startOf(beginning: Buffer): number {
  return skipSpace(beginning, byteOrderMarkLength(beginning));
}

/** The chunks that were read already, and then the rest. */
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
