import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BodyCollector } from '../../../src/store/record/http-bodies.ts';

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');
const ORDINARY = { truncated: false, sha256: null, isDecoded: true, original: null };

test('a body within the bound is kept, however it is cut', () => {
  const body = new BodyCollector(10);
  for (const piece of ['01234', '', '56789']) body.feed(Buffer.from(piece));
  expect(body.size).toBe(10);
  expect(Buffer.concat(body.held).toString()).toBe('0123456789');
  expect(body.collect('')).toEqual({ ...ORDINARY, payload: Buffer.from('0123456789'), size: 10 });
});

test('a body beyond the bound is cut there, and its hash is that of the whole', () => {
  const pieces = fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 8 });
  fc.assert(
    fc.property(pieces, fc.integer({ min: 1, max: 60 }), (some, bound) => {
      const body = new BodyCollector(bound);
      for (const piece of some) body.feed(Buffer.from(piece));
      const whole = Buffer.concat(some);
      const isCut = whole.length > bound;
      expect(body.collect('')).toEqual({
        ...ORDINARY,
        payload: whole.subarray(0, bound),
        size: whole.length,
        truncated: isCut,
        sha256: isCut ? sha256(whole) : null,
      });
    }),
  );
});

test('a small piece is a copy, so that it does not hold its batch', () => {
  const body = new BodyCollector(100);
  const batch = Buffer.from('abc');
  body.feed(batch);
  batch.fill('x');
  expect(body.collect('').payload.toString()).toBe('abc');
});

test('nothing is kept behind lost bytes, and nothing is said of the hash', () => {
  const body = new BodyCollector(100);
  expect(body.feed(Buffer.from('abc'))).toBe(0);
  expect(body.lose(10)).toBe(true);
  expect(body.feed(Buffer.from('def'))).toBe(3);
  expect(body.lose(1)).toBe(false);
  expect(body.size).toBe(17);
  expect(body.collect('gzip')).toEqual({
    payload: Buffer.from('abc'),
    size: 17,
    truncated: true,
    sha256: null,
    isDecoded: false,
    original: null,
  });
});

test('a coded body has the size of what it says', () => {
  const body = new BodyCollector(1000);
  body.feed(gzipSync('a'.repeat(500)));
  expect(body.collect('gzip')).toEqual({ ...ORDINARY, payload: Buffer.alloc(500, 'a'), size: 500 });
});

test('a coded body that was cut stays in its coding', () => {
  const coded = gzipSync('a'.repeat(500));
  const body = new BodyCollector(10);
  body.feed(coded);
  expect(body.collect('gzip')).toEqual({
    payload: coded.subarray(0, 10),
    size: coded.length,
    truncated: true,
    sha256: sha256(coded),
    isDecoded: false,
    original: null,
  });
});

test('an edit anywhere keeps the whole original, without its coding too', () => {
  const body = new BodyCollector(1000);
  body.feed(Buffer.from('same '));
  body.feed(Buffer.from('new'), Buffer.from('old'));
  body.feed(Buffer.from(' same'));
  expect(body.collect('')).toMatchObject({
    payload: Buffer.from('same new same'),
    original: Buffer.from('same old same'),
  });
  const coded = new BodyCollector(1000);
  coded.feed(gzipSync('new'), gzipSync('old'));
  expect(coded.collect('gzip')).toMatchObject({ payload: Buffer.from('new'), original: Buffer.from('old') });
});
