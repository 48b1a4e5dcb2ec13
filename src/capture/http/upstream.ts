/**
 * Forwards requests to the server behind the proxy. The forwarding itself is httpxy's (the dependency `http-proxy`): it joins the
 * two requests and passes aborts on. What it does not keep is done around it: the order and case of raw headers, and the answer
 * as it came.
 */
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { isIP, type Socket } from 'node:net';
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

/** How a server is reached where Node's own way will not do: by another proxy, or with its addresses looked at. */
export type Way = {
  /** Opens the connections for requests to it. */
  agent(keepAlive: boolean): HttpAgent;
  /** The same for one request that asks for another protocol. */
  tunnelAgent(): HttpAgent;
  /** A connection for anything else. Calls `onReady`, once, when bytes can go to the server, or with why they cannot. */
  dial(onReady: (error: Error | null) => void): Socket;
  /** What is sent in place of a request; null: that itself. */
  rewrite: ((request: ForwardedRequest) => ForwardedRequest) | null;
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

/** `way`: null means as Node does it. */
export function createUpstream(url: URL, isInsecure: boolean, way: Way | null): Upstream {
  const isTls = url.protocol === 'https:';
  const hostname = withoutBrackets(url.hostname);
  const how = { keepAlive: true };
  const agent = way?.agent(true) ?? (isTls ? new HttpsAgent(how) : new HttpAgent(how));
  serveOne(agent as Pool);
  const target = { protocol: url.protocol, hostname, port: url.port };
  const common = {
    target,
    servername: isTls ? servernameOf(url) : undefined,
    prependPath: false,
    selfHandleResponse: true,
    proxyTimeout: 0,
    secure: !isInsecure,
  };
  const kept = createForwarder({ ...common, agent });
  const alone = createForwarder({ ...common, agent: way?.agent(false) ?? false });
  const rewrite = way?.rewrite ?? null;

  return {
    origin: url.origin,
    host: url.host,
    isTls,
    forward: (request, response, as, listener) =>
      (as.isAlone ? alone : kept)(request, response, rewrite === null ? as : rewrite(as), listener),
    close: () => agent.destroy(),
  };
}

/**
 * httpxy fills in the object `ssl` and hands it to `http.request`, which copies it. Path and headers withstand being
 * assigned to: its own are normalised, ours are as the client wrote them. One object serves all requests in turn,
 * since making one with accessors is slow.
 */
function createForwarder({
  servername,
  ...options
}: ProxyServerOptions & { servername: string | undefined }): Upstream['forward'] {
  let current: ForwardedRequest | null = null;
  const ssl = {
    maxHeaderSize: MAX_HEADER_BYTES,
    ...(servername !== undefined && { servername }),
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

/** What a server with TLS is asked for, and verified as. Node would take it from `Host`, where a client may write anything. */
export function servernameOf({ hostname }: URL): string {
  const name = withoutBrackets(hostname).replace(/\.$/, '');
  return isIP(name) === 0 ? name : '';
}

function listenerOf(request: ListenedRequest): UpstreamListener | undefined {
  return request[LISTENER];
}

type Pool = HttpAgent & { addRequest(request: ClientRequest, options: object): void };

/** The name of all connections of an agent. */
const ONLY = 'server';

/**
 * Leaves out of an agent what it does because it may serve many servers: Node copies the options of each request, and three
 * times makes a name of them by which it finds the connections that go there. It was a tenth of what forwarding cost.
 */
function serveOne(agent: Pool): void {
  const addRequest = agent.addRequest.bind(agent);
  // Node takes the shorter of this time and the one that the server names.
  const limited: HttpAgent = Object.assign(Object.create(agent), {
    options: { timeout: IDLE_CONNECTION_MS },
  });
  const keepSocketAlive = agent.keepSocketAlive.bind(limited);
  /** Connections whose idle time is set. It begins anew with every byte, and ends nothing while a request is open. */
  const timed = new WeakSet<Socket>();

  agent.getName = () => ONLY;
  agent.addRequest = (request, options) => {
    const socket = takeIdle(agent);
    if (socket === undefined) return addRequest(request, options);
    agent.reuseSocket(socket, request);
    request.onSocket(socket);
    const busy = agent.sockets as NodeJS.Dict<Socket[]>;
    busy[ONLY] ??= [];
    busy[ONLY].push(socket);
  };
  agent.keepSocketAlive = (socket: Socket) => {
    if (timed.has(socket)) {
      socket.unref();
      return true;
    }
    timed.add(socket);
    socket.once('timeout', () => {
      timed.delete(socket);
      socket.setTimeout(0);
    });
    return keepSocketAlive(socket);
  };
}

/** The one that has been idle for the shortest time, so that those in excess end. */
function takeIdle(agent: HttpAgent): Socket | undefined {
  const idle = agent.freeSockets[ONLY];
  let socket = idle?.pop();
  while (socket?.destroyed) socket = idle?.pop();
  return socket;
}
