import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  canonicalNumber,
  canonicalText,
  KEEP_ALL,
  MAX_DEPTH,
  type MemberFilter,
  surelyHasCanonicalText,
} from '../../../src/protocol/json/canonical.ts';
import { skipSpace, skipValue, typeAt } from '../../../src/protocol/json/read.ts';
import { brokenJson, respelled, sortedText, spacedJson } from '../../support/json-text.ts';
import { scale } from '../../support/scale.ts';

function textOf(source: string | Buffer, filter: MemberFilter = KEEP_ALL): Buffer | string {
  const bytes = Buffer.from(source);
  const start = skipSpace(bytes, 0);
  return canonicalText(bytes, { start, end: bytes.length, type: typeAt(bytes, start) }, filter);
}

function plain(source: string | Buffer, filter?: MemberFilter): string {
  const text = textOf(source, filter);
  return typeof text === 'string' ? `refused: ${text}` : text.toString();
}

test('what JSON.parse reads is written as JSON.stringify writes it, with its members sorted', () => {
  fc.assert(
    fc.property(spacedJson, (source) => {
      expect(plain(source)).toBe(sortedText(JSON.parse(source)));
    }),
    { numRuns: scale(500) },
  );
});

test('a value spelled in another way has the same text', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.infiniteStream(fc.nat()), (value, chance) => {
      expect(plain(respelled(value, chance))).toBe(plain(JSON.stringify(value)));
    }),
    { numRuns: scale(500) },
  );
});

test('different values have different texts', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 3 }), fc.jsonValue({ maxDepth: 3 }), (a, b) => {
      expect(plain(JSON.stringify(a)) === plain(JSON.stringify(b))).toBe(sortedText(a) === sortedText(b));
    }),
  );
});

test('a canonical text is its own canonical text', () => {
  fc.assert(
    fc.property(spacedJson, (source) => {
      const text = textOf(source);
      expect(textOf(text)).toEqual(text);
    }),
  );
});

test('broken JSON is refused or has a text, and never throws', () => {
  fc.assert(
    fc.property(brokenJson, (source) => {
      const bytes = Buffer.from(source);
      const isValue = skipValue(bytes, skipSpace(bytes, 0)) >= 0;
      expect(textOf(source) === 'not-json').toBe(!isValue);
    }),
    { numRuns: scale(500) },
  );
});

const SPELLINGS = [
  ['1', '1.0', '1e0', '10e-1', '0.1e1', '1.000E+00', '100e-2'],
  ['0', '-0', '0.0', '-0e7', '0e999999999999999999999'],
  ['12345678901234567890', '1234567890123456789e1', '12345678901234567890.0'],
  ['12345678901234567891'],
  ['12345678901234567000'],
  ['1e+400', '10e399', '1E400', '1e0000000000000000000000400'],
  ['1e+401'],
  ['0.1', '1e-1', '0.10'],
  ['0.1000000000000000055511151231257827'],
  ['0.10000000000000001'],
  ['1e-400', '0.1e-399'],
  ['-1e-400'],
  ['9007199254740993'],
  ['9007199254740992'],
  ['1e+99999999999999999999', '10e99999999999999999998', '0.1e100000000000000000000'],
  ['123456789012345.6789012345678'],
  ['1e-7', '0.0000001'],
  ['0.000001', '1e-6'],
  ['100000000000000000000', '1e20'],
  ['1e+21', '1000000000000000000000'],
];

test('numbers are equal exactly if they have the same value, also where a double cannot tell', () => {
  for (const spellings of SPELLINGS) {
    for (const spelling of spellings) expect(canonicalNumber(spelling), spelling).toBe(spellings[0]);
  }
  expect(new Set(SPELLINGS.map(([first]) => first)).size).toBe(SPELLINGS.length);
});

test('a number is equal to another only if their difference is zero', () => {
  const part = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });
  const power = fc.integer({ min: -25, max: 25 });
  const scaled = (digits: bigint, exponent: number) => digits * 10n ** BigInt(exponent + 25);
  fc.assert(
    fc.property(part, power, part, power, fc.nat(20), (a, p, b, q, zeros) => {
      const same = `${a * 10n ** BigInt(zeros)}e${p - zeros}`;
      expect(canonicalNumber(same)).toBe(canonicalNumber(`${a}e${p}`));
      const areEqual = canonicalNumber(`${a}e${p}`) === canonicalNumber(`${b}e${q}`);
      expect(areEqual).toBe(scaled(a, p) === scaled(b, q));
    }),
  );
});

test('every double is written as ECMAScript writes it', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (number) => {
      expect(canonicalNumber(JSON.stringify(number))).toBe(JSON.stringify(number));
      expect(canonicalNumber(number.toExponential())).toBe(JSON.stringify(number));
    }),
    { numRuns: scale(1000) },
  );
});

test('an exponent too long to compute with is refused', () => {
  expect(plain(`[1e${'9'.repeat(2000)}]`)).toBe('refused: number-too-long');
});

