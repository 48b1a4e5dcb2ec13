import { spawnSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { issueCertificate, makeAuthority } from '../../src/capture/forward/authority.ts';
import { clientEnvironment } from '../../src/capture/forward/environment.ts';
import { keepRenewed } from '../../src/capture/forward/renewal.ts';
import { keepAuthority, keepNext, keptAuthorities, useNext } from '../../src/cli/record/authorities.ts';
import { connectThrough, startForward } from '../support/forward.ts';
import { tempFolder } from '../support/tapedeck.ts';

const DAY_MS = 86_400_000;

const HOST = 'api.example.com';

/** Whether who trusts these certificates takes what the proxy shows, on that day. */
async function verify(port: number, trusted: string, at: number): Promise<boolean> {
  const { socket } = await connectThrough(port, `${HOST}:443`);
  const tls = connectTls({ socket, host: HOST, servername: HOST, rejectUnauthorized: false });
  await once(tls, 'secureConnect');
  const folder = tempFolder();
  const [ca, leaf] = [join(folder, 'ca.pem'), join(folder, 'leaf.pem')];
  writeFileSync(ca, trusted);
  writeFileSync(leaf, new X509Certificate(tls.getPeerCertificate(true).raw).toString());
  tls.destroy();
  const when = ['-attime', String(Math.floor(at / 1000))];
  const { stdout } = spawnSync('openssl', ['verify', ...when, '-verify_hostname', HOST, '-CAfile', ca, leaf]);
  return /: OK\n/.test(stdout.toString());
}

test('a proxy that runs for sixty days is trusted by clients that start ten days before a CA ends, or later', async () => {
  let at = Date.now();
  const warned: string[] = [];
  const authority = await makeAuthority([HOST], at);
  const folder = tempFolder();
  const settings = { proxy: 'http://127.0.0.1:1', hosts: [HOST], folder, env: {} };
  const publish = (certificate: string) => clientEnvironment({ ...settings, certificate });
  const file = publish(authority.certificate)['NODE_EXTRA_CA_CERTS'] ?? '';
  const url = new URL(`https://${HOST}/`);
  const tls = await issueCertificate(authority, HOST);
  const { capture, port } = await startForward([url.href]);
  capture.showCertificate(url, tls);
  const renewal = keepRenewed({
    ...{ authority, next: null, now: () => at, publish: (all) => void publish(all) },
    makeNext: () => makeAuthority([HOST], at),
    use: async (next) => capture.showCertificate(url, await issueCertificate(next, HOST)),
    warn: (kind) => void warned.push(kind),
  });
  onTestFinished(renewal.end);

  const bundles = new Map<number, string>();
  const first = at;
  for (let day = 0; day <= 60; day += 1) {
    at = first + day * DAY_MS;
    await renewal.check();
    bundles.set(day, readFileSync(file, 'utf8'));
    for (const started of [day, Math.max(0, day - 8)])
      if ([0, 19, 29, 48, 60].includes(day))
        expect(await verify(port, bundles.get(started) ?? '', at), `day ${day}, since ${started}`).toBe(true);
  }
  // What was started at the beginning is not.
  expect(await verify(port, bundles.get(0) ?? '', at)).toBe(false);
  const twice = ['next-authority', 'authority-changed', 'next-authority', 'authority-changed'];
  expect(warned.slice(0, 4)).toEqual(twice);
});

test('a failure is told once, and what was shown goes on', async () => {
  const authority = await makeAuthority([HOST], Date.now() - 25 * DAY_MS);
  const warned: string[] = [];
  let isFull = true;
  const renewal = keepRenewed({
    ...{ authority, next: null, now: Date.now, use: async () => {} },
    makeNext: () => makeAuthority([HOST]),
    publish() {
      if (isFull) throw new Error('ENOSPC: no space left');
    },
    warn: (_, text) => void warned.push(text),
  });
  onTestFinished(renewal.end);
  await renewal.check();
  await renewal.check();
  expect(warned).toEqual([expect.stringContaining('ENOSPC')]);
  isFull = false;
  await renewal.check();
  expect(warned).toHaveLength(2);
  expect(renewal.certificates().match(/BEGIN/g)).toHaveLength(2);
});

test('the next CA is kept beside the one in use, for proxies that start in between, and takes its place', async () => {
  const parent = join(tempFolder(), 'forward');
  const began = Date.now();
  const kept = await keepAuthority(parent, [HOST], began);
  const next = await keepNext(kept, began);
  // Whoever comes second takes what is there.
  expect((await keepNext(kept, began)).certificate).toBe(next.certificate);
  const again = await keepAuthority(parent, [HOST], began + 20 * DAY_MS);
  expect(again.certificate).toBe(kept.certificate);
  expect(again.next?.certificate).toBe(next.certificate);
  const key = join(kept.folder, 'next', 'ca.key');
  if (process.platform !== 'win32') expect(statSync(key).mode & 0o777).toBe(0o600);
  writeFileSync(join(kept.folder, 'ssl-cert-file.pem'), 'what clients read');
  expect(useNext(again)).toMatchObject({ certificate: next.certificate, key: next.key, next: null });
  expect(existsSync(key)).toBe(false);
  expect(existsSync(join(kept.folder, 'ssl-cert-file.pem'))).toBe(true);
  expect(keptAuthorities(parent).map(({ certificate }) => certificate)).toEqual([next.certificate]);
});

test('one that was not run in its last days begins with the next one, or anew', async () => {
  const parent = join(tempFolder(), 'forward');
  const long = Date.now() - 29.5 * DAY_MS;
  const kept = await keepAuthority(parent, [HOST], long);
  const next = await keepNext(kept, long + 20 * DAY_MS);
  expect((await keepAuthority(parent, [HOST])).certificate).toBe(next.certificate);
  const later = await keepAuthority(parent, [HOST], Date.now() + 60 * DAY_MS);
  expect([kept.certificate, next.certificate]).not.toContain(later.certificate);
});

test('a recorder that is started with its clients’ variables does not take its own file for theirs', () => {
  const settings = { proxy: 'http://p', hosts: [HOST], folder: tempFolder(), certificate: 'OURS\n' };
  const first = clientEnvironment({ ...settings, env: {} });
  const before = readFileSync(first['SSL_CERT_FILE'] ?? '', 'utf8');
  const second = clientEnvironment({ ...settings, env: first });
  expect(readFileSync(second['SSL_CERT_FILE'] ?? '', 'utf8')).toBe(before);
});
