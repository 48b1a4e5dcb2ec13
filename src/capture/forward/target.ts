/**
 * Where a client of the forward proxy wants to go, and whether it may. What is not plainly a host and a port is refused: two
 * readers of it could go to different places.
 */

import { lookup as findAddresses } from 'node:dns';
import { BlockList, isIP, isIPv4, isIPv6, type LookupFunction } from 'node:net';
import { networkInterfaces } from 'node:os';
import { withoutBrackets } from '../../protocol/http/origin.ts';

/** `host` in lower case, without brackets. */
export type HostPort = { host: string; port: number };

const LONGEST_NAME = 253;

/**
 * The target of a CONNECT (RFC 9110, 9.3.6): host and port, nothing else. Null for what has a user, a zone, a path, no port, or
 * an address in an unusual spelling (`127.1`, `0x7f000001`).
 */
export function readConnectTarget(text: string): HostPort | null {
  const [, host = '', digits = ''] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+):([1-9]\d{0,4})$/i.exec(text) ?? [];
  const port = Number(digits);
  return port >= 1 && port <= 65_535 && isPlainHost(host)
    ? { host: withoutBrackets(host).toLowerCase(), port }
    : null;
}

/** The origin of a request in absolute form (RFC 9112, 3.2.2), for plain HTTP; null for anything else. */
export function readAbsoluteTarget(text: string): URL | null {
  // As it is written: a URL makes one address of its many spellings.
  const [start, host = ''] =
    /^http:\/\/(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?(?=[/?#]|$)/i.exec(text) ?? [];
  return start !== undefined && isPlainHost(host) && URL.canParse(start) ? new URL(start) : null;
}

/** By which an origin is found. */
export function hostPortOf({ protocol, hostname, port }: URL): HostPort {
  return {
    host: withoutBrackets(hostname).replace(/\.$/, ''),
    port: Number(port || (protocol === 'https:' ? 443 : 80)),
  };
}

export function placeKeyOf({ host, port }: HostPort): string {
  return `${host.replace(/\.$/, '')}:${port}`;
}

function isPlainHost(host: string): boolean {
  if (host.startsWith('[')) return isIPv6(host.slice(1, -1));
  const labels = host.replace(/\.$/, '').split('.');
  const isName = labels.every((label) => /^[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?$/i.test(label));
  const isNumber = /^(?:\d+|0x[0-9a-f]*)$/i.test(labels.at(-1) ?? '');
  return host.length <= LONGEST_NAME && isName && (!isNumber || isIPv4(host));
}

export type Reach = {
  /** Why this may not be gone to, or null. For a name that is decided by `lookup`. */
  problemOf(target: HostPort): string | null;
  /** Finds the addresses of a name as Node does; fails where one of them may not be gone to. */
  lookup(target: HostPort): LookupFunction;
};

/** Addresses that mean the machine itself, or what only it should reach, such as a cloud's metadata. */
const INNER = blockList(
  ['127.0.0.0', 8],
  ['0.0.0.0', 8],
  ['169.254.0.0', 16],
  // The metadata of Alibaba's cloud.
  ['100.100.100.200', 32],
  ['224.0.0.0', 4],
  ['::', 127],
  ['64:ff9b::', 96],
  ['fe80::', 10],
  ['fd00:ec2::', 32],
  ['ff00::', 8],
);

const OWN = blockList(['127.0.0.0', 8], ['0.0.0.0', 8], ['::', 127]);

/** Ports below 1024 that a proxy for others has reason to go to. */
const WEB_PORTS = [80, 443];

/**
 * What listens on loopback serves processes of this machine, which reach everything by themselves: only the proxy's own port is
 * refused, which would lead in a circle. A proxy for others leads neither into this machine nor to ports of mail and the like.
 */
export function createReach(ownPort: () => number, isForOthers: boolean): Reach {
  function problemAt(address: string, port: number): string | null {
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (isForOthers && INNER.check(address, family)) return `${address} belongs to this machine alone`;
    return port === ownPort() && isOwn(address, family) ? 'this is the proxy’s own port' : null;
  }

  function problemOf({ host, port }: HostPort): string | null {
    if (isForOthers && port < 1024 && !WEB_PORTS.includes(port)) return `port ${port} is not the web’s`;
    return isIP(host) === 0 ? null : problemAt(host, port);
  }

  const lookup =
    ({ port }: HostPort): LookupFunction =>
    (hostname, options, done) =>
      findAddresses(hostname, { ...options, all: true }, (error, addresses = []) => {
        const problem = addresses.map(({ address }) => problemAt(address, port)).find((one) => one !== null);
        const failure = error ?? (problem == null ? null : new Error(problem));
        const [first] = addresses;
        if (failure !== null || first === undefined) done(failure, '', 0);
        else if (options.all) done(null, addresses);
        else done(null, first.address, first.family);
      });
  return { problemOf, lookup };
}

function isOwn(address: string, family: 'ipv4' | 'ipv6'): boolean {
  if (OWN.check(address, family)) return true;
  return Object.values(networkInterfaces()).some((all) => all?.some((one) => one.address === address));
}

/** IPv4 within IPv6 (`::ffff:127.0.0.1`) counts as what it is. */
function blockList(...subnets: readonly [network: string, prefix: number][]): BlockList {
  const list = new BlockList();
  for (const [network, prefix] of subnets) list.addSubnet(network, prefix, isIPv6(network) ? 'ipv6' : 'ipv4');
  return list;
}
