/** One HTTP body on its way into a frame: kept up to a bound, hashed where it outgrows it. */
import { createHash, type Hash } from 'node:crypto';
import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { Fragments } from '../../protocol/wire/fragments.ts';
import { createSseSplitter, type SseBlock } from '../../protocol/wire/sse.ts';

export type CollectedBody = {
  /** Without its content coding, if that could be undone. */
  payload: Buffer;
  size: number;
  truncated: boolean;
  sha256: string | null;
  isDecoded: boolean;
  /** What the sender had sent, where an edit made a difference. */
  original: Buffer | null;
};

/** A class, because there is one for every body, and closures cost more. */
export class BodyCollector {
  readonly #maxBytes: number;
  readonly #fragments = new Fragments();
  /** The body as its sender sent it, once an edit has made a difference. */
  #originals: Uint8Array[] | null = null;
  #size = 0;
  #hasLost = false;
  #hash: Hash | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that passed. */
  get size(): number {
    return this.#size;
  }

  /** What is kept so far, in pieces. */
  get held(): readonly Buffer[] {
    return this.#fragments.pieces();
  }

  /** Returns how many of the bytes are lost, because others before them are. */
  feed(bytes: Buffer, original?: Uint8Array): number {
    if (original !== undefined) this.#originals ??= [...this.#fragments.pieces()];
    this.#originals?.push(original ?? bytes);
    this.#size += bytes.length;
    const room = this.#hasLost ? 0 : this.#maxBytes - this.#fragments.length;
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    this.#fragments.add(kept);
    if (this.#hasLost) return bytes.length;
    if (kept.length < bytes.length) this.#hashBeyond(bytes.subarray(kept.length));
    return 0;
  }

  /** Says that the next bytes were lost. True: they are the first. */
  lose(bytes: number): boolean {
    const isFirst = !this.#hasLost;
    this.#size += bytes;
    this.#hasLost = true;
    return isFirst;
  }

  /** Undoes the content coding, if it is there to undo. */
  collect(coding: string): CollectedBody {
    const bytes = this.#fragments.joined();
    const truncated = bytes.length < this.#size;
    const decoded = truncated ? null : decodeBody(bytes, coding, this.#maxBytes);
    const payload = decoded ?? bytes;
    return {
      payload,
      size: truncated ? this.#size : payload.length,
      truncated,
      sha256: this.#hash === null || this.#hasLost ? null : this.#hash.digest('hex'),
      isDecoded: decoded !== null || isIdentity(coding),
      original: this.#original(coding),
    };
  }

  #hashBeyond(rest: Buffer): void {
    if (this.#hash === null) {
      this.#hash = createHash('sha256');
      for (const piece of this.#fragments.pieces()) this.#hash.update(piece);
    }
    this.#hash.update(rest);
  }

  #original(coding: string): Buffer | null {
    if (this.#originals === null) return null;
    const bytes = Buffer.concat(this.#originals);
    return decodeBody(bytes, coding, this.#maxBytes) ?? bytes;
  }
}

/** An event stream on its way into frames: without its content coding, block by block, each with its own time. */

/** `original` where an edit made a difference; `isDecoded` false for a piece that is still in its content coding. */
export type StreamBlock = SseBlock & { original: Buffer | null; sha256: string | null; isDecoded: boolean };

export type EventCollector = {
  feed(bytes: Buffer, at: number, original?: Uint8Array): void;
  /** Says that the next bytes were lost. */
  lose(): void;
  /** The unfinished block so far, in pieces. */
  held(): readonly Buffer[];
  /** Calls `onBlock` with what is left; settles when that is done. Undefined: it is done. */
  end(): Promise<void> | undefined;
};

export function createEventCollector(options: {
  coding: string;
  maxBytes: number;
  onBlock: (block: StreamBlock) => void;
  /** Called with the number of bytes after lost ones that are not kept either, because their block cannot be made out. */
  onSkip: (bytes: number) => void;
}): EventCollector {
  const { coding, maxBytes, onBlock, onSkip } = options;
  let hash: Hash | undefined;
  let originals: SseBlock[] = [];

  const splitter = createSseSplitter({
    maxBytes,
    onSkip,
    onOversize(bytes) {
      hash ??= createHash('sha256');
      hash.update(bytes);
    },
    onBlock({ at, payload, size, truncated, isComplete }) {
      const before = originals.length === 0 ? undefined : originals.shift()?.payload;
      const original = before === undefined || before.equals(payload) ? null : before;
      const sha256 = hash?.digest('hex') ?? null;
      // Not spread: there may be tens of thousands of them a second.
      onBlock({ at, payload, size, truncated, isComplete, original, sha256, isDecoded: true });
      hash = undefined;
    },
  });

  function feed(bytes: Buffer, at: number, original?: Uint8Array): void {
    // Lines of the block that came before the edit are held, and were the same.
    if (original !== undefined) originals = blocksOf(Buffer.concat([...splitter.held(), original]), maxBytes);
    splitter.feed(bytes, at);
    originals = [];
  }

  function giveUndecoded(payload: Buffer, at: number): void {
    // A block that was being decoded comes before.
    splitter.end();
    const block = { at, payload, size: payload.length, truncated: false, isComplete: true };
    onBlock({ ...block, original: null, sha256: null, isDecoded: false });
  }

  if (isIdentity(coding)) {
    return {
      feed,
      lose: splitter.gap,
      held: splitter.held,
      end() {
        splitter.end();
        return undefined;
      },
    };
  }
  const decoder = createStreamDecoder(coding, feed, giveUndecoded);
  return {
    feed: decoder?.feed ?? giveUndecoded,
    lose: decoder?.lose ?? (() => {}),
    held: splitter.held,
    async end() {
      await decoder?.end();
      splitter.end();
    },
  };
}

/** An edit is made in a piece that ends its block. */
function blocksOf(bytes: Buffer, maxBytes: number): SseBlock[] {
  const blocks: SseBlock[] = [];
  const onBlock = (block: SseBlock) => void blocks.push(block);
  const splitter = createSseSplitter({ maxBytes, onBlock, onSkip: () => {}, onOversize: () => {} });
  splitter.feed(bytes, 0);
  return blocks;
}

/**
 * Content codings, undone for the record alone: what passes stays as it is (RFC 9110, 8.4). zstd where this Node has it
 * (22.15 and later).
 */

type Decoder = Transform & zlib.Zlib;

type Coding = {
  whole: (bytes: Buffer, options: { maxOutputLength: number; info: true }) => Buffer;
  /** `start` is how the stream begins. */
  stream: (start: Buffer) => Decoder;
};

/** A stream that breaks off is no error: what came before is given out. */
const OPEN_ENDED = { finishFlush: zlib.constants.Z_SYNC_FLUSH };

// A map: the coding is any word that a server likes, `constructor` too.
const CODINGS: ReadonlyMap<string, Coding> = new Map([
  ['gzip', { whole: zlib.gunzipSync, stream: () => zlib.createGunzip(OPEN_ENDED) }],
  ['x-gzip', { whole: zlib.gunzipSync, stream: () => zlib.createGunzip(OPEN_ENDED) }],
  // Senders disagree whether deflate has zlib's header.
  ['deflate', { whole: inflateEither, stream: createInflateEither }],
  [
    'br',
    {
      whole: zlib.brotliDecompressSync,
      stream: () => zlib.createBrotliDecompress({ finishFlush: zlib.constants.BROTLI_OPERATION_FLUSH }),
    },
  ],
  ...zstd(),
]);

/** The body without its coding (as in `Content-Encoding`); null where that is unknown, or the body is not in it. */
export function decodeBody(bytes: Buffer, coding: string, maxBytes: number): Buffer | null {
  if (isIdentity(coding)) return bytes;
  try {
    return wholly(bytes, CODINGS.get(coding)?.whole(bytes, { maxOutputLength: maxBytes, info: true }));
  } catch {
    return null;
  }
}

/** Null where bytes follow the end of what is coded: they would be lost. (With `info`, Node returns an object.) */
function wholly(bytes: Buffer, decoded: unknown): Buffer | null {
  if (decoded === undefined) return null;
  const { buffer, engine } = decoded as { buffer: Buffer; engine: zlib.Zlib };
  return engine.bytesWritten === bytes.length ? buffer : null;
}

export function isIdentity(coding: string): boolean {
  return coding === '' || coding === 'identity';
}

type StreamDecoder = {
  feed(bytes: Buffer, at: number): void;
  /** Says that the next bytes were lost. */
  lose(): void;
  /** Settles when all that was fed has come out. */
  end(): Promise<void>;
};

type Piece = { bytes: Buffer; at: number };

/**
 * Decodes a stream as it comes: `onBytes` gets what came out of a piece with the time of that piece. From the first piece
 * that cannot be decoded on, `onUndecoded` gets the pieces as they are. Null where the coding is unknown.
 */
export function createStreamDecoder(
  coding: string,
  onBytes: (bytes: Buffer, at: number) => void,
  onUndecoded: (bytes: Buffer, at: number) => void,
): StreamDecoder | null {
  const known = CODINGS.get(coding);
  return known === undefined ? null : streamDecoder(known, onBytes, onUndecoded);
}

function streamDecoder(
  { stream }: Coding,
  onBytes: (bytes: Buffer, at: number) => void,
  onUndecoded: (bytes: Buffer, at: number) => void,
): StreamDecoder {
  let decoder: Decoder | undefined;
  /** In the decoder, and not out yet. */
  const waiting: Piece[] = [];
  /** Came after the decoder's end, and before all was out. */
  const rest: Piece[] = [];
  let fed = 0;
  let isOver = false;
  let isSettled = false;
  let onSettled = () => {};
  const settled = new Promise<void>((resolve) => {
    onSettled = resolve;
  });

  function begin(start: Buffer): Decoder {
    const begun = stream(start);
    begun.on('data', (bytes: Buffer) => onBytes(bytes, waiting[0]?.at ?? 0));
    begun.on('error', () => settle(waiting));
    begun.on('end', () => settle(lastBytes(waiting, fed - begun.bytesWritten)));
    return begun;
  }

  function settle(left: readonly Piece[]): void {
    if (isSettled) return;
    isOver = true;
    isSettled = true;
    for (const { bytes, at } of [...left, ...rest]) onUndecoded(bytes, at);
    onSettled();
  }

  function finish(): void {
    if (isOver) return;
    isOver = true;
    if (decoder === undefined) settle([]);
    else decoder.end();
  }

  return {
    feed(bytes, at) {
      if (isSettled) onUndecoded(bytes, at);
      else if (isOver) rest.push({ bytes, at });
      else {
        decoder ??= begin(bytes);
        waiting.push({ bytes, at });
        fed += bytes.length;
        decoder.write(bytes, (error) => {
          if (!error) waiting.shift();
        });
      }
    },
    // What follows a gap cannot be decoded.
    lose: finish,
    end() {
      finish();
      return settled;
    },
  };
}

/** So many bytes of the pieces, counted from their end. */
function lastBytes(pieces: readonly Piece[], count: number): Piece[] {
  let skipped = pieces.reduce((sum, { bytes }) => sum + bytes.length, 0) - count;
  const last: Piece[] = [];
  for (const { bytes, at } of pieces) {
    const from = Math.min(bytes.length, Math.max(0, skipped));
    skipped -= from;
    if (from < bytes.length) last.push({ bytes: bytes.subarray(from), at });
  }
  return last;
}

function inflateEither(bytes: Buffer, options: { maxOutputLength: number; info: true }): Buffer {
  return hasZlibHeader(bytes) ? zlib.inflateSync(bytes, options) : zlib.inflateRawSync(bytes, options);
}

function createInflateEither(start: Buffer): Decoder {
  return hasZlibHeader(start) ? zlib.createInflate(OPEN_ENDED) : zlib.createInflateRaw(OPEN_ENDED);
}

/** RFC 1950, 2.2: the method stands in the low half of the first byte. No raw stream begins with an 8 there. */
function hasZlibHeader(bytes: Buffer): boolean {
  return ((bytes[0] ?? 0) & 0x0f) === 8;
}

function zstd(): [coding: string, Coding][] {
  const { zstdDecompressSync, createZstdDecompress } = zlib as unknown as {
    zstdDecompressSync?: Coding['whole'];
    createZstdDecompress?: (options: { finishFlush: number | undefined }) => Decoder;
  };
  const finishFlush = (zlib.constants as unknown as { ZSTD_e_flush?: number }).ZSTD_e_flush;
  if (zstdDecompressSync === undefined || createZstdDecompress === undefined) return [];
  return [['zstd', { whole: zstdDecompressSync, stream: () => createZstdDecompress({ finishFlush }) }]];
}
