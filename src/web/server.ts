/**
 * The viewer's server: answers a browser on this machine with the page and with what the store holds, and changes nothing. This
 * thread never opens the store.
 */

import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename } from 'node:path';
import type { Duplex } from 'node:stream';
import { type Listen, ownUrl, startListening } from '../net/listen.ts';
import { type Access, createAccess } from './access.ts';
import { answerWith, fail, SECURITY_HEADERS } from './answer.ts';
import type { Ticket } from './api.ts';
import { type ChangesHub, createChangesHub } from './changes.ts';
import { loadPages, type PageFile, type Pages } from './pages.ts';
import { createReaders, type Readers } from './readers.ts';
import { type Asked, findRoute } from './routes.ts';
import { createTickets, type Tickets } from './token.ts';
import type { Params } from './work.ts';

export type ViewerOptions = {
  /** The store. */
  file: string;
  /** The folder in which the page was built. */
  pages: string;
  /** Where to listen; what follows is tried where something else listens already. */
  listen: readonly [Listen, ...Listen[]];
  token: string;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  /** False: no index for `search` is kept beside the store. */
  keepsIndex: boolean;
};

export type Viewer = {
  address: AddressInfo;
  /** The link to a path of the page, with the token. */
  link(path: string): string;
  /**
   * A link that leads there once, within a minute. For the command line of a browser, which everybody on the machine can read: it
   * does not contain the token.
   */
  linkOnce(path: string): string;
  stop(): Promise<void>;
};

/** Enough to answer a URL that is too long in words. */
const MAX_HEADER_BYTES = 64 * 1024;

/** Settles when it listens; rejects with Node's error where it cannot (`EADDRINUSE` and the like). */
export async function startViewer(options: ViewerOptions): Promise<Viewer> {
  const { file, token, allowHosts, allowOrigins } = options;
  const hub = createChangesHub((isOn) => readers.watch(isOn));
  const readers = createReaders({ file, onChanges: hub.publish, onRestart: hub.restart });
  const tickets = createTickets(() => performance.now());
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES });
  try {
    const { address, host } = await listenSomewhere(server, options.listen);
    const access = createAccess({ listenHost: host, allowHosts, allowOrigins, token });
    const desk = { options, access, readers, hub, tickets, pages: loadPages(options.pages) };
    server.on('request', (request, response) => receive(desk, request, response));
    server.on('clientError', refuseUnread);
    const link = (path: string) => ownUrl(address, 'http', `${path}#token=${token}`).href;
    return {
      address,
      link,
      linkOnce: (path) => ownUrl(address, 'http', `/open/${tickets.issue(`${path}#token=${token}`)}`).href,
      async stop() {
        const closed = new Promise<void>((resolve) => server.close(() => resolve()));
        hub.close();
        server.closeAllConnections();
        await Promise.all([closed, readers.close()]);
      },
    };
  } catch (error) {
    hub.close();
    await readers.close();
    throw error;
  }
}

