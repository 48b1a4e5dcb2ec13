import fc from 'fast-check';
import { expect, test } from 'vitest';
import { skipValue, typeAt } from '../../../src/protocol/json/read.ts';
import { type Id, type IdProblem, readId } from '../../../src/protocol/message/details.ts';

function readText(text: string): Id | IdProblem {
  const bytes = Buffer.from(text);
  return readId(bytes, { start: 0, end: skipValue(bytes, 0), type: typeAt(bytes, 0) });
}

function keyOf(text: string): string | undefined {
  const id = readText(text);
  return typeof id === 'string' ? undefined : id.key;
}

test('a number and a string of the same text are different ids', () => {
  expect(readText('1')).toMatchObject({ type: 'number', text: '1' });
  expect(readText('"1"')).toMatchObject({ type: 'string', text: '1' });
  expect(keyOf('1')).not.toBe(keyOf('"1"'));
});

test('zero and the empty string are ids', () => {
  expect(readText('0')).toMatchObject({ type: 'number', text: '0' });
  expect(readText('""')).toMatchObject({ type: 'string', text: '' });
});

test('integers above 2^53 stay exact', () => {
  expect(readText('12345678901234567890')).toMatchObject({ type: 'number', text: '12345678901234567890' });
  expect(keyOf('9007199254740992')).not.toBe(keyOf('9007199254740993'));
  expect(keyOf('-12345678901234567890')).not.toBe(keyOf('-12345678901234567891'));
});

test('an id keeps the way it is written, and its key tells its value', () => {
  expect(readText('1.0')).toMatchObject({ type: 'number', text: '1.0', key: keyOf('1') });
  expect(readText('1E3')).toMatchObject({ type: 'number', text: '1E3', key: keyOf('1000') });
  expect(readText('-0')).toMatchObject({ type: 'number', text: '-0', key: keyOf('0') });
  expect(readText('-1.50e+1')).toMatchObject({ type: 'number', text: '-1.50e+1', key: keyOf('-15') });
  expect(readText('1200e-2')).toMatchObject({ type: 'number', text: '1200e-2', key: keyOf('12') });
  expect(readText('0e-5')).toMatchObject({ type: 'number', text: '0e-5', key: keyOf('0') });
});

test('integers above 2^53 that are written as fractions or powers stay exact too', () => {
  expect(keyOf('9007199254740993.0')).toBe(keyOf('9007199254740993'));
  expect(keyOf('1.2345678901234567891e19')).toBe(keyOf('12345678901234567891'));
  expect(keyOf('1e21')).toBe(keyOf('1000000000000000000000'));
  expect(keyOf('1e400')).toBe(keyOf(`1${'0'.repeat(400)}`));
});

test('a number with a fraction is no id', () => {
  for (const text of ['1.5', '-0.1', '1e-1', '12e-2', '0.99999999999999999999', '1.00000000000000000001']) {
    expect([text, readText(text)]).toEqual([text, 'id-fractional']);
  }
});

test('a huge power is read without building its digits', () => {
  expect(keyOf('1e999999999')).toBe(keyOf('10.0e999999998'));
  expect(keyOf('1e999999999')).not.toBe(keyOf('1e999999998'));
  expect(keyOf('1e999999999')?.length).toBeLessThan(1000);
  expect(readText('1e-999999999')).toBe('id-fractional');
});

test('null, booleans and containers are no ids', () => {
  expect(readText('null')).toBe('id-null');
  for (const text of ['{}', '[]', '[1]', 'true', 'false']) {
    expect([text, readText(text)]).toEqual([text, 'id-not-scalar']);
  }
});

test('strings that are escaped differently have equal keys and their own text', () => {
  expect(readText('"a\\u0062"')).toEqual({ type: 'string', text: 'a\\u0062', key: keyOf('"ab"') });
  expect(readText('"ab"')).toMatchObject({ text: 'ab' });
  expect(keyOf('"\\/"')).toBe(keyOf('"/"'));
  expect(keyOf('"\\\\"')).not.toBe(keyOf('"\\\\\\\\"'));
});

test('any two strings have equal keys exactly if they are equal', () => {
  const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', '\n', 'é', '1', 'n'), maxLength: 3 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(keyOf(JSON.stringify(a)) === keyOf(JSON.stringify(b))).toBe(a === b);
    }),
  );
});

test('any integer has one key in all its spellings', () => {
  const spellings = fc.tuple(fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n }), fc.nat({ max: 40 }));
  fc.assert(
    fc.property(spellings, ([value, power]) => {
      const key = keyOf(String(value));
      expect(keyOf(`${value}.${'0'.repeat(power)}0`)).toBe(key);
      expect(keyOf(`${value}${'0'.repeat(power)}e-${power}`)).toBe(key);
      expect(keyOf(`${value}E${power}`)).toBe(keyOf(String(value * 10n ** BigInt(power))));
    }),
  );
});
