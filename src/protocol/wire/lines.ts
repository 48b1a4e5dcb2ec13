/**
 * Lines from bytes. Input: the chunks of one direction in any cut. Output: one frame per 0x0A seen, and what
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
import { Fragments } from './fragments.ts';
import type { Frame, FramePart, LineEnd, StdioChannel } from './frame.ts';

export type LineSplitter = {
  /** Takes the next bytes, read at `at` (microseconds). Large pieces are kept by reference until their line ends. */
  feed(bytes: Buffer, at: number): void;
  /**
   * Says that bytes after those fed last were lost. A line in progress is given out as truncated; where the lost
   * bytes ended inside a line, the rest of that line is skipped too. True: the lost bytes began inside a line that is
   * already accounted for, as truncated or as lost.
   */
  gap(endsInsideLine: boolean): boolean;
  /** The stream is over: an unfinished line is given out with an empty line end. */
  end(): void;
  /** The unfinished line so far, as the fragments that arrived, the oldest first. Empty between lines. */
  held(): readonly Buffer[];
};

const LF = 0x0a;

const CR = 0x0d;

const LSP_HEADER = /^content-length:[ \t]*(\d{1,10})[ \t]*$/i;

const LSP_FIELD = /^[\w-]{1,40}:/;

/** The longest line that is looked at as a possible LSP header. */
const LSP_HEADER_MAX = 64;

export function createLineSplitter(options: {
  channel: StdioChannel;
  maxBytes: number;
  onFrame: (frame: Frame) => void;
  /** Called with the number of bytes that are skipped because the beginning of their line was lost. */
  onSkip: (bytes: number) => void;
}): LineSplitter {
  const { channel, maxBytes, onFrame, onSkip } = options;
  let fragments = new Fragments();
  let size = 0;
  let lastAt = 0;
  /** True until the first line that is not blank has been seen. */
  let isStart = true;
  /** After a gap that ended inside a line: everything up to the next line end is part of what was lost. */
  let isResyncing = false;
  let lspLength: number | undefined;
  let isInLspHeader = false;
  let lspBodyLeft = 0;

  function feed(bytes: Buffer, at: number): void {
    lastAt = at;
    let from = 0;
    while (from < bytes.length) {
      if (lspBodyLeft > 0) {
        const to = Math.min(bytes.length, from + lspBodyLeft);
        hold(bytes.subarray(from, to));
        lspBodyLeft -= to - from;
        from = to;
        if (lspBodyLeft === 0) give(fragments.joined(), '', 'lsp-body');
        continue;
      }
      const end = bytes.indexOf(LF, from);
      const to = end === -1 ? bytes.length : end;
      if (isResyncing) {
        isResyncing = end === -1;
        onSkip(to - from + (end === -1 ? 0 : 1));
      } else if (end !== -1 && size === 0 && !isStart && !isInLspHeader && to - from <= maxBytes) {
        // By far the most lines: whole in one chunk, and certainly no LSP header.
        finishPlainLine(bytes, from, to);
      } else {
        hold(bytes.subarray(from, to));
        if (end !== -1) finishLine();
      }
      if (end === -1) return;
      from = end + 1;
    }
  }

  function finishPlainLine(bytes: Buffer, from: number, to: number): void {
    const endsWithCr = to > from && bytes[to - 1] === CR;
    size = to - from - (endsWithCr ? 1 : 0);
    give(bytes.subarray(from, from + size), endsWithCr ? '\r\n' : '\n', 'line');
  }

  function hold(bytes: Buffer): void {
    size += bytes.length;
    const room = maxBytes - fragments.length;
    if (room > 0) fragments.add(bytes.length > room ? bytes.subarray(0, room) : bytes);
  }

  function finishLine(): void {
    const endsWithCr = fragments.length === size && fragments.lastByte() === CR;
    if (endsWithCr) {
      fragments.dropLastByte();
      size -= 1;
    }
    const header = isStart || isInLspHeader ? lspHeader() : undefined;
    give(fragments.joined(), endsWithCr ? '\r\n' : '\n', header ?? 'line');
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
      const isField = size === 0 || LSP_FIELD.test(fragments.joined().toString('latin1', 0, LSP_HEADER_MAX));
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
    const match = LSP_HEADER.exec(fragments.joined().toString('latin1'));
    if (match?.[1] === undefined) return false;
    lspLength = Number(match[1]);
    return true;
  }

  function give(payload: Buffer, lineEnd: LineEnd, part: FramePart, isCut = false): void {
    const truncated = isCut || payload.length < size;
    const frame = { channel, at: lastAt, payload, lineEnd, size, truncated, part, http: null };
    if (fragments.length > 0) fragments = new Fragments();
    size = 0;
    // What follows a body must be a header again, not a line.
    if (part === 'lsp-body') isStart = true;
    onFrame(frame);
  }

  function gap(endsInsideLine: boolean): boolean {
    const beganInsideLine = size > 0 || isResyncing;
    if (size > 0) give(fragments.joined(), '', lspBodyLeft > 0 ? 'lsp-body' : 'line', true);
    lspBodyLeft = 0;
    isInLspHeader = false;
    lspLength = undefined;
    isResyncing = endsInsideLine;
    return beganInsideLine;
  }

  function end(): void {
    if (size > 0) give(fragments.joined(), '', lspBodyLeft > 0 ? 'lsp-body' : 'line');
  }

  return { feed, gap, end, held: () => fragments.pieces() };
}

/**
 * A message as one line, without its end: over stdio messages have no newlines in them (specification, basic/transports), over
 * HTTP they may. In JSON line ends stand between tokens only, so spaces can take their place.
 */
export function oneLine(json: Buffer): Buffer {
  if (!json.includes(LF) && !json.includes(CR)) return json;
  return Buffer.from(json.toString('latin1').replaceAll(/[\r\n]/g, ' '), 'latin1');
}
