import { expect, test } from 'vitest';
import {
  editChallenge,
  editResponseHeader,
  metadataUrl,
  replaceOrigin,
} from '../../../src/capture/http/edits.ts';

const origins = { upstream: 'https://api.example', proxy: 'http://127.0.0.1:8808' };

test.for([
  ['https://api.example/mcp?a=https://api.example/', 'http://127.0.0.1:8808/mcp?a=https://api.example/'],
  ['https://api.example', 'http://127.0.0.1:8808'],
  ['HTTPS://API.example:443/%7Ea#b', 'http://127.0.0.1:8808/%7Ea#b'],
  ['//api.example/x', '//127.0.0.1:8808/x'],
  ['https://api.example?x', 'http://127.0.0.1:8808?x'],
] as const)('%s at the upstream becomes %s', ([url, edited]) => {
  expect(replaceOrigin(url, origins)).toBe(edited);
});

test.for([
  'https://auth.example/mcp',
  'http://api.example/mcp',
  'https://api.example:8443/mcp',
  'https://api.example.evil.example/',
  'https://user@api.example/',
  'https://api.example@evil.example/',
  '/mcp',
  'mcp',
  '?x',
  '',
  'https:/api.example/mcp',
  'urn:x',
  'not https://api.example/',
])('%s stays', (url) => {
  expect(replaceOrigin(url, origins)).toBe(url);
});

test('a challenge changes in its resource_metadata only', () => {
  const edit = (value: string) => editChallenge(value, origins);
  expect(
    edit(
      'Bearer realm="https://api.example/", resource_metadata="https://api.example/.well-known/x", scope="a b"',
    ),
  ).toBe(
    'Bearer realm="https://api.example/", resource_metadata="http://127.0.0.1:8808/.well-known/x", scope="a b"',
  );
  expect(edit('Bearer resource_metadata=https://api.example/x, error=e')).toBe(
    'Bearer resource_metadata="http://127.0.0.1:8808/x", error=e',
  );
  expect(edit('Basic realm="x", Bearer RESOURCE_METADATA = "https://api.example/x"')).toBe(
    'Basic realm="x", Bearer RESOURCE_METADATA = "http://127.0.0.1:8808/x"',
  );
  for (const same of [
    'Bearer resource_metadata="https://auth.example/x"',
    'Bearer x_resource_metadata="https://api.example/x"',
    'Bearer',
    '',
  ]) {
    expect(edit(same)).toBe(same);
  }
});

test('a challenge names its metadata', () => {
  expect(metadataUrl('Bearer a="b", resource_metadata="https://api.example/x"')).toBe(
    'https://api.example/x',
  );
  expect(metadataUrl('Bearer resource_metadata=https://api.example/x')).toBe('https://api.example/x');
  expect(metadataUrl('Bearer scope="x"')).toBeNull();
});

test('a Location changes in redirects only, and other headers never', () => {
  const edit = (name: string, status: number) =>
    editResponseHeader(name, 'https://api.example/x', status, origins);
  for (const status of [301, 302, 303, 307, 308])
    expect(edit('location', status)).toBe('http://127.0.0.1:8808/x');
  for (const status of [200, 201, 401]) expect(edit('location', status)).toBe('https://api.example/x');
  expect(edit('link', 302)).toBe('https://api.example/x');
});
