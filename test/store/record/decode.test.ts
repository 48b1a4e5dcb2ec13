import zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createStreamDecoder, decodeBody } from '../../../src/protocol/http/codings.ts';

const TEXT = Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}');
const MAX = 1024;

type Compress = (bytes: Buffer) => Buffer;
const zstd = (zlib as unknown as { zstdCompressSync?: Compress }).zstdCompressSync;
const CODED: [coding: string, compress: Compress][] = [
  ['gzip', zlib.gzipSync],
  ['x-gzip', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ['br', zlib.brotliCompressSync],
  ...(zstd === undefined ? [] : [['zstd', zstd] as [string, Compress]]),
];

/** Codings that no table must take for its own. */
const UNKNOWN = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'gzip, br', 'lz9'];

describe('a whole body', () => {
  test.each(CODED)('in %s is decoded', (coding, compress) => {
    expect(decodeBody(compress(TEXT), coding, MAX)).toEqual(TEXT);
  });

  test('without a coding is what it is, larger than the bound too', () => {
    expect(decodeBody(TEXT, '', 4)).toBe(TEXT);
    expect(decodeBody(TEXT, 'identity', 4)).toBe(TEXT);
  });

  test.each(UNKNOWN)('in the coding %s is not decoded', (coding) => {
    expect(decodeBody(TEXT, coding, MAX)).toBeNull();
  });

  test.each(CODED)('that breaks off or is not in %s at all is not decoded', (coding, compress) => {
    expect(decodeBody(compress(TEXT).subarray(0, -4), coding, MAX)).toBeNull();
    expect(decodeBody(Buffer.from('\xff plain text', 'latin1'), coding, MAX)).toBeNull();
    expect(decodeBody(Buffer.alloc(0), coding, MAX)).toBeNull();
  });

  test.each(CODED)('in %s that would grow beyond the bound is not decoded', (coding, compress) => {
    expect(decodeBody(compress(Buffer.alloc(1_000_000)), coding, MAX)).toBeNull();
    expect(decodeBody(compress(Buffer.alloc(MAX)), coding, MAX)).toHaveLength(MAX);
  });

  test.each(CODED)(
    'with bytes behind its end in %s is not decoded, so that they are kept',
    (coding, compress) => {
      expect(decodeBody(Buffer.concat([compress(TEXT), Buffer.from('\0 more')]), coding, MAX)).toBeNull();
    },
  );
});

type Piece = [how: 'decoded' | 'as it is', text: string, at: number];

/** A decoder that notes what came out; what comes out of one piece is joined. */
function listen(coding: string) {
  const out: Piece[] = [];
  const take = (how: Piece[0]) => (bytes: Buffer, at: number) => {
    const last = out.at(-1);
    if (last?.[0] === how && last[2] === at) last[1] += bytes.toString('latin1');
    else out.push([how, bytes.toString('latin1'), at]);
  };
  return { decoder: createStreamDecoder(coding, take('decoded'), take('as it is')), out };
}

/** Pieces as a server sends them that flushes after each. */
async function flushed(compressor: zlib.Gzip | zlib.DeflateRaw, texts: readonly string[]): Promise<Buffer[]> {
  const pieces: Buffer[] = [];
  let piece: Buffer[] = [];
  compressor.on('data', (bytes: Buffer) => piece.push(bytes));
  for (const text of texts) {
    compressor.write(text);
    await new Promise<void>((done) => compressor.flush(zlib.constants.Z_SYNC_FLUSH, () => done()));
    pieces.push(Buffer.concat(piece));
    piece = [];
  }
  return pieces;
}

describe('a stream', () => {
  test('in an unknown coding has no decoder', () => {
    for (const coding of UNKNOWN) expect(listen(coding).decoder).toBeNull();
  });

  test.each([
    ['gzip', zlib.createGzip],
    ['deflate', zlib.createDeflate],
    ['deflate', zlib.createDeflateRaw],
  ])(
    'in %s comes out piece by piece, with the time of the piece that completed it',
    async (coding, create) => {
      const pieces = await flushed(create(), ['one ', 'two ', 'three']);
      const { decoder, out } = listen(coding);
      for (const [i, piece] of pieces.entries()) decoder?.feed(piece, i + 1);
      await decoder?.end();
      expect(out).toEqual([
        ['decoded', 'one ', 1],
        ['decoded', 'two ', 2],
        ['decoded', 'three', 3],
      ]);
    },
  );

  test('comes out before it has ended', async () => {
    const [piece] = await flushed(zlib.createGzip(), ['one']);
    await new Promise<void>((resolve) => {
      const decoder = createStreamDecoder(
        'gzip',
        () => resolve(),
        () => {},
      );
      decoder?.feed(piece as Buffer, 1);
    });
  });

  test('that breaks in the middle is given out as it is from there on', async () => {
    const [one = Buffer.alloc(0)] = await flushed(zlib.createGzip(), ['one']);
    const { decoder, out } = listen('gzip');
    decoder?.feed(one, 1);
    decoder?.feed(Buffer.from('\x07\x07 rubbish', 'latin1'), 2);
    decoder?.feed(Buffer.from('more'), 3);
    await decoder?.end();
    expect(out).toEqual([
      ['decoded', 'one', 1],
      ['as it is', '\x07\x07 rubbish', 2],
      ['as it is', 'more', 3],
    ]);
  });

  test('with bytes behind its end gives them out as they are', async () => {
    for (const [coding, coded] of [
      ['gzip', zlib.gzipSync('one')],
      ['deflate', zlib.deflateSync('one')],
      ['br', zlib.brotliCompressSync('one')],
    ] as const) {
      const { decoder, out } = listen(coding);
      decoder?.feed(Buffer.concat([coded, Buffer.from('\0behind')]), 1);
      decoder?.feed(Buffer.from('later'), 2);
      await decoder?.end();
      expect(out).toEqual([
        ['decoded', 'one', 1],
        ['as it is', '\0behind', 1],
        ['as it is', 'later', 2],
      ]);
    }
  });

  test('of which bytes were lost is not decoded beyond them, and keeps its order', async () => {
    const [one, , three] = (await flushed(zlib.createGzip(), ['one', 'two', 'three'])) as [
      Buffer,
      Buffer,
      Buffer,
    ];
    const { decoder, out } = listen('gzip');
    decoder?.feed(one, 1);
    decoder?.lose();
    decoder?.feed(three, 3);
    await decoder?.end();
    expect(out).toEqual([
      ['decoded', 'one', 1],
      ['as it is', three.toString('latin1'), 3],
    ]);
  });

  test('that has no bytes ends', async () => {
    const { decoder, out } = listen('gzip');
    await decoder?.end();
    expect(out).toEqual([]);
  });
});
