import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  decodedHeader,
  headerText,
  paramHeadersOf,
  paramText,
  saysSame,
} from '../../../src/protocol/http/mirrored-headers.ts';

test('every text survives as a header value that HTTP can carry', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('=?base64?eA==?=', ' a', 'a ', '\n', 'ü'),
  );
  fc.assert(
    fc.property(texts, (text) => {
      expect(headerText(text)).toMatch(/^(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?$/);
      expect(decodedHeader(headerText(text))).toBe(text);
    }),
  );
});

const schema = {
  type: 'object',
  'x-mcp-header': 'Root',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    deep: { type: 'object', properties: { level: { type: 'integer', 'x-mcp-header': 'Level' } } },
    bad: { type: 'string', 'x-mcp-header': 'no token' },
    list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'Item' } },
    plain: { type: 'string' },
  },
};

test('what a chain of properties leads to is repeated, as text', () => {
  const headers = paramHeadersOf(schema);
  expect(headers).toEqual([
    { header: 'Mcp-Param-Region', path: ['region'] },
    { header: 'Mcp-Param-Level', path: ['deep', 'level'] },
  ]);
  const texts = (args: unknown) => headers.map((one) => paramText(args, one));
  expect(texts({ region: 'süd', deep: { level: 42 } })).toEqual(['süd', '42']);
  expect(texts({ region: true, deep: { level: null } })).toEqual(['true', null]);
  expect(texts({ region: {}, deep: 1 })).toEqual([null, null]);
  expect(texts({ region: 2 ** 60, deep: { level: 1.5 } })).toEqual([null, '1.5']);
  expect([null, 3, 'x', []].flatMap(texts)).toEqual(Array(8).fill(null));
});

test('numbers are compared as numbers, all else as text', () => {
  expect([saysSame('42.0', '42'), saysSame('=?base64?NDI=?=', '42')]).toEqual([true, true]);
  expect([saysSame('43', '42'), saysSame('0x2a', '42'), saysSame('TRUE', 'true')]).toEqual([
    false,
    false,
    false,
  ]);
});

test('a schema of any depth has an end', () => {
  let deep: object = { 'x-mcp-header': 'Deep' };
  for (let i = 0; i < 10_000; i += 1) deep = { properties: { a: deep } };
  expect(paramHeadersOf(deep)).toEqual([]);
});
