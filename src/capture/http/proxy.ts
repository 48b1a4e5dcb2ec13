/**
 * The HTTP reverse proxy: listens, and forwards any number of clients to one server, path for path. It has no time limits of its
 * own: how long a stream stays quiet is between its two ends.
 */

import type { IncomingMessage, Server } from 'node:http';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createAccessCheck, type Listen, ownUrl, startListening } from '../../net/listen.ts';
import { escapeText } from '../../protocol/text.ts';
import { createQuietServer, createRelay, type RelayOptions, type ServerTls, serveRelay } from './relay.ts';

export type HttpOptions = Pick<
  RelayOptions,
  'upstream' | 'isInsecure' | 'hasEdits' | 'onEvent' | 'onNotice' | 'onOpen' | 'onForwarded'
> & {
  listen: Listen;
  /** To listen with TLS. */
  tls: ServerTls | null;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  /** How long `stop` lets open HTTP exchanges go on, in milliseconds. */
  graceMs: number;
};

export type HttpCapture = {
  /** The URL that clients use in place of the upstream's. */
  url: URL;
  address: AddressInfo;
  /** How many HTTP exchanges have not ended. */
  openHttpExchanges(): number;
  /** Events that `onEvent` did not take. */
  failedEvents(): number;
  /** Accepts nothing new, waits `graceMs` for open HTTP exchanges, then cuts them. Settles when all is closed. */
  stop(): Promise<void>;
  /** Breaks off what is still open. */
  cut(): void;
};

/** Settles when it listens; rejects where it cannot (`EADDRINUSE` and the like). */
export async function captureHttp(options: HttpOptions): Promise<HttpCapture> {
  const { upstream, listen, tls, hasEdits, graceMs } = options;
  const scheme = tls === null ? 'http' : 'https';
  const relay = createRelay({
    ...{ ...options, scheme },
    checkAccess: accessCheckFor(options, listen.host),
    hostHint: (sent) => hostHint(sent, hasEdits),
  });
  const server = createQuietServer(tls);
  serveRelay(server, relay);
  server.on('connect', refuseTunnel);
  const connections = watchConnections(server);
  const address = await startListening(server, listen);
  // A socket that was handed over knows best by which address it is reached.
  if (listen.fd !== undefined) relay.checkAccess(accessCheckFor(options, address.address));

  const cut = () => {
    relay.cut();
    server.closeAllConnections();
  };
  return {
    url: ownUrl(address, scheme, pathOf(upstream)),
    address,
    openHttpExchanges: relay.openHttpExchanges,
    failedEvents: relay.failedEvents,
    cut,
    async stop() {
      relay.closeAfterAnswers();
      const closed = connections.close();
      const timer = setTimeout(cut, graceMs);
      await Promise.race([closed, connections.settle(graceMs)]);
      const idle = relay.idle(() => server.closeIdleConnections());
      await Promise.race([closed, idle]);
      server.closeAllConnections();
      // Connections may be closed before the exchanges on them have noticed.
      await Promise.all([closed, idle]);
      clearTimeout(timer);
      server.close();
      relay.close();
    },
  };
}

/**
 * Ends what listens so that nobody meets a closed connection. Node would close each connection without a request at once; but a
 * request may be on its way on one, and one that was just accepted is about to bring its first.
 */
function watchConnections(server: Server) {
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  return {
    /** Accepts no more, and settles when all connections have closed. */
    close: () => new Promise<void>((resolve) => NetServer.prototype.close.call(server, () => resolve())),
    /** Settles when no first request is to be expected any more, after `mostMs` at the latest. */
    async settle(mostMs: number): Promise<void> {
      const began = performance.now();
      const hasPassed = (ms: number) => performance.now() - began >= Math.min(ms, mostMs);
      const isSettled = () =>
        hasPassed(SETTLE_MS.most) ||
        (hasPassed(SETTLE_MS.least) && [...open].every(({ bytesRead }) => bytesRead > 0));
      while (!isSettled()) await new Promise((resolve) => setTimeout(resolve, SETTLE_MS.step));
    },
  };
}

const SETTLE_MS = { step: 10, least: 50, most: 1000 };

function accessCheckFor({ allowHosts, allowOrigins }: HttpOptions, listenHost: string) {
  return createAccessCheck({ listenHost, allowHosts, allowOrigins });
}

function hostHint(sent: string, hasEdits: boolean): string {
  const what = hasEdits
    ? 'put the address by which the server knows itself into the URL after `record`'
    : 'leave out `--no-edit`, and it gets its own';
  return `the server answered 403 and speaks of hosts: it may refuse the Host header ${escapeText(sent)} that it got. Allow that host in the server’s settings, or ${what}`;
}

function pathOf({ pathname, search, hash }: URL): string {
  return `${pathname}${search}${hash}`;
}

/** One fixed upstream: no tunnels to elsewhere. */
function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => {});
  socket.end('HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
}
