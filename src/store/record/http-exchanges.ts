/**
 * From what the HTTP proxy shows to frames and HTTP exchanges of sessions. Bodies become frames when they are whole,
 * events of a stream as they come. Each exchange belongs to one session for good; which one is decided when its request
 * is whole, or when it has to be stored.
 */

import {
  addEnd,
  addResponse,
  beginExchange,
  type HttpExchange,
  partOfRequest,
  partOfResponse,
} from '../../protocol/http/exchange.ts';
import {
  contentCodingOf,
  EVENTS_TYPE,
  headerOf,
  JSON_TYPE,
  mediaTypeOf,
} from '../../protocol/http/headers.ts';
import { createHttpSessions, type SessionChange } from '../../protocol/http/sessions.ts';
import { type Message, parseMessages } from '../../protocol/message/message.ts';
import type { Frame, FramePart, HttpChannel, HttpMark } from '../../protocol/wire/frame.ts';
import type {
  HttpEndEvent,
  HttpEvent,
  HttpRequestEvent,
  HttpResponseEvent,
} from '../../protocol/wire/http-event.ts';
import { isMessageEvent, readSse, type SseFields } from '../../protocol/wire/sse.ts';
import type { HttpHeld, LiveSession } from '../write/pending.ts';
import { type FirstSign, HeldBack } from './held-back.ts';
import {
  BodyCollector,
  type CollectedBody,
  createEventStream,
  type EventStream,
  isIdentity,
  type StreamBlock,
} from './http-bodies.ts';
import type { HttpLoss, HttpNews } from './http-items.ts';

type HttpIngest = {
  feed(news: HttpNews): void;
  /** Something of this exchange could not be taken in. */
  abandon(exchange: number, bytes: number, at: number): void;
  /** Gives every open exchange a session, so that it can be stored as far as it has come. */
  settle(): void;
  /** Whether `settle` and `held` have something to give. */
  hasHeld(): boolean;
  /** Bytes of bodies and events that are not whole, and were not confirmed yet. */
  held(): HttpHeld[];
  confirmHeld(): void;
  tick(at: number): void;
  /** Settles when no frame is under way any more. */
  finish(): Promise<void>;
};

type HttpIngestOptions = {
  maxFrameBytes: number;
  /** Where what is not whole could give a secret away; null: it may all be stored. */
  firstSign: FirstSign | null;
  /** The path of the MCP server at the upstream. */
  mcpPath: string;
  /** The session of this number; opened where it is new. */
  sessionOf: (number: number) => LiveSession;
  onChange: (change: SessionChange) => void;
};

