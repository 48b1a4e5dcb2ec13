/**
 * A session as it unfolds: takes its frames in order and gives for each the index rows of its messages, while it
 * keeps what the whole session tells about itself. The index is derived from frames alone, so feeding the stored
 * frames again rebuilds it.
 */
import { type Correlation, createCorrelator } from './correlate.ts';
import type { Peer } from './details.ts';
import { directionOf, type Frame } from './frame.ts';
import { invalid, type Message, parseMessages } from './message.ts';
import type { Remark } from './problems.ts';

/** One message with all that is known of it; `seq` is its frame's number, `n` its own number inside the frame. */
export type IndexedMessage = { seq: number; n: number; message: Message; correlation: Correlation };

/**
 * `legacy`: a session that begins with `initialize` (revisions up to 2025-11-25). `modern`: every request says its
 * version itself (2026-07-28 and later). `dual`: both were seen. Null: neither was seen yet.
 */
export type Era = 'legacy' | 'modern' | 'dual';

export type Facts = {
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
  add(frame: Frame, seq: number): IndexedMessage[];
  facts(): Facts;
};

export function createConversation(): Conversation {
  const correlator = createCorrelator();
  const facts: Facts = {
    era: null,
    protocolVersion: null,
    client: null,
    server: null,
    exchanges: 0,
    errors: 0,
    unanswered: 0,
  };

  function add(frame: Frame, seq: number): IndexedMessage[] {
    return messagesOf(frame).map((message, n) => {
      const correlation = correlator.add(message, directionOf(frame.channel), { seq, n }, frame.at);
      learn(facts, message, correlation);
      return { seq, n, message, correlation };
    });
  }

  return { add, facts: () => ({ ...facts, unanswered: correlator.unanswered() }) };
}

/** The messages of one frame. stderr is free text and LSP headers are framing: neither holds any. */
export function messagesOf(frame: Frame): Message[] {
  if (frame.channel === 'stderr' || frame.part === 'lsp-header') return [];
  if (frame.truncated) return [invalid('truncated')];
  const messages = parseMessages(frame.payload);
  return frame.part === 'lsp-body' ? messages.map(withLspRemark) : messages;
}

function withLspRemark(message: Message): Message {
  const remarks: readonly Remark[] = [...message.remarks, 'lsp-framing'];
  return { ...message, remarks };
}

function learn(facts: Facts, message: Message, { relation, outcome }: Correlation): void {
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

function learnFromRequest(facts: Facts, canonical: string, details: Message['details']): void {
  const era = details.isModern ? 'modern' : canonical === 'initialize' ? 'legacy' : null;
  if (era === null) return;
  facts.era = facts.era === null || facts.era === era ? era : 'dual';
  facts.client = details.peer ?? facts.client;
  facts.protocolVersion ??= details.protocolVersion;
}
