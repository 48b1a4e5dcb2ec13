import { execFileSync, spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { expiryOf, issueCertificate, makeAuthority } from '../../src/capture/forward/authority.ts';
import { clientEnvironment } from '../../src/capture/forward/environment.ts';
import { createReach, readAbsoluteTarget } from '../../src/capture/forward/target.ts';
import { tempFolder } from '../support/tapedeck.ts';

const DAY_MS = 86_400_000;

/** What OpenSSL says of a certificate of this CA for this host. */
async function verify(hosts: readonly string[], host: string): Promise<string> {
  const folder = tempFolder();
  const authority = await makeAuthority(hosts);
  const { cert } = await issueCertificate(authority, host);
  const [ca, leaf] = [join(folder, 'ca.pem'), join(folder, 'leaf.pem')];
  writeFileSync(ca, authority.certificate);
  writeFileSync(leaf, cert);
  const name = host.replace(/^\[|\]$/g, '');
  const isAddress = /^[\d.]+$|:/.test(name);
  const check = [isAddress ? '-verify_ip' : '-verify_hostname', name];
  const args = ['verify', '-x509_strict', '-purpose', 'sslserver', ...check, '-CAfile', ca, leaf];
  const { stdout, stderr } = spawnSync('openssl', args);
  return `${stdout}${stderr}`;
}

test.each(['api.example.com', '127.0.0.1', '[::1]', '[2001:db8::1:0]'])(
  'a certificate for %s is good for it, by the strict rules',
  async (host) => {
    expect(await verify([host, 'other.example'], host)).toMatch(/: OK\n/);
  },
);

test.each([
  [['api.example.com'], 'example.com'],
  [['api.example.com'], 'evil.example'],
  [['api.example.com'], '127.0.0.1'],
  [['api.example.com'], '[::1]'],
  [['127.0.0.1'], '127.0.0.2'],
  [['127.0.0.1'], 'localhost'],
  [['[::1]'], '[::2]'],
  [['[::1]'], '127.0.0.1'],
])('a CA for %s vouches for no %s', async (hosts, host) => {
  expect(await verify(hosts, host)).toMatch(/(?:permitted|excluded) subtree violation/);
});

test('a CA lasts 30 days, makes no other CA, and is for TLS servers only', async () => {
  const authority = await makeAuthority(['api.example.com']);
  const left = expiryOf(authority) - Date.now();
  expect(left / DAY_MS).toBeGreaterThan(29.9);
  expect(left / DAY_MS).toBeLessThanOrEqual(30);
  const file = join(tempFolder(), 'ca.pem');
  writeFileSync(file, authority.certificate);
  const text = execFileSync('openssl', ['x509', '-in', file, '-noout', '-text']).toString();
  expect(text).toMatch(/Basic Constraints: critical\s+CA:TRUE, pathlen:0/);
  expect(text).toMatch(/Name Constraints: critical\s+Permitted:\s+DNS:api\.example\.com\s+Excluded:/);
  expect(text).toMatch(/Extended Key Usage: *\s+TLS Web Server Authentication\n/);
  expect(new X509Certificate(authority.certificate).publicKey.asymmetricKeyDetails?.namedCurve).toBe(
    'prime256v1',
  );
});

const SETTINGS = { proxy: 'http://127.0.0.1:1', hosts: ['api.example.com', '[::1]'], certificate: 'OURS\n' };

test('what takes the place of the system’s certificates has those too, and what was named before', () => {
  const folder = tempFolder();
  const before = join(folder, 'before.pem');
  writeFileSync(before, 'THEIRS');
  const env = { CURL_CA_BUNDLE: before, NODE_EXTRA_CA_CERTS: before };
  const set = clientEnvironment({ ...SETTINGS, folder, env });
  const textOf = (name: string) => readFileSync(set[name] ?? '', 'utf8');
  expect(textOf('CURL_CA_BUNDLE')).toBe('THEIRS\nOURS\n');
  expect(textOf('NODE_EXTRA_CA_CERTS')).toBe('THEIRS\nOURS\n');
  expect(textOf('DENO_CERT')).toBe('OURS\n');
  expect(textOf('SSL_CERT_FILE')).toMatch(/BEGIN CERTIFICATE.*OURS\n$/s);
  expect(set).toMatchObject({
    HTTPS_PROXY: SETTINGS.proxy,
    http_proxy: SETTINGS.proxy,
    NODE_USE_ENV_PROXY: '1',
  });
  expect(set).not.toHaveProperty('NO_PROXY');
});

test.each([
  ['localhost,10.0.0.0/8, .internal', '10.0.0.0/8', 'localhost,.internal'],
  ['example.com,other.example', 'example.com', 'other.example'],
  ['*.example.com', '*.example.com', ''],
  ['*', '*', ''],
  ['API.example.com:443,x', 'API.example.com:443', 'x'],
  ['[::1]:8080,y', '[::1]:8080', 'y'],
])('NO_PROXY %j goes without %j, which leads to a named host', (noProxy, _, rest) => {
  const env = { NO_PROXY: noProxy };
  const set = clientEnvironment({ ...SETTINGS, certificate: null, folder: '', env });
  expect(set).toMatchObject({ NO_PROXY: rest, no_proxy: rest });
  expect(set).not.toHaveProperty('SSL_CERT_FILE');
});

test('beyond loopback, neither this machine nor what is near it is gone to, however it is spelt', () => {
  const others = createReach(() => 8808, true);
  const own = createReach(() => 8808, false);
  const inner = [
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '64:ff9b::a9fe:a9fe',
    '100.100.100.200',
    '0.0.0.0',
    '::',
    '169.254.169.254',
    'fe80::1',
    'fd00:ec2::254',
  ];
  for (const host of inner) {
    expect(others.problemOf({ host, port: 443 }), host).not.toBeNull();
    expect(own.problemOf({ host, port: 443 }), host).toBeNull();
  }
  expect(others.problemOf({ host: '192.0.2.1', port: 443 })).toBeNull();
  expect(others.problemOf({ host: '192.0.2.1', port: 25 })).toContain('port 25');
  expect(own.problemOf({ host: '192.0.2.1', port: 25 })).toBeNull();
});

test('a name that leads to this machine is not gone to from beyond it', async () => {
  const { lookup } = createReach(() => 8808, true);
  const error = await new Promise((resolve) =>
    lookup({ host: 'localhost', port: 443 })('localhost', { all: true }, resolve),
  );
  expect(String(error)).toContain('this machine alone');
});

test.each([
  ['http://a.example/x', 'http://a.example'],
  ['http://[::1]:8080', 'http://[::1]:8080'],
  ['http://a.example:80?q', 'http://a.example'],
  ['http://a@b.example/', null],
  ['http://a.example\\@b.example/', null],
  ['http://0x7f.1/', null],
  ['https://a.example/', null],
  ['//a.example/', null],
])('the target of %s is %s', (text, origin) => {
  expect(readAbsoluteTarget(text)?.origin ?? null).toBe(origin);
});
