/**
 * The response of one HTTP exchange with faults. A body of JSON waits until it is whole, events of a stream go one by one, without
 * their content coding, and all else passes as it is; so does what finds no room.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { clearTimeout, setTimeout } from 'node:timers';
import {
  createStreamDecoder,
  decodeBody,
  isIdentity,
  type StreamDecoder,
} from '../../protocol/http/codings.ts';
import { EVENTS_TYPE, JSON_TYPE, mediaType } from '../../protocol/http/headers.ts';
import type { FrameFault } from '../../protocol/wire/frame.ts';
import {
  createSseSplitter,
  fieldName,
  isMessageEvent,
  linesOf,
  readSse,
  type SseBlock,
} from '../../protocol/wire/sse.ts';
import type { Action } from '../action.ts';
import { NO_BYTES, type Piece, twice } from '../effect.ts';
import { type Fault, type Faults, markOf } from '../faults.ts';
import { createLane, type Lane } from '../lane.ts';
import type { Turns } from '../turns.ts';
import { type Capacity, MOST_BODY_BYTES, type Share } from './capacity.ts';
import { bodyFrame, eventFrame } from './frame.ts';
import { headFor, headOf, type ResponseHead } from './head.ts';
import type { Telling } from './telling.ts';

type FaultyResponseOptions = {
  exchange: number;
  faults: Faults;
  now: () => number;
  request: IncomingMessage;
  response: ServerResponse;
  telling: Telling;
  turns: Turns;
  capacity: Capacity;
};

/** The methods of a response, as they were. */
type Own = Pick<ServerResponse, 'writeHead' | 'write' | 'end' | 'flushHeaders'>;

/**
 * What has not begun, what passes as it is, a body, one that has found no room, events, what is over whatever is answered.
 */
type Mode = 'begun' | 'plain' | 'body' | 'large' | 'events' | 'over';

