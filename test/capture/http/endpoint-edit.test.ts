import { expect, test } from 'vitest';
import { createEndpointEdit } from '../../../src/capture/http/edits.ts';

const origins = { upstream: 'https://api.example', proxy: 'http://127.0.0.1:8808' };

/** Feeds in pieces cut at `cuts`; what comes out, joined, and the pieces. */
function run(text: string, cuts: readonly number[] = []) {
  const edit = createEndpointEdit(origins);
  const bytes = Buffer.from(text, 'latin1');
  const ends = [...cuts, bytes.length];
  const out = ends.map((end, i) => edit.feed(bytes.subarray(ends[i - 1] ?? 0, end)));
  out.push(edit.end());
  const join = (part: (piece: (typeof out)[number]) => Buffer) =>
    Buffer.concat(out.map(part)).toString('latin1');
  return {
    edited: join(({ bytes }) => bytes),
    original: join(({ bytes, original }) => original ?? bytes),
    out,
  };
}

function cutEveryWay(text: string, expected: string): void {
  expect(run(text).edited).toBe(expected);
  for (let i = 0; i <= text.length; i += 1) {
    const { edited, original } = run(text, [i]);
    expect(edited).toBe(expected);
    expect(original).toBe(text);
  }
  expect(
    run(
      text,
      [...text].map((_c, i) => i),
    ).edited,
  ).toBe(expected);
}

const ENDPOINT = 'event: endpoint\ndata: https://api.example/messages?sessionId=1\n\n';
const EDITED = 'event: endpoint\ndata: http://127.0.0.1:8808/messages?sessionId=1\n\n';
const AFTER = 'event: message\ndata: {"x":"https://api.example/"}\n\n';

test.for([
  ['line feeds', ENDPOINT + AFTER, EDITED + AFTER],
  ['CR LF', (ENDPOINT + AFTER).replaceAll('\n', '\r\n'), (EDITED + AFTER).replaceAll('\n', '\r\n')],
  ['CR', (ENDPOINT + AFTER).replaceAll('\n', '\r'), (EDITED + AFTER).replaceAll('\n', '\r')],
  ['comments before', `: hi\n\nretry: 5\n\n${ENDPOINT}`, `: hi\n\nretry: 5\n\n${EDITED}`],
  [
    'data first',
    'data:https://api.example/m\nevent:endpoint\n\n',
    'data:http://127.0.0.1:8808/m\nevent:endpoint\n\n',
  ],
  ['a byte order mark', `\xef\xbb\xbf${ENDPOINT}`, `\xef\xbb\xbf${EDITED}`],
  [
    'a byte order mark and data first',
    '\xef\xbb\xbfdata:https://api.example/m\nevent:endpoint\n\n',
    '\xef\xbb\xbfdata:http://127.0.0.1:8808/m\nevent:endpoint\n\n',
  ],
  ['a byte order mark, then a comment', `\xef\xbb\xbf: hi\n\n${ENDPOINT}`, `\xef\xbb\xbf: hi\n\n${EDITED}`],
  [
    'lines of the same block before',
    `: hi\r\nid: 1\r\nretry: 5\r\n${ENDPOINT}`,
    `: hi\r\nid: 1\r\nretry: 5\r\n${EDITED}`,
  ],
  ['names that begin alike', `eventful: 1\ndat: 2\n\n${ENDPOINT}`, `eventful: 1\ndat: 2\n\n${EDITED}`],
  ['two endpoints', ENDPOINT + ENDPOINT, EDITED + ENDPOINT],
] as const)('the endpoint is edited wherever the stream is cut: %s', ([, text, expected]) => {
  cutEveryWay(text, expected);
});

test.for([
  'event: endpoint\ndata: /messages?sessionId=1\n\n',
  'event: endpoint\ndata: https://other.example/messages\n\n',
  'data: https://api.example/messages\n\n',
  'event: message\ndata: https://api.example/messages\n\n',
  ': only a comment',
  'event: endpoint\ndata: https://api.example/',
  '\n\n\r\r\n\n',
  '',
  '\xff\xfe\x00',
])('any other stream stays as it is: %j', (text) => {
  cutEveryWay(text, text);
});

test.for([
  ': keep-alive\n',
  ': keep-alive\r\n: and again\r\n',
  ': not even a whole line',
  'id: 1\nretry: 3000\n: hi\n',
  '\n\n',
  '\xef\xbb\xbf: hi\n',
])('what is no part of an event is not held, though its block is not over: %j', (text) => {
  const edit = createEndpointEdit(origins);
  expect(edit.feed(Buffer.from(text, 'latin1')).bytes.toString('latin1')).toBe(text);
  expect(edit.feed(Buffer.from('\nevent: endpoint\n')).bytes.toString()).toBe('\n');
  expect(edit.feed(Buffer.from('data: https://api.example/m\n\n')).bytes.toString()).toBe(
    'event: endpoint\ndata: http://127.0.0.1:8808/m\n\n',
  );
});

test('a byte order mark elsewhere than at the beginning is part of a name, and that line no event', () => {
  cutEveryWay(`: hi\n\n\xef\xbb\xbf${ENDPOINT}`, `: hi\n\n\xef\xbb\xbf${ENDPOINT}`);
});

test('after the first event everything goes on as it comes', () => {
  const edit = createEndpointEdit(origins);
  edit.feed(Buffer.from(ENDPOINT));
  for (const piece of ['d', 'ata: ', 'x']) expect(edit.feed(Buffer.from(piece)).bytes.toString()).toBe(piece);
});

test('a comment that fills a quiet start is not held', () => {
  const edit = createEndpointEdit(origins);
  expect(edit.feed(Buffer.from(': ok\n\n')).bytes.toString()).toBe(': ok\n\n');
});

test('a first event without end is held no longer than any endpoint is long', () => {
  const edit = createEndpointEdit(origins);
  const start = Buffer.from(`data: ${'x'.repeat(60_000)}`);
  expect(edit.feed(start).bytes.length).toBe(0);
  expect(edit.feed(Buffer.from('x'.repeat(10_000))).bytes.length).toBe(start.length + 10_000);
  expect(edit.feed(Buffer.from('y')).bytes.toString()).toBe('y');
});
