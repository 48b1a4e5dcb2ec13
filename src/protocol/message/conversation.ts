/**
 * Follows a session: takes its frames in order, returns the index rows of the messages in each, and keeps what the session says
 * about itself. The index is derived from frames alone, so feeding the stored frames again rebuilds it.
 */

import { META_RULE } from '../redact/redactor.ts';
import { directionOf, type Frame, type FramePart, sentBytes } from '../wire/frame.ts';
import { readSse, type SseFields } from '../wire/sse.ts';
import {
  type ClosedRequest,
  type Correlation,
  createCorrelator,
  type HttpClosing,
  NOTHING,
} from './correlate.ts';
import type { Peer } from './details.ts';
import { invalid, type Message, parseMessages, type Remark } from './message.ts';

/** One message and what the session says about it. `seq` is its frame's number, `n` its own number inside the frame. */
export type IndexedMessage = { seq: number; n: number; message: Message; correlation: Correlation };

/**
 * `legacy`: a session that begins with `initialize` (revisions up to 2025-11-25). `modern`: every request says its
 * version itself (2026-07-28 and later). `dual`: both were seen. Null: neither was seen yet.
 */
export type Era = 'legacy' | 'modern' | 'dual';

export type ConversationFacts = {
  era: Era | null;
  protocolVersion: string | null;
  client: Peer | null;
  server: Peer | null;
  exchanges: number;
  /** Exchanges that ended in an error or a tool's own failure. */
  errors: number;
  unanswered: number;
};

export type Conversation = {
  add(frame: FrameWithReading, seq: number): IndexedMessage[];
  /** What a frame without payload says of requests that it answers (envelope.ts). It has no messages. */
  settle(frame: FrameWithReading, seq: number): ClosedRequest[];
  /** Says how an HTTP exchange ended; call it after its frames. Returns the requests that this is the outcome of. */
  close(exchange: number, how: HttpClosing): ClosedRequest[];
  facts(): ConversationFacts;
};

export function createConversation(): Conversation {
  const correlator = createCorrelator();
  const facts: ConversationFacts = {
    era: null,
    protocolVersion: null,
    client: null,
    server: null,
    exchanges: 0,
    errors: 0,
    unanswered: 0,
  };

  function add(frame: FrameWithReading, seq: number): IndexedMessage[] {
    const { at, http } = frame;
    const exchange = http?.exchange ?? null;
    return messagesOf(frame).map((message, n) => {
      // It was counted when it came first.
      if (http?.marks.includes('replayed')) return { seq, n, message, correlation: NOTHING };
      const place = { seq, n };
      if (isKeptBack(frame) && message.kind === 'request')
        return { seq, n, message, correlation: { ...NOTHING, outcome: 'fault' } };
      const sent = correlator.add(message, directionOf(frame.channel), place, at, exchange);
      const correlation = frame.fault === undefined ? sent : withFault(message, sent);
      learn(facts, message, correlation);
      return { seq, n, message, correlation };
    });
  }

  function settle(frame: FrameWithReading, seq: number): ClosedRequest[] {
    if (!isWithoutPayload(frame) || !holdsMessages(frame) || !MAY_BE_ANSWERS.has(frame.payload[0] ?? 0))
      return [];
    return parseMessages(frame.payload).flatMap((message, n) => {
      if (message.kind !== 'result' && message.kind !== 'error') return [];
      const exchange = frame.http?.exchange ?? null;
      const place = { seq, n };
      const correlation = correlator.add(message, directionOf(frame.channel), place, frame.at, exchange);
      const { to, outcome } = correlation;
      learn(facts, message, correlation);
      return to === null || outcome === null ? [] : [{ place: to, outcome }];
    });
  }

  function close(exchange: number, how: HttpClosing): ClosedRequest[] {
    const closed = correlator.close(exchange, how);
    for (const { outcome } of closed) if (outcome === 'error') facts.errors += 1;
    return closed;
  }

  return { add, settle, close, facts: () => ({ ...facts, unanswered: correlator.unanswered() }) };
}

const MAY_BE_ANSWERS: ReadonlySet<number> = new Set([0x7b, 0x5b]);