export function createHttpIngest(options: HttpIngestOptions): HttpIngest {
  const { maxFrameBytes, firstSign, mcpPath, sessionOf, onChange } = options;
  const sessions = createHttpSessions({ onChange });
  const open = new Map<number, OpenExchange>();
  const ending = new Set<Promise<void>>();

  function feed(news: HttpNews): void {
    const exchange = open.get(news.exchange);
    if (news.type === 'request') begin(news);
    else if (news.type === 'lost') lose(news, exchange);
    else if (exchange !== undefined) goOn(exchange, news);
  }

  function goOn(exchange: OpenExchange, news: Exclude<HttpEvent, HttpRequestEvent>): void {
    const { row } = exchange;
    switch (news.type) {
      case 'request-body':
        exchange.request ??= new BodyCollector(maxFrameBytes);
        countLost(exchange, exchange.request.feed(news.bytes as Buffer));
        break;
      case 'request-end':
        row.requestEndedAt = news.at;
        row.requestTrailers = news.rawTrailers;
        finishRequest(exchange, news.at, news.isComplete);
        break;
      case 'information':
        row.informations.push({ at: news.at, status: news.status, headers: news.rawHeaders });
        exchange.session?.touch(row);
        break;
      case 'response':
        beginResponse(exchange, news);
        break;
      case 'response-body':
        row.responseBytes += news.bytes.length;
        feedResponse(exchange, news.bytes as Buffer, news.at, news.original);
        break;
      case 'end':
        end(exchange, news);
        break;
    }
  }

  function begin(event: HttpRequestEvent): void {
    const row = beginExchange(event);
    const heldBack = createHeldBack(firstSign, !isMcpPath(row.path));
    open.set(event.exchange, {
      id: event.exchange,
      row,
      session: null,
      asked: [],
      request: null,
      response: null,
      stream: null,
      saved: { request: 0, response: 0, sse: 0 },
      heldBack,
    });
  }

  function assign(exchange: OpenExchange, messages: readonly Message[] | null): LiveSession {
    if (exchange.session !== null) {
      if (messages !== null) sessions.read(exchange.id, messages);
      return exchange.session;
    }
    const { row } = exchange;
    const headers = row.requestHeaders;
    const number = sessions.assign(
      {
        exchange: exchange.id,
        at: row.at,
        connection: row.client,
        method: row.method,
        target: row.path,
        sessionId: headerOf(headers, 'mcp-session-id') || null,
        credentials: headerOf(headers, 'authorization') || null,
        protocolVersion: headerOf(headers, 'mcp-protocol-version') || null,
        acceptsEvents: headerOf(headers, 'accept').includes(EVENTS_TYPE),
      },
      messages,
    );
    exchange.session = sessionOf(number);
    exchange.session.begin(row);
    return exchange.session;
  }

  function finishRequest(exchange: OpenExchange, at: number, isComplete: boolean): void {
    const { row, request } = exchange;
    exchange.request = null;
    if (request === null) {
      assign(exchange, null).touch(row);
      return;
    }
    row.requestBytes = request.size;
    const body = request.collect(contentCodingOf(row.requestHeaders));
    const messages = parseMessages(body.payload);
    const mediaType = mediaTypeOf(row.requestHeaders);
    const part = partOfRequest({ method: row.method, isMcpPath: isMcpPath(row.path) }, messages);
    if (part === 'body') exchange.asked = messages;
    const session = assign(exchange, part === 'body' ? messages : null);
    if (row.requestBytes > 0)
      add(exchange, session, bodyFrame('request', row, body, part, { at, isComplete, mediaType }));
    session.touch(row);
  }

  function isMcpPath(target: string): boolean {
    const query = target.indexOf('?');
    return (query < 0 ? target : target.slice(0, query)) === mcpPath;
  }

  function beginResponse(exchange: OpenExchange, event: HttpResponseEvent): void {
    const { row } = exchange;
    addResponse(exchange.row, event);
    assign(exchange, null).touch(row);
    const sessionId = headerOf(event.rawHeaders, 'mcp-session-id') || null;
    sessions.responded(exchange.id, { at: event.at, status: event.status, sessionId });
    if (mediaTypeOf(event.rawHeaders) !== EVENTS_TYPE) return;
    exchange.stream = createEventStream({
      coding: contentCodingOf(event.rawHeaders),
      maxBytes: maxFrameBytes,
      onBlock: (block) => addBlock(exchange, block),
      onSkip: (bytes) => exchange.session?.lose(0, bytes),
    });
  }

  function feedResponse(exchange: OpenExchange, bytes: Buffer, at: number, original?: Uint8Array): void {
    if (exchange.stream !== null) {
      exchange.stream.feed(bytes, at, original);
      return;
    }
    exchange.response ??= new BodyCollector(maxFrameBytes);
    countLost(exchange, exchange.response.feed(bytes, original));
  }

  /** Further bytes of a body that is counted as lost already. It was given a session then. */
  function countLost({ session }: OpenExchange, bytes: number): void {
    if (bytes > 0) session?.lose(0, bytes);
  }

  function addBlock(exchange: OpenExchange, block: StreamBlock): void {
    const { row, session } = exchange;
    if (session === null) return;
    const fields = block.isDecoded && !block.truncated ? readSse(block.payload) : null;
    if (fields?.event === 'endpoint' && row.method === 'GET') {
      sessions.endpoint(exchange.id, (fields.data ?? '').toString());
    }
    add(exchange, session, eventFrame(row, session, block, fields));
  }

  function add({ saved, heldBack }: OpenExchange, session: LiveSession, frame: Frame): void {
    const channel = frame.channel as HttpChannel;
    session.add(frame, saved[channel] > 0);
    saved[channel] = 0;
    heldBack.forget(channel);
  }

  function end(exchange: OpenExchange, event: HttpEndEvent): void {
    const left = exchange.stream?.end();
    if (left === undefined) {
      finishEnd(exchange, event);
      return;
    }
    const ended = left.then(() => finishEnd(exchange, event)).finally(() => ending.delete(ended));
    ending.add(ended);
  }

  function finishEnd(exchange: OpenExchange, event: HttpEndEvent): void {
    const { row, response, asked } = exchange;
    const session = assign(exchange, null);
    if (response !== null && response.size > 0) {
      const body = response.collect(contentCodingOf(row.responseHeaders));
      const part = partOfResponse(row.status ?? 0, asked, () => parseMessages(body.payload));
      const { isComplete, at } = event;
      const mediaType = mediaTypeOf(row.responseHeaders);
      add(exchange, session, bodyFrame('response', row, body, part, { at, isComplete, mediaType }));
    }
    addEnd(row, event, session.lastSeq());
    session.touch(row);
    open.delete(exchange.id);
    sessions.ended(exchange.id, event.at, event.closedBy);
  }

  function lose(loss: HttpLoss, exchange: OpenExchange | undefined): void {
    const { side, pieces, bytes } = loss;
    if (exchange === undefined) {
      loseWhole(loss);
      return;
    }
    const session = assign(exchange, null);
    if (side === 'response') exchange.row.responseBytes += bytes;
    if (side === 'response' && exchange.stream !== null) {
      session.lose(pieces, bytes);
      exchange.stream.lose();
      return;
    }
    exchange[side === 'request' ? 'request' : 'response'] ??= new BodyCollector(maxFrameBytes);
    const isFirst = exchange[side === 'request' ? 'request' : 'response']?.lose(bytes);
    // However many pieces of it are lost, a body is one frame.
    session.lose(isFirst ? 1 : 0, bytes);
  }

  /** Of exchanges that were lost from their beginning on, nothing tells the session. */
  function loseWhole({ exchange, at, pieces, bytes }: HttpLoss): void {
    const nothing = {
      method: '',
      target: '',
      connection: '',
      sessionId: null,
      credentials: null,
      protocolVersion: null,
      acceptsEvents: false,
    };
    sessionOf(sessions.assign({ exchange, at, ...nothing }, null)).lose(pieces, bytes);
    sessions.ended(exchange, at, 'proxy');
  }

  /** Forgets an exchange that it cannot go on with, and counts what was lost of it. */
  function abandon(id: number, bytes: number, at: number): void {
    const exchange = open.get(id);
    open.delete(id);
    if (exchange?.session) exchange.session.lose(1, bytes);
    else loseWhole({ type: 'lost', exchange: id, at, side: 'exchange', pieces: 1, bytes });
    sessions.ended(id, at, 'proxy');
  }

  return {
    feed,
    abandon,
    settle() {
      for (const exchange of open.values()) assign(exchange, null);
    },
    hasHeld: () => [...open.values()].some((one) => one.session === null || heldOf(one).length > 0),
    held: () => [...open.values()].flatMap(heldOf),
    confirmHeld() {
      for (const exchange of open.values()) confirmHeld(exchange);
    },
    tick: sessions.tick,
    async finish() {
      while (ending.size > 0) await Promise.all(ending);
    },
  };
}

