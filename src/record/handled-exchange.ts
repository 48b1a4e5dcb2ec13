/** One HTTP exchange of a server of `node:http`, watched at its two objects. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { now } from '../capture/clock.ts';
import type { HttpEvent } from '../protocol/wire/http-event.ts';
import type { HttpRecorder } from '../store/record/http-recorder.ts';
import { createOneListener } from './one-listener.ts';
import { bytesOf } from './stdio.ts';
import type { DoorTape } from './tape.ts';

type Method = (...args: unknown[]) => unknown;

/** Members that Node has besides those of its types; each is looked at before it is used. */
type Inner = {
  /** The head as it goes out. */
  _header?: unknown;
  /** Whether it has gone: not yet by `writeHead`, nor where a body was written that no client gets. */
  _headerSent?: unknown;
  /** The trailers likewise. */
  _trailer?: unknown;
  /** Whether the answer may have a body: not to HEAD, not with 204 or 304. */
  _hasBody?: unknown;
  /** Node itself has sent `100 Continue`, before it called anybody. */
  _sent100?: unknown;
};

export class HandledExchange {
  /** A part of the request's body had been read before. */
  readonly isLate: boolean;
  readonly #tape: DoorTape<HttpRecorder>;
  readonly #number: number;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse & Inner;
  #isRequestOver = false;
  #hasHead = false;
  #isOver = false;
  #seenBytes = 0;
  #endedAt: number | null = null;
  readonly #forget: () => void;
  #isBrokenByHost = false;

  constructor(
    tape: DoorTape<HttpRecorder>,
    number: number,
    request: IncomingMessage,
    response: ServerResponse,
  ) {
    this.#tape = tape;
    this.#number = number;
    this.#request = request;
    this.#response = response;
    this.isLate = request.readableDidRead || request.readableLength > 0 || request.complete;
    this.#showRequest();
    this.#watchRequest();
    this.#watchAnswer();
    this.#watchInformations();
    // Of a request whose turn has not come Node does not say that its connection is closed.
    this.#forget = onClose(request.socket, () => this.#end());
    response.on('close', () => {
      this.#endedAt = now();
      // What its server did not wait for may still be arriving.
      if (this.#isRequestOver || request.socket.destroyed) this.#end();
    });
  }

  #show(event: HttpEvent): void {
    this.#tape.use(event.at, (recorder) => void recorder.append(event));
  }

  #at(): { exchange: number; at: number } {
    return { exchange: this.#number, at: now() };
  }

  #showRequest(): void {
    const { method = '', url: path = '', httpVersion, rawHeaders, socket, headers } = this.#request;
    const clientAddress = `${socket.remoteAddress}:${socket.remotePort}`;
    const head = { method, path, httpVersion, rawHeaders, clientAddress, edits: [] };
    this.#show({ type: 'request', ...this.#at(), ...head });
    if (this.#response._sent100 === true)
      this.#show({ type: 'information', ...this.#at(), status: 100, rawHeaders: [] });
    if (!this.isLate) return;
    const bytes = Number(headers['content-length'] ?? 0);
    const { exchange, at } = this.#at();
    if (bytes > 0 || 'transfer-encoding' in headers)
      this.#tape.use(at, (recorder) => recorder.lose(exchange, at, 'request', bytes));
    if (this.#request.complete) this.#endRequest(true);
  }

  /** Node gives a request each piece of its body by `push`, and null at the end. Shown first: the host may answer in the same turn. */
  #watchRequest(): void {
    before(this.#request, 'push', (chunk, encoding) => {
      if (chunk === null) {
        this.#endRequest(this.#hasWholeBody());
        if (this.#endedAt !== null) this.#end();
        return;
      }
      const bytes = bytesOf(chunk, encoding);
      if (bytes === null) return;
      this.#seenBytes += bytes.length;
      this.#show({ type: 'request-body', ...this.#at(), bytes });
    });
    this.#watchBreak(this.#request);
  }