test('of a duplicate name the last one counts, wherever the others stand', () => {
  expect(plain('{"b":1,"a":2,"b":{"x":3}}')).toBe('{"a":2,"b":{"x":3}}');
  expect(plain('{"a":1,"\\u0061":2}')).toBe('{"a":2}');
});

test('members are sorted by UTF-16 code units, not by bytes', () => {
  expect(plain('{"\ufb33":1,"\ud83d\ude00":2,"\u20ac":3,"1":4,"\\r":5}')).toBe(
    '{"\\r":5,"1":4,"\u20ac":3,"\ud83d\ude00":2,"\ufb33":1}',
  );
});

test('escapes are resolved; half a surrogate pair stays one, and is not the replacement character', () => {
  expect(plain('"\\u0041\\/\\u20ac\\ud83d\\ude00\\u000A\\u001F\\"\\\\"')).toBe(
    '"A/\u20ac\ud83d\ude00\\n\\u001f\\"\\\\"',
  );
  expect(plain('"\\uD800"')).toBe('"\\ud800"');
  expect(plain('"\\ud800\\ud800\\udc00"')).toBe('"\\ud800\ud800\udc00"');
  expect(plain('"\\ud800"')).not.toBe(plain('"\ufffd"'));
});

test('bytes that are no UTF-8 equal themselves only, and are refused in names', () => {
  const value = (byte: number) => Buffer.from([0x5b, 0x22, byte, 0x22, 0x5d]);
  expect(textOf(value(0xff))).toEqual(value(0xff));
  expect(textOf(value(0xfe))).not.toEqual(textOf(value(0xff)));
  const named = Buffer.concat([Buffer.from('{"'), Buffer.from([0xff]), Buffer.from('":1}')]);
  expect(textOf(named)).toBe('name-not-utf8');
  expect(plain('{"\ufffd":1}')).toBe('{"\ufffd":1}');
});

test('nesting is read up to its bound and refused beyond, however deep', () => {
  const nested = (depth: number) => `${'[{"a":'.repeat(depth / 2)}1${'}]'.repeat(depth / 2)}`;
  expect(plain(nested(MAX_DEPTH))).toBe(nested(MAX_DEPTH));
  expect(plain(nested(MAX_DEPTH + 2))).toBe('refused: too-deep');
  expect(plain('['.repeat(1_000_000))).toBe('refused: too-deep');
});

test('a text that surely has a canonical one has it, and every common text does', () => {
  fc.assert(fc.property(spacedJson, (source) => surelyHasCanonicalText(Buffer.from(source))));
  const digits = (length: number) => '9'.repeat(length);
  for (const value of [
    `1e${digits(999)}`,
    `1e${digits(1000)}`,
    `1e-${digits(999)}`,
    `1e-${digits(1000)}`,
    `1e${digits(1001)}`,
    ...[MAX_DEPTH - 1, MAX_DEPTH, MAX_DEPTH + 1].map((depth) => '['.repeat(depth) + ']'.repeat(depth)),
  ]) {
    const source = Buffer.from(`[${value}]`);
    if (surelyHasCanonicalText(source)) expect(textOf(source)).toBeInstanceOf(Buffer);
    else expect(source.length).toBeGreaterThan(2 * MAX_DEPTH);
  }
  for (const refused of [`[1e${digits(2000)}]`, '['.repeat(MAX_DEPTH + 1) + ']'.repeat(MAX_DEPTH + 1)])
    expect(surelyHasCanonicalText(Buffer.from(refused))).toBe(false);
  expect(surelyHasCanonicalText(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]))).toBe(false);
});

test('members that are left out leave nothing, elements leave null', () => {
  const filter: MemberFilter = {
    enter: (step) => (step === 'x' || step === 0 ? null : filter),
    dropsEmpty: false,
  };
  expect(plain('{"x":1,"a":[{"x":2},{"x":[3],"b":4}]}', filter)).toBe('{"a":[null,{"b":4}]}');
  expect(plain('{"x":1}', filter)).toBe('{}');
});

test('an object left empty is dropped where the filter says so, with its earlier duplicates', () => {
  const meta: MemberFilter = { enter: (step) => (step === 'v' ? null : KEEP_ALL), dropsEmpty: true };
  const filter: MemberFilter = { enter: (step) => (step === 'm' ? meta : KEEP_ALL), dropsEmpty: false };
  expect(plain('{"m":{"v":1},"a":{}}', filter)).toBe('{"a":{}}');
  expect(plain('{"z":1,"m":{}}', filter)).toBe('{"z":1}');
  expect(plain('{"m":{"k":1},"m":{"v":1}}', filter)).toBe('{}');
  expect(plain('{"m":{"v":1},"m":{"k":1}}', filter)).toBe('{"m":{"k":1}}');
  expect(plain('{"m":null}', filter)).toBe('{"m":null}');
});
