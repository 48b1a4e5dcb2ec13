/** A proxy as companies have it: it knows names that this machine does not, and may want a user and a password. */

import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import { onTestFinished } from 'vitest';
import type { makeCertificate } from './certificate.ts';
import { listenOn } from './http.ts';

export type CompanyProxy = {
  port: number;
  /** The request lines that it got, of CONNECT and of requests in absolute form. */
  asked: string[];
  /** Their headers, as they came. */
  rawHeaders: string[][];
};

type Settings = {
  /** The port of this machine behind each name. */
  hosts: Readonly<Record<string, number>>;
  /** What `Proxy-Authorization` must be; undefined: anything. */
  authorization?: string;
  /** The proxy itself is spoken to with TLS. */
  certificate?: ReturnType<typeof makeCertificate>;
};

export async function startCompanyProxy({
  hosts,
  authorization,
  certificate,
}: Settings): Promise<CompanyProxy> {
  const asked: string[] = [];
  const rawHeaders: string[][] = [];
  const server = certificate === undefined ? createServer() : createTlsServer(certificate);
  const isAllowed = (request: IncomingMessage) => {
    asked.push(`${request.method} ${request.url}`);
    rawHeaders.push(request.rawHeaders);
    return authorization === undefined || request.headers['proxy-authorization'] === authorization;
  };
  server.on('connect', (request, client, head): void => {
    client.on('error', () => {});
    if (!isAllowed(request))
      return void client.end('HTTP/1.1 407 Who are you?\r\nProxy-Authenticate: Basic\r\n\r\n');
    const port = hosts[(request.url ?? '').replace(/:\d+$/, '')];
    if (port === undefined) return void client.end('HTTP/1.1 403 Not that one\r\nContent-Length: 0\r\n\r\n');
    const upstream = connect({ port, host: '127.0.0.1', allowHalfOpen: true }, () => {
      client.write('HTTP/1.0 200 fine\r\nX-Proxy: yes\r\n\r\n');
      upstream.write(head);
      client.pipe(upstream).pipe(client);
    });
    upstream.on('error', () => client.destroy());
    client.on('close', () => upstream.destroy());
  });
  server.on('request', (request, response) => {
    if (!isAllowed(request)) {
      response.writeHead(407, { 'Proxy-Authenticate': 'Basic' }).end();
      return;
    }
    const { hostname, pathname, search } = new URL(request.url ?? '');
    const port = hosts[hostname];
    const raw = request.rawHeaders.filter((_, i, all) => !/^proxy-/i.test(all[i - (i % 2)] ?? ''));
    const onward = httpRequest({
      ...{ port, host: '127.0.0.1', method: request.method ?? 'GET', path: `${pathname}${search}` },
      ...{ headers: raw, agent: false },
    });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.rawHeaders);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    request.pipe(onward);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: await listenOn(server), asked, rawHeaders };
}
