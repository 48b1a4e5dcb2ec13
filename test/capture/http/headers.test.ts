import { expect, test } from 'vitest';
import { relayHeaders } from '../../../src/capture/http/headers.ts';
import { fieldsOf } from '../../../src/protocol/http/headers.ts';

const keep = (_name: string, value: string) => value;

test('what belongs to the connection stays behind, with what Connection names', () => {
  const raw = [
    'A',
    '1',
    'Connection',
    'keep-alive, X-Hop',
    'x-hop',
    '2',
    'Keep-Alive',
    '5',
    'Upgrade',
    'h2c',
    'a',
    '3',
  ];
  const { forwarded, shown, edits } = relayHeaders(raw, keep, 'as-it-stands');
  expect(forwarded).toEqual(['A', '1', 'a', '3']);
  expect(shown).toBe(raw);
  expect(edits).toEqual([]);
});

test('what says where a body ends cannot be made to vanish', () => {
  const raw = ['Connection', 'Content-Length, Host', 'Host', 'h', 'Content-Length', '3'];
  expect(relayHeaders(raw, keep, 'as-it-stands').forwarded).toEqual(['Host', 'h', 'Content-Length', '3']);
});

test('chunks win over a length, and trailers need chunks', () => {
  const chunked = ['Trailer', 'T', 'Content-Length', '3', 'transfer-encoding', 'chunked'];
  expect(relayHeaders(chunked, keep, 'as-it-stands').forwarded).toEqual([
    'Trailer',
    'T',
    'transfer-encoding',
    'chunked',
  ]);
  expect(relayHeaders(chunked, keep, 'without-chunks').forwarded).toEqual(['Content-Length', '3']);
  expect(relayHeaders(['Trailer', 'T'], keep, 'as-it-stands').forwarded).toEqual([]);
});

test('an edit is forwarded, shown in place and told with its original', () => {
  const raw = ['X', '1', 'HOST', 'a', 'x', '1'];
  const edit = (name: string, value: string) => (name === 'host' ? 'b' : value);
  const { forwarded, shown, edits } = relayHeaders(raw, edit, 'as-it-stands');
  expect(forwarded).toEqual(['X', '1', 'HOST', 'b', 'x', '1']);
  expect(shown).toEqual(forwarded);
  expect(edits).toEqual([{ header: 'HOST', original: 'a' }]);
  expect(raw).toEqual(['X', '1', 'HOST', 'a', 'x', '1']);
});

test('pairs are what Node wants trailers as', () => {
  expect(fieldsOf(['a', '1', 'B', '2'])).toEqual([
    ['a', '1'],
    ['B', '2'],
  ]);
});
