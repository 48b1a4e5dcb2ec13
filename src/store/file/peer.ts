/**
 * Which process of the same user is at the other end of a connection over loopback: the client of an HTTP proxy. Where the
 * platform does not tell, where the process is gone already, or is another user's, nobody is found.
 */

import { execFile } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { endianness } from 'node:os';
import { type ClientProcess, clientAt } from './process.ts';

/**
 * An address is `host:port`, as Node tells the remote end of a socket. Gives the process at each, null: nobody is found. Many
 * together cost little more than one. Never rejects.
 */
export type PeerFinder = (addresses: readonly string[]) => Promise<(ClientProcess | null)[]>;

/** Another process is looked through after so many milliseconds at most, so that what waits for this thread gets its turn. */
const SLICE_MS = 4;

const LSOF_MS = 2000;

export function createPeerFinder(): PeerFinder {
  /** Who was found before is most likely to have the next connection too. */
  const known = new Set<number>();
  return async (addresses) => {
    const ends = addresses.map(loopbackEnd);
    try {
      const wanted = ends.filter((end) => end !== null);
      if (wanted.length === 0) return ends.map(() => null);
      const pids = process.platform === 'linux' ? await findByProc(wanted, known) : await findByLsof(wanted);
      for (const pid of pids.values()) known.add(pid);
      const clients = new Map([...new Set(pids.values())].map((pid) => [pid, clientAt(pid)]));
      return ends.map((end) => clients.get(pids.get(end ?? '') ?? 0) ?? null);
    } catch {
      return ends.map(() => null);
    }
  };
}

/** `127.0.0.1:8000` or `::1:8000`; null: not on this machine, or no address at all. */
export function loopbackEnd(address: string): string | null {
  const [, host = '', port] = /^(.*):(\d+)$/.exec(address) ?? [];
  const plain = host.replace(/^::ffff:(?=\d+\.)/i, '');
  return plain === '::1' || /^127\./.test(plain) ? `${plain}:${port}` : null;
}

/** The processes by the ends that they own. */
type Owners = Map<string, number>;

async function findByProc(ends: readonly string[], known: ReadonlySet<number>): Promise<Owners> {
  const owners: Owners = new Map();
  /** The ends that are left, by their links. */
  const wanted = await socketsOf(ends);
  for (const pid of known) takeOwned(pid, wanted, owners);
  let began = performance.now();
  const others = wanted.size === 0 ? [] : readdirSync('/proc').map(Number).filter(Number.isInteger);
  // The client of a proxy may live in its own process, as in a test: that comes last.
  for (const pid of [...others.filter((pid) => pid !== process.pid), process.pid]) {
    takeOwned(pid, wanted, owners);
    if (wanted.size === 0) break;
    if (performance.now() - began < SLICE_MS) continue;
    await new Promise((resolve) => setImmediate(resolve));
    began = performance.now();
  }
  return owners;
}

/** Moves those of the wanted links that this process has open to the owners. */
function takeOwned(pid: number, wanted: Map<string, string>, owners: Owners): void {
  const folder = `/proc/${pid}/fd`;
  try {
    for (const fd of readdirSync(folder)) {
      if (wanted.size === 0) return;
      const link = linkOf(`${folder}/${fd}`) ?? '';
      const end = wanted.get(link);
      if (end === undefined) continue;
      owners.set(end, pid);
      wanted.delete(link);
    }
  } catch {
    // It is another user's, or has ended.
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
 * The ends, by the links of our sockets whose own ends they are. One client's port may be in use towards several servers: only a
 * connection whose other end is on this machine too counts, and it must be the only one.
 */
async function socketsOf(ends: readonly string[]): Promise<Map<string, string>> {
  // Not on this thread: the kernel takes many milliseconds to write them, and what passes meanwhile is to be stored.
  const texts = await Promise.all(
    ['/proc/net/tcp', '/proc/net/tcp6'].map((file) => readFile(file, 'utf8').catch(() => '')),
  );
  const at = connectionsIn(texts, ends.map(portOf));
  const links = ends.map((end) => [inodeOf(end, at.get(portOf(end)) ?? []), end] as const);
  return new Map(links.flatMap(([inode, end]) => (inode === null ? [] : [[`socket:[${inode}]`, end]])));
}

const portOf = (end: string) => Number(end.slice(end.lastIndexOf(':') + 1));

/** `all`: the connections with its port at one of their ends. */
function inodeOf(end: string, all: readonly Connection[]): string | null {
  const isMirrored = ({ local, remote }: Connection) =>
    all.some((other) => other.local === remote && other.remote === local);
  const uid = process.getuid?.();
  const found = all.filter(
    (one) => one.local === end && one.uid === uid && one.inode !== '0' && isMirrored(one),
  );
  return found.length === 1 ? (found[0]?.inode ?? null) : null;
}

/**
 * Those with one of these ports at an end, by that port. There may be thousands of others, and each line is looked at once. Fields:
 * sl, local, remote, state, queues, timer, retransmits, uid, timeout, inode … (proc_net_tcp of the kernel's docs).
 */
function connectionsIn(texts: readonly string[], ports: readonly number[]): Map<number, Connection[]> {
  const at = new Map(ports.map((port): [number, Connection[]] => [port, []]));
  /** By the ports as they stand there. */
  const byHex = new Map([...at].map(([port, found]) => [hexOf(port), found]));
  for (const line of texts.flatMap((text) => text.split('\n'))) {
    const localEnd = line.indexOf(' ', line.indexOf(': ') + 2);
    const remoteEnd = line.indexOf(' ', localEnd + 1);
    const local = byHex.get(line.slice(localEnd - HEX_DIGITS, localEnd));
    const remote = byHex.get(line.slice(remoteEnd - HEX_DIGITS, remoteEnd));
    if (local === undefined && remote === undefined) continue;
    const connection = readConnection(line);
    if (connection === null) continue;
    local?.push(connection);
    if (remote !== local) remote?.push(connection);
  }
  return at;
}

const HEX_DIGITS = 4;

const hexOf = (port: number) => port.toString(16).toUpperCase().padStart(HEX_DIGITS, '0');

function readConnection(line: string): Connection | null {
  const [, local = '', remote = '', , , , , uid, , inode = '0'] = line.trim().split(/\s+/);
  const [own, other] = [endIn(local), endIn(remote)];
  return own === null || other === null ? null : { local: own, remote: other, uid: Number(uid), inode };
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
async function findByLsof(ends: readonly string[]): Promise<Owners> {
  if (process.platform === 'win32') return new Map();
  const ports = ends.map((end) => end.slice(end.lastIndexOf(':') + 1)).join(',');
  const args = ['-nP', `-iTCP:${ports}`, '-sTCP:ESTABLISHED', '-a', '-u', String(process.getuid?.()), '-Fpn'];
  const text = await new Promise<string>((resolve) => {
    execFile('lsof', args, { timeout: LSOF_MS }, (_, stdout) => resolve(stdout));
  });
  const owners = ends.map((end) => [end, ownerInLsof(text, end)] as const);
  return new Map(owners.flatMap(([end, pid]) => (pid === null ? [] : [[end, pid]])));
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
