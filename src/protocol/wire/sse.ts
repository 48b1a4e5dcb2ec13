/**
 * Event stream blocks from bytes, and what stands in a block. Input of the splitter: the chunks of one event stream, in
 * any cut, without transfer or content coding. Output: one block per event, comment or priming event. Contract:
 *
 * - a block ends with an empty line; a line ends with LF, CR LF or CR. Further empty lines belong to the front of the
 *   block after them;
 * - a block is given out as soon as its empty line is there, even if that is a CR as the last byte of a chunk. An LF that
 *   begins the next chunk then stands at the front of the next block. In all else, whatever the chunking, the same bytes
 *   give the same blocks (`at` apart);
 * - no byte is searched twice for the same line end: a block in progress is held as fragments and joined once;
 * - memory is bounded by `maxBytes` per block: what exceeds it is counted in `size`, and `truncated` says so;
 * - payloads, joined over all blocks, are the bytes that came in (where nothing was truncated, lost or skipped).
 *
 * The grammar is WHATWG HTML, 9.2.5 and 9.2.6 (server-sent events: parsing and interpreting an event stream).
 */

import { createParser } from 'eventsource-parser';
import { memoize } from '../bounded.ts';
import { byteOrderMarkLength } from '../text.ts';
import { Fragments } from './fragments.ts';

/**
 * One block of an event stream: everything up to and including the empty line that ends it. `at` is when its last byte
 * was read, in microseconds since the Unix epoch. `size` counts all of it, also what `payload` lacks where `truncated`.
 * Not complete: the stream ended, or bytes were lost, before its empty line had come.
 */
export type SseBlock = { at: number; payload: Buffer; size: number; truncated: boolean; isComplete: boolean };

type SseSplitter = {
  /** Takes the next bytes, read at `at` (microseconds). Large pieces are kept by reference until their block ends. */
  feed(bytes: Buffer, at: number): void;
  /**
   * Says that bytes after those fed last were lost. A block in progress is given out as truncated and not complete. Where
   * the lost bytes ended is unknown, so everything up to the end of the next block is skipped.
   */
  gap(): void;
  /** The stream is over: passes what is held to `onBlock`. Line ends alone are complete, anything else is not. */
  end(): void;
  /** The unfinished block so far, as the fragments that arrived, the oldest first. Empty between blocks. */
  held(): readonly Buffer[];
};

const EMPTY = Buffer.alloc(0);

const LF = 0x0a;

const CR = 0x0d;

const SPACE = 0x20;

const COLON = 0x3a;

