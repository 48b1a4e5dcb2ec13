/**
 * Opens the HTTP exchanges of one server behind a proxy, whichever connections they come on, and counts those that are open. The
 * reverse proxy has one relay, the forward proxy one for each origin that it was given.
 */

import {
  createServer as createHttpServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { AccessCheck } from '../../net/listen.ts';
import type { HttpOpening } from '../../net/opening.ts';
import { escapeText } from '../../protocol/text.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import type { Show } from './answer.ts';
import { findRefusal, type ProxyContext, ProxyExchange } from './exchange.ts';
import { type ClientError, readPreface, relayHttp2 } from './http2.ts';
import { afterWrites } from './turn.ts';
import { createUpstream, MAX_HEADER_BYTES, type Way } from './upstream.ts';

export type RelayOptions = {
  /** Only its origin counts for forwarding: clients choose the path. */
  upstream: URL;
  /** What clients speak with the proxy. */
  scheme: 'http' | 'https';
  /** Accepts any certificate of the upstream. */
  isInsecure: boolean;
  hasEdits: boolean;
  checkAccess: AccessCheck;
  /** How the upstream is reached; undefined or null: as Node does it. */
  way?: Way | null;
  /** What to say, once, where the server seems to have refused this `Host`; null: nothing. */
  hostHint: ((sent: string) => string) | null;
  /**
   * Called with each piece after it was forwarded. What it throws is counted and goes no further. Where it returns a promise,
   * no more of that body is read until it settles.
   */
  onEvent: (event: HttpEvent) => Promise<void> | undefined;
  /** Called with what the proxy's user should know, in words that are safe to print. */
  onNotice: (text: string) => void;
  /** Called with each exchange that is not refused, in place of forwarding it: who is called does that, now or later. */
  onOpen?: ((opening: HttpOpening) => void) | undefined;
  /** Called once the head of a request was forwarded, or refused: so long that took, in milliseconds. */
  onForwarded?: ((ms: number) => void) | undefined;
};

export type Relay = {
  open(request: IncomingMessage, response: ServerResponse): void;
  /** A connection that its client has begun so, as one HTTP exchange. */
  openHttp2(client: Socket, beginning: Buffer): void;
  /** Anything else that becomes one HTTP exchange: `start` begins it, and returns how to break it off. */
  openOther(start: (other: OtherExchange) => () => void): void;
  /** From now on this decides who is turned away. */
  checkAccess(check: AccessCheck): void;
  /** From now on a connection closes behind the answer that it waits for. */
  closeAfterAnswers(): void;
  /** Breaks off what is no exchange of HTTP/1.1; marks all that ends from now on as cut. */
  cut(): void;
  /** Settles once no HTTP exchange is open. Until then calls `onEnded` after each that ends. */
  idle(onEnded: () => void): Promise<void>;
  close(): void;
  openHttpExchanges(): number;
  /** Events that `onEvent` did not take. */
  failedEvents(): number;
};

/** What an exchange gets of its relay that is not of HTTP/1.1. Call `onEnd`, once, when it is over. */
export type OtherExchange = Pick<RelayOptions, 'upstream' | 'isInsecure'> & {
  way: Way | null;
  exchange: number;
  show: Show;
  isCut: () => boolean;
  onEnd: () => void;
};

/** PEM texts, to serve TLS with. */
export type ServerTls = { cert: string | Buffer; key: string | Buffer };

/** A server without time limits, that does not listen yet. */
export function createQuietServer(tls: ServerTls | null): Server {
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

/** All requests of the server's connections go through the relay. */
export function serveRelay(server: Server, relay: Relay): void {
  server.on('request', relay.open);
  // Passed on like any other header: the upstream's `100 Continue` is the answer to it.
  server.on('checkContinue', relay.open);
  server.on('checkExpectation', relay.open);
  server.on('clientError', (error: ClientError, socket) => {
    const beginning = readPreface(error, socket as Socket);
    if (beginning === null) refuseUnread(error, socket as Socket);
    else relay.openHttp2(socket as Socket, beginning);
  });
}

/** Clients of its exchanges may come and go; `close` it when all have ended. */
export function createRelay(options: RelayOptions): Relay {
  const {
    upstream: url,
    scheme,
    isInsecure,
    hasEdits,
    hostHint,
    onEvent,
    onNotice,
    onOpen,
    onForwarded,
    way = null,
  } = options;
  const upstream = createUpstream(url, isInsecure, way);
  // Numbers, not a Set: V8's garbage collector is slow with a Set of short-lived objects.
  let count = 0;
  let open = 0;
  let failed = 0;
  let hasHinted = false;
  let hasTold = false;
  let onLeft = () => {};

  const context: ProxyContext = {
    upstream,
    scheme,
    checkAccess: options.checkAccess,
    hasEdits,
    metadataPaths: new Set(),
    doubtful: new WeakSet(),
    isStopping: false,
    isCut: false,
    hintAtHost(sent) {
      if (!hasHinted && hostHint !== null) onNotice(hostHint(sent));
      hasHinted = true;
    },
    show(event, hold) {
      if (shown.length === 0) afterWrites(flush);
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
  /** Another function, so that nothing is asked of each request where nobody wants to stand between. */
  function beginOpened(request: IncomingMessage, response: ServerResponse): void {
    if (context.doubtful.has(request.socket)) return;
    if (findRefusal(request, context) !== null) begin(request, response);
    else onOpen?.(openingOf(request, response));
  }
  function openingOf(request: IncomingMessage, response: ServerResponse): HttpOpening {
    count += 1;
    open += 1;
    const exchange = count;
    return {
      exchange,
      request,
      response,
      forward: () => new ProxyExchange(context, exchange, request, response, onEnd).start(),
      leave: onEnd,
      another: openingOf,
    };
  }
  const opener = onOpen === undefined ? begin : beginOpened;
  function beginTimed(request: IncomingMessage, response: ServerResponse): void {
    const began = performance.now();
    opener(request, response);
    onForwarded?.(performance.now() - began);
  }
  /** How to break off each exchange that is not of HTTP/1.1. */
  const breaks = new Set<() => void>();
  function openOther(start: (other: OtherExchange) => () => void): void {
    count += 1;
    open += 1;
    const breakIt = start({
      ...{ exchange: count, upstream: url, isInsecure, way, show: context.show },
      isCut: () => context.isCut,
      onEnd() {
        breaks.delete(breakIt);
        onEnd();
      },
    });
    breaks.add(breakIt);
  }
  return {
    open: onForwarded === undefined ? opener : beginTimed,
    checkAccess(check) {
      context.checkAccess = check;
    },
    closeAfterAnswers() {
      context.isStopping = true;
    },
    openHttp2(client, beginning) {
      const onTrouble = (reason: string) => {
        if (!hasTold) onNotice(escapeText(`a connection of HTTP/2 was closed: ${reason}`));
        hasTold = true;
      };
      openOther((other) => relayHttp2({ ...other, client, beginning, onTrouble }));
    },
    openOther,
    cut() {
      context.isCut = true;
      for (const breakIt of breaks) breakIt();
    },
    idle(onEnded) {
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
