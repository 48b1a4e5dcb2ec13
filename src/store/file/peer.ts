/**
 * Which process of the same user is at the other end of a connection over loopback: the client of an HTTP proxy. Where the
 * platform does not tell, where the process is gone already, or is another user's, nobody is found.
 */

import { execFile } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { endianness } from 'node:os';
import { type ClientProcess, clientAt } from './process.ts';

/** `address` is `host:port`, as Node tells the remote end of a socket. Never rejects. */
export type PeerFinder = (address: string) => Promise<ClientProcess | null>;

/** Another process is looked through after so many milliseconds at most, so that what waits for this thread gets its turn. */
const SLICE_MS = 4;

const LSOF_MS = 2000;

export function createPeerFinder(): PeerFinder {
  /** Who was found before is most likely to have the next connection too. */
  const known = new Set<number>();
  return async (address) => {
    try {
      const end = loopbackEnd(address);
      if (end === null) return null;
      const pid = process.platform === 'linux' ? await findByProc(end, known) : await findByLsof(end);
      if (pid === null) return null;
      known.add(pid);
      return clientAt(pid);
    } catch {
      return null;
    }
  };
}

/** `127.0.0.1:8000` or `::1:8000`; null: not on this machine, or no address at all. */
export function loopbackEnd(address: string): string | null {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '');
  return plain === '::1' || /^127\./.test(plain) ? `${plain}:${port}` : null;
}

async function findByProc(end: string, known: Set<number>): Promise<number | null> {
  const inode = await inodeOf(end);
  if (inode === null) return null;
  const link = `socket:[${inode}]`;
  for (const pid of known) if (hasOpen(pid, link) === true) return pid;
  let began = performance.now();
  for (const name of readdirSync('/proc')) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    if (hasOpen(pid, link)) return pid;
    if (performance.now() - began < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    began = performance.now();
  }
  // The client of a proxy may live in its own process, as in a test.
  return hasOpen(process.pid, link) ? process.pid : null;
}

function hasOpen(pid: number, link: string): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some((fd) => linkOf(`${folder}/${fd}`) === link);
  } catch {
    // It is another user's, or has ended.
    return false;
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

type Connection = { local: string; remote: string; uid: number; inode: string };

/**
 * The socket of ours whose own end this is. One client's port may be in use towards several servers: only a connection whose
 * other end is on this machine too counts, and it must be the only one.
 */
async function inodeOf(end: string): Promise<string | null> {
  const port = Number(end.slice(end.lastIndexOf(':') + 1));
  // Not on this thread: the kernel takes many milliseconds to write them, and what passes meanwhile is to be stored.
  const texts = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  const all = texts.flatMap((text) => connectionsIn(text, port));
  const isMirrored = ({ local, remote }: Connection) =>
    all.some((other) => other.local === remote && other.remote === local);
  const uid = process.getuid?.();
  const found = all.filter(
    (one) => one.local === end && one.uid === uid && one.inode !== '0' && isMirrored(one),
  );
  return found.length === 1 ? (found[0]?.inode ?? null) : null;
}

/** Those with this port at one of their ends. Fields: sl, local, remote, state, queues, timer, retransmits, uid, timeout, inode … (proc_net_tcp of the kernel's docs). */
function connectionsIn(text: string, port: number): Connection[] {
  // There may be thousands, and most have nothing to do with this port.
  const mark = `:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  const lines = text.split('\n').slice(1);
  return lines.flatMap((line) => {
    if (!line.includes(mark)) return [];
    const [, local = '', remote = '', , , , , uid, , inode = '0'] = line.trim().split(/\s+/);
    const [own, other] = [endIn(local), endIn(remote)];
    return own === null || other === null ? [] : [{ local: own, remote: other, uid: Number(uid), inode }];
  });
}

const V6_LOOPBACK = '00000000000000000000000000000001';

const V4_MAPPED = '00000000000000000000FFFF';

/** `0100007F:1F90`: 32-bit words in the machine's own order, then the port. */
function endIn(text: string): string | null {
  const [words = '', port = ''] = text.split(':');
  const hex = endianness() === 'BE' ? words : words.replace(/(..)(..)(..)(..)/g, '$4$3$2$1');
  const v4 = hex.length === 8 ? hex : hex.startsWith(V4_MAPPED) ? hex.slice(V4_MAPPED.length) : null;
  if (v4 === null && hex !== V6_LOOPBACK) return null;
  const host = v4 === null ? '::1' : [...Buffer.from(v4, 'hex')].join('.');
  return loopbackEnd(`${host}:${Number.parseInt(port, 16)}`);
}

/** macOS and others. `-F pn`: a line `p` with the process, then one `n` for each of its connections: `local->remote`. */
async function findByLsof(end: string): Promise<number | null> {
  if (process.platform === 'win32') return null;
  const port = end.slice(end.lastIndexOf(':') + 1);
  const args = ['-nP', `-iTCP:${port}`, '-sTCP:ESTABLISHED', '-a', '-u', String(process.getuid?.()), '-Fpn'];
  const text = await new Promise<string>((resolve) => {
    execFile('lsof', args, { timeout: LSOF_MS }, (_, stdout) => resolve(stdout));
  });
  return ownerInLsof(text, end);
}

/** Exported for its test: lsof is not on every machine. */
export function ownerInLsof(text: string, end: string): number | null {
  let pid: number | null = null;
  for (const line of text.split('\n')) {
    if (line.startsWith('p')) pid = Number(line.slice(1));
    const [local] = line.startsWith('n') ? line.slice(1).split('->') : [];
    if (local !== undefined && loopbackEnd(local.replace(/^\[(.*)\]:/, '$1:')) === end) return pid;
  }
  return null;
}