export function createSseSplitter(options: {
  maxBytes: number;
  onBlock: (block: SseBlock) => void;
  /** Gets all bytes of a block that outgrew `maxBytes`, in order and before its `onBlock`: what was kept, then the rest. */
  onOversize: (bytes: Buffer) => void;
  /** Called with the number of bytes that are skipped because what stood before them was lost. */
  onSkip: (bytes: number) => void;
}): SseSplitter {
  const { maxBytes, onBlock, onOversize, onSkip } = options;
  let fragments = new Fragments();
  let size = 0;
  let lastAt = 0;
  /** Nothing of the current line has come, except perhaps the LF of the line end before it. */
  let isLineEmpty = true;
  /** The block has a line that is not empty, so that an empty one ends it. */
  let hasContent = false;
  /** The last byte was a CR, so that an LF would belong to the same line end. */
  let isAfterCr = false;
  /** After a gap: everything up to the next empty line may be the rest of a block whose beginning was lost. */
  let isResyncing = false;

  function feed(bytes: Buffer, at: number): void {
    lastAt = at;
    if (bytes.length === 0) return;
    const lineEnd = createLineEndFinder(bytes);
    let blockStart = 0;
    let from = isAfterCr && bytes[0] === LF ? 1 : 0;
    while (from < bytes.length) {
      const to = lineEnd(from);
      if (to > from) isLineEmpty = false;
      if (!isLineEmpty) hasContent = true;
      if (to === bytes.length) break;
      from = afterLineEnd(bytes, to);
      if (isLineEmpty && hasContent) {
        finish(bytes.subarray(blockStart, from));
        blockStart = from;
      }
      isLineEmpty = true;
    }
    isAfterCr = bytes[bytes.length - 1] === CR;
    if (blockStart < bytes.length) take(bytes.subarray(blockStart));
  }

  /** The last bytes of a block, its empty line among them. */
  function finish(bytes: Buffer): void {
    if (isResyncing) {
      onSkip(bytes.length);
      isResyncing = false;
      hasContent = false;
    } else if (size === 0 && bytes.length <= maxBytes) {
      // By far the most blocks: whole in one chunk.
      hasContent = false;
      onBlock({ at: lastAt, payload: bytes, size: bytes.length, truncated: false, isComplete: true });
    } else {
      hold(bytes);
      give(true);
    }
  }

  function take(bytes: Buffer): void {
    if (isResyncing) onSkip(bytes.length);
    else hold(bytes);
  }

  function hold(bytes: Buffer): void {
    const wasOversize = size > fragments.length;
    const room = maxBytes - fragments.length;
    size += bytes.length;
    if (room > 0) fragments.add(bytes.subarray(0, room));
    if (bytes.length <= room) return;
    if (!wasOversize) for (const fragment of fragments.pieces()) onOversize(fragment);
    onOversize(bytes.subarray(room));
  }

  function give(isComplete: boolean, isCut = false): void {
    const truncated = isCut || fragments.length < size;
    const block = { at: lastAt, payload: fragments.joined(), size, truncated, isComplete };
    fragments = new Fragments();
    size = 0;
    hasContent = false;
    onBlock(block);
  }

  function gap(): void {
    if (size > 0) give(false, true);
    isResyncing = true;
    // Nobody knows whether the next byte begins a line, so its line is taken for one that is not empty.
    isLineEmpty = false;
    isAfterCr = false;
  }

  function end(): void {
    if (size > 0) give(!hasContent);
  }

  return { feed, gap, end, held: () => fragments.pieces() };
}

/**
 * Finds the next LF or CR from a position on, or the length where there is none. The positions asked for may only grow:
 * the next of either kind is remembered, because bytes with one kind only would be searched to their end for every line.
 */
function createLineEndFinder(bytes: Buffer): (from: number) => number {
  let lf = -1;
  let cr = -1;
  return (from) => {
    if (lf < from) lf = positionOf(bytes, LF, from);
    if (cr < from) cr = positionOf(bytes, CR, from);
    return Math.min(lf, cr);
  };
}

function positionOf(bytes: Buffer, byte: number, from: number): number {
  const position = bytes.indexOf(byte, from);
  return position === -1 ? bytes.length : position;
}

function afterLineEnd(bytes: Buffer, lineEnd: number): number {
  return bytes[lineEnd] === CR && bytes[lineEnd + 1] === LF ? lineEnd + 2 : lineEnd + 1;
}

/**
 * What a block says. Of a field that stands several times the last one counts, except `data`.
 *
 * `event` is null also where it is empty, which means the same. `id` may be empty, which is not the same as none; one
 * with a NUL does not count. `retry` is the text as sent, digits or not. `data` has the very bytes, valid UTF-8 or not:
 * those of the block where it is one line, else the lines joined by LF. Length 0: an empty data line; null: none at all.
 */
export type SseFields = {
  event: string | null;
  id: string | null;
  retry: string | null;
  data: Buffer | null;
  hasComment: boolean;
};

/** The fields that are text; a comment is a field without a name. */
const TEXT_FIELDS = new Set(['event', 'id', 'retry', '']);

/** One more than the longest field name has. */
const NAME_AND_COLON_MAX = 6;

