import { expect, test } from 'vitest';
import { looksLikeMcp, partOfRequest, partOfResponse } from '../../../src/protocol/http/exchange.ts';
import { JSON_TYPE, mediaType } from '../../../src/protocol/http/headers.ts';
import { parseMessages } from '../../../src/protocol/message/message.ts';

const read = (text: string) => parseMessages(Buffer.from(text));
const CALL = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const NOTE = '{"jsonrpc":"2.0","method":"notifications/initialized"}';
const there = { method: 'POST', isMcpPath: true, mediaType: 'application/json' };
const elsewhere = { ...there, isMcpPath: false };

test.each([
  [there, CALL, 'body'],
  [there, 'rubbish', 'body'],
  [there, '[]', 'body'],
  [{ ...there, mediaType: 'text/plain' }, CALL, 'body'],
  [{ ...there, method: 'PUT' }, 'rubbish', 'foreign-body'],
  [elsewhere, CALL, 'body'],
  [elsewhere, '{"grant_type":"code"}', 'foreign-body'],
  [elsewhere, 'a=b', 'foreign-body'],
  [elsewhere, `[1,${CALL}]`, 'body'],
] as const)('a request %o with %s is a %s', (shape, text, part) => {
  expect(partOfRequest(shape, read(text))).toBe(part);
});

test.each([
  [200, CALL, '<p>', 'body'],
  [200, NOTE, '<p>', 'foreign-body'],
  [200, '', '{"issuer":"x"}', 'foreign-body'],
  [202, NOTE, 'Accepted', 'foreign-body'],
  [404, CALL, 'Not found', 'foreign-body'],
  [404, CALL, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"x"}}', 'body'],
] as const)('an answer of status %i to %s with %s is a %s', (status, asked, text, part) => {
  expect(partOfResponse(status, read(asked), () => read(text))).toBe(part);
});

test('messages are known by what is of JSON-RPC in them', () => {
  for (const text of [CALL, '{"jsonrpc":"1.0"}', '{"jsonrpc":"2.0"}', `[${CALL}]`])
    expect(looksLikeMcp(read(text))).toBe(true);
  for (const text of ['', '{}', '[]', '1', 'x', '[1]']) expect(looksLikeMcp(read(text))).toBe(false);
});

test('one media type alone is that of JSON-RPC', () => {
  expect(mediaType('application/json')).toBe(JSON_TYPE);
  for (const other of ['', 'text/json', 'application/json-rpc', 'text/event-stream'])
    expect(mediaType(other)).not.toBe(JSON_TYPE);
});
