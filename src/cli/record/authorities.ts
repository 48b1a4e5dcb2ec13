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
import { LEAST_LEFT_MS } from '../../capture/forward/renewal.ts';
import { dataFolder, makeFolder } from '../../store/file/path.ts';
import type { Io } from '../io.ts';

/** `folder` has its files, and is the user's alone. */
export type KeptAuthority = Authority & {
  folder: string;
  hosts: readonly string[];
  /** The one that is used after it; null: it is not made yet. */
  next: Authority | null;
};

export const CERTIFICATE_FILE = 'ca.pem';

const KEY_FILE = 'ca.key';

/** The next CA, within the folder of the one in use. */
const NEXT_FOLDER = 'next';

export function authoritiesFolder({ env }: Pick<Io, 'env'>): string {
  return join(dataFolder(env), 'forward');
}

/** The CA that is kept for these hosts; the next one where it ends soon, or a new one. `now`: milliseconds since the Unix epoch. */
export async function keepAuthority(
  parent: string,
  hosts: readonly string[],
  now = Date.now(),
): Promise<KeptAuthority> {
  const sorted = [...new Set(hosts)].toSorted();
  const folder = join(parent, createHash('sha256').update(sorted.join('\n')).digest('hex').slice(0, 12));
  const isGood = (one: Authority) => expiryOf(one) - now > LEAST_LEFT_MS;
  const known = readAuthority(folder);
  if (known !== null && isGood(known)) return known;
  if (known?.next != null && isGood(known.next)) return useNext(known);
  const made = await makeAuthority(sorted, now);
  makeFolder(parent, 0o700);
  if (known !== null || readAuthority(folder) === null) rmSync(folder, { recursive: true, force: true });
  return { ...place(made, sorted, folder), next: null };
}

/** Makes the one that is used after this, and keeps it; one that another process has made counts. */
export async function keepNext({ folder, hosts }: KeptAuthority, now: number): Promise<Authority> {
  return place(await makeAuthority(hosts, now), hosts, join(folder, NEXT_FOLDER));
}

/** The next one takes the place of this. */
export function useNext(kept: KeptAuthority): KeptAuthority {
  const { folder, next } = kept;
  for (const file of [KEY_FILE, CERTIFICATE_FILE]) {
    const from = join(folder, NEXT_FOLDER, file);
    if (existsSync(from)) renameSync(from, join(folder, file));
  }
  rmSync(join(folder, NEXT_FOLDER), { recursive: true, force: true });
  return readAuthority(folder) ?? { ...kept, ...next, next: null };
}

/** Puts both files there in one step. */
function place(made: Authority, hosts: readonly string[], folder: string): Omit<KeptAuthority, 'next'> {
  const draft = mkdtempSync(join(dirname(folder), '.new-'));
  const options = { mode: 0o600, flag: 'wx' } as const;
  writeFileSync(join(draft, KEY_FILE), made.key, options);
  writeFileSync(
    join(draft, CERTIFICATE_FILE),
    `${FOR_HOSTS}${hosts.join(', ')}\n${made.certificate}`,
    options,
  );
  try {
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    // Another process was faster.
    const other = readAuthority(folder);
    if (other === null) throw error;
    return other;
  }
  return { ...made, folder, hosts };
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
    const hosts = first.slice(FOR_HOSTS.length).split(', ');
    return { certificate, key, folder, hosts, next: readAuthority(join(folder, NEXT_FOLDER)) };
  } catch {
    return null;
  }
}
