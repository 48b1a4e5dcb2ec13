/** Answers to a CONNECT, or to a connection that was to become something else, where nothing else will answer. */

import type { Duplex } from 'node:stream';

export const ESTABLISHED = 'HTTP/1.1 200 Connection Established\r\n\r\n';

export const CHALLENGE = 'Basic realm="tapedeck"';

const STATUS_TEXT = {
  400: 'Bad Request',
  403: 'Forbidden',
  407: 'Proxy Authentication Required',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
} as const;

/** So long a client may take to read the answer and close. */
const LINGER_MS = 5000;

/** `reason` is one line. */
export function refuseConnect(client: Duplex, status: keyof typeof STATUS_TEXT, reason: string): void {
  if (client.destroyed) return;
  const body = Buffer.from(`tapedeck: ${reason}\n`);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_TEXT[status]}`,
    ...(status === 407 ? [`Proxy-Authenticate: ${CHALLENGE}`] : []),
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  client.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
  // What else it sends goes nowhere; its end must be seen, and is waited for in vain where it never comes.
  client.resume();
  const timer = setTimeout(() => client.destroy(), LINGER_MS);
  client.once('close', () => clearTimeout(timer));
}
