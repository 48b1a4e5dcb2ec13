/** Serves a recording over HTTP, whatever its own transport was, to any number of clients. */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { clearTimeout, setImmediate, setTimeout } from 'node:timers';
import {
  type AccessCheck,
  createAccessCheck,
  type Listen,
  ownUrl,
  startListening,
} from '../../net/listen.ts';
import type { HttpOpening } from '../../net/opening.ts';
import { memoize } from '../../protocol/bounded.ts';
import { FAULT, type HttpRefusal, methodNotAllowed, refuse, refuseInWords } from '../http/refusal.ts';
import type { Mock } from '../mock.ts';
import type { Recording } from '../recording/recording.ts';
import { createLegacyMock } from './legacy.ts';
import { createModernMock } from './modern.ts';
import { findHeadProblem, type Post, readBody, readPost } from './post.ts';
import { type HttpProfile, readHttpProfile } from './profile.ts';
import { createSseMock } from './sse.ts';

type HttpMockOptions = {
  recording: Recording;
  mock: Mock;
  listen: Listen;
  allowHosts: readonly string[];
  allowOrigins: readonly string[];
  /** Called with each HTTP exchange, in place of answering it: who is called lets it go on, now or later. */
  onOpen?: ((opening: HttpOpening) => void) | undefined;
};

export type HttpMock = {
  /** The URL for the client's config. */
  url: URL;
  address: AddressInfo;
  /** Accepts nothing new, waits for answers for `graceMs` milliseconds, then cuts them off. Settles when all is closed. */
  stop(graceMs?: number): Promise<void>;
};

/** The recorded server behind its paths. */
type Endpoint = {
  /** The methods of this path; empty for a path that does not exist. */
  methodsAt(path: string): readonly string[];
  get(request: IncomingMessage, response: ServerResponse): void;
  delete(request: IncomingMessage, response: ServerResponse): void;
  post(post: Post): void;
  /** Answers a POST whose body needs no reading. False where it has to be read. */
  postUnread(request: IncomingMessage, response: ServerResponse, body: Buffer): boolean;
  /** Its answers come with the POST, so clients must accept them. */
  answersPosts: boolean;
  endStreams(): void;
};

const MAX_HEADER_BYTES = 1024 * 1024;

const NOT_FOUND = 404;

const FORBIDDEN = 403;

/** Settles when it listens; rejects where it cannot (`EADDRINUSE` and the like). */
export async function createHttpMock(options: HttpMockOptions): Promise<HttpMock> {
  const { recording, mock, listen, allowHosts, allowOrigins } = options;
  const profile = readHttpProfile(recording);
  const endpoint = profile.isSse
    ? createSseEndpoint(recording, mock, profile)
    : createStreamableEndpoint(recording, mock, profile);
  const checkAccess = createAccessCheck({ listenHost: listen.host, allowHosts, allowOrigins });
  // An idle connection costs nothing. Closing one just before its client uses it again costs a failed test.
  const server = createServer({ maxHeaderSize: MAX_HEADER_BYTES, requestTimeout: 0, keepAliveTimeout: 0 });
  let isStopping = false;
  const onClose = () => {
    if (isStopping) setImmediate(() => server.closeIdleConnections());
  };
  const take = (request: IncomingMessage, response: ServerResponse) =>
    guarded(response, () => answer(request, response, endpoint, checkAccess));
  const open = options.onOpen === undefined ? take : opener(options.onOpen, take);
  server.on('request', (request, response) => {
    // A client may leave at any moment; its answer is dropped then.
    response.on('error', ignore);
    request.on('error', ignore);
    response.on('close', onClose);
    open(request, response);
  });
  const address = await startListening(server, listen);
  return {
    url: ownUrl(address, 'http', profile.path),
    address,
    async stop(graceMs = 0) {
      isStopping = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      endpoint.endStreams();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
      mock.end();
    },
  };
}

type Take = (request: IncomingMessage, response: ServerResponse) => void;

function opener(onOpen: NonNullable<HttpMockOptions['onOpen']>, take: Take): Take {
  let count = 0;
  const openingOf = (request: IncomingMessage, response: ServerResponse): HttpOpening => {
    count += 1;
    const forward = () => take(request, response);
    return { exchange: count, request, response, forward, leave: ignore, another: openingOf };
  };
  return (request, response) => onOpen(openingOf(request, response));
}

function ignore(): void {}

/** What fails for one request is no end of the mock. */
function guarded(response: ServerResponse, act: () => void): void {
  try {
    act();
  } catch {
    if (response.headersSent) response.destroy();
    else refuse(response, FAULT);
  }
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  endpoint: Endpoint,
  checkAccess: AccessCheck,
): void {
  const { method = '', url = '', headers } = request;
  const stranger = checkAccess(headers);
  const methods = endpoint.methodsAt(pathnameOf(url));
  if (stranger !== null) refuseInWords(response, FORBIDDEN, stranger);
  else if (methods.length === 0) refuseInWords(response, NOT_FOUND, 'the recording has no MCP server here');
  else if (!methods.includes(method)) refuse(response, methodNotAllowed(methods.join(', ')));
  else if (method === 'GET') endpoint.get(request, response);
  else if (method === 'DELETE') endpoint.delete(request, response);
  else answerPost(request, response, endpoint);
}

/** By callbacks, because a promise for each request costs as much as its parsing. */
function answerPost(request: IncomingMessage, response: ServerResponse, endpoint: Endpoint): void {
  const take = (post: Post | HttpRefusal) => {
    if (!('status' in post)) {
      endpoint.post(post);
      return;
    }
    // What is left of the body is not read.
    response.shouldKeepAlive = request.complete;
    refuse(response, post);
  };
  const problem = findHeadProblem(request, endpoint.answersPosts);
  if (problem !== null) take(problem);
  else {
    readBody(request, (body) =>
      guarded(response, () => {
        if (!Buffer.isBuffer(body)) take(body);
        else if (!endpoint.postUnread(request, response, body)) take(readPost(request, response, body));
      }),
    );
  }
}

function createStreamableEndpoint(recording: Recording, mock: Mock, profile: HttpProfile): Endpoint {
  const { path, servesLegacy, servesModern } = profile;
  const legacy = servesLegacy ? createLegacyMock(recording, mock, profile) : null;
  const modern = servesModern ? createModernMock(recording, mock, profile) : null;
  const methods = servesLegacy ? ['GET', 'POST', 'DELETE'] : ['POST'];
  return {
    methodsAt: (asked) => (asked === path ? methods : []),
    get: (request, response) => legacy?.get(request, response),
    delete: (request, response) => legacy?.delete(request, response),
    post(post) {
      if (modern !== null && (legacy === null || modern.isOwn(post))) modern.post(post);
      else legacy?.post(post);
    },
    // Whose body it is shows in it, where there are two eras.
    postUnread: (request, response, body) =>
      modern === null && legacy?.postUnread(request, response, body) === true,
    answersPosts: true,
    endStreams() {
      legacy?.endStreams();
      modern?.endStreams();
    },
  };
}

function createSseEndpoint(recording: Recording, mock: Mock, profile: HttpProfile): Endpoint {
  const { postPath, get, post, endStreams } = createSseMock(recording, mock, profile);
  return {
    methodsAt: (path) => [...(path === profile.path ? ['GET'] : []), ...(path === postPath ? ['POST'] : [])],
    get,
    delete() {},
    post,
    postUnread: () => false,
    answersPosts: false,
    endStreams,
  };
}

const pathnameOf = memoize((url) =>
  URL.canParse(url, 'http://host') ? new URL(url, 'http://host').pathname : '',
);