async function listenSomewhere(
  server: Server,
  [first, ...others]: readonly [Listen, ...Listen[]],
): Promise<{ address: AddressInfo; host: string }> {
  try {
    return { address: await startListening(server, first), host: first.host };
  } catch (error) {
    const [next, ...rest] = others;
    if (next === undefined || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return listenSomewhere(server, [next, ...rest]);
  }
}

/** What answering takes. */
type Desk = {
  options: ViewerOptions;
  access: Access;
  readers: Readers;
  hub: ChangesHub;
  tickets: Tickets;
  pages: Pages;
};

const DOWNLOAD = '/api/download/';

const OPEN = '/open/';

function receive(desk: Desk, request: IncomingMessage, response: ServerResponse): void {
  // A client may leave at any moment; its answer is dropped then.
  response.on('error', ignore);
  request.on('error', ignore);
  for (const [name, value] of SECURITY_HEADERS) response.setHeader(name, value);
  // A body is not read, so nothing else can follow it.
  if (hasBody(request)) response.setHeader('Connection', 'close');
  const problem = desk.access.problemOf(request);
  const url = urlOf(request);
  if (problem !== null) fail(response, problem);
  else if (url === null) fail(response, notFound('this path'));
  else if (/^\/api(?:\/|$)/.test(url.pathname)) receiveApi(desk, url, request, response);
  else if (url.pathname.startsWith(OPEN)) redirectOnce(desk, url.pathname.slice(OPEN.length), response);
  else sendPage(desk.pages(url.pathname), request, response);
}

function receiveApi(desk: Desk, url: URL, request: IncomingMessage, response: ServerResponse): void {
  const { pathname } = url;
  const isDownload = pathname.startsWith(DOWNLOAD);
  const { siteProblemOf, tokenProblemOf } = desk.access;
  const problem = siteProblemOf(request) ?? (isDownload ? null : tokenProblemOf(request));
  if (problem?.status === 401) response.setHeader('WWW-Authenticate', 'Bearer');
  if (problem !== null) fail(response, problem);
  else if (isDownload) download(desk, pathname.slice(DOWNLOAD.length), request, response);
  else if (pathname === '/api/changes') follow(desk, request, response);
  else if (pathname === '/api/ticket') sendTicket(desk, url.searchParams.get('for') ?? '', response);
  else answer(desk, findRoute(url), request, response);
}

function ignore(): void {}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** A path alone: what names another server is none of ours. */
function urlOf({ url = '' }: IncomingMessage): URL | null {
  const text = `http://viewer${url}`;
  return url.startsWith('/') && URL.canParse(text) ? new URL(text) : null;
}

function notFound(what: string) {
  return { status: 404, code: 'not-found', message: `There is nothing at ${what}.` };
}

function answer(
  { options, readers, hub }: Desk,
  asked: Asked | undefined,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  if (asked === undefined) {
    fail(response, notFound('this path of the API'));
    return;
  }
  const { headers, method } = request;
  const params: Params = {
    ...asked.params,
    'if-none-match': headers['if-none-match'],
    range: headers.range,
    store: basename(options.file),
    'no-index': options.keepsIndex ? undefined : '1',
  };
  const { work, form } = asked.route;
  // Before it is read: whoever follows from here on misses nothing.
  response.setHeader('Last-Event-ID', hub.lastEventId());
  answerWith(response, { form, isHead: method === 'HEAD' }, (sink) =>
    readers.ask(asked.thread, { work, params, form }, sink),
  );
}

function follow({ hub }: Desk, { headers, method }: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
  const { 'last-event-id': last } = headers;
  if (method === 'HEAD') response.end();
  else hub.join(response, typeof last === 'string' ? last : undefined);
}

const NO_PATH = {
  status: 400,
  code: 'usage',
  message: 'Expected a path of the API as `for`, such as /api/sessions/4f2a/frames/3/bytes.',
};

function sendTicket({ tickets }: Desk, path: string, response: ServerResponse): void {
  const url =
    path.startsWith('/') && URL.canParse(`http://viewer${path}`) ? new URL(`http://viewer${path}`) : null;
  if (url === null || findRoute(url) === undefined) {
    fail(response, NO_PATH);
    return;
  }
  const ticket: Ticket = { url: DOWNLOAD + tickets.issue(url.pathname + url.search) };
  response.writeHead(200, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(ticket));
}

const USED_UP = {
  status: 404,
  code: 'not-found',
  message: 'This link has been used, or is older than a minute. Ask for another one.',
};

function download(desk: Desk, ticket: string, request: IncomingMessage, response: ServerResponse): void {
  const path = desk.tickets.redeem(ticket);
  if (path === null) fail(response, USED_UP);
  else answer(desk, findRoute(new URL(`http://viewer${path}`)), request, response);
}

/** To the page with the token, which stands where no server and no log sees it. */
function redirectOnce({ tickets }: Desk, ticket: string, response: ServerResponse): void {
  const path = tickets.redeem(ticket);
  if (path === null) {
    fail(response, USED_UP);
    return;
  }
  response.writeHead(303, { Location: path, 'Content-Length': 0 });
  response.end();
}

function sendPage(file: PageFile | undefined, request: IncomingMessage, response: ServerResponse): void {
  if (file === undefined) {
    fail(response, notFound('this path'));
    return;
  }
  const { headers, method } = request;
  const isKnown = headers['if-none-match']?.includes(file.etag) === true;
  const packed = /\bgzip\b/.test(String(headers['accept-encoding'] ?? '')) ? file.gzip() : null;
  const bytes = packed ?? file.raw;
  const whole = { 'Content-Type': file.type, 'Content-Length': bytes.byteLength };
  response.writeHead(isKnown ? 304 : 200, {
    ...{ ETag: file.etag, 'Cache-Control': 'no-cache', Vary: 'Accept-Encoding' },
    ...(isKnown ? {} : whole),
    ...(isKnown || packed === null ? {} : { 'Content-Encoding': 'gzip' }),
  });
  response.end(isKnown || method === 'HEAD' ? undefined : bytes);
}

/** What is no HTTP. */
function refuseUnread(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const status = error.code === 'HPE_HEADER_OVERFLOW' ? 431 : 400;
  const headers = [...SECURITY_HEADERS, ['Connection', 'close'], ['Content-Length', '0']];
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n`);
}
