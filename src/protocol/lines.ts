/**
 * Lines from bytes. Input: the chunks of one direction in any cut. Output: one `Line` per 0x0A seen, and what
 * is left at the end. Contract:
 *
 * - whatever the chunking, the same bytes give the same lines (`at` apart);
 * - no byte is searched twice: a line in progress is held as fragments and joined once, at its end;
 * - memory is bounded by `maxBytes` per line: what exceeds it is counted in `size`, and `truncated` says so;
 * - payload + line end, joined over all lines, are the bytes that came in (where nothing was truncated or lost).
 *
 * MCP's stdio framing is one message per line, UTF-8, newline delimited (specification, basic/transports/stdio).
 * A peer whose very first bytes are an LSP header (`Content-Length: n`) is framed by that length instead,
 * because its messages carry no newline.
 */
import type { FramePart, LineEnd } from './frame.ts';

export type Line = {
  payload: Buffer;
  lineEnd: LineEnd;
  size: number;
  truncated: boolean;
  part: FramePart;
  at: number;
};

export type LineSplitter = {
  /** Takes the next bytes, read at `at` (microseconds). The bytes are kept by reference until their line ends. */
  feed(bytes: Uint8Array, at: number): void;
  /**
   * Says that bytes after those fed last were lost. A line in progress is given out as truncated; where the lost
   * bytes ended inside a line, the rest of that line is skipped too.
   */
  gap(endsInsideLine: boolean): void;
  /** The stream is over: an unfinished line is given out with an empty line end. */
  end(): void;
  /** The unfinished line so far, as the fragments that arrived, the oldest first. Empty between lines. */
  held(): readonly Uint8Array[];
};

const LF = 0x0a;
const CR = 0x0d;
const LSP_HEADER = /^content-length:[ \t]*(\d{1,10})[ \t]*$/i;
const LSP_FIELD = /^[\w-]{1,40}:/;
/** The longest line that is looked at as a possible LSP header. */
const LSP_HEADER_MAX = 64;

export function createLineSplitter(options: {
  maxBytes: number;
  onLine: (line: Line) => void;
  /** Told of bytes that are skipped because the beginning of their line was lost. */
  onSkip: (bytes: number) => void;
}): LineSplitter {
  const { maxBytes, onLine, onSkip } = options;
  let fragments: Uint8Array[] = [];
  let keptBytes = 0;
  let size = 0;
  let lastAt = 0;
  /** True until the first line that is not blank has been seen. */
  let isStart = true;
  /** After a gap that ended inside a line: everything up to the next line end is part of what was lost. */
  let isResyncing = false;
  let lspLength: number | undefined;
  let isInLspHeader = false;
  let lspBodyLeft = 0;

  function feed(bytes: Uint8Array, at: number): void {
    lastAt = at;
    let from = 0;
    while (from < bytes.length) {
      if (lspBodyLeft > 0) {
        const to = Math.min(bytes.length, from + lspBodyLeft);
        hold(bytes.subarray(from, to));
        lspBodyLeft -= to - from;
        from = to;
        if (lspBodyLeft === 0) give('', 'lsp-body');
        continue;
      }
      const end = bytes.indexOf(LF, from);
      if (isResyncing) {
        isResyncing = end === -1;
        onSkip((end === -1 ? bytes.length : end + 1) - from);
      } else {
        hold(bytes.subarray(from, end === -1 ? bytes.length : end));
        if (end !== -1) finishLine();
      }
      if (end === -1) return;
      from = end + 1;
    }
  }

  function hold(bytes: Uint8Array): void {
    size += bytes.length;
    const room = maxBytes - keptBytes;
    if (room <= 0 || bytes.length === 0) return;
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    keptBytes += kept.length;
    fragments.push(kept);
  }

  function finishLine(): void {
    const endsWithCr = keptBytes === size && lastByte() === CR;
    if (endsWithCr) dropLastByte();
    const header = isStart || isInLspHeader || lspLength !== undefined ? lspHeader() : undefined;
    give(endsWithCr ? '\r\n' : '\n', header ?? 'line');
    if (header === 'lsp-header' && !isInLspHeader && lspLength !== undefined) {
      lspBodyLeft = lspLength;
      lspLength = undefined;
      // No body follows, so the next header does.
      if (lspBodyLeft === 0) isStart = true;
    }
  }

  /** Decides whether the line that just ended belongs to an LSP header block, and keeps the block's state. */
  function lspHeader(): FramePart | undefined {
    if (isInLspHeader) {
      const isField = size === 0 || LSP_FIELD.test(joined().toString('latin1', 0, LSP_HEADER_MAX));
      if (size === 0 || !isField) isInLspHeader = false;
      else readLength();
      if (!isField) lspLength = undefined;
      return isField ? 'lsp-header' : undefined;
    }
    if (size > 0) isStart = false;
    if (size === 0 || size > LSP_HEADER_MAX || !readLength()) return undefined;
    isInLspHeader = true;
    return 'lsp-header';
  }

  function readLength(): boolean {
    const match = LSP_HEADER.exec(joined().toString('latin1'));
    if (match?.[1] === undefined) return false;
    lspLength = Number(match[1]);
    return true;
  }

  function give(lineEnd: LineEnd, part: FramePart, isBroken = false): void {
    const truncated = isBroken || keptBytes < size;
    const line = { payload: joined(), lineEnd, size, truncated, part, at: lastAt };
    fragments = [];
    keptBytes = 0;
    size = 0;
    // After an LSP body the next bytes must be a header again, not a line.
    if (part === 'lsp-body') isStart = true;
    onLine(line);
  }

  function joined(): Buffer {
    const [first] = fragments;
    if (first === undefined) return Buffer.alloc(0);
    if (fragments.length === 1) return Buffer.from(first.buffer, first.byteOffset, first.length);
    const whole = Buffer.concat(fragments, keptBytes);
    fragments = [whole];
    return whole;
  }

  function lastByte(): number | undefined {
    return fragments.at(-1)?.at(-1);
  }

  function dropLastByte(): void {
    const last = fragments.pop();
    if (last !== undefined && last.length > 1) fragments.push(last.subarray(0, -1));
    keptBytes -= 1;
    size -= 1;
  }

  function gap(endsInsideLine: boolean): void {
    if (size > 0) give('', lspBodyLeft > 0 ? 'lsp-body' : 'line', true);
    lspBodyLeft = 0;
    isInLspHeader = false;
    lspLength = undefined;
    isResyncing = endsInsideLine;
  }

  function end(): void {
    if (size > 0) give('', lspBodyLeft > 0 ? 'lsp-body' : 'line');
  }

  return { feed, gap, end, held: () => fragments };
}
