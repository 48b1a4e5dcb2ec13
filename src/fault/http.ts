/**
 * Faults over HTTP: stands between whoever answers (the proxy of `record`, the mock server) and the client, by taking the
 * place of a response's own methods. Bodies of JSON wait until they are whole, event streams go event by event, and all else
 * passes as it is. What is recorded is told by what really went on, in place of what was answered.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { clearTimeout, setTimeout } from 'node:timers';
import { contentCoding, EVENTS_TYPE, JSON_TYPE, mediaType } from '../protocol/http/headers.ts';
import type { Channel, Frame, FrameFault, FramePart } from '../protocol/wire/frame.ts';
import type { HttpEvent } from '../protocol/wire/http-event.ts';
import {
  createSseSplitter,
  fieldName,
  isMessageEvent,
  linesOf,
  readSse,
  type SseBlock,
} from '../protocol/wire/sse.ts';
import type { Action } from './action.ts';
import { NO_BYTES, type Piece } from './effect.ts';
import { type Fault, type Faults, markOf } from './faults.ts';
import { headOf, type ResponseHead, withLength } from './http-head.ts';
import { createTelling, type Telling } from './http-telling.ts';
import { createLane, type Lane } from './lane.ts';

export type HttpFaults = {
  /** Call it before anybody reads the request or writes the response. `exchange`: as the events of a recorder name it. */
  attach(exchange: number, request: IncomingMessage, response: ServerResponse): void;
  /** What was answered comes in, what went on is passed to `onEvent`. */
  onEvent(event: HttpEvent): Promise<void> | undefined;
};

type HttpFaultsOptions = {
  faults: Faults;
  /** Microseconds since the Unix epoch. */
  now: () => number;
  /** Where something records. */
  onEvent?: (event: HttpEvent) => Promise<void> | undefined;
};

/** Longer requests are not looked into. */
const MAX_REQUEST_BYTES = 64 * 1024 * 1024;

export function createHttpFaults({ faults, now, onEvent = () => undefined }: HttpFaultsOptions): HttpFaults {
  const open = new Map<number, Telling>();
  return {
    attach(exchange, request, response) {
      const telling = createTelling(exchange, now, onEvent);
      open.set(exchange, telling);
      const faulty = new FaultyResponse({ exchange, faults, now, request, response, telling });
      // Before those of whoever answers: what never went on is told before the end is.
      response.once('close', () => faulty.leave());
      learnRequest(request, (body) => void faults.choose(frameOf('request', 'body', body, exchange, now())));
    },
    onEvent(event) {
      const telling = open.get(event.exchange);
      if (telling === undefined) return onEvent(event);
      if (event.type === 'end') open.delete(event.exchange);
      return telling.answered(event);
    },
  };
}

/** Calls `onBody` with the body of a POST when it is whole, before anybody else learns that. */
function learnRequest(request: IncomingMessage, onBody: (body: Buffer) => void): void {
  if (request.method !== 'POST' || contentCoding(request.headers['content-encoding']) !== 'identity') return;
  const chunks: Buffer[] = [];
  let size = 0;
  const emit = request.emit.bind(request);
  request.emit = (name: string | symbol, ...values: unknown[]) => {
    if (name === 'data' && size <= MAX_REQUEST_BYTES) {
      chunks.push(values[0] as Buffer);
      size += chunks.at(-1)?.length ?? 0;
    } else if (name === 'end' && size <= MAX_REQUEST_BYTES) onBody(Buffer.concat(chunks));
    return emit(name as string, ...values);
  };
}

function frameOf(channel: Channel, part: FramePart, payload: Buffer, exchange: number, at: number): Frame {
  const http = { exchange, marks: [], original: null, sha256: null };
  return { channel, at, payload, lineEnd: '', size: payload.length, truncated: false, part, http };
}

type FaultyResponseOptions = {
  exchange: number;
  faults: Faults;
  now: () => number;
  request: IncomingMessage;
  response: ServerResponse;
  telling: Telling;
};

/** The methods of a response, as they were. */
type Own = Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'flushHeaders'>;

/** What has not begun, what passes as it is, a body, events, what is over whatever is answered. */
type Mode = 'begun' | 'plain' | 'body' | 'events' | 'over';