/** HTTP exchanges that have not ended, and what of them is not whole yet: it is stored as far as it has come. */

const HTTP_CHANNELS = ['request', 'response', 'sse'] as const satisfies readonly HttpChannel[];

/** An exchange that has not ended. */
type OpenExchange = {
  id: number;
  row: HttpExchange;
  session: LiveSession | null;
  asked: readonly Message[];
  request: BodyCollector | null;
  response: BodyCollector | null;
  stream: EventStream | null;
  /** How many pieces of what is not whole are stored. */
  saved: Record<HttpChannel, number>;
  heldBack: ChannelsHeldBack;
};

/** What of the pieces may be stored before they are whole. */
type ChannelsHeldBack = {
  released(channel: HttpChannel, pieces: readonly Buffer[], coding: string): readonly Buffer[];
  /** What the channel goes on with is something else. */
  forget(channel: HttpChannel): void;
};

function createHeldBack(firstSign: FirstSign | null, isForeign: boolean): ChannelsHeldBack {
  const channels = new Map<HttpChannel, HeldBack>();
  return {
    released(channel, pieces, coding) {
      if (firstSign === null) return pieces;
      if (!isIdentity(coding)) return [];
      const known = channels.get(channel) ?? new HeldBack(firstSign, isForeign);
      channels.set(channel, known);
      return known.released(pieces);
    },
    forget: (channel) => void channels.delete(channel),
  };
}

