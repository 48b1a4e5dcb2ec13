/**
 * Requests and notifications as spans of who sent them: siblings of the spans that client and server may have sent
 * themselves. A request's span ends with its answer, a notification's with the status that accepts it over HTTP; over a
 * stream nothing does, and it takes no time.
 */

import { createHash } from 'node:crypto';
import { fieldOf } from '../../protocol/http/headers.ts';
import { readTraceparent, type TraceContext } from '../../protocol/message/trace.ts';
import type { Store } from '../../store/file/open.ts';
import type { ExchangeRow, NotificationRow } from '../../store/read/exchanges.ts';
import { type HttpExchangeRow, prepareHttpExchange } from '../../store/read/http.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { type BodyOf, isOf, memberOf, prepareBody, textOf } from '../parts.ts';
import {
  type Attribute,
  type AttributeValues,
  attributesOf,
  nanoseconds,
  networkFacts,
  notificationFacts,
  operationFacts,
  resourceUri,
  serverFacts,
  spanName,
} from './facts.ts';

const CLIENT = 3;

const ERROR = 2;

export type OtlpSpan = {
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

/** A span, its duration (null if its end is not known), and the attributes of the metric that counts it. */
export type MeasuredSpan = { span: OtlpSpan; facts: AttributeValues; duration: number | null };

type Spans = {
  ofRequest(row: ExchangeRow): MeasuredSpan;
  ofNotification(row: NotificationRow): MeasuredSpan;
};

/** `withArguments`: with the arguments and results of tool calls, which may be personal. */
export function prepareSpans(store: Store, session: SessionRow, withArguments: boolean): Spans {
  const bodyOf = prepareBody(store, session.number);
  const httpExchangeOf = prepareHttpExchange(store, session.number);
  const httpOf = (number: number | null) => (number === null ? undefined : httpExchangeOf(number));

  function ofRequest(row: ExchangeRow): MeasuredSpan {
    const asked = bodyOf(row.requestSeq, isOf(row.id, 'request'));
    const http = httpOf(row.http);
    const facts = { ...operationFacts(row), ...commonFacts(session, row.askedBy, http) };
    const span: OtlpSpan = {
      ...placeOf(keyOf(session, row), asked, null),
      name: spanName(row),
      kind: CLIENT,
      ...timesOf(row.at, endOf(session, row)),
      attributes: attributesOf({
        ...facts,
        'mcp.resource.uri': resourceUri(row),
        'mcp.session.id': sessionId(http),
        'jsonrpc.request.id': row.id,
        'tapedeck.outcome': row.outcome,
        ...(withArguments ? argumentFacts(row, asked, bodyOf) : {}),
      }),
      ...linksOf(http),
      status: statusOf(row, bodyOf),
    };
    return { span, facts, duration: row.latency };
  }

  function ofNotification(row: NotificationRow): MeasuredSpan {
    const http = httpOf(row.http);
    // Only what is posted is accepted; an HTTP exchange that carries a notification to the client is about something else.
    const posted = row.sentBy === 'client' ? http : undefined;
    const accepted = posted?.responseAt ?? null;
    const status = posted?.status ?? null;
    const facts = { ...notificationFacts(row, status), ...commonFacts(session, row.sentBy, http) };
    const key = `${session.id} ${row.seq} ${row.n}`;
    const params = bodyOf(row.seq, (_, n) => n === row.n);
    const span: OtlpSpan = {
      ...placeOf(key, params, row.about === null ? null : contextOf(session, row.about, bodyOf)),
      name: row.method,
      kind: CLIENT,
      ...timesOf(row.at, accepted ?? row.at),
      attributes: attributesOf({
        ...facts,
        'mcp.resource.uri': resourceUri(row),
        'mcp.session.id': sessionId(http),
      }),
      ...linksOf(http),
      status: facts['error.type'] === null ? {} : { code: ERROR },
    };
    return { span, facts, duration: accepted === null ? null : Math.max(0, accepted - row.at) };
  }

  return { ofRequest, ofNotification };
}

type RequestKey = Pick<ExchangeRow, 'requestSeq' | 'askedBy' | 'id' | 'idType'>;

/** Two requests of one frame, in a batch, have two ids. */
function keyOf(session: SessionRow, { requestSeq, askedBy, idType, id }: RequestKey): string {
  return `${session.id} ${requestSeq} ${askedBy} ${idType} ${id}`;
}

/** The span of a request. */
function contextOf(session: SessionRow, request: RequestKey, bodyOf: BodyOf): TraceContext {
  return placeOf(keyOf(session, request), bodyOf(request.requestSeq, isOf(request.id, 'request')), null);
}

type Place = Pick<OtlpSpan, 'traceId' | 'spanId' | 'parentSpanId' | 'traceState'>;

/**
 * Its ids, the same in every export (who sends a session twice overwrites, and does not double), and its parent: the one
 * that the sender wrote, else what it belongs to, else none.
 */
function placeOf(key: string, params: Buffer | null, belongsTo: TraceContext | null): Place {
  const written = readTraceparent(textOf(params, '_meta', 'traceparent'));
  const state = written === null ? null : textOf(params, '_meta', 'tracestate');
  const parent = written ?? belongsTo;
  return {
    traceId: parent?.traceId ?? ownId(`trace ${key}`).slice(0, 32),
    spanId: ownId(`span ${key}`).slice(0, 16),
    ...(parent === null ? {} : { parentSpanId: parent.spanId }),
    ...(state === null ? {} : { traceState: state }),
  };
}

function ownId(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

/** What a span and a metric of one operation have in common. */
function commonFacts(
  session: SessionRow,
  sender: 'client' | 'server',
  http: HttpExchangeRow | undefined,
): AttributeValues {
  return {
    ...networkFacts(session, http?.version ?? null),
    ...(sender === 'client' ? serverFacts(session) : {}),
  };
}

function sessionId(http: HttpExchangeRow | undefined): string | undefined {
  return fieldOf(http?.requestHeaders ?? [], 'mcp-session-id');
}

/** The HTTP request's own context is not the message's. */
function linksOf(http: HttpExchangeRow | undefined): Pick<OtlpSpan, 'links'> {
  const link = readTraceparent(fieldOf(http?.requestHeaders ?? [], 'traceparent'));
  return link === null ? {} : { links: [link] };
}

function timesOf(from: number, to: number): Pick<OtlpSpan, 'startTimeUnixNano' | 'endTimeUnixNano'> {
  return { startTimeUnixNano: nanoseconds(from), endTimeUnixNano: nanoseconds(Math.max(from, to)) };
}

/** A request without an answer was open to the end of its session, or as long as that has been recorded. */
function endOf(session: SessionRow, { at, latency }: ExchangeRow): number {
  return latency === null ? (session.endedAt ?? at) : at + latency;
}

function argumentFacts(row: ExchangeRow, asked: Buffer | null, bodyOf: BodyOf): AttributeValues {
  if (row.method !== 'tools/call') return {};
  const result = row.answerSeq === null ? null : bodyOf(row.answerSeq, isOf(row.id, 'result'));
  return {
    'gen_ai.tool.call.arguments': memberOf(asked, 'arguments')?.toString('utf8'),
    'gen_ai.tool.call.result': result?.toString('utf8'),
  };
}

function statusOf(row: ExchangeRow, bodyOf: BodyOf): OtlpSpan['status'] {
  if (operationFacts(row)['error.type'] === null) return {};
  const error = row.answerSeq === null ? null : bodyOf(row.answerSeq, isOf(row.id, 'error'));
  const message = textOf(error, 'message');
  return { code: ERROR, ...(message === null ? {} : { message }) };
}
