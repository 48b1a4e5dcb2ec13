/**
 * The HTTP forward proxy: clients keep the real URL of the server, and come here by their proxy settings. The origins that it was
 * given are intercepted, with TLS where they have it, and recorded as the reverse proxy does; nothing in them is edited.
 * Everything else passes unread: it is counted and not recorded.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { type Listen, startListening } from '../../net/listen.ts';
import { fieldsOf } from '../../protocol/http/headers.ts';
import { isLoopback } from '../../protocol/http/origin.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import { originForm } from '../http/exchange.ts';
import type { HttpCapture } from '../http/proxy.ts';
import {
  createQuietServer,
  createRelay,
  type Relay,
  type RelayOptions,
  type ServerTls,
  serveRelay,
} from '../http/relay.ts';
import {
  createReach,
  hostPortOf,
  placeKeyOf,
  type Reach,
  readAbsoluteTarget,
  readConnectTarget,
} from './target.ts';
import { CHALLENGE, ESTABLISHED, openTunnel, refuseConnect } from './tunnel.ts';
import { isWebSocket, relayUpgrade } from './upgrade.ts';

export type ForwardOptions = {
  listen: Listen;
  /** No two at one host and port. */
  origins: readonly ForwardOrigin[];
  /** What clients have to send (RFC 7617, as the password); null: nothing. */
  password: string | null;
  /** Accepts any certificate of the origins. */
  isInsecure: boolean;
  /** How long `stop` lets open HTTP exchanges go on, in milliseconds. */
  graceMs: number;
  /** What is missing where a client does not trust our certificate; `agent` is the `User-Agent` of its CONNECT. */
  trustAdvice: (agent: string) => string;
  /** As of the reverse proxy. */
  onForwarded?: RelayOptions['onForwarded'];
  /** Called with what the proxy's user should know, in words that are safe to print. */
  onNotice: (text: string) => void;
};

export type ForwardOrigin = {
  /** Only its origin counts. */
  url: URL;
  /** For an origin with TLS: a certificate of its host that clients trust. */
  tls: ServerTls | null;
  /** As of the reverse proxy. */
  onEvent: (event: HttpEvent) => Promise<void> | undefined;
  onOpen?: RelayOptions['onOpen'];
};

/** What passed by the recorder. */
export type Passed = {
  /** Connections to other hosts, and requests of plain HTTP to them. */
  others: number;
  /** In their tunnels, in both directions. */
  bytes: number;
  /** Connections and requests to the origins. */
  named: number;
};

export type ForwardCapture = Omit<HttpCapture, 'url'> & { passed(): Passed };

/** Relays of plain HTTP to other hosts that are kept for the next request. */
const MAX_OTHER_RELAYS = 256;

