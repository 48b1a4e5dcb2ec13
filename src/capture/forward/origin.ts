/** One origin of the forward proxy: clients take us for it, with TLS where it has it, and its HTTP exchanges are shown. */

import type { IncomingMessage, Server } from 'node:http';
import type { Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { fieldsOf } from '../../protocol/http/headers.ts';
import type { HttpEvent } from '../../protocol/wire/http-event.ts';
import {
  createQuietServer,
  createRelay,
  type RelayOptions,
  type ServerTls,
  serveRelay,
} from '../http/relay.ts';
import type { Way } from '../http/upstream.ts';
import { ESTABLISHED } from './refuse.ts';
import { isWebSocket, relayUpgrade } from './upgrade.ts';

export type ForwardOrigin = {
  /** Only its origin counts. */
  url: URL;
  /** For an origin with TLS: a certificate of its host that clients trust. */
  tls: ServerTls | null;
  /** As of the reverse proxy. */
  onEvent: (event: HttpEvent) => Promise<void> | undefined;
  onOpen?: RelayOptions['onOpen'];
};

export type OriginOptions = {
  /** Accepts any certificate of the origin. */
  isInsecure: boolean;
  /** How it is reached; null: directly. */
  way: Way | null;
  /** What is missing where a client does not trust our certificate; `agent` is the `User-Agent` of its CONNECT. */
  trustAdvice: (agent: string) => string;
  onNotice: (text: string) => void;
  onForwarded?: RelayOptions['onForwarded'];
};

/** One origin, which clients take us for. */
export function interceptOrigin({ url, tls, onEvent, onOpen }: ForwardOrigin, options: OriginOptions) {
  const { isInsecure, way, onNotice, onForwarded, trustAdvice } = options;
  const tell = createTeller(onNotice);
  const relay = createRelay({
    upstream: url,
    scheme: tls === null ? 'http' : 'https',
    isInsecure,
    way,
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
    /** For handshakes from now on; those connections that are open stay. */
    showCertificate: (next: ServerTls) => (server as TlsServer).setSecureContext(next),
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
export function createTeller(onNotice: (text: string) => void): (kind: string, text: string) => void {
  const told = new Set<string>();
  return (kind, text) => {
    if (!told.has(kind)) onNotice(text);
    told.add(kind);
  };
}

/** Node's parser stops at every `Upgrade`. One that is not passed on is left out, and the request read again without it. */
export function beginAgain(
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
