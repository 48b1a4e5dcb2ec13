/** The lines of a text file, numbered as editors number them. */

import { constants, isUtf8 } from 'node:buffer';
import { TapedeckError } from '../../errors.ts';
import { byteOrderMarkLength } from '../../protocol/text.ts';
import { BadLine, type Members, NewerFormat, readLine } from './members.ts';

/** `isWhole`: its line end is there, so that nothing can be missing from it. */
export type SourceLine = { number: number; bytes: Buffer; isWhole: boolean };

const LF = 0x0a;

const CR = 0x0d;

/** Nothing longer can become text. */
export const LONGEST = constants.MAX_STRING_LENGTH;

/** Lines end with LF or CR LF; blank ones are counted, and left out. */
export async function* eachLine(source: AsyncIterable<Buffer>): AsyncGenerator<SourceLine> {
  let number = 0;
  let pieces: Buffer[] = [];
  let length = 0;

  function take(isWhole: boolean): SourceLine | null {
    number += 1;
    const [only] = pieces;
    const joined = pieces.length === 1 && only !== undefined ? only : Buffer.concat(pieces, length);
    pieces = [];
    length = 0;
    const bytes = trimmed(joined, number === 1);
    return bytes.length === 0 ? null : { number, bytes, isWhole };
  }

  for await (const chunk of source) {
    for (let from = 0; from < chunk.length; ) {
      const lf = chunk.indexOf(LF, from);
      const piece = chunk.subarray(from, lf === -1 ? chunk.length : lf);
      pieces.push(piece);
      length += piece.length;
      if (length > LONGEST) throw new TooLongLine(number + 1);
      from += piece.length + 1;
      if (lf === -1) continue;
      const line = take(true);
      if (line !== null) yield line;
    }
  }
  const line = take(false);
  if (line !== null) yield line;
}

/** A line that is too long to be read at all. */
class TooLongLine extends BadLine {
  readonly number: number;

  constructor(number: number) {
    super(`expected a line of at most ${LONGEST} bytes, got a longer one`);
    this.number = number;
  }
}

function trimmed(line: Buffer, isFirst: boolean): Buffer {
  let start = isFirst ? byteOrderMarkLength(line) : 0;
  let end = line.length;
  if (line[end - 1] === CR) end -= 1;
  while (end > start && isSpace(line[end - 1])) end -= 1;
  while (start < end && isSpace(line[start])) start += 1;
  return line.subarray(start, end);
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09;
}

/** Throws `BadLine`. */
export function checkUtf8(bytes: Buffer): void {
  if (!isUtf8(bytes)) throw new BadLine('expected UTF-8, got bytes that are none');
}

/** A line that is one JSON object. Throws `BadLine`. */
export function lineMembers({ bytes, isWhole }: SourceLine): Members {
  checkUtf8(bytes);
  try {
    return readLine(bytes);
  } catch (error) {
    if (isWhole || !(error instanceof BadLine)) throw error;
    throw new BadLine(`${error.message} (the last line has no line end: is the file cut off?)`);
  }
}

/** Turns a `BadLine` into the error that people see; returns any other error unchanged. */
export function refusalAt(file: string, line: number, error: unknown): unknown {
  if (!(error instanceof BadLine)) return error;
  const at = error instanceof TooLongLine ? error.number : line;
  return new TapedeckError(
    error instanceof NewerFormat ? 'newer' : 'corrupt',
    `${file}, line ${at}: ${error.message}.`,
    { cause: error },
  );
}

/** The lines of frames, for reports that point at them. */

/** The line of each frame, in the order of their numbers. The source is a text recording that could be read. */
export async function frameLines(source: AsyncIterable<Buffer>): Promise<number[]> {
  const lines: number[] = [];
  for await (const { number, bytes } of eachLine(source)) {
    const line = readLine(bytes);
    if (line.has('channel') && line.flag('unfinished') !== true) lines.push(number);
  }
  return lines;
}

/** Times in a text recording: milliseconds since the line before, exact to the microsecond. */

/** Microseconds as milliseconds, digit by digit: no rounding. */
export function msText(micros: number): string {
  const whole = Math.floor(Math.abs(micros) / 1000);
  const fraction = String(Math.abs(micros) % 1000)
    .padStart(3, '0')
    .replace(/0+$/, '');
  return `${micros < 0 ? '-' : ''}${whole}${fraction === '' ? '' : `.${fraction}`}`;
}

/** Time may run backwards, as a clock that is set does, but not to before 1970. */
export function timeAfter(at: number, ms: number): number {
  const next = at + Math.round(ms * 1000);
  if (Number.isSafeInteger(next) && next >= 0) return next;
  throw new BadLine(`expected a time between 1970 and 2255, got ${ms} ms after the line before`);
}
