/**
 * Content codings, undone to look into what passes (RFC 9110, 8.4). zstd where this Node has it (22.15 and later).
 */

import zlib from 'node:zlib';

type Decoder = ReturnType<typeof zlib.createGunzip>;

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

export type StreamDecoder = {
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
