/**
 * A session as an HTTP archive, version 1.2 (the W3C draft of 2012, which is what tools read). Headers are as recorded,
 * with credentials redacted. What HAR has no field for is in fields that begin with an underscore, as HAR prescribes.
 */

import { isUtf8 } from 'node:buffer';
import { TapedeckError } from '../errors.ts';
import { fieldOf, type HeaderFields } from '../protocol/http/headers.ts';
import { messagesOf } from '../protocol/message/conversation.ts';
import { formatIsoTime } from '../protocol/text.ts';
import { readSse } from '../protocol/wire/sse.ts';
import type { Store } from '../store/file/open.ts';
import type { BareFrame } from '../store/read/frames.ts';
import { type Bodies, eachHttpExchange, type HttpExchangeRow, prepareBodies } from '../store/read/http.ts';
import { type SessionRow, sessionDetails } from '../store/read/sessions.ts';
import type { WriteOptions } from './format.ts';
import { upstreamUrl } from './parts.ts';

export function* writeHar(
  store: Store,
  session: SessionRow,
  { only, onFrame }: WriteOptions,
): Generator<string> {
  if (session.transport === 'stdio')
    throw new TapedeckError(
      'refused',
      'An HTTP archive holds HTTP, and this session came over stdio. Take --format ndjson or markdown.',
    );
  const bodiesOf = prepareBodies(store, session.number, only);
  const creator = { name: 'tapedeck', version: sessionDetails(store, session.number).tapedeck };
  yield `{"log":{"version":"1.2","creator":${JSON.stringify(creator)},"pages":[],"entries":[`;
  let separator = '\n';
  for (const httpExchange of eachHttpExchange(store, session.number)) {
    const bodies = bodiesOf(httpExchange.number);
    if (bodies === undefined) continue;
    yield separator + JSON.stringify(entryOf(session, httpExchange, bodies));
    separator = ',\n';
    onFrame(bodies.request.length + bodies.response.length);
  }
  yield '\n]}}\n';
}

function entryOf(session: SessionRow, httpExchange: HttpExchangeRow, bodies: Bodies): object {
  const { at, requestEndedAt, responseAt, endedAt } = httpExchange;
  // A phase that did not happen is -1.
  const sent = requestEndedAt ?? at;
  const timings = {
    send: ms(sent - at),
    wait: responseAt === null ? 0 : ms(Math.max(0, responseAt - sent)),
    receive: responseAt === null || endedAt === null ? 0 : ms(endedAt - responseAt),
  };
  return {
    startedDateTime: formatIsoTime(at),
    time: timings.send + timings.wait + timings.receive,
    request: requestOf(session, httpExchange, bodies.request),
    response: responseOf(httpExchange, bodies.response),
    cache: {},
    timings,
    connection: String(httpExchange.number),
    _session: session.id,
    _closedBy: httpExchange.closedBy,
    _error: httpExchange.error,
    ...(isStream(bodies) ? { _eventSourceMessages: bodies.response.map(eventOf) } : {}),
    _messages: [...bodies.request, ...bodies.response].flatMap((frame) =>
      messagesOf(frame).map((message) => ({
        seq: frame.seq,
        kind: message.kind,
        method: 'method' in message ? message.method : null,
        id: 'id' in message ? (message.id?.text ?? null) : null,
      })),
    ),
  };
}

function isStream({ response }: Bodies): boolean {
  return response.some(({ channel }) => channel === 'sse');
}

function eventOf(frame: BareFrame): object {
  const { event, id, retry, data } = readSse(frame.payload);
  return { time: frame.at / 1_000_000, event, id, retry, data: data?.toString('utf8') ?? null };
}

function requestOf(
  { target }: SessionRow,
  httpExchange: HttpExchangeRow,
  body: readonly BareFrame[],
): object {
  const url = upstreamUrl(target, httpExchange.path);
  const headers = httpExchange.requestHeaders;
  const mimeType = fieldOf(headers, 'content-type') ?? '';
  return {
    method: httpExchange.method,
    url: url.href,
    httpVersion: `HTTP/${httpExchange.version}`,
    cookies: [],
    headers: headers.map(headerJson),
    queryString: [...url.searchParams].map(([name, value]) => ({ name, value })),
    ...(body.length === 0 ? {} : { postData: { mimeType, ...postText(joined(body)) } }),
    headersSize: -1,
    bodySize: httpExchange.requestBytes,
  };
}

/** HAR knows no coding for what is posted. */
function postText(bytes: Buffer): object {
  return isUtf8(bytes)
    ? { text: bytes.toString('utf8') }
    : { text: bytes.toString('base64'), _encoding: 'base64' };
}

function responseOf(httpExchange: HttpExchangeRow, body: readonly BareFrame[]): object {
  const headers = httpExchange.responseHeaders ?? [];
  const bytes = joined(body);
  const text = isUtf8(bytes)
    ? { text: bytes.toString('utf8') }
    : { text: bytes.toString('base64'), encoding: 'base64' };
  return {
    // Tools show 0 for an answer that never came.
    status: httpExchange.status ?? 0,
    statusText: httpExchange.statusText ?? '',
    httpVersion: `HTTP/${httpExchange.version}`,
    cookies: [],
    headers: headers.map(headerJson),
    content: {
      size: bytes.length,
      mimeType: fieldOf(headers, 'content-type') ?? '',
      ...(bytes.length === 0 ? {} : text),
    },
    redirectURL: fieldOf(headers, 'location') ?? '',
    headersSize: -1,
    bodySize: httpExchange.responseBytes,
  };
}

function joined(frames: readonly BareFrame[]): Buffer {
  return Buffer.concat(frames.map(({ payload }) => payload));
}

function headerJson([name, value]: HeaderFields[number]): { name: string; value: string } {
  return { name, value };
}

function ms(microseconds: number): number {
  return microseconds / 1000;
}
