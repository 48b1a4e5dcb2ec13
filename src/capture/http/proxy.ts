/**
 * The HTTP reverse proxy: listens, and forwards any number of clients to one server, path for path. It has no time limits of its
 * own: how long a stream stays quiet is between its two ends.
 */

import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, Server as NetServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createAccessCheck, type Listen, ownUrl, startListening } from '../../net/listen.ts';
import { escapeText } from '../../protocol/text.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import { type ProxyContext, ProxyExchange } from './exchange.ts';
import { type ClientError, readPreface, relayHttp2 } from './http2.ts';
import { createUpstream, MAX_HEADER_BYTES } from './upstream.ts';

export type HttpOptions = {
  /** Only its origin counts for forwarding: clients choose the path. */
  upstream: URL;
  listen: Listen;
  /** PEM texts, to listen with TLS. */
  tls: { cert: string | Buffer; key: string | Buffer } | null;
  /** Accepts any certificate of the upstream. */
  isInsecure: boolean;
  hasEdits: boolean;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  /** How long `stop` lets open HTTP exchanges go on, in milliseconds. */
  graceMs: number;
  /**
   * Called with each piece after it was forwarded. What it throws is counted and goes no further. Where it returns a promise,
   * no more of that body is read until it settles.
   */
  onEvent: (event: HttpEvent) => Promise<void> | undefined;
  /** Called with what the proxy's user should know, in words that are safe to print. */
  onNotice: (text: string) => void;
  /** Called with each exchange before it is forwarded; its number is that of its events. */
  onOpen?: ((exchange: number, request: IncomingMessage, response: ServerResponse) => void) | undefined;
  /** Called once the head of a request was forwarded, or refused: so long that took, in milliseconds. */
  onForwarded?: ((ms: number) => void) | undefined;
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
  const { upstream, listen, graceMs } = options;
  const relay = createRelay(options);
  const server = createServer(options);
  server.on('request', relay.open);
  // Passed on like any other header: the upstream's `100 Continue` is the answer to it.
  server.on('checkContinue', relay.open);
  server.on('checkExpectation', relay.open);
  server.on('connect', refuseTunnel);
  server.on('clientError', (error: ClientError, socket) => {
    const beginning = readPreface(error, socket as Socket);
    if (beginning === null) refuseUnread(error, socket as Socket);
    else relay.openHttp2(socket as Socket, beginning);
  });
  const connections = watchConnections(server);
  const address = await startListening(server, listen);
  // A socket that was handed over knows best by which address it is reached.
  if (listen.fd !== undefined) relay.context.checkAccess = accessCheckFor(options, address.address);

  const cut = () => {
    relay.context.isCut = true;
    relay.breakHttp2();
    server.closeAllConnections();
  };
  return {
    url: ownUrl(address, options.tls === null ? 'http' : 'https', pathOf(upstream)),
    address,
    openHttpExchanges: relay.openHttpExchanges,
    failedEvents: relay.failedEvents,
    cut,
    async stop() {
      relay.context.isStopping = true;
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

function createServer({ tls }: HttpOptions): Server {
  const options = {
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: 0,
    requestTimeout: 0,
    headersTimeout: 0,
  };
  const server = tls === null ? createHttpServer(options) : createHttpsServer({ ...options, ...tls });
  server.maxHeadersCount = 0;
  // A client that has said all may still want its answer. Missing in Node's types.
  (server as Server & { httpAllowHalfOpen: boolean }).httpAllowHalfOpen = true;
  return server;
}

/** Opens HTTP exchanges, and counts those that are open. */
function createRelay(options: HttpOptions) {
  const {
    upstream: url,
    listen,
    tls,
    isInsecure,
    hasEdits,
    onEvent,
    onNotice,
    onOpen,
    onForwarded,
  } = options;
  const upstream = createUpstream(url, isInsecure);
  // Numbers, not a Set: V8's garbage collector is slow with a Set of short-lived objects.
  let count = 0;
  let open = 0;
  let failed = 0;
  let hasHinted = false;
  let hasTold = false;
  let onLeft = () => {};

  const context: ProxyContext = {
    upstream,
    scheme: tls === null ? 'http' : 'https',
    checkAccess: accessCheckFor(options, listen.host),
    hasEdits,
    metadataPaths: new Set(),
    doubtful: new WeakSet(),
    isStopping: false,
    isCut: false,
    hintAtHost(sent) {
      if (!hasHinted) onNotice(hostHint(sent, hasEdits));
      hasHinted = true;
    },
    show(event, hold) {
      if (shown.length === 0) setImmediate(flush);
      shown.push({ event, hold });
    },
  };
  /** In the order in which it passed. */
  let shown: { event: HttpEvent; hold: ((wait: Promise<void>) => void) | undefined }[] = [];

  function flush(): void {
    const all = shown;
    shown = [];
    for (const { event, hold } of all) {
      try {
        const wait = onEvent(event);
        if (wait !== undefined) hold?.(wait);
      } catch {
        failed += 1;
      }
    }
  }

  const onEnd = () => {
    open -= 1;
    onLeft();
  };
  function begin(request: IncomingMessage, response: ServerResponse): void {
    if (context.doubtful.has(request.socket)) return;
    count += 1;
    open += 1;
    new ProxyExchange(context, count, request, response, onEnd).start();
  }
  /** Another function, so that nothing is asked of each request where nobody wants to know. */
  function beginTold(request: IncomingMessage, response: ServerResponse): void {
    if (!context.doubtful.has(request.socket)) onOpen?.(count + 1, request, response);
    begin(request, response);
  }
  const opener = onOpen === undefined ? begin : beginTold;
  function beginTimed(request: IncomingMessage, response: ServerResponse): void {
    const began = performance.now();
    opener(request, response);
    onForwarded?.(performance.now() - began);
  }
  /** How to break off each connection of HTTP/2. */
  const breaks = new Set<() => void>();
  return {
    context,
    open: onForwarded === undefined ? opener : beginTimed,
    /** A connection that its client has begun so, as one HTTP exchange. */
    openHttp2(client: Socket, beginning: Buffer): void {
      count += 1;
      open += 1;
      const breakIt = relayHttp2({
        ...{ exchange: count, client, beginning, upstream: url, isInsecure, show: context.show },
        isCut: () => context.isCut,
        onTrouble(reason) {
          if (!hasTold) onNotice(escapeText(`a connection of HTTP/2 was closed: ${reason}`));
          hasTold = true;
        },
        onEnd() {
          breaks.delete(breakIt);
          onEnd();
        },
      });
      breaks.add(breakIt);
    },
    breakHttp2() {
      for (const breakIt of breaks) breakIt();
    },
    /** Settles once no HTTP exchange is open. Until then calls `onEnded` after each that ends. */
    idle(onEnded: () => void): Promise<void> {
      return new Promise((resolve) => {
        onLeft = () => {
          onEnded();
          if (open === 0) resolve();
        };
        onLeft();
      });
    },
    close() {
      upstream.close();
      flush();
    },
    openHttpExchanges: () => open,
    failedEvents: () => failed,
  };
}

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

/** What Node itself does with what it cannot read, where nobody listens for that. */
function refuseUnread(error: ClientError, socket: Socket & { _httpMessage?: ServerResponse | null }): void {
  if (socket.writable && socket._httpMessage?.headersSent !== true) {
    const status = UNREAD[error.code ?? ''] ?? 400;
    socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\n\r\n`);
  }
  socket.destroy(error);
}

const UNREAD: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** One fixed upstream: no tunnels to elsewhere. */
function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => {});
  socket.end('HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n');
}