/** Settles when it listens; rejects where it cannot (`EADDRINUSE` and the like). */
export async function captureForward(options: ForwardOptions): Promise<ForwardCapture> {
  const { listen, graceMs } = options;
  const passed: Passed = { others: 0, bytes: 0, named: 0 };
  const named = new Map(
    options.origins.map((origin) => [placeKeyOf(hostPortOf(origin.url)), interceptOrigin(origin, options)]),
  );
  const isAllowed = createPasswordCheck(options.password);
  const sockets = new Set<Socket>();
  /** How much has passed through each that is open. */
  const tunnels = new Set<() => number>();
  const server = createQuietServer(null);
  let ownPort = 0;
  const reach = createReach(() => ownPort, !isLoopback(listen.host));
  const others = createOtherRelays(options, reach);

  function relayFor(request: IncomingMessage, refuse: Refuse): Relay | null {
    if (!isAllowed(request)) return refuse(407, NO_PASSWORD);
    const origin = readAbsoluteTarget(request.url ?? '');
    if (origin === null) return refuse(400, notForUs(request));
    const path = originForm(request);
    if (path === null) return refuse(400, 'expected the Host header to name the same host as the URL');
    const target = hostPortOf(origin);
    const own = named.get(placeKeyOf(target));
    withoutProxyCredentials(request);
    // As the server gets it, and as the record has it.
    request.url = path;
    if (own !== undefined && own.scheme === 'http') {
      passed.named += 1;
      return own.relay;
    }
    const problem = reach.problemOf(target);
    if (problem !== null) return refuse(403, problem);
    passed.others += 1;
    return others.of(origin);
  }

  const onRequest = (request: IncomingMessage, response: ServerResponse) =>
    relayFor(request, refuseRequest(response))?.open(request, response);
  server.on('request', onRequest);
  server.on('checkContinue', onRequest);
  server.on('checkExpectation', onRequest);
  server.on('upgrade', (request, socket, head) => {
    const client = socket as Socket;
    if (!isWebSocket(request)) {
      beginAgain(server, 'connection', request, client, head);
      return;
    }
    const relay = relayFor(request, (status, reason) => {
      refuseConnect(client, status, reason);
      return null;
    });
    relay?.openOther((other) => relayUpgrade({ ...other, request, client, head }));
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('connect', (request, duplex, head) => {
    const client = duplex as Socket;
    client.on('error', () => {});
    if (!isAllowed(request)) return refuseConnect(client, 407, NO_PASSWORD);
    const target = readConnectTarget(request.url ?? '');
    const framing = target === null ? null : bodyProblem(request);
    if (target === null || framing !== null)
      return refuseConnect(client, 400, framing ?? 'expected CONNECT host:port');
    const own = named.get(placeKeyOf(target));
    if (own !== undefined) {
      passed.named += 1;
      own.intercept(client, head, request.headers['user-agent'] ?? '');
      return;
    }
    const problem = reach.problemOf(target);
    if (problem !== null) return refuseConnect(client, 403, problem);
    openTunnel({
      ...{ client, head, target, reach },
      onOpen(bytes) {
        passed.others += 1;
        tunnels.add(bytes);
        client.once('close', () => {
          passed.bytes += bytes();
          tunnels.delete(bytes);
        });
      },
    });
  });
  const address = await startListening(server, listen);
  ownPort = address.port;

  const origins = [...named.values()];
  const relays = () => [...origins.map(({ relay }) => relay), ...others.all()];
  const breakConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  const cut = () => {
    for (const relay of relays()) relay.cut();
    breakConnections();
  };
  return {
    address,
    passed: () => ({ ...passed, bytes: passed.bytes + sum([...tunnels].map((bytes) => bytes())) }),
    openHttpExchanges: () => sum(relays().map((relay) => relay.openHttpExchanges())),
    failedEvents: () => sum(relays().map((relay) => relay.failedEvents())),
    cut,
    async stop() {
      for (const relay of relays()) relay.closeAfterAnswers();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const timer = setTimeout(cut, graceMs);
      const closeIdle = () => {
        for (const one of [server, ...origins.map((origin) => origin.server)]) one.closeIdleConnections();
      };
      await Promise.all(relays().map((relay) => relay.idle(closeIdle)));
      breakConnections();
      await closed;
      clearTimeout(timer);
      for (const relay of relays()) relay.close();
    },
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}

type Refuse = (status: 400 | 403 | 407, reason: string) => null;

/** One origin, which clients take us for. */
function interceptOrigin({ url, tls, onEvent, onOpen }: ForwardOrigin, options: ForwardOptions) {
  const { isInsecure, onNotice, onForwarded, trustAdvice } = options;
  const tell = createTeller(onNotice);
  const relay = createRelay({
    upstream: url,
    scheme: tls === null ? 'http' : 'https',
    isInsecure,
    hasEdits: false,
    // Clients come here by their settings, not by a name that could be rebound; the server checks what they send.
    checkAccess: () => null,
    hostHint: null,
    onNotice,
    onForwarded,
    onOpen,
    onEvent(event) {
      if (event.type === 'end' && WANTS_CERTIFICATE.test(event.error ?? ''))
        tell('mtls', wantsCertificate(url));
      return onEvent(event);
    },
  });
  const server = createQuietServer(tls);
  serveRelay(server, relay);
  let agent = '';
  let hasAsked = false;
  const begin = tls === null ? 'connection' : 'secureConnection';
  server.on('upgrade', (request, socket, head) => {
    const client = socket as Socket;
    hasAsked = true;
    if (isWebSocket(request)) relay.openOther((other) => relayUpgrade({ ...other, request, client, head }));
    else beginAgain(server, begin, request, client, head);
  });
  const tellUntrusted = () =>
    tell(
      'untrusted',
      `a client does not trust tapedeck’s certificate for ${url.origin}: ${trustAdvice(agent)}`,
    );
  server.once('request', () => {
    hasAsked = true;
  });
  server.on('tlsClientError', (error: NodeJS.ErrnoException) => {
    if (UNTRUSTED.test(error.message) || (error.code === 'ECONNRESET' && !hasAsked)) tellUntrusted();
    else if (
      error.code === 'ERR_SSL_NO_APPLICATION_PROTOCOL' ||
      /no application protocol/.test(error.message)
    )
      tell('alpn', onlyHttp2(url));
  });
  // Node looks at the certificate when the handshake is over, and then hangs up.
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.allowHalfOpen = true;
    socket.once('close', () => {
      if (!hasAsked) tellUntrusted();
    });
  });
  return {
    relay,
    server,
    scheme: tls === null ? 'http' : 'https',
    intercept(client: Socket, head: Buffer, userAgent: string): void {
      agent = userAgent;
      client.write(ESTABLISHED);
      if (head.length > 0) client.unshift(head);
      // A client that leaves during the handshake has left.
      if (tls !== null) client.allowHalfOpen = false;
      server.emit('connection', client);
    },
  } as const;
}

/** What clients answer the handshake with that do not know our CA (RFC 8446, 6.2). */
const UNTRUSTED = /alert (?:unknown ca|bad certificate|certificate unknown|certificate revoked)/i;

/** What a server says that wants to know the client by a certificate. */
const WANTS_CERTIFICATE = /alert (?:certificate required|bad certificate|handshake failure)/i;

function wantsCertificate({ origin, hostname }: URL): string {
  return `${origin} seems to want a certificate of the client, which only the client has; let it pass unrecorded: --tunnel ${hostname}`;
}

function onlyHttp2({ origin, hostname }: URL): string {
  return `a client wants to speak nothing but HTTP/2 with ${origin}, and tapedeck reads HTTP/1.1; let it pass unrecorded: --tunnel ${hostname}`;
}

/** Says each kind of thing once. */
function createTeller(onNotice: (text: string) => void): (kind: string, text: string) => void {
  const told = new Set<string>();
  return (kind, text) => {
    if (!told.has(kind)) onNotice(text);
    told.add(kind);
  };
}

/** Relays for plain HTTP to other hosts, as they are asked for; nothing of it is recorded. */
function createOtherRelays({ isInsecure, onNotice }: ForwardOptions, reach: Reach) {
  const relays = new Map<string, Relay>();
  function dropIdle(): void {
    for (const [key, relay] of relays) {
      if (relays.size < MAX_OTHER_RELAYS) return;
      if (relay.openHttpExchanges() > 0) continue;
      relay.close();
      relays.delete(key);
    }
  }
  return {
    of(origin: URL): Relay {
      const known = relays.get(origin.origin);
      if (known !== undefined) return known;
      dropIdle();
      const relay = createRelay({
        upstream: origin,
        scheme: 'http',
        isInsecure,
        hasEdits: false,
        checkAccess: () => null,
        hostHint: null,
        lookup: reach.lookup(hostPortOf(origin)),
        onNotice,
        onEvent: () => undefined,
      });
      relays.set(origin.origin, relay);
      return relay;
    },
    all: () => [...relays.values()],
  };
}

const NO_PASSWORD =
  'expected the password of this proxy, in the URL of the proxy settings, as user `tapedeck`';

/** The scheme is Basic, whose user name does not matter here. */
function createPasswordCheck(password: string | null): (request: IncomingMessage) => boolean {
  if (password === null) return () => true;
  const expected = digestOf(password);
  return ({ headers }) => {
    const [, credentials = ''] = /^basic +(\S+)$/i.exec(headers['proxy-authorization'] ?? '') ?? [];
    const text = Buffer.from(credentials, 'base64').toString();
    return timingSafeEqual(digestOf(text.slice(text.indexOf(':') + 1)), expected);
  };
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** They are for us, and neither for the server nor for the record. */
function withoutProxyCredentials(request: IncomingMessage): void {
  if (request.headers['proxy-authorization'] === undefined) return;
  request.rawHeaders = fieldsOf(request.rawHeaders)
    .filter(([name]) => name.toLowerCase() !== 'proxy-authorization')
    .flat();
}

function refuseRequest(response: ServerResponse): Refuse {
  return (status, reason) => {
    response.writeHead(status, {
      ...(status === 407 && { 'Proxy-Authenticate': CHALLENGE }),
      'Content-Type': 'text/plain; charset=utf-8',
      Connection: 'close',
    });
    response.end(`tapedeck: ${reason}\n`);
    return null;
  };
}

function notForUs({ url = '' }: IncomingMessage): string {
  return url.startsWith('/')
    ? 'this is a forward proxy: clients use it by HTTPS_PROXY and HTTP_PROXY, and keep the server’s own URL'
    : 'expected an http:// URL with a host, and without a user';
}

/** Content of a CONNECT has no meaning (RFC 9110, 9.3.6): what comes behind the head could be read in two ways. */
function bodyProblem({ headers }: IncomingMessage): string | null {
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
  return hasBody ? 'a CONNECT has no body' : null;
}

/** Node's parser stops at every `Upgrade`. One that is not passed on is left out, and the request read again without it. */
function beginAgain(
  server: Server,
  event: 'connection' | 'secureConnection',
  { method, url, httpVersion, rawHeaders }: IncomingMessage,
  client: Duplex,
  head: Buffer,
): void {
  const fields = fieldsOf(rawHeaders).filter(([name]) => name.toLowerCase() !== 'upgrade');
  const lines = fields.map(([name, value]) => `${name}: ${value}`);
  const start = [`${method} ${url} HTTP/${httpVersion}`, ...lines, '', ''].join('\r\n');
  client.unshift(Buffer.concat([Buffer.from(start, 'latin1'), head]));
  server.emit(event, client);
}
