import { expect, test } from 'vitest';
import { readOffer, writeOffer } from '../../../src/replay/stub/offer-file.ts';

const asItIs = (message: Buffer) => message;

const read = (text: string) => readOffer(Buffer.from(text), 'offer.json');

const HUGE = '{"a":12345678901234567890,"b":1.0}';

test('an offer comes back from its file with every digit and page', () => {
  const offer = {
    legacy: {
      handshake: HUGE,
      lists: new Map([
        [
          'tools/list' as const,
          [
            { cursor: null, member: 'result' as const, json: '{"tools":[],"nextCursor":"2"}' },
            { cursor: '"2"', member: 'error' as const, json: '{"code":-1,"message":"no"}' },
          ],
        ],
      ]),
    },
    modern: null,
  };
  expect(read(writeOffer(offer, asItIs))).toEqual(offer);
});

test('a file that was edited is read without its spaces, and in lines where nothing is lost by that', () => {
  const offer = { legacy: null, modern: { handshake: '{"a":"b c"}', lists: new Map() } };
  const text = writeOffer(offer, asItIs);
  expect(text).toContain('\n    "handshake": {\n');
  expect(read(text.replaceAll('\n', '\r\n '))).toEqual(offer);
});

test('what is redacted is the message that was said', () => {
  const seen: string[] = [];
  const offer = { legacy: { handshake: '{"a":1}', lists: new Map() }, modern: null };
  const text = writeOffer(offer, (message) => {
    seen.push(message.toString());
    return Buffer.from(message.toString().replace('"a":1', '"a":2'));
  });
  expect(seen).toEqual(['{"jsonrpc":"2.0","id":1,"result":{"a":1}}']);
  expect(read(text).legacy?.handshake).toBe('{"a":2}');
});

test.each([
  ['no JSON', 'x', /holds no offer/],
  ['another file', '{"name":"package"}', /holds no offer/],
  ['no era', '{"tapedeckOffer":1,"legacy":null,"modern":[]}', /neither a `legacy` nor a `modern` offer/],
  ['one of a newer tapedeck', '{"tapedeckOffer":2}', /written by a newer tapedeck/],
])('%s is refused with what is wrong', (_, text, why) => {
  expect(() => read(text)).toThrow(why);
});
