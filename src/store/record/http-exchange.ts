/**
 * One HTTP exchange while it is recorded: what is known of it, what has come of its bodies, and the frames that become of
 * them. A body becomes a frame when it is whole, an event of a stream as it comes. The exchange belongs to one session for
 * good; which one is decided when its request is whole, or when it has to be stored.
 */

import { isIdentity } from '../../protocol/http/codings.ts';
import {
  addEnd,
  addResponse,
  beginHttpExchange,
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
import type { HttpSessions } from '../../protocol/http/sessions.ts';
import type { FrameWithReading } from '../../protocol/message/conversation.ts';
import { type Message, parseMessages } from '../../protocol/message/message.ts';
import type { FramePart, HttpChannel, HttpMark } from '../../protocol/wire/frame.ts';
import type {
  HttpEndEvent,
  HttpEvent,
  HttpFaultEvent,
  HttpRequestEvent,
  HttpResponseEvent,
} from '../../protocol/wire/http-event.ts';
import { HTTP2_REQUEST } from '../../protocol/wire/http-event.ts';
import { isMessageEvent, readSse, type SseFields } from '../../protocol/wire/sse.ts';
import type { PendingSession } from '../write/pending.ts';
import {
  BodyCollector,
  type CollectedBody,
  createEventCollector,
  type EventCollector,
  type StreamBlock,
} from './http-bodies.ts';
import type { HttpLoss } from './http-items.ts';
import { type FirstSign, type PendingPiece, UnfinishedFrame } from './unfinished.ts';

/** What the exchanges of one proxy run share. */
export type HttpRun = {
  maxFrameBytes: number;
  /** Where what is not whole could give a secret away; null: it may all be stored. */
  firstSign: FirstSign | null;
  /** What nobody can look into is stored; else nothing of it is kept, and its bytes are counted. */
  keepsUndecoded: boolean;
  /** The path of the MCP server at the upstream. */
  mcpPath: string;
  sessions: HttpSessions;
  /** The session of this number. */
  sessionOf: (number: number) => PendingSession;
  /** An exchange of the session came from this address. */
  onConnection: (session: PendingSession, address: string) => void;
  /** Whether an event with this id and these data came before in the session; remembers it. */
  hasSeen: (session: PendingSession, eventId: string, data: Buffer) => boolean;
};

const HTTP_CHANNELS = ['request', 'response', 'sse'] as const satisfies readonly HttpChannel[];

const NOTHING: readonly Buffer[] = [];

/** A class, because there is one for every exchange, and closures cost more. */
export class OpenHttpExchange {
  /** Its number within the proxy run. */
  readonly id: number;
  readonly #run: HttpRun;
  readonly #row: HttpExchange;
  readonly #isMcp: boolean;
  #session: PendingSession | null = null;
  /** The messages of its request. */
  #requests: readonly Message[] = [];
  #request: BodyCollector | null = null;
  #response: BodyCollector | null = null;
  #events: EventCollector | null = null;
  /** The answer comes without its content coding. */
  #isDecoded = false;
  #unfinished: Partial<Record<HttpChannel, UnfinishedFrame>> = {};

  constructor(event: HttpRequestEvent, run: HttpRun) {
    this.id = event.exchange;
    this.#run = run;
    this.#row = beginHttpExchange(event);
    this.#isMcp = pathOf(event.path) === run.mcpPath;
  }

  /** Takes what passed next. */
  feed(event: Exclude<HttpEvent, HttpRequestEvent | HttpEndEvent>): void {
    switch (event.type) {
      case 'request-body':
        this.#countLost(this.#body('request').feed(event.bytes as Buffer));
        return;
      case 'request-end':
        this.#row.requestEndedAt = event.at;
        this.#row.requestTrailers = event.rawTrailers;
        this.#finishRequest(event.at, event.isComplete);
        return;
      case 'information':
        this.#row.informations.push({ at: event.at, status: event.status, headers: event.rawHeaders });
        this.#session?.touch(this.#row);
        return;
      case 'response':
        this.#beginResponse(event);
        return;
      case 'response-body':
        this.#row.responseBytes += event.bytes.length;
        this.#feedResponse(event.bytes as Buffer, event.at, event.original);
        return;
      case 'fault':
        this.#takeFault(event);
        return;
    }
  }

  /** Makes frames of what is left. It may return a promise, which settles when they are there. */
  end(event: HttpEndEvent): Promise<void> | undefined {
    const left = this.#events?.end();
    if (left !== undefined) return left.then(() => this.#finish(event));
    this.#finish(event);
    return undefined;
  }

  /** Says that the next bytes of one side were lost. */
  lose({ side, pieces, bytes }: HttpLoss): void {
    const session = this.assign(null);
    if (side === 'response') this.#row.responseBytes += bytes;
    if (side === 'response' && this.#events !== null) {
      session.lose(pieces, bytes);
      this.#events.lose();
      return;
    }
    // However many pieces of it are lost, a body is one frame.
    session.lose(this.#body(side === 'request' ? 'request' : 'response').lose(bytes) ? 1 : 0, bytes);
  }

  /** Whether more may come out of it without anything being fed: decoders take their time. */
  get isDecoding(): boolean {
    return this.#events !== null && !isIdentity(contentCodingOf(this.#row.responseHeaders));
  }

  /** Null until it was assigned to one. */
  get session(): PendingSession | null {
    return this.#session;
  }

  /** Gives it a session, where it has none. `messages` are those of its request; null: they are not known. */
  assign(messages: readonly Message[] | null): PendingSession {
    const { sessions, sessionOf } = this.#run;
    if (this.#session !== null) {
      if (messages !== null) sessions.read(this.id, messages);
      return this.#session;
    }
    const { at, client, method, path, requestHeaders: headers } = this.#row;
    const number = sessions.assign(
      {
        exchange: this.id,
        ...{ at, method },
        connection: client,
        target: path,
        sessionId: headerOf(headers, 'mcp-session-id') || null,
        credentials: headerOf(headers, 'authorization') || null,
        agent: headerOf(headers, 'user-agent') || null,
        protocolVersion: headerOf(headers, 'mcp-protocol-version') || null,
        acceptsEvents: headerOf(headers, 'accept').includes(EVENTS_TYPE),
      },
      messages,
    );
    this.#session = sessionOf(number);
    this.#session.begin(this.#row);
    this.#run.onConnection(this.#session, client);
    return this.#session;
  }

  /** The pieces of its bodies and events that are not whole yet and not stored; none before it has a session. */
  unfinished(): PendingPiece[] {
    const session = this.#session;
    if (session === null) return [];
    const { number: exchange, responseAt, at } = this.#row;
    return HTTP_CHANNELS.flatMap((channel) => {
      const fragments = this.#fragments(channel);
      if (fragments.length === 0) return [];
      this.#unfinished[channel] ??= new UnfinishedFrame(this.#run.firstSign, !this.#isMcp);
      return this.#unfinished[channel].pieces(fragments, {
        session,
        channel,
        exchange,
        at: responseAt ?? at,
      });
    });
  }

  /** What has come so far of what is not whole. Nothing can be searched for secrets while it is in a content coding. */
  #fragments(channel: HttpChannel): readonly Buffer[] {
    if (channel === 'sse') return this.#events?.held() ?? NOTHING;
    const [body, coding] =
      channel === 'request'
        ? [this.#request, this.#codingOf(this.#row.requestHeaders)]
        : [this.#response, this.#responseCoding()];
    if (body === null) return NOTHING;
    return this.#run.firstSign === null || isIdentity(coding) ? body.held : NOTHING;
  }

  #responseCoding(): string {
    return this.#isDecoded ? 'identity' : this.#codingOf(this.#row.responseHeaders);
  }

  /** What HTTP/2 makes of its messages is a coding that is not undone. */
  #codingOf(headers: readonly string[] | null): string {
    return this.#isHttp2 ? 'h2' : contentCodingOf(headers);
  }

  get #isHttp2(): boolean {
    return this.#row.method === HTTP2_REQUEST.method;
  }

  #finishRequest(at: number, isComplete: boolean): void {
    const row = this.#row;
    const request = this.#request;
    this.#request = null;
    if (request === null) {
      this.assign(null).touch(row);
      return;
    }
    row.requestBytes = request.size;
    const body = request.collect(this.#codingOf(row.requestHeaders));
    const messages = parseMessages(body.payload);
    const mediaType = mediaTypeOf(row.requestHeaders);
    const part = partOfRequest({ method: row.method, isMcpPath: this.#isMcp }, messages);
    if (part === 'body') this.#requests = messages;
    const session = this.assign(part === 'body' ? messages : null);
    if (row.requestBytes > 0)
      this.#add(session, bodyFrame('request', row, body, { part, messages, at, isComplete, mediaType }));
    session.touch(row);
  }

  #takeFault(event: HttpFaultEvent): void {
    const { channel, bytes, fault } = event;
    if (channel !== 'request') {
      this.#row.responseBytes += bytes.length;
      this.#add(this.assign(null), faultFrame(this.#row, event));
      return;
    }
    this.#row.requestBytes = bytes.length;
    // What its client had said says whose it is.
    this.#requests = parseMessages(Buffer.from(fault.original?.length ? fault.original : bytes));
    this.#add(this.assign(this.#requests), faultFrame(this.#row, event));
  }

  #beginResponse(event: HttpResponseEvent): void {
    const { maxFrameBytes, sessions } = this.#run;
    addResponse(this.#row, event);
    this.#isDecoded = event.isDecoded === true;
    this.assign(null).touch(this.#row);
    const sessionId = headerOf(event.rawHeaders, 'mcp-session-id') || null;
    sessions.responded(this.id, { at: event.at, status: event.status, sessionId });
    if (mediaTypeOf(event.rawHeaders) !== EVENTS_TYPE) return;
    this.#events = createEventCollector({
      coding: this.#responseCoding(),
      maxBytes: maxFrameBytes,
      onBlock: (block) => this.#addBlock(block),
      onSkip: (bytes) => this.#session?.lose(0, bytes),
    });
  }

  #feedResponse(bytes: Buffer, at: number, original?: Uint8Array): void {
    if (this.#events !== null) {
      this.#events.feed(bytes, at, original);
      return;
    }
    this.#countLost(this.#body('response').feed(bytes, original));
  }

  #body(side: 'request' | 'response'): BodyCollector {
    const { maxFrameBytes, keepsUndecoded } = this.#run;
    const max = this.#isHttp2 && !keepsUndecoded ? 0 : maxFrameBytes;
    if (side === 'request') {
      this.#request ??= new BodyCollector(max);
      return this.#request;
    }
    this.#response ??= new BodyCollector(max);
    return this.#response;
  }

  /** Further bytes of a body that is counted as lost already. It was given a session then. */
  #countLost(bytes: number): void {
    if (bytes > 0) this.#session?.lose(0, bytes);
  }

  #addBlock(block: StreamBlock): void {
    const { sessions, hasSeen } = this.#run;
    const row = this.#row;
    const session = this.#session;
    if (session === null) return;
    const fields = block.isDecoded && !block.truncated ? readSse(block.payload) : null;
    if (fields?.event === 'endpoint' && row.method === 'GET') {
      sessions.endpoint(this.id, (fields.data ?? '').toString());
    }
    let isReplayed = false;
    if (fields?.id != null && fields.data !== null && fields.data.length > 0) {
      const isResumed = headerOf(row.requestHeaders, 'last-event-id') !== '';
      isReplayed = hasSeen(session, fields.id, fields.data) && isResumed;
    }
    this.#add(session, eventFrame(row.number, block, fields, isReplayed));
  }

  #add(session: PendingSession, frame: FrameWithReading): void {
    session.add(frame, this.#unfinished[frame.channel as HttpChannel]?.finish() ?? false);
  }

  #finish(event: HttpEndEvent): void {
    const row = this.#row;
    const response = this.#response;
    const session = this.assign(null);
    if (response !== null && response.size > 0) {
      const body = response.collect(this.#responseCoding());
      let messages: readonly Message[] | undefined;
      const part = partOfResponse(row.status ?? 0, this.#requests, () => {
        messages = parseMessages(body.payload);
        return messages;
      });
      const { isComplete, at } = event;
      const mediaType = mediaTypeOf(row.responseHeaders);
      this.#add(session, bodyFrame('response', row, body, { part, messages, at, isComplete, mediaType }));
    }
    addEnd(row, event, session.lastSeq());
    session.touch(row);
  }
}

