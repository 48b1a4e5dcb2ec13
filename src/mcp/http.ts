/**
 * `tapedeck mcp --listen`: Streamable HTTP for any number of clients of either era. Whoever asks needs the token, and comes neither
 * from another host name nor from another page.
 */

import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';
import { createAccessCheck, type Listen, ownUrl, startListening } from '../net/listen.ts';
import { createTokenCheck } from '../web/access.ts';
import type { Reader } from './ask.ts';
import { type ClientSessions, createClientSessions } from './client-sessions.ts';
import { createServer } from './server.ts';
import { createResourceWatch, listenedUris, type ResourceWatch } from './watch.ts';

export type AskOverHttp = {
  listen: Listen;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  token: string;
};

const PATH = '/mcp';

const MOST_BODY_BYTES = 4 * 1024 * 1024;

/** Rejects with Node's error where it cannot listen. */
export async function serveOverHttp(
  reader: Reader,
  { listen, allowHosts, allowOrigins, token }: AskOverHttp,
): Promise<{ url: URL; close(): Promise<void> }> {
  const access = createAccessCheck({ listenHost: listen.host, allowHosts, allowOrigins });
  const tokenProblem = createTokenCheck(token);
  const handler = createMcpHandler(({ era }) =>
    // A request of the eras before that comes without a session is answered by itself: there is no stream to tell anything on.
    createServer(reader, era === 'modern' ? NO_SUBSCRIPTIONS : null),
  );
  const watch = createResourceWatch(reader, (uri) => {
    handler.notify.resourceUpdated(uri);
    sessions.tell(uri);
  });
  const sessions = createClientSessions(reader, watch);

  function problemOf(request: IncomingMessage): [status: number, message: string] | null {
    const refused = access(request.headers);
    if (refused !== null) return [403, refused];
    if (request.url?.split('?')[0] !== PATH) return [404, `Expected the path ${PATH}.`];
    const problem = tokenProblem(request.headers);
    if (problem === null) return null;
    return [
      401,
      `${problem === 'none' ? 'Expected' : 'This is not'} the bearer token that tapedeck mcp printed when it was started, in the Authorization header.`,
    ];
  }

  const server = createHttpServer((request, response) => {
    const problem = problemOf(request);
    if (problem === null)
      answer({ handler, sessions, watch }, request, response).catch(() => response.destroy());
    else refuse(response, ...problem);
  });
  const address = await startListening(server, listen);
  return {
    url: ownUrl(address, 'http', PATH),
    async close() {
      watch.close();
      await sessions.close();
      await handler.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Of a later client: its `subscriptions/listen` comes past the server. */
const NO_SUBSCRIPTIONS = { add: () => Promise.resolve(), remove() {} };

function refuse(response: ServerResponse, status: number, message: string): void {
  const headers = {
    'Content-Type': 'application/json',
    ...(status === 401 ? { 'WWW-Authenticate': 'Bearer' } : {}),
  };
  response
    .writeHead(status, headers)
    .end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32600, message } }));
}

type Serving = { handler: McpHttpHandler; sessions: ClientSessions; watch: ResourceWatch };

async function answer(
  { handler, sessions, watch }: Serving,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const body = await bodyOf(incoming);
  if (body === null) return refuse(outgoing, 413, `Expected a body of at most ${MOST_BODY_BYTES} bytes.`);
  const gone = new AbortController();
  const message = parsed(body);
  const watched = watch.add(listenedUris(message));
  outgoing.once('close', () => {
    watched.end();
    gone.abort();
  });
  await watched.ready;
  const { method = 'GET', headers, url } = incoming;
  const request = new Request(new URL(url ?? '', `http://${headers.host}`), {
    method,
    headers: Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
    ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
    signal: gone.signal,
  });
  const response = (await sessions.fetch(request, message)) ?? (await handler.fetch(request));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (response.body === null) outgoing.end();
  else await pipeline(Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]), outgoing);
}

/** Null: it is too large. */
async function bodyOf(request: IncomingMessage): Promise<Buffer<ArrayBuffer> | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MOST_BODY_BYTES) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces) as Buffer<ArrayBuffer>;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return null;
  }
}
