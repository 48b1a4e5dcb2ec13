/**
 * The HTTP forward proxy: clients keep the real URL of the server, and come here by their proxy settings. The origins that it was
 * given are intercepted, with TLS where they have it, and recorded as the reverse proxy does; nothing in them is edited.
 * Everything else passes unread: it is counted and not recorded.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Listen, startListening } from '../../net/listen.ts';
import { fieldsOf } from '../../protocol/http/headers.ts';
import { isLoopback } from '../../protocol/http/origin.ts';
import { originForm } from '../http/exchange.ts';
import type { HttpCapture } from '../http/proxy.ts';
import {
  createQuietServer,
  createRelay,
  type Relay,
  type RelayOptions,
  type ServerTls,
} from '../http/relay.ts';
import type { Onward } from './onward.ts';
import { beginAgain, createTeller, type ForwardOrigin, interceptOrigin } from './origin.ts';
import { CHALLENGE, refuseConnect } from './refuse.ts';
import { createReach, hostPortOf, placeKeyOf, readAbsoluteTarget, readConnectTarget } from './target.ts';
import { createTunnels, TUNNEL_LIMITS, type TunnelLimits } from './tunnel.ts';
import { isWebSocket, relayUpgrade } from './upgrade.ts';
import { createWays, type Ways } from './way.ts';

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
  /** The proxies by which servers are reached. */
  onward: Onward;
  /** For tests; else those that are documented. */
  tunnelLimits?: TunnelLimits;
  /** What is missing where a client does not trust our certificate; `agent` is the `User-Agent` of its CONNECT. */
  trustAdvice: (agent: string) => string;
  /** As of the reverse proxy. */
  onForwarded?: RelayOptions['onForwarded'];
  /** Called with what the proxy's user should know, in words that are safe to print. */
  onNotice: (text: string) => void;
};

/** What passed by the recorder. */
export type Passed = {
  /** Connections to other hosts, and requests of plain HTTP to them. */
  others: number;
  /** In their tunnels, in both directions. */
  bytes: number;
  /** Connections and requests to the origins. */
  named: number;
  /** Tunnels that were refused, because too many were open. */
  refused: number;
  /** Tunnels that were closed, because nothing moved in them. */
  silent: number;
};

export type ForwardCapture = Omit<HttpCapture, 'url'> & {
  passed(): Passed;
  /** From now on clients of this origin, which has TLS, are shown this certificate. */
  showCertificate(url: URL, certificate: ServerTls): void;
};

/** As Node's own servers have it. */
const HEAD_MS = 60_000;

/** Relays of plain HTTP to other hosts that are kept for the next request. */
const MAX_OTHER_RELAYS = 256;

/** Settles when it listens; rejects where it cannot (`EADDRINUSE` and the like). */
export async function captureForward(options: ForwardOptions): Promise<ForwardCapture> {
  const { listen, graceMs } = options;
  const passed = { requests: 0, named: 0 };
  let ownPort = 0;
  const reach = createReach(() => ownPort, !isLoopback(listen.host));
  let isBroken = false;
  /** What we break off ourselves is no trouble of clients. */
  const unlessBroken = (text: string) => {
    if (!isBroken) options.onNotice(text);
  };
  const tell = createTeller(options.onNotice);
  const ways = createWays({
    ...{ onward: options.onward, reach, tell },
    proxyReach: createReach(() => ownPort, false),
  });
  const named = new Map(
    options.origins.map((origin) => [
      placeKeyOf(hostPortOf(origin.url)),
      interceptOrigin(origin, { ...options, onNotice: unlessBroken, way: ways.to(origin.url) }),
    ]),
  );
  const isAllowed = createPasswordCheck(options.password);
  const sockets = new Set<Socket>();
  const tunnels = createTunnels({
    dial: ways.dial,
    limits: options.tunnelLimits ?? TUNNEL_LIMITS,
    onFull: (text) => tell('full', text),
  });
  const server = createQuietServer(null);
  // A CONNECT is short: who sends it drop by drop only holds the connection.
  server.headersTimeout = HEAD_MS;
  const others = createOtherRelays(options, ways);

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
    passed.requests += 1;
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
    tunnels.open(client, head, target);
  });
  const address = await startListening(server, listen);
  ownPort = address.port;

  const origins = [...named.values()];
  const relays = () => [...origins.map(({ relay }) => relay), ...others.all()];
  const breakConnections = () => {
    isBroken = true;
    for (const socket of sockets) socket.destroy();
    tunnels.cut();
  };
  const cut = () => {
    for (const relay of relays()) relay.cut();
    breakConnections();
  };
  return {
    address,
    passed() {
      const { opened, ...rest } = tunnels.passed();
      return { ...rest, named: passed.named, others: passed.requests + opened };
    },
    showCertificate(url, certificate) {
      named.get(placeKeyOf(hostPortOf(url)))?.showCertificate(certificate);
    },
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

/** Relays for plain HTTP to other hosts, as they are asked for; nothing of it is recorded. */
function createOtherRelays({ isInsecure, onNotice }: ForwardOptions, ways: Ways) {
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
        way: ways.toOther(origin),
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