/** Pieces that are not stored yet. */
function heldOf(exchange: OpenExchange): HttpHeld[] {
  const { session, row, saved } = exchange;
  if (session === null) return [];
  return HTTP_CHANNELS.flatMap((channel) => {
    const fresh = releasedOf(exchange, channel).slice(saved[channel]);
    const at = row.responseAt ?? row.at;
    return fresh.map((bytes, i) => ({
      session,
      exchange: row.number,
      channel,
      part: saved[channel] + i,
      at,
      bytes,
    }));
  });
}

/** Says that all pieces so far are stored. */
function confirmHeld(exchange: OpenExchange): void {
  for (const channel of HTTP_CHANNELS) exchange.saved[channel] = releasedOf(exchange, channel).length;
}

const NOTHING: readonly Buffer[] = [];

/** The pieces so far that may be stored. */
function releasedOf({ row, request, response, stream, heldBack }: OpenExchange, channel: HttpChannel) {
  switch (channel) {
    case 'request':
      if (request === null) return NOTHING;
      return heldBack.released(channel, request.held, contentCodingOf(row.requestHeaders));
    case 'response':
      if (response === null) return NOTHING;
      return heldBack.released(channel, response.held, contentCodingOf(row.responseHeaders));
    default:
      return stream === null ? NOTHING : heldBack.released(channel, stream.held(), '');
  }
}

/** Frames from HTTP bodies and events, with what is odd about them. */

type BodyFacts = { at: number; isComplete: boolean; mediaType: string };

function bodyFrame(
  channel: 'request' | 'response',
  row: HttpExchange,
  { payload, size, truncated, sha256, isDecoded, original }: CollectedBody,
  part: FramePart,
  { at, isComplete, mediaType }: BodyFacts,
): Frame {
  const marks: HttpMark[] = [];
  if (!isDecoded) marks.push('undecoded');
  if (part === 'body' && mediaType !== JSON_TYPE) marks.push('wrong-type');
  if (!isComplete) marks.push('incomplete');
  const http = { exchange: row.number, marks, original, sha256 };
  return { channel, at, payload, lineEnd: '', size, truncated, part, http };
}

function eventFrame(
  row: HttpExchange,
  session: LiveSession,
  { at, payload, size, truncated, isComplete, isDecoded, original, sha256 }: StreamBlock,
  fields: SseFields | null,
): Frame {
  const marks: HttpMark[] = [];
  if (!isDecoded) marks.push('undecoded');
  if (!isComplete) marks.push('incomplete');
  if (fields?.id != null && fields.data !== null && fields.data.length > 0) {
    const isResumed = headerOf(row.requestHeaders, 'last-event-id') !== '';
    if (session.hasSeen(fields.id, fields.data) && isResumed) marks.push('replayed');
  }
  const part = fields === null || isMessageEvent(fields) ? 'event' : 'block';
  const http = { exchange: row.number, marks, original, sha256 };
  return { channel: 'sse', at, payload, lineEnd: '', size, truncated, part, http };
}
