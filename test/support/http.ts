/** Real servers and sockets for the tests of the HTTP proxy; each test closes what it opened. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from 'node:net';
import { onTestFinished } from 'vitest';
import { captureHttp, type HttpCapture, type HttpOptions } from '../../src/capture/http/proxy.ts';
import type { HttpEvent } from '../../src/protocol/wire/http-event.ts';

export type Proxy = {
  capture: HttpCapture;
  port: number;
  events: HttpEvent[];
  /** The first event that there is, or will be, of this kind. */
  waitFor<T extends HttpEvent['type']>(type: T, exchange?: number): Promise<Extract<HttpEvent, { type: T }>>;
};

export async function startProxy(upstream: string, options: Partial<HttpOptions> = {}): Promise<Proxy> {
  const events: HttpEvent[] = [];
  const waiting = new Set<() => void>();
  const capture = await captureHttp({
    upstream: new URL(upstream),
    listen: { host: '127.0.0.1', port: 0 },
    tls: null,
    isInsecure: false,
    hasEdits: true,
    allowHosts: [],
    allowOrigins: [],
    graceMs: 0,
    onEvent(event) {
      events.push(event);
      for (const look of waiting) look();
    },
    onNotice() {},
    ...options,
  });
  onTestFinished(() => capture.stop());
  return {
    capture,
    port: capture.address.port,
    events,
    waitFor<T extends HttpEvent['type']>(type: T, exchange = 1) {
      return new Promise<Extract<HttpEvent, { type: T }>>((resolve) => {
        const look = () => {
          const found = events.find((event) => event.type === type && event.exchange === exchange);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found as Extract<HttpEvent, { type: T }>);
        };
        waiting.add(look);
        look();
      });
    },
  };
}

/** An upstream made of Node's own server, without its manners: no limits, no headers of its own. */
export async function startServer(
  listener: RequestListener,
  { port: wanted, ...options }: ServerOptions & { port?: number } = {},
): Promise<{ url: string; server: Server }> {
  const server = createServer({ keepAliveTimeout: 0, ...options }, (request, response) => {
    response.sendDate = false;
    listener(request, response);
  });
  const port = await listenOn(server, '127.0.0.1', wanted);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, server };
}

/** An upstream that is a bare socket: says and sees bytes. */
export async function startTcpServer(onSocket: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    onSocket(socket);
  });
  const port = await listenOn(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${port}`;
}

export function listenOn(server: TcpServer, host = '127.0.0.1', wanted = 0): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(wanted, host, () => resolve((server.address() as AddressInfo).port));
  });
}

export type RawClient = {
  socket: Socket;
  received(): string;
  /** Settles once what was received has this in it. */
  until(text: string): Promise<string>;
  /** Settles once the other side has closed, with all that was received. */
  closed: Promise<string>;
};

export function openSocket(port: number, text = ''): RawClient {
  const socket = connect(port, '127.0.0.1');
  let received = '';
  const waiting = new Set<() => void>();
  socket.on('data', (bytes) => {
    received += bytes.toString('latin1');
    for (const look of waiting) look();
  });
  socket.on('error', () => {});
  socket.write(text, 'latin1');
  onTestFinished(() => void socket.destroy());
  return {
    socket,
    received: () => received,
    until: (expected) =>
      new Promise((resolve) => {
        const look = () => {
          if (!received.includes(expected)) return;
          waiting.delete(look);
          resolve(received);
        };
        waiting.add(look);
        look();
      }),
    closed: new Promise((resolve) => socket.once('close', () => resolve(received))),
  };
}

export async function readBody(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export function bodyOf(events: readonly HttpEvent[], type: 'request-body' | 'response-body'): string {
  const chunks = events.flatMap((event) => (event.type === type ? [Buffer.from(event.bytes)] : []));
  return Buffer.concat(chunks).toString();
}
