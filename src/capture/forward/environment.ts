/** The environment by which a client uses the forward proxy and trusts its certificates: Node, Bun, Deno, Python, curl, Go. */

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { withoutBrackets } from '../../protocol/http/origin.ts';

export type ClientSettings = {
  proxy: string;
  /** Of our CA, and of the one after it, as PEM; null: nothing with TLS is intercepted. */
  certificate: string | null;
  /** The hosts of the origins, which must not be reached past the proxy. */
  hosts: readonly string[];
  /** Where the files of certificates may be written. */
  folder: string;
  /** What the client would have otherwise. */
  env: NodeJS.ProcessEnv;
};

/**
 * The variables to set, with their values. Writes the files that they name: what these variables named before (or the system's
 * roots, where a variable takes their place) and our CA.
 */
export function clientEnvironment(settings: ClientSettings): Record<string, string> {
  const { proxy, certificate, hosts, env } = settings;
  const around = proxiedAround(env['NO_PROXY'] ?? env['no_proxy'] ?? '', hosts);
  return {
    HTTPS_PROXY: proxy,
    HTTP_PROXY: proxy,
    // curl, and others after it, read `http_proxy` in this spelling alone; a value in the other case would win elsewhere.
    https_proxy: proxy,
    http_proxy: proxy,
    ...(around !== null && { NO_PROXY: around, no_proxy: around }),
    NODE_USE_ENV_PROXY: '1',
    ...(certificate === null ? {} : trustIn(certificate, settings)),
  };
}

/** `adds`: what the variable names is added to the system's roots; else it takes their place. */
const TRUST: readonly { variable: string; adds: boolean }[] = [
  { variable: 'NODE_EXTRA_CA_CERTS', adds: true },
  { variable: 'DENO_CERT', adds: true },
  { variable: 'SSL_CERT_FILE', adds: false },
  { variable: 'REQUESTS_CA_BUNDLE', adds: false },
  { variable: 'CURL_CA_BUNDLE', adds: false },
];

function trustIn(certificate: string, { folder, env }: ClientSettings): Record<string, string> {
  const written = TRUST.map(({ variable, adds }) => {
    const file = join(folder, `${variable.toLowerCase().replaceAll('_', '-')}.pem`);
    // Our own file names nothing that was there before us.
    const named = env[variable] === file ? undefined : env[variable];
    const before = readCertificates(named) ?? (adds ? '' : systemRoots());
    writeFileSync(file, `${before === '' ? '' : `${before.trimEnd()}\n`}${certificate}`, { mode: 0o600 });
    return [variable, file] as const;
  });
  return Object.fromEntries(written);
}

/** Where Debian, Red Hat, Alpine and macOS, and SUSE keep the certificates that OpenSSL trusts. */
const SYSTEM_ROOTS = [
  '/etc/ssl/certs/ca-certificates.crt',
  '/etc/pki/tls/certs/ca-bundle.crt',
  '/etc/ssl/cert.pem',
  '/etc/ssl/ca-bundle.pem',
];

/** Mozilla's, which Node brings, where the system has none in one file. */
function systemRoots(): string {
  const [first] = SYSTEM_ROOTS.flatMap((file) => readCertificates(file) ?? []);
  return first ?? rootCertificates.join('\n');
}

/** Null where it is no file that can be read. */
function readCertificates(file: string | undefined): string | null {
  if (!file || !existsSync(file) || !statSync(file).isFile()) return null;
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

/** `NO_PROXY` without what would lead to one of the hosts past the proxy; null where it stays as it is. */
function proxiedAround(noProxy: string, hosts: readonly string[]): string | null {
  const entries = noProxy.split(/[\s,]+/).filter((entry) => entry !== '');
  const kept = entries.filter((entry) => !hosts.some((host) => leadsAround(entry, withoutBrackets(host))));
  return kept.length === entries.length ? null : kept.join(',');
}

/** Clients differ in how they read an entry; the widest reading counts. */
function leadsAround(entry: string, host: string): boolean {
  if (entry === '*') return true;
  if (entry.includes('/')) return isIP(host) !== 0;
  const name = entry.toLowerCase().replace(/^\*?\./, '');
  const bare = isIP(name) === 6 ? name : withoutBrackets(name.replace(/:\d+$/, ''));
  return host === bare || host.endsWith(`.${bare}`);
}
