/**
 * Whether a request to a local server may be trusted to come from where it says. A hostile web page can make a
 * browser call loopback addresses; by rebinding its DNS name it even gets the answers. Such a request gives itself
 * away: its `Host` is the page's own name, or its `Origin` is the page's.
 * Specification: basic/transports/streamable-http, "Security Warning".
 */

export type OriginRule = {
  /** The address that the server listens on; reaching it by this name is fine. */
  listenHost: string;
  /** More names that the server is known by: `name` on any port, `name:port` on that one, `*` for all. */
  allowHosts: readonly string[];
  /** More origins whose pages may call: `https://app.example`, or `*` for all. */
  allowOrigins: readonly string[];
};

type OriginProblem = { header: 'Host' | 'Origin'; value: string };

/** Null if the request is fine. A request without `Host` or `Origin` comes from no browser, so it passes. */
export function findOriginProblem(
  host: string | undefined,
  origin: string | undefined,
  rule: OriginRule,
): OriginProblem | null {
  if (host !== undefined && !isOwnHost(host, rule)) return { header: 'Host', value: host };
  if (origin !== undefined && !isFriendlyOrigin(origin, host, rule))
    return { header: 'Origin', value: origin };
  return null;
}

/** `localhost`, 127.0.0.0/8 and `::1`, with or without brackets. */
export function isLoopback(hostname: string): boolean {
  const name = withoutBrackets(hostname).toLowerCase();
  return name === 'localhost' || name === '::1' || (name.startsWith('127.') && isIpv4(name));
}

/** Four numbers up to 255, without leading zeros: anything else is a name, which may be rebound. */
function isIpv4(name: string): boolean {
  return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(name);
}

/** An address of "all interfaces": no name of its own. */
export function isWildcard(hostname: string): boolean {
  const name = withoutBrackets(hostname);
  return name === '0.0.0.0' || name === '::' || name === '';
}

export function withoutBrackets(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function isOwnHost(host: string, rule: OriginRule): boolean {
  const hostname = hostnameOf(host);
  if (hostname === null) return false;
  if (isOwnName(hostname, rule)) return true;
  // An address, unlike a name, cannot be rebound, so it is ours whichever interface it belongs to.
  if (isWildcard(rule.listenHost) && isAddress(hostname)) return true;
  return rule.allowHosts.includes('*') || isListed(host, hostname, rule);
}

function isListed(host: string, hostname: string, { allowHosts }: OriginRule): boolean {
  return allowHosts.some((allowed) => isSame(allowed, host) || isSame(allowed, hostname));
}

function isOwnName(hostname: string, rule: OriginRule): boolean {
  return isLoopback(hostname) || isSame(withoutBrackets(hostname), withoutBrackets(rule.listenHost));
}

function isFriendlyOrigin(origin: string, host: string | undefined, rule: OriginRule): boolean {
  if (rule.allowOrigins.some((allowed) => allowed === '*' || isSame(allowed, origin))) return true;
  const authority = /^https?:\/\/([^/?#\s]+)$/i.exec(origin)?.[1];
  const hostname = authority === undefined ? null : hostnameOf(authority);
  if (authority === undefined || hostname === null) return false;
  // A page that came from the very name that the request goes to, which has been found to be ours.
  if (host !== undefined && isSame(hostname, hostnameOf(host) ?? '')) return true;
  return isOwnName(hostname, rule) || isListed(authority, hostname, rule);
}

/** The part before the port; null for what is no host. */
function hostnameOf(host: string): string | null {
  return /^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]]+)(?::\d{1,5})?$/i.exec(host)?.[1] ?? null;
}

function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || isIpv4(hostname);
}

function isSame(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
