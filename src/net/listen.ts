/**
 * Listening on a port of this machine: opens it, names its own URL, and says whom to turn away. For every server that
 * tapedeck runs, so that all of them are as careful.
 */

import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo, Server } from 'node:net';
import { memoize } from '../protocol/bounded.ts';
import { findOriginProblem, isWildcard, type OriginRule, withoutBrackets } from '../protocol/http/origin.ts';

/**
 * `host` may have brackets, as in `[::1]`. Port 0 means any free one. `fd`: a socket that listens already, which who started
 * us has handed over (systemd's socket activation); then it counts, and the address does not.
 */
export type Listen = { host: string; port: number; fd?: number };

/** Settles once the server listens. Rejects with Node's error where it cannot (`EADDRINUSE`, `EACCES`). */
export function startListening(server: Server, { host, port, fd }: Listen): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    const where = fd === undefined ? { host: withoutBrackets(host), port } : { fd };
    server.listen(where, () => {
      server.off('error', reject);
      const address = server.address();
      if (address === null || typeof address === 'string') {
        server.close();
        reject(new Error('the socket that was handed over is not one of TCP'));
        return;
      }
      // Later errors, such as too many open files, cost one connection and not the server.
      server.on('error', () => {});
      resolve(address);
    });
  });
}

/** The URL at which a client on this machine reaches the server. `path` begins with a slash, and may have a query. */
export function ownUrl({ address, family, port }: AddressInfo, scheme: 'http' | 'https', path: string): URL {
  const loopback = family === 'IPv6' ? '::1' : '127.0.0.1';
  const host = isWildcard(address) ? loopback : address;
  return new URL(`${scheme}://${family === 'IPv6' ? `[${host}]` : host}:${port}${path}`);
}

/** Returns why a request is refused, in words for its sender; null for a request that may pass. */
export type AccessCheck = (headers: IncomingHttpHeaders) => string | null;

/** Checks `Host` and `Origin` against the rule. Cheap for clients that send the same `Host` every time. */
export function createAccessCheck(rule: OriginRule): AccessCheck {
  const check = (host: string | undefined, origin: string | undefined) => {
    const problem = findOriginProblem(host, origin, rule);
    if (problem === null) return null;
    const { header, value } = problem;
    return `refused the ${header} ${JSON.stringify(value)}; --allow-${header.toLowerCase()} allows it`;
  };
  const checkHost = memoize((host) => check(host, undefined));
  return ({ host, origin }) =>
    host === undefined || origin !== undefined ? check(host, origin) : checkHost(host);
}
