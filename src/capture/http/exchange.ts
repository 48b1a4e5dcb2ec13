/**
 * One HTTP exchange on its way through the proxy. Bytes are forwarded first and shown afterwards. The slower end sets the pace.
 * Whichever end breaks, the other learns it at once and in the same way: its connection breaks.
 */

import type { ClientRequest, IncomingMessage, InformationEvent, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { AccessCheck } from '../../net/listen.ts';
import { fieldsOf } from '../../protocol/http/headers.ts';
import type { HttpEndEvent, HttpEvent } from '../../protocol/wire/http-event.ts';
import { now } from '../clock.ts';
import { type MetadataPaths, relayAnswer, type Show } from './answer.ts';
import type { Origins } from './edits.ts';
import {
  findFramingProblem,
  isBodyless,
  isBodyUnexpected,
  type RelayedHeaders,
  relayHeaders,
} from './headers.ts';
import { writeAtTurnEnd } from './turn.ts';
import type { Upstream, UpstreamListener } from './upstream.ts';

export type ProxyContext = {
  upstream: Upstream;
  /** What the proxy itself listens with. */
  scheme: 'http' | 'https';
  checkAccess: AccessCheck;
  hasEdits: boolean;
  metadataPaths: MetadataPaths;
  /** Connections on which no request can be trusted to be one. */
  doubtful: WeakSet<Socket>;
  /** No new connection is taken: those that are open get no request after the one that they have. */
  isStopping: boolean;
  /** The proxy breaks off what is open. */
  isCut: boolean;
  /** The server seems to have refused this `Host`. */
  hintAtHost: (sent: string) => void;
  show: Show;
};

export class ProxyExchange implements UpstreamListener {
  readonly #context: ProxyContext;
  readonly #number: number;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  #answer: IncomingMessage | null = null;
  /** A connection to the server stood, so what breaks from now on is the server's doing. */
  #isReached = false;
  #isRequestOver = false;
  #isRefused = false;
  #hasClientEnded = false;
  #serverError: string | null = null;

  constructor(
    context: ProxyContext,
    number: number,
    request: IncomingMessage,
    response: ServerResponse,
    onEnd: () => void,
  ) {
    this.#context = context;
    this.#number = number;
    this.#request = request;
    this.#response = response;
    response.once('close', () => {
      this.#showEnd();
      onEnd();
    });
    if (response.socket === null) closeWith(request.socket, response);
  }

  start(): void {
    const at = now();
    const request = this.#request;
    const headers = this.#relayRequestHeaders();
    const path = originForm(request);
    const refusal = findRefusal(request, this.#context);
    if (path !== null && refusal === null) {
      const as = { path, rawHeaders: headers.forwarded, isAlone: isBodyUnexpected(request) };
      this.#context.upstream.forward(request, this.#response, as, this);
    }
    this.#showRequest(at, headers);
    if (!hasBody(request)) this.#showRequestEnd(true);
    if (refusal !== null) this.#refuse(refusal);
  }

  onSent(proxied: ClientRequest): void {
    const request = this.#request;
    if (proxied.socket !== null) writeAtTurnEnd(proxied.socket);
    if (proxied.reusedSocket) this.#isReached = true;
    else {
      proxied.socket?.once(this.#context.upstream.isTls ? 'secureConnect' : 'connect', () => {
        this.#isReached = true;
      });
    }
    proxied.on('information', (information) => this.#relayInformation(information));
    // Nobody asked for it: `Upgrade` is not passed on. Unheard, Node would close the connection and tell nobody.
    proxied.once('upgrade', (_answer, socket) => {
      socket.destroy();
      this.#refuse(unforwardable(this.#context.upstream.origin, 'it switched protocols (101)'));
    });
    this.#passHalfCloseOn(proxied);
    if (!hasBody(request)) return;
    // Before the pipe that httpxy is about to lay, which ends `proxied` at the same event.
    request.once('end', () => {
      if (request.rawTrailers.length > 0) proxied.addTrailers(fieldsOf(request.rawTrailers));
    });
    // After it, so that bytes are on their way before they are shown.
    proxied.once('pipe', () => this.#showBody(proxied));
    // The first bytes of a body take the headers along; where none are there yet, the headers go ahead.
    setImmediate(() => {
      if (!request.readableDidRead) proxied.flushHeaders();
    });
  }

  /**
   * A client that has sent its request may close its side. Whether it still wants the answer is for the server to judge, so
   * the server sees the same. Only as long as the connection to it is this exchange's own.
   */
  #passHalfCloseOn(proxied: ClientRequest): void {
    const { socket } = this.#request;
    const onEnd = () => {
      this.#hasClientEnded = true;
      if (this.#answer?.complete !== true) proxied.socket?.end();
    };
    if (socket.readableEnded) onEnd();
    else socket.once('end', onEnd);
    this.#response.once('close', () => socket.off('end', onEnd));
  }

  onAnswer(answer: IncomingMessage): void {
    const { upstream, hasEdits, metadataPaths, show, scheme } = this.#context;
    const problem = findAnswerProblem(answer);
    if (problem !== null) {
      answer.destroy();
      this.#refuse(unforwardable(upstream.origin, problem));
      return;
    }
    this.#answer = answer;
    if (this.#response.socket !== null) writeAtTurnEnd(this.#response.socket);
    // So that the client does not send its next request into a connection that closes (RFC 9112, 9.6).
    if (this.#context.isStopping) this.#response.shouldKeepAlive = false;
    if (answer.statusCode === 403) this.#lookForHosts(answer);
    const request = this.#request;
    const proxy = `${scheme}://${request.headers.host}`;
    const origins: Origins | null =
      hasEdits && request.headers.host !== undefined ? { upstream: upstream.origin, proxy } : null;
    relayAnswer({
      exchange: this.#number,
      request,
      response: this.#response,
      answer,
      origins,
      metadataPaths,
      show,
    });
  }

  #lookForHosts(answer: IncomingMessage): void {
    const { upstream, hasEdits, hintAtHost } = this.#context;
    const sent = hasEdits ? upstream.host : (this.#request.headers.host ?? upstream.host);
    answer.once('data', (bytes: Buffer) => {
      if (SPEAKS_OF_HOSTS.test(bytes.toString('latin1', 0, LOOKED_AT_BYTES))) hintAtHost(sent);
    });
  }

  onFailure(error: Error): void {
    const response = this.#response;
    // The client has gone, or the answer is whole; or httpxy itself breaks off the answer that has begun.
    if (response.closed || response.writableEnded) return;
    const reason = whyBroken(error);
    if (this.#answer === null && !this.#isReached && !response.destroyed) {
      this.#refuse(unreachable(this.#context.upstream.origin, reason));
      return;
    }
    this.#serverError ??= reason;
    if (this.#answer === null) response.destroy();
  }

  #relayRequestHeaders(): RelayedHeaders {
    const { upstream, hasEdits } = this.#context;
    const request = this.#request;
    // The proxy is never where the server is: its port is another, and servers may compare all of `Host` (DNS rebinding).
    const relayed = relayHeaders(
      request.rawHeaders,
      (name, value) => (hasEdits && name === 'host' ? upstream.host : value),
      'as-it-stands',
    );
    const { forwarded } = relayed;
    if (request.headers.host === undefined) forwarded.push('Host', upstream.host);
    // Without a length Node would announce chunks. No length means no body, and this says so.
    if (!isBodyless(request.method) && !hasLength(request)) forwarded.push('Content-Length', '0');
    return relayed;
  }

  /** Answers in the server's place. */
  #refuse({ status, reason }: ProxyRefusal): void {
    const response = this.#response;
    const bytes = Buffer.from(`tapedeck: ${reason}\n`);
    const rawHeaders = ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(bytes.length)];
    // What follows a request of doubtful length on its connection is doubtful too.
    if (status === 400) {
      rawHeaders.push('Connection', 'close');
      this.#context.doubtful.add(this.#request.socket);
    }
    this.#isRefused = true;
    this.#serverError = reason;
    response.writeHead(status, rawHeaders);
    response.end(bytes);
    const exchange = this.#number;
    const { statusMessage } = response;
    this.#show({ type: 'response', exchange, at: now(), status, statusMessage, rawHeaders, edits: [] });
    if (this.#request.method !== 'HEAD') this.#show({ type: 'response-body', exchange, at: now(), bytes });
  }

  #relayInformation({ statusCode, statusMessage, rawHeaders }: InformationEvent): void {
    const response = this.#response;
    if (response.headersSent || this.#request.httpVersion === '1.0') return;
    if (statusCode === 100) response.writeContinue();
    else {
      const fields = fieldsOf(rawHeaders).map(([name, value]) => `${name}: ${value}\r\n`);
      const head = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${fields.join('')}\r\n`;
      response.socket?.write(head, 'latin1');
    }
    this.#show({ type: 'information', exchange: this.#number, at: now(), status: statusCode, rawHeaders });
  }

  #showRequest(at: number, { shown, edits }: RelayedHeaders): void {
    const { method = '', url: path = '', httpVersion, socket } = this.#request;
    const clientAddress = `${socket.remoteAddress}:${socket.remotePort}`;
    const exchange = this.#number;
    this.#show({
      type: 'request',
      exchange,
      at,
      method,
      path,
      httpVersion,
      rawHeaders: shown,
      edits,
      clientAddress,
    });
  }

  #showBody(proxied: ClientRequest): void {
    const request = this.#request;
    const hold = (wait: Promise<void>) => {
      request.pause();
      void wait.then(() => request.resume());
    };
    const onData = (bytes: Buffer) =>
      this.#show({ type: 'request-body', exchange: this.#number, at: now(), bytes }, hold);
    const onEnd = () => this.#showRequestEnd(true);
    request.on('data', onData);
    request.on('end', onEnd);
    // httpxy takes the pipe away where the server has answered early: what comes then goes nowhere.
    proxied.once('unpipe', () => {
      request.off('data', onData);
      request.off('end', onEnd);
    });
  }

  #showRequestEnd(isComplete: boolean): void {
    this.#isRequestOver = true;
    const { rawTrailers } = this.#request;
    this.#show({ type: 'request-end', exchange: this.#number, at: now(), rawTrailers, isComplete });
  }

  #showEnd(): void {
    if (!this.#isRequestOver) this.#showRequestEnd(false);
    const rawTrailers = this.#answer?.rawTrailers ?? [];
    const isComplete = this.#response.writableFinished;
    const how = this.#howItEnded();
    this.#show({ type: 'end', exchange: this.#number, at: now(), ...how, isComplete, rawTrailers });
  }

  #howItEnded(): Pick<HttpEndEvent, 'closedBy' | 'error'> {
    if (this.#context.isCut) return { closedBy: 'proxy', error: 'tapedeck stopped' };
    if (this.#isRefused) return { closedBy: 'proxy', error: this.#serverError };
    if (this.#response.writableFinished) return { closedBy: 'server', error: null };
    if (this.#serverError !== null && !this.#hasClientEnded)
      return { closedBy: 'server', error: this.#serverError };
    return { closedBy: 'client', error: 'the client closed the connection' };
  }

  #show(event: HttpEvent, hold?: (wait: Promise<void>) => void): void {
    this.#context.show(event, hold);
  }
}

/**
 * A client may send requests without waiting for answers; the later ones get their connection in their turn. Node
 * does not close those that the connection's end overtakes.
 */
function closeWith(socket: Socket, response: ServerResponse): void {
  // One for each request that waits, however many: no leak that Node should warn of.
  socket.setMaxListeners(0);
  socket.once('close', () => {
    if (response.socket === null && !response.closed) response.emit('close');
  });
}

/** As in `Invalid Host`, and `Access is only allowed at localhost:3000`. */
const SPEAKS_OF_HOSTS = /\bhosts?\b|\ballowed at\b|\blocalhost\b|\b127\.0\.0\.1\b/i;

const LOOKED_AT_BYTES = 2048;

function hasBody(request: IncomingMessage): boolean {
  return request.headers['transfer-encoding'] !== undefined || Number(request.headers['content-length']) > 0;
}

function hasLength({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** OpenSSL's names for a chain of certificates that ends in nobody who is trusted. */
const UNTRUSTED = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** One line. Where several addresses were tried, the reason of the first. */
export function whyBroken(error: Error): string {
  const first: NodeJS.ErrnoException = error instanceof AggregateError ? error.errors[0] : error;
  const why = (first.message || first.code || first.name).replaceAll(/\s+/g, ' ');
  if (!UNTRUSTED.has(first.code ?? '')) return why;
  // Newer versions of Node put advice of their own behind a semicolon.
  return `${why.split(';', 1)[0]}; start tapedeck with NODE_EXTRA_CA_CERTS=<its CA's file>, or with --insecure`;
}

/** An answer in the server's place, where the proxy does not forward. `reason` is one line. */

export type ProxyRefusal = { status: 400 | 403 | 502; reason: string };

/** Why a request is not forwarded, or null if it is. */
export function findRefusal(
  request: IncomingMessage,
  { upstream, checkAccess }: ProxyContext,
): ProxyRefusal | null {
  const framing = findFramingProblem(request);
  if (framing !== null) return { status: 400, reason: `refused this request: ${framing}` };
  const problem = checkAccess(request.headers);
  if (problem !== null) return { status: 403, reason: problem };
  if (originForm(request) !== null) return null;
  return { status: 403, reason: `refused this request target: only ${upstream.origin} is forwarded to` };
}

function unreachable(origin: string, why: string): ProxyRefusal {
  return { status: 502, reason: `cannot reach ${origin}: ${why}` };
}

function unforwardable(origin: string, why: string): ProxyRefusal {
  return { status: 502, reason: `cannot forward the answer of ${origin}: ${why}` };
}

/** Node reads these, but throws where it is to write them. */
const CONTROL_CHARACTER = /[^\t\x20-\x7e\x80-\xff]/;

/** Why an answer cannot be forwarded, or null if it can. */
function findAnswerProblem(answer: IncomingMessage): string | null {
  const { headers, statusCode = 0, statusMessage = '' } = answer;
  const encoding = headers['transfer-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'chunked') {
    return `its Transfer-Encoding is ${JSON.stringify(encoding)}`;
  }
  if (statusCode < 100) return `its status is ${statusCode}`;
  return CONTROL_CHARACTER.test(statusMessage) ? 'its status line has control characters' : null;
}

/** The request target as a server takes it; null if it is meant for another server. */
export function originForm({ url = '', headers, method }: IncomingMessage): string | null {
  if (url.startsWith('/') || (url === '*' && method === 'OPTIONS')) return url;
  const [start, authority] = /^https?:\/\/([^/?#]*)/i.exec(url) ?? [];
  if (start === undefined || authority?.toLowerCase() !== headers.host?.toLowerCase()) return null;
  const rest = url.slice(start.length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}
