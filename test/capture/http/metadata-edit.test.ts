import zlib from 'node:zlib';
import { expect, test } from 'vitest';
import { editMetadata } from '../../../src/capture/http/edits.ts';

const origins = { upstream: 'https://api.example', proxy: 'http://127.0.0.1:8808' };
const edit = (text: string, coding = 'identity') =>
  editMetadata(Buffer.from(text), coding, origins)?.toString() ?? null;

test('the resource changes, and not a byte besides', () => {
  expect(
    edit(
      '{ "a":1.0,\n"resource" : "https://api.example/mcp", "authorization_servers":["https://api.example"]}',
    ),
  ).toBe(
    '{ "a":1.0,\n"resource" : "http://127.0.0.1:8808/mcp", "authorization_servers":["https://api.example"]}',
  );
  expect(edit('{"x":{"resource":"https://api.example/"},"resource":"https:\\/\\/api.example\\/ü"}')).toBe(
    '{"x":{"resource":"https://api.example/"},"resource":"http://127.0.0.1:8808/ü"}',
  );
});

test.for([
  '{"resource":"https://other.example/mcp"}',
  '{"resource":["https://api.example/mcp"]}',
  '{"name":"x"}',
  '["https://api.example/mcp"]',
  '{"resource":"https://api.example/mcp"',
  'resource',
  '',
])('there is nothing to edit in %s', (text) => {
  expect(edit(text)).toBeNull();
});

test('a compressed body stays compressed in its own way', () => {
  const json = Buffer.from('{"resource":"https://api.example/mcp"}');
  const edited = '{"resource":"http://127.0.0.1:8808/mcp"}';
  expect(zlib.gunzipSync(editMetadata(zlib.gzipSync(json), 'gzip', origins) ?? '').toString()).toBe(edited);
  expect(zlib.inflateSync(editMetadata(zlib.deflateSync(json), 'deflate', origins) ?? '').toString()).toBe(
    edited,
  );
  const brotli = editMetadata(zlib.brotliCompressSync(json), 'br', origins) ?? Buffer.alloc(0);
  expect(zlib.brotliDecompressSync(brotli).toString()).toBe(edited);
});

test('a body that is not what its coding says, or a bomb, stays as it is', () => {
  expect(edit('{"resource":"https://api.example/mcp"}', 'gzip')).toBeNull();
  expect(edit('{"resource":"https://api.example/mcp"}', 'unheard-of')).toBeNull();
  const bomb = Buffer.concat([
    Buffer.from('{"resource":"https://api.example/"}'),
    Buffer.alloc(4_000_000, ' '),
  ]);
  expect(editMetadata(zlib.gzipSync(bomb), 'gzip', origins)).toBeNull();
});
