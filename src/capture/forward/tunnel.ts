/** A tunnel: bytes to a server and back, unread and unrecorded, as the client would have them without a proxy. */

import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { breakOff } from '../http/http2.ts';
import type { HostPort, Reach } from './target.ts';

export const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

type TunnelOptions = {
  client: Socket;
  /** What the client sent right behind its CONNECT. */
  head: Buffer;
  target: HostPort;
  reach: Reach;
  /** Called once the client is connected, with what tells how many bytes have passed so far, in both directions. */
  onOpen: (bytes: () => number) => void;
};

/** The slower end sets the pace; either may close its side; whichever breaks, so does the other. */
export function openTunnel({ client, head, target, reach, onOpen }: TunnelOptions): void {
  const { host, port } = target;
  const server = connect({ host, port, lookup: reach.lookup(target), allowHalfOpen: true, noDelay: true });
  let isOpen = false;
  server.once('connect', () => {
    isOpen = true;
    onOpen(() => server.bytesRead + server.bytesWritten);
    client.write(ESTABLISHED);
    if (head.length > 0) server.write(head);
    client.pipe(server);
    server.pipe(client);
  });
  server.once('error', (error: NodeJS.ErrnoException) => {
    if (!isOpen) refuseConnect(client, 502, `cannot reach ${host}:${port}: ${error.message || error.code}`);
    else if (error.code === 'ECONNRESET') client.resetAndDestroy();
  });
  client.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'ECONNRESET') server.resetAndDestroy();
  });
  server.once('close', () => {
    if (isOpen) breakOff(client, server);
  });
  client.once('close', () => breakOff(server, client));
}

/** Answers a CONNECT that leads nowhere. `reason` is one line. */
export function refuseConnect(client: Duplex, status: 400 | 403 | 407 | 502, reason: string): void {
  const body = Buffer.from(`tapedeck: ${reason}\n`);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_TEXT[status]}`,
    ...(status === 407 ? [`Proxy-Authenticate: ${CHALLENGE}`] : []),
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  client.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
  // What else it sends goes nowhere; its end must be seen.
  client.resume();
}

export const CHALLENGE = 'Basic realm="tapedeck"';

const STATUS_TEXT = {
  400: 'Bad Request',
  403: 'Forbidden',
  407: 'Proxy Authentication Required',
  502: 'Bad Gateway',
} as const;
