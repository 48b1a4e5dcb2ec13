/** One request and its answer as a span of who asked: a sibling of the spans that client and server may have sent themselves. */
import { createHash } from 'node:crypto';
import { jsonOf, messagesOf } from '../protocol/conversation.ts';
import { sourceText, stringText } from '../protocol/json.ts';
import { findMember } from '../protocol/json-member.ts';
import { bodyText } from '../protocol/label.ts';
import type { Message } from '../protocol/message.ts';
import type { ExchangeRow } from '../store/exchange-reader.ts';
import { prepareHttpExchange } from '../store/http-reader.ts';
import type { Store } from '../store/open.ts';
import { prepareFramesAfter, type SessionRow } from '../store/reader.ts';
import { headerOf } from './http-text.ts';
import { networkFacts, operationFacts, resourceUri, serverFacts, spanName } from './otlp-facts.ts';
import { readTraceparent } from './otlp-trace-context.ts';
import { type Attribute, attributesOf, type Facts, nanoseconds } from './otlp-values.ts';

const CLIENT = 3;
const ERROR = 2;

export type Span = {
  traceId: string;
  spanId: string;
  traceState?: string;
  parentSpanId?: string;
  name: string;
  kind: typeof CLIENT;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
  links?: { traceId: string; spanId: string }[];
  status: { code?: typeof ERROR; message?: string };
};

/** What a span needs of a request beside its row. */
export type Called = { httpVersion: string | null; span: Span };

/** `withArguments`: with what tools were called with and gave back, which may be personal. */
export function prepareSpan(
  store: Store,
  session: SessionRow,
  withArguments: boolean,
): (row: ExchangeRow) => Called {
  const bodyOf = prepareBody(store, session.number);
  const httpOf = prepareHttpExchange(store, session.number);
  return (row) => {
    const asked = bodyOf(row.requestSeq, row.id, 'request');
    const http = row.http === null ? undefined : httpOf(row.http);
    const httpVersion = http?.version ?? null;
    const parent = readTraceparent(text(asked, '_meta', 'traceparent'));
    const link = readTraceparent(headerOf(http?.requestHeaders ?? [], 'traceparent'));
    const state = text(asked, '_meta', 'tracestate');
    const span: Span = {
      traceId: parent?.traceId ?? ownId(session, row, 'trace').slice(0, 32),
      spanId: ownId(session, row, 'span').slice(0, 16),
      ...(parent === null ? {} : { parentSpanId: parent.spanId }),
      ...(parent === null || state === null ? {} : { traceState: state }),
      name: spanName(row),
      kind: CLIENT,
      startTimeUnixNano: nanoseconds(row.at),
      endTimeUnixNano: nanoseconds(endOf(session, row)),
      attributes: attributesOf({
        ...operationFacts(row),
        ...networkFacts(session, httpVersion),
        ...(row.askedBy === 'client' ? serverFacts(session) : {}),
        'mcp.resource.uri': resourceUri(row),
        'mcp.session.id': headerOf(http?.requestHeaders ?? [], 'mcp-session-id'),
        'jsonrpc.request.id': row.id,
        'tapedeck.outcome': row.outcome,
        ...(withArguments ? argumentFacts(row, asked, bodyOf) : {}),
      }),
      ...(link === null ? {} : { links: [link] }),
      status: statusOf(row, bodyOf),
    };
    return { span, httpVersion };
  };
}

type BodyOf = (seq: number, id: string, kind: Message['kind']) => Buffer | null;

/** The params, result or error of the message with that id, as it was written. */
function prepareBody(store: Store, session: number): BodyOf {
  const frameAfter = prepareFramesAfter(store, session, 1);
  return (seq, id, kind) => {
    const [frame] = frameAfter(seq - 1);
    if (frame === undefined || frame.seq !== seq) return null;
    const messages = messagesOf(frame);
    const n = messages.findIndex(
      (message) => message.kind === kind && 'id' in message && message.id?.text === id,
    );
    const message = messages[n];
    return message === undefined ? null : Buffer.from(bodyText(message, jsonOf(frame), n));
  };
}

function text(body: Buffer | null, ...names: string[]): string | null {
  const source = member(body, ...names);
  return source === null || source[0] !== 0x22
    ? null
    : stringText(source, { start: 0, end: source.length, type: 'string' });
}

function member(body: Buffer | null, ...names: string[]): Buffer | null {
  let found = body;
  for (const name of names) {
    if (found === null || found[0] !== 0x7b) return null;
    const span = findMember(found, 0, name);
    found = span === undefined ? null : Buffer.from(sourceText(found, span));
  }
  return found;
}

/** The same of every export: who sends a session twice overwrites, and does not double. */
function ownId(session: SessionRow, row: ExchangeRow, what: string): string {
  const key = `${what} ${session.id} ${row.requestSeq} ${row.askedBy} ${row.idType} ${row.id}`;
  return createHash('sha256').update(key).digest('hex');
}

/** A request without an answer was open to the end of its session, or as long as that has been recorded. */
function endOf(session: SessionRow, { at, latency }: ExchangeRow): number {
  return latency === null ? Math.max(at, session.endedAt ?? at) : at + latency;
}

function argumentFacts(row: ExchangeRow, asked: Buffer | null, bodyOf: BodyOf): Facts {
  if (row.method !== 'tools/call') return {};
  const result = row.answerSeq === null ? null : bodyOf(row.answerSeq, row.id, 'result');
  return {
    'gen_ai.tool.call.arguments': member(asked, 'arguments')?.toString('utf8'),
    'gen_ai.tool.call.result': result?.toString('utf8'),
  };
}

function statusOf(row: ExchangeRow, bodyOf: BodyOf): Span['status'] {
  if (operationFacts(row)['error.type'] === null) return {};
  const error = row.answerSeq === null ? null : bodyOf(row.answerSeq, row.id, 'error');
  const message = text(error, 'message');
  return { code: ERROR, ...(message === null ? {} : { message }) };
}
