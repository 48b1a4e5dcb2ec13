import { expect, test } from 'vitest';
import {
  contentCoding,
  contentCodingOf,
  countHeader,
  fieldOf,
  fieldsOf,
  headerOf,
  joinedFields,
  mediaType,
  mediaTypeOf,
} from '../../../src/protocol/http/headers.ts';

const RAW = [
  'Accept',
  'a',
  'CONTENT-Type',
  ' Text/HTML ; charset=utf-8',
  'accept',
  'b',
  'Content-Encoding',
  'GZip ',
];

test('finds the first header of a name, whatever its case', () => {
  expect(headerOf(RAW, 'accept')).toBe('a');
  expect(headerOf(RAW, 'a')).toBe('');
  expect(headerOf(null, 'accept')).toBe('');
  expect(countHeader(RAW, 'accept')).toBe(2);
  expect(fieldOf(fieldsOf(RAW), 'accept')).toBe('a');
  expect(fieldOf([], 'accept')).toBeUndefined();
});

test('a raw list becomes fields, and fields of one name one list', () => {
  expect(fieldsOf(RAW).flat()).toEqual(RAW);
  expect(joinedFields(fieldsOf(RAW)).get('accept')).toBe('a, b');
});

test.each([
  [undefined, ''],
  ['', ''],
  ['application/json', 'application/json'],
  ['Text/Event-Stream;charset=utf-8', 'text/event-stream'],
])('the media type of %j is %j', (value, type) => {
  expect(mediaType(value)).toBe(type);
});

test('a head without a content coding has the identity', () => {
  expect(contentCodingOf(RAW)).toBe('gzip');
  expect(contentCodingOf([])).toBe('identity');
  expect(contentCoding(undefined)).toBe('identity');
  expect(contentCoding(' ')).toBe('identity');
  expect(mediaTypeOf(RAW)).toBe('text/html');
});
