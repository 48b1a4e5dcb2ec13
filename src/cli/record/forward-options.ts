/** What `record --forward` and `run` are told about the servers whose URL clients keep. */

import type { OnwardSettings } from '../../capture/forward/onward.ts';
import { type HostPort, hostPortOf, placeKeyOf } from '../../capture/forward/target.ts';
import { TapedeckError } from '../../errors.ts';
import type { Listen } from '../../net/listen.ts';
import { isLoopback, withoutBrackets } from '../../protocol/http/origin.ts';
import { readUpstream } from './http-options.ts';

export const FORWARD_OPTIONS = {
  forward: {
    type: 'string',
    multiple: true,
    describe: 'Record this server, whose URL the client keeps (see: tapedeck help forward); may be repeated',
  },
  tunnel: {
    type: 'string',
    multiple: true,
    describe: 'With --forward: let this host pass unrecorded, even if it is named; may be repeated',
  },
} as const;

export type RawForwardOptions = { forward?: string[] | undefined; tunnel?: string[] | undefined };

/** The servers, in groups of one origin. At least one. */
export type Named = readonly (readonly [URL, ...URL[]])[];

/** Checks the URLs, and leaves out hosts that are to be tunnelled. Throws `TapedeckError` `usage`. */
export function readNamed(urls: readonly string[], tunnels: readonly string[] = []): Named {
  const hosts = new Set(tunnels.map(readHost));
  const named = urls.map(readNamedUrl).filter(({ hostname }) => !hosts.has(withoutBrackets(hostname)));
  if (named.length === 0)
    throw new TapedeckError(
      'usage',
      'Expected a server to record besides those of `--tunnel`. Example: --forward https://api.example.com/mcp',
    );
  const byPlace = new Map<string, [URL, ...URL[]]>();
  for (const url of named) {
    const key = placeKeyOf(hostPortOf(url));
    const group = byPlace.get(key);
    if (group === undefined) byPlace.set(key, [url]);
    else if (group[0].protocol !== url.protocol)
      throw new TapedeckError(
        'usage',
        `Expected one scheme at ${key}, got both ${group[0].origin} and ${url.origin}.`,
      );
    else if (!group.some(({ pathname }) => pathname === url.pathname)) group.push(url);
  }
  return [...byPlace.values()];
}

export function hostsOf(named: Named): string[] {
  return named.map(([{ hostname }]) => hostname);
}

/** Throws `TapedeckError` `usage` for a proxy that would be its own server, or that would go on through itself. */
export function refuseCircle(named: Named, { proxies }: OnwardSettings, { host, port }: Listen): void {
  const isOwn = (target: HostPort) =>
    target.port === port && (isLoopback(target.host) || target.host === withoutBrackets(host));
  const circle = proxies.find(({ proxy }) => isOwn(proxy));
  if (circle !== undefined)
    throw new TapedeckError(
      'usage',
      `Expected another proxy in ${circle.variable} than ${circle.proxy.url}, which is this one: it would go on through itself. Start it without the variables that are meant for its clients.`,
    );
  const own = named.find(([url]) => isOwn(hostPortOf(url)));
  if (own !== undefined)
    throw new TapedeckError(
      'usage',
      `Expected another port after \`--listen\` than that of ${own[0].origin}: the proxy would go to itself.`,
    );
}

function readNamedUrl(text: string): URL {
  if (text.includes('*'))
    throw new TapedeckError(
      'usage',
      `Expected the URL of one server after \`--forward\`, got \`${text}\`: no certificate is made for all of many hosts.`,
    );
  return readUpstream(text);
}

function readHost(text: string): string {
  if (/^(?:\[[0-9a-f:]+\]|[\w.-]+)$/i.test(text)) return withoutBrackets(text).toLowerCase();
  throw new TapedeckError(
    'usage',
    `Expected a host after \`--tunnel\`, got \`${text}\`. Example: --tunnel api.example.com`,
  );
}