export class FaultyResponse {
  readonly #options: FaultyResponseOptions;
  readonly #own: Own;
  readonly #lane: Lane;
  readonly #share: Share;
  #mode: Mode = 'begun';
  #head: ResponseHead | null = null;
  #isHeadSent = false;
  #isHeld = false;
  #chunks: Buffer[] = [];
  /** Events before the first message, while the head waits for that. */
  #before: SseBlock[] = [];
  #timer: NodeJS.Timeout | undefined;
  #giveUp = () => {};
  /** Undoes the coding of events. */
  #decoder: StreamDecoder | null = null;
  readonly #splitter = createSseSplitter({
    maxBytes: MOST_BODY_BYTES,
    onBlock: (block) => this.#takeBlock(block),
    onSkip: () => {},
    onOversize: (bytes) => this.#takeLarge(bytes),
  });

  constructor(options: FaultyResponseOptions) {
    this.#options = options;
    const { response } = options;
    this.#share = options.capacity.share();
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
      besides: (what) => this.breakOff(what === 'reset'),
      mark: markOf,
      turns: options.turns,
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
    this.#giveUp();
    this.#share.free();
    this.#lane.cancel();
  }

  #writeHead(values: unknown[]): ServerResponse {
    const { response, request } = this.#options;
    if (this.#mode === 'over') return response;
    this.#head = headOf(values, response);
    this.#mode = this.#modeFor(this.#head);
    this.#options.telling.expect(this.#mode !== 'plain');
    // A status stands before all events, and whether it is to be another one is known with the first message.
    const mayWait = request.method === 'POST' && this.#options.faults.changesStatus;
    if (this.#mode === 'plain' || (this.#mode === 'events' && !mayWait)) this.#sendHead();
    return response;
  }

  #modeFor({ contentType, coding, status }: ResponseHead): Mode {
    const { faults, now } = this.#options;
    const type = status === 202 ? '' : mediaType(contentType);
    if (type === JSON_TYPE) return 'body';
    if (type !== EVENTS_TYPE) return 'plain';
    if (isIdentity(coding)) return 'events';
    // Nobody knows at its head what will be in a stream, so its coding is undone where a rule could mean any of it.
    if (!faults.isAbout('server-to-client')) return 'plain';
    const feed = (bytes: Buffer) => this.#splitter.feed(bytes, now());
    this.#decoder = createStreamDecoder(coding, feed, () => this.#failToDecode());
    if (this.#decoder === null || this.#head === null) return 'plain';
    this.#head = headFor(this.#head, null);
    return 'events';
  }

  /** What came before has gone on without the coding, so the rest cannot go on as it is. */
  #failToDecode(): void {
    if (this.#mode === 'events') this.#options.response.destroy();
    this.#mode = 'over';
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
      if (this.#mode === 'body') this.#hold(bytes);
      else if (this.#mode === 'large') this.#pass(bytes);
      else if (this.#mode === 'events') this.#feed(bytes);
    }
    return this.#hasRoom();
  }

  #end(values: unknown[]): ServerResponse {
    const { response } = this.#options;
    if (this.#mode === 'begun' || this.#mode === 'plain') {
      this.#own.end(...(values as Parameters<ServerResponse['end']>));
      return response;
    }
    const bytes = bytesOf(values);
    if (this.#mode === 'body') {
      if (bytes.length > 0) this.#hold(bytes);
    } else if (bytes.length > 0 && this.#mode === 'large') this.#pass(bytes);
    if (this.#mode === 'body') {
      this.#mode = 'over';
      this.#deliverBody(Buffer.concat(this.#chunks));
    } else if (this.#mode === 'large') this.#own.end();
    else if (this.#mode === 'events') {
      if (bytes.length > 0) this.#feed(bytes);
      if (this.#decoder === null) this.#finishEvents();
      else void this.#decoder.end().then(() => this.#finishEvents());
    }
    return response;
  }

  /** Whether more may be answered. Where not, whoever answers waits for `drain`. */
  #hasRoom(): boolean {
    const { response } = this.#options;
    if (this.#lane.waiting() >= MOST_BODY_BYTES) {
      setTimeout(() => this.#whenRoom(), ROOM_CHECK_MS);
      return false;
    }
    return !response.writableNeedDrain;
  }

  #whenRoom(): void {
    const { response } = this.#options;
    if (response.destroyed) return;
    if (this.#lane.waiting() >= MOST_BODY_BYTES) setTimeout(() => this.#whenRoom(), ROOM_CHECK_MS);
    else if (!response.writableNeedDrain) response.emit('drain');
  }

  #hold(bytes: Buffer): void {
    this.#chunks.push(bytes);
    if (this.#share.take(bytes.length)) return;
    this.#mode = 'large';
    this.#share.free();
    for (const chunk of this.#chunks) this.#pass(chunk);
    this.#chunks = [];
  }

  /** Bytes of what is not looked into go on at once. */
  #pass(bytes: Buffer): void {
    this.#sendHead();
    this.#own.write(bytes);
    this.#options.telling.bytes(bytes);
  }

  #feed(bytes: Buffer): void {
    const { now } = this.#options;
    if (this.#decoder === null) this.#splitter.feed(bytes, now());
    else this.#decoder.feed(bytes, now());
  }

  #finishEvents(): void {
    this.#splitter.end();
    this.#passBefore();
    void this.#lane.finish().then(() => this.#endEvents());
  }

  #endEvents(): void {
    if (this.#isHeld || this.#mode !== 'events') return;
    this.#sendHead();
    this.#mode = 'over';
    this.#own.end();
  }

  #deliverBody(body: Buffer): void {
    const { exchange, faults, now, turns, telling } = this.#options;
    const json = decodeBody(body, this.#head?.coding ?? '', MOST_BODY_BYTES);
    const frame = json === null ? null : bodyFrame('response', json, exchange, now());
    const fault = frame === null ? null : faults.choose(frame);
    if (json === null || fault === null) {
      this.#sendHead();
      this.#own.end(body);
      telling.bytes(body);
      if (frame !== null) turns.passed();
      return;
    }
    const { effect } = fault;
    const send = () => this.#sendBody(fault, body, json);
    if (effect.http !== null) this.#answerStatus(fault, json, 'response');
    else if (effect.isHeld || effect.besides !== null) {
      telling.fault('response', NO_BYTES, markOf(fault.chosen, effect, json));
      if (effect.besides === null) this.stayOpen();
      else this.breakOff(effect.besides === 'reset');
    } else if (effect.behind > 0) this.#giveUp = turns.behind(effect.behind, send);
    else this.#timer = setTimeout(send, effect.waitMs);
  }

  /** `said`: as it came; `json`: without its coding. Where it has not changed, it goes on as it came. */
  #sendBody({ chosen, effect }: Fault, said: Buffer, json: Buffer): void {
    const { turns, telling } = this.#options;
    const changed = effect.copies === 2 ? twice(json) : effect.payload;
    const bytes = changed ?? said;
    if (changed !== null && this.#head !== null) this.#head = headFor(this.#head, changed.length);
    this.#sendHead();
    this.#sendPieces(effect.cut?.(bytes) ?? [{ bytes, afterMs: 0 }], () => {
      telling.fault('response', changed ?? json, markOf(chosen, effect, changed === null ? null : json));
      this.#own.end();
      turns.passed();
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
    // Of one that is too large, all has gone on.
    if (this.#mode !== 'events') return;
    if (block.truncated) {
      faults.letPass();
      return;
    }
    const fields = block.isComplete ? readSse(block.payload) : null;
    if (fields === null || fields.data === null || fields.data.length === 0 || !isMessageEvent(fields)) {
      if (this.#isHeadSent) this.#passBlock(block);
      else this.#before.push(block);
      return;
    }
    const refuses = (action: Action) => action.name === 'http' && this.#isHeadSent;
    const fault = faults.choose(eventFrame(block.payload, exchange, now()), refuses);
    if (fault !== null && fault.effect.http !== null) {
      this.#answerStatus(fault, block.payload, 'sse');
      return;
    }
    if (fault?.effect.isHeld && request.method === 'POST') {
      this.#isHeld = true;
      this.stayOpen();
    }
    this.#passBefore();
    this.#take(block, fields.data, fault);
  }

  #passBefore(): void {
    const before = this.#before;
    this.#before = [];
    for (const block of before) this.#passBlock(block);
  }

  #passBlock({ payload }: Pick<SseBlock, 'payload'>): void {
    const passed = () => this.#options.telling.bytes(payload);
    this.#lane.take({ json: payload, wire: (bytes) => bytes, passed }, null, null);
  }

  /** Of an event that is too large for a fault. */
  #takeLarge(bytes: Buffer): void {
    if (this.#mode !== 'events') return;
    this.#passBefore();
    this.#passBlock({ payload: Buffer.from(bytes) });
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

  /**
   * Nothing ever comes: a client that has closed its side of the connection waits for nothing more. Unasked, it would stay half
   * open, since a client may do so and still want its answer.
   */
  stayOpen(): void {
    const { request, response } = this.#options;
    const { socket } = request;
    const leave = () => socket.destroy();
    if (socket.readableEnded) leave();
    else socket.once('end', leave);
    response.once('close', () => socket.off('end', leave));
  }

  /** Breaks the client's connection. */
  breakOff(isReset: boolean): void {
    const { response, telling } = this.#options;
    this.#mode = 'over';
    telling.broken(isReset ? 'reset' : 'closed');
    const { socket } = response;
    if (isReset) socket?.resetAndDestroy();
    else socket?.destroySoon();
  }
}

const ROOM_CHECK_MS = 5;

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
