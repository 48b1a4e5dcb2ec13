import { deflateRawSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DEFLATE, packed, unpacked } from '../../../src/store/file/codec.ts';

test('what is unpacked is what was packed, whatever was unpacked before it', () => {
  const text = fc.record({ word: fc.string({ minLength: 1, maxLength: 40 }), times: fc.nat(4000) });
  fc.assert(
    fc.property(fc.array(text, { minLength: 1 }), (texts) => {
      const all = texts.map(({ word, times }) => Buffer.from(word.repeat(times)));
      const deflated = all.map((bytes) => packed(bytes) ?? deflateRawSync(bytes));
      const inflated = deflated.map((bytes, i) => unpacked(DEFLATE, bytes, all[i]?.length));
      expect(inflated.map((bytes, i) => bytes.equals(all[i] as Buffer))).not.toContain(false);
    }),
  );
});

const PLAIN = Buffer.from('what has passed '.repeat(50));
const PACKED = deflateRawSync(PLAIN);

test.each([
  ['is cut off', PACKED.subarray(0, -4), PLAIN.length],
  ['is nothing', Buffer.alloc(0), PLAIN.length],
  ['is no deflate', Buffer.from('{"jsonrpc":"2.0"}'), PLAIN.length],
  ['is no bytes but text', 'text', PLAIN.length],
  ['is null', null, PLAIN.length],
  ['has fewer bytes than it says', PACKED, PLAIN.length + 1],
  ['has more bytes than it says', PACKED, PLAIN.length - 1],
  ['says that it has none', PACKED, 0],
  ['says that it has fewer than none', PACKED, -1],
  ['says no number', PACKED, 'many'],
  ['says half a byte', PACKED, PLAIN.length + 0.5],
  ['says more than there is memory', PACKED, 2 ** 60],
])('a row that %s is an error, and the next one is unpacked as ever', (_, bytes, size) => {
  expect(() => unpacked(DEFLATE, bytes, size)).toThrow();
  expect(unpacked(DEFLATE, PACKED, PLAIN.length).equals(PLAIN)).toBe(true);
});

test('any bytes give what zlib makes of them, or an error', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 64 }), fc.nat(100), (array, size) => {
      const bytes = Buffer.from(array);
      let whole: Buffer | null = null;
      try {
        whole = inflateRawSync(bytes, { maxOutputLength: Math.max(1, size) });
      } catch {
        // Then ours must fail, too.
      }
      const read = () => unpacked(DEFLATE, bytes, size);
      if (whole?.length === size) expect(read().equals(whole)).toBe(true);
      else expect(read).toThrow();
    }),
    { numRuns: 2000 },
  );
});