/** Reads one block's fields: the first block's if there are several, and what came of it if it is not complete. */
export function readSse(block: Buffer): SseFields {
  let texts: Map<string, Buffer> | undefined;
  const data = createDataJoiner(block.length);
  for (const line of linesOf(block)) {
    const name = fieldName(line);
    if (name === 'data') data.add(fieldValue(line));
    else if (TEXT_FIELDS.has(name) && !(name === 'id' && line.includes(0))) {
      texts ??= new Map();
      texts.set(name, line);
    }
  }
  const { event, id, retry, hasComment } = texts === undefined ? NO_TEXTS : readTexts(texts, block.length);
  return { event, id, retry, hasComment, data: data.joined() };
}

/**
 * Whether a block holds a message: it has data that is not empty, and its event type is absent, empty or `message`.
 */
export function isMessageEvent({ data, event }: SseFields): boolean {
  return data !== null && data.length > 0 && (event === null || event === '' || event === 'message');
}

/** The lines of one block, without their line ends, from the first that is not empty up to the empty one after it. */
export function* linesOf(block: Buffer): Generator<Buffer> {
  const lineEnd = createLineEndFinder(block);
  let hasContent = false;
  let from = byteOrderMarkLength(block);
  while (from < block.length) {
    const to = lineEnd(from);
    if (to > from) yield block.subarray(from, to);
    else if (hasContent) return;
    hasContent ||= to > from;
    from = afterLineEnd(block, to);
  }
}

export function fieldName(line: Buffer): string {
  const most = Math.min(line.length, NAME_AND_COLON_MAX);
  let end = 0;
  while (end < most && line[end] !== COLON) end += 1;
  return line.toString('latin1', 0, end);
}

export function fieldValue(line: Buffer): Buffer {
  const colon = line.indexOf(COLON);
  if (colon === -1) return EMPTY;
  return line.subarray(line[colon + 1] === SPACE ? colon + 2 : colon + 1);
}

/** Joins the values of data lines. Of one line nothing is copied; several share one buffer, however many they are. */
function createDataJoiner(maxBytes: number): { add(value: Buffer): void; joined(): Buffer | null } {
  let first: Buffer | null = null;
  let all: Buffer | null = null;
  let length = 0;

  function add(value: Buffer): void {
    if (first === null) {
      first = value;
      return;
    }
    if (all === null) {
      all = Buffer.allocUnsafe(maxBytes);
      length = first.copy(all);
    }
    all[length] = LF;
    length += 1 + value.copy(all, length + 1);
  }

  return { add, joined: () => all?.subarray(0, length) ?? first };
}

type Texts = Omit<SseFields, 'data'>;

const NO_TEXTS: Texts = { event: null, id: null, retry: null, hasComment: false };

/** Most blocks have no other line, and always the same one. */
const readEventLine = memoize((line) => parseTexts([line], EMPTY, line.length));

/** Reads the lines that count, all but `data`, by their names. */
function readTexts(lines: ReadonlyMap<string, Buffer>, blockSize: number): Texts {
  const event = lines.size === 1 ? lines.get('event') : undefined;
  if (event !== undefined) return readEventLine(event.toString());
  const texts = [...lines.values()].map((line) => line.toString());
  return parseTexts(texts, lines.get('retry') ?? EMPTY, blockSize);
}

/**
 * The parser is fed line by line, because text with a lone CR in it takes it quadratic time. It forgets `id` and `event` of a
 * block without data, so that an empty data line closes every block.
 */
function parseTexts(lines: readonly string[], retry: Buffer, blockSize: number): Texts {
  const fields: Texts = { ...NO_TEXTS };
  const readRetry = () => {
    // The parser makes a number of it, which loses leading zeros and, beyond 2^53, digits.
    fields.retry = fieldValue(retry).toString();
  };
  const parser = createParser({
    maxBufferSize: blockSize + NAME_AND_COLON_MAX,
    onEvent: ({ event = null, id = null }) => {
      fields.event = event;
      fields.id = id;
    },
    onComment: () => {
      fields.hasComment = true;
    },
    onRetry: readRetry,
    // The only lines it gets that it may object to are those whose retry is no number.
    onError: readRetry,
  });
  for (const line of lines) parser.feed(`${line}\n`);
  parser.feed('data\n\n');
  return fields;
}