  /** What arrives after the answer goes to nobody, and Node shows it to nobody. */
  #hasWholeBody(): boolean {
    const { headers, _dumped: isDumped } = this.#request as IncomingMessage & { _dumped?: unknown };
    const length = headers['content-length'];
    return length === undefined ? isDumped !== true : this.#seenBytes >= Number(length);
  }

  #endRequest(isComplete: boolean): void {
    if (this.#isRequestOver) return;
    this.#isRequestOver = true;
    this.#show({ type: 'request-end', ...this.#at(), rawTrailers: this.#request.rawTrailers, isComplete });
  }

  #watchAnswer(): void {
    const response = this.#response;
    const write = (chunk: unknown, encoding: unknown) => {
      this.#showHead();
      const bytes = response._hasBody === false ? null : bytesOf(chunk, encoding);
      if (bytes !== null && bytes.length > 0) this.#show({ type: 'response-body', ...this.#at(), bytes });
    };
    const isOpen = () => !response.writableEnded && !response.destroyed;
    after(response, 'write', isOpen, write);
    after(response, 'end', isOpen, write);
    after(response, 'flushHeaders', isOpen, () => this.#showHead());
    this.#watchBreak(response);
  }

  #showHead(): void {
    const { headersSent, _headerSent: isSent = headersSent } = this.#response;
    if (this.#hasHead || isSent !== true) return;
    this.#hasHead = true;
    this.#show({ type: 'response', ...this.#at(), ...headOf(this.#response), edits: [] });
  }

  #watchInformations(): void {
    const response = this.#response;
    const tell = (status: number, rawHeaders: string[] = []) =>
      this.#show({ type: 'information', ...this.#at(), status, rawHeaders });
    const isOpen = () => !response.headersSent;
    after(response, 'writeContinue', isOpen, () => tell(100));
    after(response, 'writeProcessing', isOpen, () => tell(102));
    after(response, 'writeEarlyHints', isOpen, (hints) => tell(103, hintsOf(hints)));
  }

  /** Who destroys it by its own method is the host. */
  #watchBreak(end: IncomingMessage | ServerResponse): void {
    before(end, 'destroy', () => {
      if (this.#hasClientLeft() || this.#request.socket.destroyed) return;
      // Node itself destroys a request that was read to its end.
      if (end === this.#response || !this.#request.readableEnded) this.#isBrokenByHost = true;
    });
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#forget();
    this.#showHead();
    this.#endRequest(false);
    const { writableFinished: isComplete, _trailer: trailer } = this.#response;
    const rawTrailers = isComplete && typeof trailer === 'string' ? fieldsIn(trailer) : [];
    const at = this.#endedAt ?? now();
    const exchange = this.#number;
    this.#show({ type: 'end', exchange, at, ...this.#howItEnded(), isComplete, rawTrailers });
  }

  #hasClientLeft(): boolean {
    const { readableEnded, errored } = this.#request.socket;
    return readableEnded || errored !== null;
  }

  #howItEnded(): { closedBy: 'client' | 'server'; error: string | null } {
    if (this.#response.writableFinished) return { closedBy: 'server', error: null };
    return this.#isBrokenByHost || !this.#hasClientLeft()
      ? { closedBy: 'server', error: 'the server broke the answer off' }
      : { closedBy: 'client', error: 'the client closed the connection' };
  }
}

/** Has a method of one object tell of its calls, before it does what it does. */
function before(object: object, name: string, tell: Method): void {
  const own = (object as Record<string, Method>)[name] as Method;
  set(object, name, function (this: unknown, ...args: unknown[]) {
    tell(...args);
    return own.apply(this, args);
  });
}

/** The same afterwards, of those calls before which `isOpen` was true. A method that this version of Node lacks stays away. */
function after(object: object, name: string, isOpen: () => boolean, tell: Method): void {
  const own = (object as Record<string, Method | undefined>)[name];
  if (own === undefined) return;
  set(object, name, function (this: unknown, ...args: unknown[]) {
    const wasOpen = isOpen();
    const result = own.apply(this, args);
    if (wasOpen) tell(...args);
    return result;
  });
}

function set(object: object, name: string, value: Method): void {
  Object.defineProperty(object, name, { value, configurable: true, writable: true, enumerable: false });
}

const onClose = createOneListener<Socket>((socket, onEnd) => socket.once('close', onEnd));

type Head = { status: number; statusMessage: string; rawHeaders: readonly string[] };

/** As it went out where Node shows that, with what Node itself has put there; else as the host has set it. */
function headOf(response: ServerResponse & Inner): Head {
  const { statusCode: status, statusMessage = '', _header: text } = response;
  if (typeof text !== 'string')
    return { status, statusMessage, rawHeaders: Object.entries(response.getHeaders()).flatMap(fieldOf) };
  return { status, statusMessage, rawHeaders: fieldsIn(text.slice(text.indexOf('\n') + 1)) };
}

function fieldOf([name, value]: [string, unknown]): string[] {
  return (Array.isArray(value) ? value : [value]).flatMap((one) => [name, String(one)]);
}

/** The fields of a head or of trailers, as they stand in it. Written as a loop: it runs for every answer. */
function fieldsIn(text: string): string[] {
  const fields: string[] = [];
  for (let start = 0; start < text.length; ) {
    const found = text.indexOf('\r\n', start);
    const end = found < 0 ? text.length : found;
    const at = text.indexOf(':', start);
    if (at > start && at < end) fields.push(text.slice(start, at), text.slice(at + 1, end).trim());
    start = end + 2;
  }
  return fields;
}

/** As Node writes them: the links as one field, then the others. */
function hintsOf(hints: unknown): string[] {
  const { link, ...others } = hints as Record<string, unknown>;
  const links = link === undefined ? [] : ['Link', [link].flat().join(', ')];
  return [...links, ...Object.entries(others).flatMap(([name, value]) => [name, String(value)])];
}