function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query < 0 ? target : target.slice(0, query);
}

type BodyFacts = {
  part: FramePart;
  /** Where they were read already. */
  messages: readonly Message[] | undefined;
  at: number;
  isComplete: boolean;
  mediaType: string;
};

function bodyFrame(
  channel: 'request' | 'response',
  row: HttpExchange,
  { payload, size, truncated, sha256, isDecoded, original }: CollectedBody,
  { part, messages, at, isComplete, mediaType }: BodyFacts,
): FrameWithReading {
  const marks: HttpMark[] = [];
  if (!isDecoded) marks.push('undecoded');
  if (part === 'body' && mediaType !== JSON_TYPE) marks.push('wrong-type');
  if (!isComplete) marks.push('incomplete');
  const http = { exchange: row.number, marks, original, sha256 };
  const reading = messages && { payload, messages };
  return { channel, at, payload, lineEnd: '', size, truncated, part, http, reading };
}

/** The bytes are copied: those of the event go with their batch. */
function faultFrame(
  { number }: HttpExchange,
  { channel, at, bytes, fault }: HttpFaultEvent,
): FrameWithReading {
  const payload = Buffer.from(bytes);
  const original = fault.original && Buffer.from(fault.original);
  const part = channel === 'sse' ? 'event' : 'body';
  const http = { exchange: number, marks: [], original: null, sha256: null };
  const size = payload.length;
  return {
    channel,
    at,
    payload,
    lineEnd: '',
    size,
    truncated: false,
    part,
    http,
    fault: { ...fault, original },
  };
}

/** `fields` null: the block could not be read. */
function eventFrame(
  exchange: number,
  { at, payload, size, truncated, isComplete, isDecoded, original, sha256 }: StreamBlock,
  fields: SseFields | null,
  isReplayed: boolean,
): FrameWithReading {
  const marks: HttpMark[] = [];
  if (!isDecoded) marks.push('undecoded');
  if (!isComplete) marks.push('incomplete');
  if (isReplayed) marks.push('replayed');
  const part = fields === null || isMessageEvent(fields) ? 'event' : 'block';
  const http = { exchange, marks, original, sha256 };
  const reading = fields === null ? undefined : { payload, sse: fields };
  return { channel: 'sse', at, payload, lineEnd: '', size, truncated, part, http, reading };
}