class FaultyResponse {
  readonly #options: FaultyResponseOptions;
  readonly #own: Own;
  readonly #lane: Lane;
  #mode: Mode = 'begun';
  #head: ResponseHead | null = null;
  #isHeadSent = false;
  #isHeld = false;
  #chunks: Buffer[] = [];
  /** Events before the first message, while the head waits for that. */
  #before: SseBlock[] = [];
  #timer: NodeJS.Timeout | undefined;
  readonly #splitter = createSseSplitter({
    maxBytes: Number.MAX_SAFE_INTEGER,
    onBlock: (block) => this.#takeBlock(block),
    onSkip: () => {},
    onOversize: () => {},
  });

  constructor(options: FaultyResponseOptions) {
    this.#options = options;
    const { response } = options;
    this.#own = {
      writeHead: response.writeHead.bind(response),
      write: response.write.bind(response),
      end: response.end.bind(response),
      flushHeaders: response.flushHeaders.bind(response),
    } as Own;
    this.#lane = createLane({
      write: (bytes) => {
        this.#sendHead();
        this.#own.write(bytes);
      },
      besides: (what) => this.#break(what === 'reset'),
      mark: markOf,
    });
    Object.assign(response, {
      writeHead: (...values: unknown[]) => this.#writeHead(values),
      flushHeaders: () => this.#flushHeaders(),
      write: (...values: unknown[]) => this.#write(values),
      end: (...values: unknown[]) => this.#end(values),
    });
  }

  /** The connection is closed. */
  leave(): void {
    clearTimeout(this.#timer);
    this.#lane.cancel();
  }

  #writeHead(values: unknown[]): ServerResponse {
    const { response, request } = this.#options;
    if (this.#mode === 'over') return response;
    this.#head = headOf(values, response);
    const { contentType, coding, status } = this.#head;
    const type = coding === 'identity' && status !== 202 ? mediaType(contentType) : '';
    this.#mode = type === JSON_TYPE ? 'body' : type === EVENTS_TYPE ? 'events' : 'plain';
    this.#options.telling.expect(this.#mode !== 'plain');
    // A status stands before all events, and whether it is to be another one is known with the first message.
    const mayWait = request.method === 'POST' && this.#options.faults.changesStatus;
    if (this.#mode === 'plain' || (this.#mode === 'events' && !mayWait)) this.#sendHead();
    return response;
  }

  #sendHead(head = this.#head, isOther = false): void {
    if (this.#isHeadSent || head === null) return;
    this.#isHeadSent = true;
    this.#own.writeHead(...(head.values as Parameters<ServerResponse['writeHead']>));
    if (this.#mode !== 'plain') this.#options.telling.head(head, isOther);
    if (this.#mode === 'events') this.#own.flushHeaders();
  }

  #flushHeaders(): void {
    if (this.#mode === 'begun' || this.#isHeadSent) this.#own.flushHeaders();
  }

  #write(values: unknown[]): boolean {
    if (this.#mode === 'begun' || this.#mode === 'plain')
      return this.#own.write(...(values as Parameters<ServerResponse['write']>));
    const bytes = bytesOf(values);
    if (bytes.length > 0) {
      this.#options.telling.wrote();
      if (this.#mode === 'body') this.#chunks.push(bytes);
      else if (this.#mode === 'events') this.#splitter.feed(bytes, this.#options.now());
    }
    return !this.#options.response.writableNeedDrain;
  }

  #end(values: unknown[]): ServerResponse {
    const { response } = this.#options;
    if (this.#mode === 'begun' || this.#mode === 'plain') {
      this.#own.end(...(values as Parameters<ServerResponse['end']>));
      return response;
    }
    const bytes = bytesOf(values);
    if (this.#mode === 'body') {
      if (bytes.length > 0) this.#chunks.push(bytes);
      this.#mode = 'over';
      this.#deliverBody(Buffer.concat(this.#chunks));
    } else if (this.#mode === 'events') {
      if (bytes.length > 0) this.#splitter.feed(bytes, this.#options.now());
      this.#splitter.end();
      this.#passBefore();
      void this.#lane.finish().then(() => this.#endEvents());
    }
    return response;
  }

  #endEvents(): void {
    if (this.#isHeld || this.#mode !== 'events') return;
    this.#sendHead();
    this.#mode = 'over';
    this.#own.end();
  }

  /** A body is one message, or a batch: there is nothing that it could change places with. */
  #deliverBody(body: Buffer): void {
    const { exchange, faults, now, telling } = this.#options;
    const fault = faults.choose(frameOf('response', 'body', body, exchange, now()), isForEvents);
    if (fault === null) {
      this.#sendHead();
      this.#own.end(body);
      telling.bytes(body);
      return;
    }
    const { effect } = fault;
    if (effect.http !== null) this.#answerStatus(fault, body, 'response');
    else if (effect.isHeld || effect.besides !== null) {
      telling.fault('response', NO_BYTES, markOf(fault.chosen, effect, body));
      if (effect.besides !== null) this.#break(effect.besides === 'reset');
    } else {
      this.#timer = setTimeout(() => this.#sendBody(fault, body), effect.waitMs);
    }
  }

  #sendBody({ chosen, effect }: Fault, said: Buffer): void {
    const { telling } = this.#options;
    const body = effect.payload ?? said;
    if (this.#head !== null) this.#head = withLength(this.#head, body.length);
    this.#sendHead();
    const pieces = effect.cut?.(body) ?? [{ bytes: body, afterMs: 0 }];
    this.#sendPieces(pieces, () => {
      telling.fault('response', body, markOf(chosen, effect, effect.payload === null ? null : said));
      this.#own.end();
    });
  }

  #sendPieces([piece, ...rest]: readonly Piece[], onSent: () => void): void {
    if (piece === undefined) {
      onSent();
      return;
    }
    const send = () => {
      if (piece.bytes.length > 0) this.#own.write(piece.bytes);
      this.#sendPieces(rest, onSent);
    };
    if (piece.afterMs === 0) send();
    else this.#timer = setTimeout(send, piece.afterMs);
  }

  #takeBlock(block: SseBlock): void {
    const { exchange, faults, now, request } = this.#options;
    if (this.#mode !== 'events') return;
    const fields = block.isComplete ? readSse(block.payload) : null;
    if (fields === null || fields.data === null || fields.data.length === 0 || !isMessageEvent(fields)) {
      if (this.#isHeadSent) this.#pass(block);
      else this.#before.push(block);
      return;
    }
    const refuses = (action: Action) => action.name === 'http' && this.#isHeadSent;
    const fault = faults.choose(frameOf('sse', 'event', block.payload, exchange, now()), refuses);
    if (fault !== null && fault.effect.http !== null) {
      this.#answerStatus(fault, block.payload, 'sse');
      return;
    }
    if (fault?.effect.isHeld && request.method === 'POST') this.#isHeld = true;
    this.#passBefore();
    this.#take(block, fields.data, fault);
  }

  #passBefore(): void {
    const before = this.#before;
    this.#before = [];
    for (const block of before) this.#pass(block);
  }

  #pass({ payload }: SseBlock): void {
    const passed = () => this.#options.telling.bytes(payload);
    this.#lane.take({ json: payload, wire: (bytes) => bytes, passed }, null, null);
  }

  #take({ payload }: SseBlock, json: Buffer, fault: Fault | null): void {
    const { telling } = this.#options;
    const wire = (text: Buffer) => (text === json ? payload : eventWith(payload, text));
    const passed = (text: Buffer, mark: FrameFault | null) => {
      if (mark === null) {
        telling.bytes(payload);
        return;
      }
      const original = mark.original === null || mark.original.length === 0 ? mark.original : payload;
      telling.fault('sse', text.length === 0 ? NO_BYTES : wire(text), { ...mark, original });
    };
    this.#lane.take({ json, wire, passed }, fault?.chosen ?? null, fault?.effect ?? null);
  }

  /** Answers with a status in place of what was said. Whatever else is said has no place any more. */
  #answerStatus({ chosen, effect }: Fault, said: Buffer, channel: 'response' | 'sse'): void {
    const { telling, response } = this.#options;
    const { status = 500, retryAfter = null } = effect.http ?? {};
    const body = Buffer.from(`tapedeck: fault ${chosen.rule.number} on purpose: ${effect.text}\n`);
    const headers = ['Content-Type', 'text/plain; charset=utf-8', 'Content-Length', String(body.length)];
    if (retryAfter !== null) headers.push('Retry-After', String(retryAfter));
    this.#sendHead(headOf([status, headers], response), true);
    this.#mode = 'over';
    // What was said was an event; what is told in its place is no event any more.
    telling.fault(
      'response',
      body,
      markOf(chosen, effect, channel === 'sse' ? (readSse(said).data ?? said) : said),
    );
    this.#own.end(body);
  }

  #break(isReset: boolean): void {
    const { response, telling } = this.#options;
    this.#mode = 'over';
    telling.broken(isReset ? 'reset' : 'closed');
    const { socket } = response;
    if (isReset) socket?.resetAndDestroy();
    else socket?.destroySoon();
  }
}

function isForEvents({ name }: Action): boolean {
  return name === 'duplicate' || name === 'reorder';
}

/** Of the values of `write` or `end`. */
function bytesOf([chunk, encoding]: unknown[]): Buffer {
  if (typeof chunk === 'string')
    return Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8');
  return chunk instanceof Uint8Array
    ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    : NO_BYTES;
}

/** An event of a stream with these data in place of its own; its other fields stay. Line ends become LF. */
function eventWith(block: Buffer, data: Buffer): Buffer {
  const kept: Buffer[] = [];
  for (const line of linesOf(block)) {
    if (line.length > 0 && fieldName(line) !== 'data') kept.push(line, LINE_END);
  }
  return Buffer.concat([...kept, DATA, data, LINE_END, LINE_END]);
}

const DATA = Buffer.from('data: ');

const LINE_END = Buffer.from('\n');
