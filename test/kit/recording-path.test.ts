import { basename } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { recordingPath } from '../../src/index.ts';

test('a recording stands beside its test file, under the names of its suites and its own', () => {
  expect(recordingPath('/p/test/weather.test.ts', 'The forecast', 'is: "sunny" (or so)')).toBe(
    '/p/test/__recordings__/weather.test/the-forecast.is-sunny-or-so.ndjson',
  );
  expect(recordingPath('/p/a.test.ts', 'Größe 日本 e\u0301')).toBe(
    '/p/__recordings__/a.test/größe-日本-é.ndjson',
  );
  expect(basename(recordingPath('/p/a.test.ts', '../../etc/passwd'))).toBe('etc-passwd.ndjson');
  expect(basename(recordingPath('/p/a.test.ts', '✓'))).toMatch(/^[0-9a-f]{8}\.ndjson$/);
});

test('any name gives one file name that every file system takes', () => {
  const name = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'grapheme', minLength: 100, maxLength: 400 }),
  );
  fc.assert(
    fc.property(fc.array(name, { minLength: 1, maxLength: 4 }), (names) => {
      const file = recordingPath('/p/a.test.ts', ...names);
      expect(file.startsWith('/p/__recordings__/a.test/')).toBe(true);
      const last = basename(file);
      expect(last).toMatch(/^[^/\\:*?"<>|\p{Cc}\p{Cs}]+\.ndjson$/u);
      expect(last).not.toMatch(/^\./);
      expect(Buffer.byteLength(last)).toBeLessThan(255);
      expect(recordingPath('/p/a.test.ts', ...names)).toBe(file);
    }),
  );
});

test('long names that begin alike stay apart', () => {
  const [a, b] = ['a', 'b'].map((end) => recordingPath('/p/a.test.ts', 'x'.repeat(300) + end));
  expect(a).not.toBe(b);
});
