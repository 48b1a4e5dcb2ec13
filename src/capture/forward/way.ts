/** How servers are reached: directly, or by way of the proxy that the environment has. */

import { Agent as HttpAgent } from 'node:http';
import { Agent as HttpsAgent } from 'node:https';
import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { fieldsOf } from '../../protocol/http/headers.ts';
import { escapeText } from '../../protocol/text.ts';
import type { Way } from '../http/upstream.ts';
import type { Onward, OnwardProxy } from './onward.ts';
import { type HostPort, hostPortOf, type Reach } from './target.ts';

/** Opens a connection to a server. Calls `onReady`, once, when bytes can go to it, or with why they cannot. */
export type Dial = (target: HostPort, onReady: (error: Error | null) => void) => Socket;

export type WayOptions = {
  onward: Onward;
  /** What may be gone to directly. */
  reach: Reach;
  /** Which proxies may be gone to: any but this one. */
  proxyReach: Reach;
  /** Called with what the proxy's user should know, once. */
  tell: (kind: string, text: string) => void;
};

export type Ways = {
  dial: Dial;
  /** For the requests to an origin; null: as Node does it. */
  to(url: URL): Way | null;
  /** The same for an origin of which we know only what a client says, so its addresses are looked at. */
  toOther(url: URL): Way;
};

export function createWays({ onward, reach, proxyReach, tell }: WayOptions): Ways {
  const through =
    (proxy: OnwardProxy): Dial =>
    (target, onReady) =>
      dialThrough(proxy, target, proxyReach, tell, onReady);

  function proxied(url: URL): Way | null {
    const isTls = url.protocol === 'https:';
    const target = hostPortOf(url);
    const proxy = onward(isTls ? 'https' : 'http', target);
    if (proxy === null) return null;
    const tunnel = (onReady: (error: Error | null) => void) => through(proxy)(target, onReady);
    const direct = (onReady: (error: Error | null) => void) => dialProxy(proxy, proxyReach, onReady);
    return {
      agent: (keepAlive) => dialling(isTls, keepAlive, isTls ? tunnel : direct),
      tunnelAgent: () => dialling(isTls, false, tunnel),
      dial: tunnel,
      rewrite: isTls ? null : absolute(url.origin, proxy),
    };
  }

  return {
    dial(target, onReady) {
      const proxy = onward('https', target);
      return proxy === null ? dialDirectly(target, reach, onReady) : through(proxy)(target, onReady);
    },
    to: proxied,
    toOther: (url) => proxied(url) ?? directly(hostPortOf(url), reach),
  };
}

/** To an origin of plain HTTP. */
function directly(target: HostPort, reach: Reach): Way {
  const agent = (keepAlive: boolean) => new HttpAgent({ keepAlive, lookup: reach.lookup(target) });
  return {
    agent,
    tunnelAgent: () => agent(false),
    dial: (onReady) => dialDirectly(target, reach, onReady),
    rewrite: null,
  };
}

/** Proxies commonly allow CONNECT to ports of TLS alone, so a plain request goes in absolute form (RFC 9112, 3.2.2). */
function absolute(origin: string, { authorization }: OnwardProxy): Way['rewrite'] {
  return ({ path, rawHeaders, ...rest }) => {
    const headers = fieldsOf(rawHeaders).filter(([name]) => name.toLowerCase() !== 'proxy-authorization');
    if (authorization !== null) headers.push(['Proxy-Authorization', authorization]);
    return { ...rest, path: path === '*' ? origin : `${origin}${path}`, rawHeaders: headers.flat() };
  };
}

/** An agent whose connections are opened so; TLS with the server goes over them. */
function dialling(
  isTls: boolean,
  keepAlive: boolean,
  dial: (onReady: (error: Error | null) => void) => Socket,
): HttpAgent {
  const agent = isTls ? new HttpsAgent({ keepAlive }) : new HttpAgent({ keepAlive });
  const secure = agent.createConnection.bind(agent);
  agent.createConnection = (options, done) => {
    const socket = dial((error) => {
      // As Node's own connections for requests.
      socket.allowHalfOpen = false;
      if (error !== null) done?.(error, socket);
      else done?.(null, isTls ? (secure({ ...options, socket } as typeof options) as Socket) : socket);
    });
    return undefined;
  };
  return agent;
}

