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
      expect(last).not.toMatch(/^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])\./i);
      expect(Buffer.byteLength(last)).toBeLessThan(255);
      expect(recordingPath('/p/a.test.ts', ...names)).toBe(file);
    }),
  );
});

test('a name that Windows keeps for a device gets another one, and no other test has that', () => {
  for (const name of ['CON', 'prn', 'Aux!', '(nul)', 'com1', 'LPT9', 'com¹']) {
    for (const names of [[name], [name, 'inner']]) {
      const file = basename(recordingPath('/p/a.test.ts', ...names));
      expect(file).toMatch(/^[a-z]+[19¹]?_\./);
    }
  }
  expect(basename(recordingPath('/p/a.test.ts', 'console'))).toBe('console.ndjson');
  expect(basename(recordingPath('/p/a.test.ts', 'a', 'con'))).toBe('a.con.ndjson');
  expect(recordingPath('/p/CON.test.ts', 'a')).toBe('/p/__recordings__/CON_.test/a.ndjson');
  expect(recordingPath('/p/a. .ts', 'a')).toBe('/p/__recordings__/a__/a.ndjson');
});

test('long names that begin alike stay apart', () => {
  const [a, b] = ['a', 'b'].map((end) => recordingPath('/p/a.test.ts', 'x'.repeat(300) + end));
  expect(a).not.toBe(b);
});
