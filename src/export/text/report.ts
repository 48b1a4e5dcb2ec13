/**
 * The file of a report (`export --format html`) as far as an import is concerned: lines with blocks, each a `<script
 * type="text/plain">` whose text is packed with gzip and in base64. Those named `recording-0`, `recording-1` … are, one after
 * another, the text recording that the report was made of.
 */

import { gunzipSync, gzipSync } from 'node:zlib';
import { TapedeckError } from '../../errors.ts';
import { eachLine } from './lines.ts';

/** What is written, and the newest that is read. */
const REPORT_FORMAT = 1;

/** How the file of every report begins, up to the number of its format. */
const BEGINNING = '<!doctype html><html lang="en" data-tapedeck-report="';

export const REPORT_HEAD = `${BEGINNING}${REPORT_FORMAT}">`;

/** So much goes into one block before it is packed. */
export const BLOCK_BYTES = 1_000_000;

/** A block as a line. Base64 has no character that means anything in HTML. */
export function reportBlock(id: string, bytes: Uint8Array): string {
  return `<script type="text/plain" id="${id}">${gzipSync(bytes).toString('base64')}</script>\n`;
}

/** The blocks of a text recording, and behind them how many they are. */
export function* recordingBlocks(recording: Iterable<string>): Generator<string> {
  let count = 0;
  let waiting: Buffer[] = [];
  let bytes = 0;
  function take(): string {
    const block = reportBlock(`recording-${count}`, Buffer.concat(waiting));
    count += 1;
    waiting = [];
    bytes = 0;
    return block;
  }
  for (const text of recording) {
    const piece = Buffer.from(text);
    for (let at = 0; at < piece.length; at += BLOCK_BYTES) {
      const part = piece.subarray(at, at + BLOCK_BYTES);
      if (bytes + part.length > BLOCK_BYTES) yield take();
      waiting.push(part);
      bytes += part.length;
    }
  }
  if (bytes > 0) yield take();
  yield `<meta name="tapedeck-recording" content="${count} blocks">\n`;
}

export function isReport(beginning: Buffer): boolean {
  return beginning.toString('latin1', 0, BEGINNING.length).toLowerCase() === BEGINNING;
}

const BLOCK = /^<script type="text\/plain" id="recording-(\d+)">([A-Za-z0-9+/=]*)<\/script>$/;

const COUNT = /^<meta name="tapedeck-recording" content="(\d+) blocks">$/;

/** The text recording that a report holds. Throws `TapedeckError`: `corrupt`, or `newer` for a format that is newer. */
export async function* recordingIn(source: AsyncIterable<Buffer>, file: string): AsyncGenerator<Buffer> {
  let count = 0;
  let expected: number | null = null;
  for await (const { bytes, number } of eachLine(source)) {
    if (number === 1) checkFormat(bytes, file);
    if (bytes[0] !== LESS_THAN) continue;
    const line = bytes.toString('latin1');
    const [, own, packed] = BLOCK.exec(line) ?? [];
    expected ??= COUNT.test(line) ? Number(COUNT.exec(line)?.[1]) : null;
    if (own === undefined || packed === undefined) continue;
    if (Number(own) !== count)
      throw broken(file, number, `expected block ${count} of the recording, got ${own}`);
    count += 1;
    yield unpacked(packed, file, number);
  }
  if (expected === null || expected !== count)
    throw new TapedeckError('corrupt', `${file}: expected a whole report, got one that breaks off.`);
}

const LESS_THAN = 0x3c;

function unpacked(packed: string, file: string, line: number): Buffer {
  try {
    return gunzipSync(Buffer.from(packed, 'base64'));
  } catch {
    throw broken(file, line, 'expected a block that gzip has packed, got something else');
  }
}

function broken(file: string, line: number, what: string): TapedeckError {
  return new TapedeckError('corrupt', `${file}, line ${line}: ${what}.`);
}

function checkFormat(firstLine: Buffer, file: string): void {
  const format = Number.parseInt(firstLine.toString('latin1', BEGINNING.length), 10);
  if (format > REPORT_FORMAT)
    throw new TapedeckError(
      'newer',
      `${file} was written by a newer tapedeck (report ${format}, this one knows ${REPORT_FORMAT}): update mcp-tapedeck`,
    );
}