function dialDirectly(target: HostPort, reach: Reach, onReady: (error: Error | null) => void): Socket {
  const { host, port } = target;
  const socket = connect({ host, port, lookup: reach.lookup(target), allowHalfOpen: true, noDelay: true });
  const ready = once(onReady);
  socket.once('connect', () => ready(null)).once('error', ready);
  return socket;
}

function dialProxy(proxy: OnwardProxy, reach: Reach, onReady: (error: Error | null) => void): Socket {
  const { host, port, url, isTls } = proxy;
  const ready = once(onReady);
  const fail = (why: string) => ready(new Error(`the proxy ${url}: ${why}`));
  const how = { host, port, lookup: reach.lookup(proxy), allowHalfOpen: true, noDelay: true };
  const socket = isTls ? connectTls({ ...how, ...(isIP(host) === 0 && { servername: host }) }) : connect(how);
  socket.once(isTls ? 'secureConnect' : 'connect', () => ready(null));
  socket.once('error', (error: NodeJS.ErrnoException) => fail(error.message || error.code || error.name));
  socket.once('close', () => fail('it closed the connection'));
  const problem = reach.problemOf(proxy);
  if (problem !== null) socket.destroy(new Error(problem));
  return socket;
}

/** How long a proxy may take for its answer to a CONNECT; it may have a slow server to reach. */
const ANSWER_MS = 60_000;

/** By CONNECT (RFC 9110, 9.3.6). Bytes that come right behind the answer are read as the server's. */
function dialThrough(
  proxy: OnwardProxy,
  target: HostPort,
  reach: Reach,
  tell: WayOptions['tell'],
  onReady: (error: Error | null) => void,
): Socket {
  const { host, port } = target;
  const ready = once(onReady);
  const fail = (why: string) => {
    ready(new Error(`the proxy ${proxy.url}: ${why}`));
    socket.destroy();
  };
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const socket = dialProxy(proxy, reach, (error) => {
    if (error !== null) return ready(error);
    const credentials = proxy.authorization;
    const lines = [
      `CONNECT ${authority} HTTP/1.1`,
      `Host: ${authority}`,
      ...(credentials === null ? [] : [`Proxy-Authorization: ${credentials}`]),
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    const timer = setTimeout(() => fail(`no answer to CONNECT ${authority} within a minute`), ANSWER_MS);
    const onClose = () => {
      clearTimeout(timer);
      fail(`it closed the connection instead of an answer to CONNECT ${authority}`);
    };
    socket.once('close', onClose).once('end', onClose);
    readHead(socket, (head) => {
      clearTimeout(timer);
      socket.off('close', onClose).off('end', onClose);
      const [, status = '', text = ''] = /^HTTP\/1\.[01] (\d{3}) ?([^\r\n]*)/.exec(head) ?? [];
      if (status.startsWith('2')) return ready(null);
      const answer = status === '' ? 'something that is not HTTP' : `${status} ${escapeText(text)}`.trimEnd();
      if (status === '407') tell(`407 ${proxy.url}`, wantsUser(proxy));
      fail(`it answered CONNECT ${authority} with ${answer}`);
    });
  });
  return socket;
}

function wantsUser({ url, authorization }: OnwardProxy): string {
  return authorization === null
    ? `the proxy ${url} wants a user and a password (407): put them into the variable that names it, before its host and an @`
    : `the proxy ${url} does not take the user and the password of its URL (407)`;
}

const MAX_HEAD_BYTES = 16_384;

/** Reads up to the empty line, and leaves what follows in the socket; what is too long is taken for the head. */
function readHead(socket: Socket, onHead: (head: string) => void): void {
  let head = Buffer.alloc(0);
  const onReadable = () => {
    for (let bytes: Buffer | null = socket.read(); bytes !== null; bytes = socket.read()) {
      head = Buffer.concat([head, bytes]);
      const end = head.indexOf('\r\n\r\n');
      if (end < 0 && head.length < MAX_HEAD_BYTES) continue;
      socket.off('readable', onReadable);
      if (end >= 0 && head.length > end + 4) socket.unshift(head.subarray(end + 4));
      onHead(end < 0 ? '' : head.toString('latin1', 0, end));
      return;
    }
  };
  socket.on('readable', onReadable);
}

/** What a socket says later is for whoever has it then. */
function once(call: (error: Error | null) => void): (error: Error | null) => void {
  let isDone = false;
  return (error) => {
    if (isDone) return;
    isDone = true;
    call(error);
  };
}