function isWithoutPayload({ redacted }: Frame): boolean {
  return redacted?.includes(META_RULE) === true;
}

/** A fault kept it from arriving as it was sent, so that nobody owes an answer. */
function isKeptBack({ fault }: FrameWithReading): boolean {
  return fault !== undefined && fault.original !== null;
}

/** How a call ended that a fault was put into says nothing of its server. */
function withFault({ kind }: Message, sent: Correlation): Correlation {
  const isOfCall = sent.relation === 'reply' || kind === 'request';
  return isOfCall ? { ...sent, outcome: 'fault' } : sent;
}

/**
 * What was read of a payload when it came in, so that nobody reads it again. It is true of these very bytes alone: where
 * redaction has put others in their place, positions and texts have changed, and they are read anew.
 */
type Reading = { payload: Buffer; messages?: readonly Message[]; sse?: SseFields };

export type FrameWithReading = Frame & { reading?: Reading | undefined };

/**
 * The messages of one frame: where a fault was put into it, those that its sender had sent. stderr is free text, and framing and
 * foreign bodies hold none.
 */
export function messagesOf(frame: FrameWithReading): readonly Message[] {
  const { payload, part, truncated, http, reading, fault } = frame;
  if (!holdsMessages(frame) || isWithoutPayload(frame)) return [];
  if (truncated) return [invalid('truncated')];
  const isKnown = reading !== undefined && reading.payload === payload && fault === undefined;
  const known = isKnown ? reading.messages : undefined;
  const messages = known ?? parseMessages(jsonOf(frame));
  if (part === 'lsp-body') return messages.map((message) => withRemarks(message, ['lsp-framing']));
  return http === null || http.marks.length === 0
    ? messages
    : messages.map((message) => withRemarks(message, http.marks));
}

const HOLDS_MESSAGES: ReadonlySet<FramePart> = new Set<FramePart>([
  'line',
  'lsp-body',
  'reserialised',
  'body',
  'event',
]);

/** Whether a frame is one that messages come in: no free text, framing or foreign body. */
export function holdsMessages({ channel, part }: Pick<Frame, 'channel' | 'part'>): boolean {
  return channel !== 'stderr' && HOLDS_MESSAGES.has(part);
}

/** The bytes of a frame that its messages are read from: of an event its data, else all of it. */
export function jsonOf(frame: Pick<FrameWithReading, 'channel' | 'payload' | 'reading' | 'fault'>): Buffer {
  if (frame.channel !== 'sse') return sentBytes(frame);
  const fields = frame.fault === undefined ? sseFieldsOf(frame) : readSse(sentBytes(frame));
  return fields.data ?? NO_BYTES;
}

/** The fields of a frame that is an event of a stream. */
export function sseFieldsOf({ payload, reading }: Pick<FrameWithReading, 'payload' | 'reading'>): SseFields {
  return (reading?.payload === payload ? reading.sse : undefined) ?? readSse(payload);
}

const NO_BYTES = Buffer.alloc(0);

function withRemarks(message: Message, more: readonly Remark[]): Message {
  return { ...message, remarks: [...message.remarks, ...more] };
}

function learn(facts: ConversationFacts, message: Message, { relation, outcome }: Correlation): void {
  if (message.kind === 'request') {
    facts.exchanges += 1;
    learnFromRequest(facts, message.canonical, message.details);
  }
  if (relation === 'reply' && (outcome === 'error' || outcome === 'tool-error')) facts.errors += 1;
  if (message.kind === 'result' && message.details.peer !== null) {
    facts.server = message.details.peer;
    // The answer to initialize has the last word: a server may counter-offer another revision.
    facts.protocolVersion = message.details.protocolVersion ?? facts.protocolVersion;
  }
}

function learnFromRequest(facts: ConversationFacts, canonical: string, details: Message['details']): void {
  const era = details.isModern ? 'modern' : canonical === 'initialize' ? 'legacy' : null;
  if (era === null) return;
  facts.era = facts.era === null || facts.era === era ? era : 'dual';
  facts.client = details.peer ?? facts.client;
  facts.protocolVersion ??= details.protocolVersion;
}
