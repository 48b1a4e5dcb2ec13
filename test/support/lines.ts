/** Feeding a line splitter in every cut, for the contract that the cut never shows in the lines. */
import fc from 'fast-check';
import { expect } from 'vitest';
import type { FramePart, LineEnd } from '../../src/protocol/wire/frame.ts';
import { createLineSplitter } from '../../src/protocol/wire/lines.ts';

/** A line without its time. The payload's bytes stand as latin1 text, so that differences can be read. */
export type PlainLine = {
  payload: string;
  lineEnd: LineEnd;
  size: number;
  truncated: boolean;
  part: FramePart;
};

/** A whole line whose text is written as UTF-8. */
export function plainLine(
  text: string | Uint8Array,
  lineEnd: LineEnd = '\n',
  part: FramePart = 'line',
): PlainLine {
  const payload = Buffer.from(text);
  return { payload: payload.toString('latin1'), lineEnd, size: payload.length, truncated: false, part };
}

/** What a splitter makes of these chunks and the end after them. */
export function splitLines(chunks: readonly Uint8Array[], maxBytes = 1024 * 1024): PlainLine[] {
  const lines: PlainLine[] = [];
  const splitter = createLineSplitter({
    channel: 'stdout',
    maxBytes,
    onFrame: ({ payload, lineEnd, size, truncated, part }) =>
      lines.push({ payload: payload.toString('latin1'), lineEnd, size, truncated, part }),
    onSkip: (bytes) => expect.fail(`${bytes} bytes were skipped without a gap`),
  });
  for (const chunk of chunks) splitter.feed(Buffer.from(chunk), 0);
  splitter.end();
  return lines;
}

/** Asserts the same lines for the bytes as a whole, byte by byte, cut in two at every place, and cut at random. */
export function feedEveryWay(input: string | Uint8Array, expected: PlainLine[], maxBytes?: number): void {
  const bytes = Buffer.from(input);
  expect(splitLines([bytes], maxBytes), 'as a whole').toEqual(expected);
  expect(splitLines(cutAt(bytes, [...bytes.keys()]), maxBytes), 'byte by byte').toEqual(expected);
  for (let at = 0; at <= bytes.length; at += 1) {
    expect(splitLines(cutAt(bytes, [at]), maxBytes), `cut at ${at}`).toEqual(expected);
  }
  fc.assert(
    fc.property(cutsOf(bytes.length), (cuts) => {
      expect(splitLines(cutAt(bytes, cuts), maxBytes)).toEqual(expected);
    }),
    { numRuns: 20 },
  );
}

/** Places to cut so many bytes at, in order; a place that stands twice gives an empty chunk. */
export function cutsOf(length: number): fc.Arbitrary<number[]> {
  return fc.array(fc.nat({ max: length }), { maxLength: 12 }).map((cuts) => cuts.sort((a, b) => a - b));
}

export function cutAt(bytes: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  return [...cuts, bytes.length].map((to, i) => bytes.subarray(cuts[i - 1] ?? 0, to));
}
