import { expect, test } from 'vitest';
import { isBatch, messageSpan, messageText, payloadStart } from '../../../src/protocol/message/payload.ts';
import { byteOrderMarkLength, withoutByteOrderMark } from '../../../src/protocol/text.ts';

const MARK = '\ufeff';

test.each(['{"id":1}', ' \n{"id":1}\t ', `${MARK}{"id":1}`, `${MARK} {"id":1}\r\n`])(
  'a payload that is no batch is one message: %j',
  (text) => {
    const payload = Buffer.from(text);
    expect(messageText(payload, 0).toString()).toBe('{"id":1}');
    expect(payloadStart(payload)).toBe(payload.indexOf('{'));
    expect(isBatch(payload)).toBe(false);
  },
);

test('a payload without anything around its message is not copied', () => {
  const payload = Buffer.from('{"id":1}');
  expect(messageText(payload, 0)).toBe(payload);
});

test.each(['', MARK, ' '])('the messages of a batch are its elements, after %j', (before) => {
  const payload = Buffer.from(`${before}[ {"id":1} , 7,{"id":[2]} ]\n`);
  expect(isBatch(payload)).toBe(true);
  expect([0, 1, 2].map((n) => messageText(payload, n).toString())).toEqual(['{"id":1}', '7', '{"id":[2]}']);
  expect(messageSpan(payload, 1)?.type).toBe('number');
  expect(messageSpan(payload, 3)).toBeUndefined();
  expect(() => messageText(payload, 3)).toThrow(RangeError);
});

test('a byte order mark is three bytes, or one character', () => {
  expect(byteOrderMarkLength(Buffer.from(`${MARK}a`))).toBe(3);
  expect(byteOrderMarkLength(Buffer.from([0xef, 0xbb]))).toBe(0);
  expect(withoutByteOrderMark(`${MARK}${MARK}a`)).toBe(`${MARK}a`);
  expect(withoutByteOrderMark('a')).toBe('a');
});
