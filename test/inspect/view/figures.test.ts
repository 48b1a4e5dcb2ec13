import { expect, test } from 'vitest';
import { formatCount, formatDuration, formatSize } from '../../../src/inspect/view/text.ts';

test.each([
  [0, '0.00 ms'],
  [1.234, '1.23 ms'],
  [12.3, '12 ms'],
  [999.4, '999 ms'],
  [1000, '1.0 s'],
  [61_500, '1 min 1 s'],
  [3_600_000, '1 h 0 min'],
  [49 * 3_600_000, '2 d 1 h'],
])('%d milliseconds are %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.0 kB'],
  [123_456, '123 kB'],
  [64 * 1024 * 1024, '67.1 MB'],
])('%d bytes are %s', (bytes, text) => expect(formatSize(bytes)).toBe(text));

test('counts agree with their noun', () => {
  expect([0, 1, 2, 12_345].map((count) => formatCount(count, 'error'))).toEqual([
    '0 errors',
    '1 error',
    '2 errors',
    '12,345 errors',
  ]);
});
