/**
 * Forwards requests to the server behind the proxy. The forwarding itself is httpxy's (the dependency `http-proxy`): it joins the
 * two requests and passes aborts on. What it does not keep is done around it: the order and case of raw headers, and the answer
 * as it came.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import type { LookupFunction, Socket } from 'node:net';
import { createProxyServer, type ProxyServerOptions } from 'http-proxy';
import { withoutBrackets } from '../../protocol/http/origin.ts';

export type Upstream = {
  origin: string;
  /** The value of a `Host` header for it. */
  host: string;
  isTls: boolean;
  forward(
    request: IncomingMessage,
    response: ServerResponse,
    as: ForwardedRequest,
    listener: UpstreamListener,
  ): void;
  close(): void;
};

type ForwardedRequest = {
  path: string;
  rawHeaders: readonly string[];
  /** Uses a connection of its own, closed afterwards. */
  isAlone: boolean;
};

export type UpstreamListener = {
  /** A connection has been chosen; nothing of the body has been sent. */
  onSent(proxied: ClientRequest): void;
  onAnswer(answer: IncomingMessage): void;
  onFailure(error: Error): void;
};

/** Where a request keeps its listener: a WeakMap of short-lived requests would keep the garbage collector busy. */
const LISTENER = Symbol('listener');

type ListenedRequest = IncomingMessage & { [LISTENER]?: UpstreamListener };

/** Large enough for any token: a limit is for the ends to set. */
export const MAX_HEADER_BYTES = 1024 * 1024;

/** Common servers close an idle connection after 5 seconds; the end that closes first never loses a request to that. */
const IDLE_CONNECTION_MS = 4000;

/** `lookup`: how its address is found; undefined: as Node does. */
export function createUpstream(url: URL, isInsecure: boolean, lookup?: LookupFunction): Upstream {
  const isTls = url.protocol === 'https:';
  const how = { keepAlive: true, ...(lookup && { lookup }) };
  const agent = isTls ? new HttpsAgent(how) : new HttpAgent(how);
  limitIdleTime(agent);
  const hostname = withoutBrackets(url.hostname);
  const target = { protocol: url.protocol, hostname, port: url.port };
  const common = {
    target,
    prependPath: false,
    selfHandleResponse: true,
    proxyTimeout: 0,
    secure: !isInsecure,
  };
  const kept = createForwarder({ ...common, agent });
  // Where addresses are looked at, by an agent too: it has what looks at them.
  const single = lookup === undefined ? false : new HttpAgent({ lookup });
  const alone = createForwarder({ ...common, agent: single });

  return {
    origin: url.origin,
    host: url.host,
    isTls,
    forward: (request, response, as, listener) =>
      (as.isAlone ? alone : kept)(request, response, as, listener),
    close: () => agent.destroy(),
  };
}

/**
 * httpxy fills in the object `ssl` and hands it to `http.request`, which copies it. Path and headers withstand being
 * assigned to: its own are normalised, ours are as the client wrote them. One object serves all requests in turn,
 * since making one with accessors is slow.
 */
function createForwarder(options: ProxyServerOptions): Upstream['forward'] {
  let current: ForwardedRequest | null = null;
  const ssl = {
    maxHeaderSize: MAX_HEADER_BYTES,
    get path() {
      return current?.path;
    },
    set path(_normalised) {},
    get headers() {
      return current?.rawHeaders;
    },
    set headers(_normalised) {},
  };
  const proxy = createProxyServer({ ...options, ssl });
  proxy.on('proxyReq', (proxied, request) => listenerOf(request)?.onSent(proxied));
  proxy.on('proxyRes', (answer, request) => listenerOf(request)?.onAnswer(answer));
  const onFailure = (error: Error, request?: IncomingMessage) => {
    // May come from within `forward`, when the caller is not ready for it.
    if (request !== undefined) queueMicrotask(() => listenerOf(request)?.onFailure(error));
  };
  proxy.on('error', onFailure);
  proxy.on('econnreset', onFailure);

  return (request: ListenedRequest, response, as, listener) => {
    request[LISTENER] = listener;
    current = as;
    // Rejects where the client's connection breaks, which the listener learns in other ways.
    proxy.web(request, response).catch(() => {});
    current = null;
  };
}

function listenerOf(request: ListenedRequest): UpstreamListener | undefined {
  return request[LISTENER];
}

function limitIdleTime(agent: HttpAgent): void {
  const keepSocketAlive = agent.keepSocketAlive.bind(agent);
  const reuseSocket = agent.reuseSocket.bind(agent);
  agent.keepSocketAlive = (socket: Socket) => {
    const isKept = keepSocketAlive(socket);
    socket.setTimeout(Math.min(socket.timeout || IDLE_CONNECTION_MS, IDLE_CONNECTION_MS));
    return isKept;
  };
  agent.reuseSocket = (socket: Socket, request) => {
    socket.setTimeout(0);
    reuseSocket(socket, request);
  };
}
