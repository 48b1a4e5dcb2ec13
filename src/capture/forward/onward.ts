/**
 * The proxy that the environment already has, such as a company's: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY. There is no
 * standard for them; this reads them as curl does, and goes to loopback addresses directly, as Go and browsers do.
 */

import { BlockList, isIP } from 'node:net';
import { isLoopback, withoutBrackets } from '../../protocol/http/origin.ts';
import type { HostPort } from './target.ts';

export type OnwardProxy = HostPort & {
  /** Without user and password, so it is safe to print. */
  url: string;
  /** Whether clients speak TLS with it. */
  isTls: boolean;
  /** The value of `Proxy-Authorization` (RFC 7617) that it gets, and nobody else; null: none. */
  authorization: string | null;
};

/** The proxy by which a server is reached; null: it is reached directly. */
export type Onward = (scheme: 'http' | 'https', place: HostPort) => OnwardProxy | null;

export type OnwardSettings = {
  onward: Onward;
  /** Those in use, each once, by the variable that names it. */
  proxies: readonly { variable: string; proxy: OnwardProxy }[];
  /** Variables that have a value of another kind. */
  unused: readonly string[];
};

export function readOnward(env: NodeJS.ProcessEnv): OnwardSettings {
  const [https, http, all] = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'].map((name) =>
    readVariable(env, name),
  );
  const [forHttps, forHttp] = [https ?? all, http ?? all];
  const given = [...new Set([forHttps, forHttp])].filter((one) => one !== undefined);
  const isExempt = readExemptions(env['no_proxy'] || env['NO_PROXY'] || '');
  return {
    onward(scheme, place) {
      const proxy = (scheme === 'https' ? forHttps : forHttp)?.proxy ?? null;
      return proxy === null || isLoopback(place.host) || isExempt(place) ? null : proxy;
    },
    proxies: given.flatMap(({ variable, proxy }) => (proxy === null ? [] : [{ variable, proxy }])),
    unused: given.filter(({ proxy }) => proxy === null).map(({ variable }) => variable),
  };
}

/** Undefined where it is not set. The lower case goes first, as with curl. */
function readVariable(env: NodeJS.ProcessEnv, name: string) {
  const [variable] = [name.toLowerCase(), name].filter((one) => env[one]);
  return variable === undefined ? undefined : { variable, proxy: readProxy(env[variable] ?? '') };
}

/** Null for what is no proxy of HTTP. */
function readProxy(text: string): OnwardProxy | null {
  const full = text.includes('://') ? text : `http://${text}`;
  if (!URL.canParse(full)) return null;
  const { protocol, hostname, port, host, username, password } = new URL(full);
  const isTls = protocol === 'https:';
  if (hostname === '' || (!isTls && protocol !== 'http:')) return null;
  const user = `${decoded(username)}:${decoded(password)}`;
  return {
    host: withoutBrackets(hostname),
    port: Number(port || (isTls ? 443 : 80)),
    url: `${protocol}//${host}`,
    isTls,
    authorization: user === ':' ? null : `Basic ${Buffer.from(user).toString('base64')}`,
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Names cover what lies below them, with or without a dot in front; addresses and their ranges; each perhaps with a port. */
function readExemptions(text: string): (place: HostPort) => boolean {
  const rules = text
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '')
    .map(readExemption);
  return ({ host, port }) => {
    const name = host.toLowerCase().replace(/\.$/, '');
    return rules.some((rule) => (rule.port === null || rule.port === port) && rule.covers(name));
  };
}

type Exemption = { port: number | null; covers: (host: string) => boolean };

function readExemption(entry: string): Exemption {
  if (entry === '*') return { port: null, covers: () => true };
  const [, bracketed, bare = '', digits] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
  const name = bracketed ?? (bare || entry);
  const port = digits === undefined ? null : Number(digits);
  const [network = '', prefix] = name.split('/', 2);
  const family = isIP(network);
  if (family === 0) {
    const ending = name.replace(/^\*?\./, '').replace(/\.$/, '');
    return { port, covers: (host) => ending !== '' && (host === ending || host.endsWith(`.${ending}`)) };
  }
  const list = new BlockList();
  const kind = family === 6 ? 'ipv6' : 'ipv4';
  const most = family === 6 ? 128 : 32;
  const bits = prefix === undefined ? most : /^\d{1,3}$/.test(prefix) ? Number(prefix) : most + 1;
  if (bits <= most) list.addSubnet(network, bits, kind);
  return {
    port,
    covers: (host) => isIP(host) !== 0 && list.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4'),
  };
}
