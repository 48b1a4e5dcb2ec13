import { createServer } from 'node:http';
import { expect, test } from 'vitest';
import { createAccessCheck, ownUrl, startListening } from '../../src/net/listen.ts';

test('rejects where the port is taken', async () => {
  const server = createServer();
  const address = await startListening(server, { host: '127.0.0.1', port: 0 });
  const second = startListening(createServer(), { host: '127.0.0.1', port: address.port });
  await expect(second).rejects.toMatchObject({ code: 'EADDRINUSE' });
  server.close();
});

test.each([
  ['127.0.0.1', 'IPv4', 'http', '/mcp?a=b', 'http://127.0.0.1:8808/mcp?a=b'],
  ['0.0.0.0', 'IPv4', 'http', '/mcp', 'http://127.0.0.1:8808/mcp'],
  ['::', 'IPv6', 'https', '/', 'https://[::1]:8808/'],
  ['::1', 'IPv6', 'http', '//two/slashes', 'http://[::1]:8808//two/slashes'],
] as const)('a server on %s (%s) over %s has its own URL', (address, family, scheme, path, url) => {
  expect(ownUrl({ address, family, port: 8808 }, scheme, path).href).toBe(url);
});

test('says why a request is refused, and by which option it would pass', () => {
  const check = createAccessCheck({ listenHost: '127.0.0.1', allowHosts: [], allowOrigins: [] });
  expect(check({})).toBeNull();
  for (const _ of [1, 2]) {
    expect(check({ host: 'localhost:8808' })).toBeNull();
    expect(check({ host: 'evil.example' })).toBe('refused the Host "evil.example"; --allow-host allows it');
  }
  const origin = 'https://evil.example';
  expect(check({ host: 'localhost', origin })).toBe(
    'refused the Origin "https://evil.example"; --allow-origin allows it',
  );
});
