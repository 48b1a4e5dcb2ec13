/** The CAs of `record --forward`, one for each set of hosts, kept so that clients need to be told of each only once in 30 days. */

import { createHash, createPrivateKey, X509Certificate } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type Authority, expiryOf, makeAuthority } from '../../capture/forward/authority.ts';
import { dataFolder, makeFolder } from '../../store/file/path.ts';
import type { Io } from '../io.ts';

/** `folder` has its files, and is the user's alone. */
export type KeptAuthority = Authority & { folder: string; hosts: readonly string[] };

export const CERTIFICATE_FILE = 'ca.pem';

const KEY_FILE = 'ca.key';

/** One that ends sooner is made anew, so that clients are not cut off within hours. */
const LEAST_LEFT_MS = 86_400_000;

export function authoritiesFolder({ env }: Pick<Io, 'env'>): string {
  return join(dataFolder(env), 'forward');
}

/** The CA that is kept for these hosts; a new one, where there is none or it ends soon. */
export async function keepAuthority(parent: string, hosts: readonly string[]): Promise<KeptAuthority> {
  const sorted = [...new Set(hosts)].toSorted();
  const folder = join(parent, createHash('sha256').update(sorted.join('\n')).digest('hex').slice(0, 12));
  const known = readAuthority(folder);
  if (known !== null && expiryOf(known) - Date.now() > LEAST_LEFT_MS) return known;
  const made = await makeAuthority(sorted);
  makeFolder(parent, 0o700);
  const draft = mkdtempSync(join(parent, '.new-'));
  const options = { mode: 0o600, flag: 'wx' } as const;
  writeFileSync(join(draft, KEY_FILE), made.key, options);
  writeFileSync(
    join(draft, CERTIFICATE_FILE),
    `${FOR_HOSTS}${sorted.join(', ')}\n${made.certificate}`,
    options,
  );
  if (known !== null || readAuthority(folder) === null) rmSync(folder, { recursive: true, force: true });
  try {
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process was faster.
    const other = readAuthority(folder);
    if (other === null) throw error;
    return other;
  }
  return { ...made, folder, hosts: sorted };
}

/** All that are kept. */
export function keptAuthorities(parent: string): KeptAuthority[] {
  const names = existsSync(parent) ? readdirSync(parent).toSorted() : [];
  return names.flatMap((name) => readAuthority(join(parent, name)) ?? []);
}

export function forgetAuthority({ folder }: KeptAuthority): void {
  rmSync(folder, { recursive: true, force: true });
  const parent = dirname(folder);
  if (readdirSync(parent).length === 0) rmSync(parent, { recursive: true });
}

/** A line before the certificate, which readers of PEM pass over. */
const FOR_HOSTS = '# tapedeck forward proxy, for: ';

/** Null where the two files are not there, or do not belong together. */
function readAuthority(folder: string): KeptAuthority | null {
  try {
    const text = readFileSync(join(folder, CERTIFICATE_FILE), 'utf8');
    const key = readFileSync(join(folder, KEY_FILE), 'utf8');
    const certificate = text.slice(text.indexOf('-----BEGIN'));
    if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))) return null;
    const [first = ''] = text.split('\n', 1);
    return { certificate, key, folder, hosts: first.slice(FOR_HOSTS.length).split(', ') };
  } catch {
    return null;
  }
}
