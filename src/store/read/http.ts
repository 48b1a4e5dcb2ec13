/** Reading the HTTP exchanges of a session. */

import { memoize } from '../../protocol/bounded.ts';
import type { HttpExchange, SidedEdit } from '../../protocol/http/exchange.ts';
import { fieldOf, type HeaderFields } from '../../protocol/http/headers.ts';
import { type HttpClosing, httpClosing } from '../../protocol/message/correlate.ts';
import type { HttpEndEvent } from '../../protocol/wire/http-event.ts';
import type { Store } from '../file/open.ts';
import { type BareFrame, type FrameSelection, prepareFramesAfter } from './frames.ts';
import { eachRow } from './pages.ts';

/** In the order in which they stood. */
/** A row of `http_exchange`. Times in microseconds since the Unix epoch, headers with credentials masked. */
export type HttpExchangeRow = {
  number: number;
  method: string;
  path: string;
  version: string;
  client: string;
  requestHeaders: HeaderFields;
  requestTrailers: HeaderFields;
  requestBytes: number;
  /** Answers of status 1xx. */
  informations: { at: number; status: number; headers: HeaderFields }[];
  status: number | null;
  statusText: string | null;
  responseHeaders: HeaderFields | null;
  responseTrailers: HeaderFields;
  responseBytes: number;
  at: number;
  requestEndedAt: number | null;
  responseAt: number | null;
  endedAt: number | null;
  closedBy: HttpEndEvent['closedBy'] | null;
  error: string | null;
  edits: SidedEdit[];
};

/** The columns that hold JSON. */
type JsonColumn =
  | 'requestHeaders'
  | 'requestTrailers'
  | 'informations'
  | 'responseHeaders'
  | 'responseTrailers'
  | 'edits';

type Columns = Omit<HttpExchangeRow, JsonColumn> & { requestHeaders: string } & Record<
    Exclude<JsonColumn, 'requestHeaders'>,
    string | null
  >;

const SELECT = `SELECT number, method, path, version, client, request_headers AS requestHeaders,
  request_trailers AS requestTrailers, request_bytes AS requestBytes, informations, status, status_text AS statusText,
  response_headers AS responseHeaders, response_trailers AS responseTrailers, response_bytes AS responseBytes, at,
  request_ended_at AS requestEndedAt, response_at AS responseAt, ended_at AS endedAt, closed_by AS closedBy, error, edits
  FROM http_exchange WHERE session = ?`;

/** All HTTP exchanges of a session, in the order in which they began. */
export function* eachHttpExchange(store: Store, session: number): Generator<HttpExchangeRow> {
  const rowsAfter = prepareHttpExchangesAfter(store, session, EXCHANGES_AT_ONCE);
  for (let rows = rowsAfter(0); rows.length > 0; rows = rowsAfter(rows.at(-1)?.number ?? 0)) yield* rows;
}

/** Each has its headers. */
const EXCHANGES_AT_ONCE = 200;

/** Up to `limit` exchanges after a number. Unlike an iterator it leaves the store free for writing. */
export function prepareHttpExchangesAfter(
  store: Store,
  session: number,
  limit: number,
): (number: number) => HttpExchangeRow[] {
  const select = store.prepare<[number, number], Columns>(
    `${SELECT} AND number > ? ORDER BY number LIMIT ${limit}`,
  );
  return (number) => select.all(session, number).map(rowOf);
}

/** One HTTP exchange by its number. */
export function prepareHttpExchange(
  store: Store,
  session: number,
): (number: number) => HttpExchangeRow | undefined {
  const select = store.prepare<[number, number], Columns>(`${SELECT} AND number = ?`);
  return (number) => {
    const row = select.get(session, number);
    return row === undefined ? undefined : rowOf(row);
  };
}

export type HttpSummary = Pick<HttpExchangeRow, 'method' | 'path' | 'status' | 'closedBy' | 'error'>;

/** What a frame's HTTP exchange was, in short. Asked again for the exchange asked for last, it reads nothing. */
export function prepareHttpSummary(
  store: Store,
  session: number,
): (number: number) => HttpSummary | undefined {
  const select = store.prepare<[number, number], HttpSummary>(
    'SELECT method, path, status, closed_by AS closedBy, error FROM http_exchange WHERE session = ? AND number = ?',
  );
  let last: { number: number; summary: HttpSummary | undefined } | undefined;
  return (number) => {
    if (last?.number !== number) last = { number, summary: select.get(session, number) };
    return last.summary;
  };
}

const HAS_TRACEPARENT = `instr(lower(request_headers), '"traceparent"') > 0`;

/** Whether any HTTP request of a session has a header `traceparent`. */
export function prepareHasTraceparents(store: Store): (session: number) => boolean {
  const select = store.prepare<[number]>(
    `SELECT 1 FROM http_exchange WHERE session = ? AND ${HAS_TRACEPARENT} LIMIT 1`,
  );
  return (session) => select.get(session) !== undefined;
}

/** The header `traceparent` of a request, as it was written; null where it has none. */
export function prepareTraceparent(store: Store): (session: number, exchange: number) => string | null {
  const select = store
    .prepare<[number, number], string>(
      `SELECT request_headers FROM http_exchange WHERE session = ? AND number = ? AND ${HAS_TRACEPARENT}`,
    )
    .pluck();
  return (session, exchange) => {
    const headers = select.get(session, exchange);
    return headers === undefined ? null : (fieldOf(JSON.parse(headers), TRACEPARENT_HEADER) ?? null);
  };
}

export const TRACEPARENT_HEADER = 'traceparent';

/** That an HTTP exchange began or ended. */
export type HttpMoment = { number: number; at: number; isEnd: 0 | 1 };

/** When the HTTP exchanges of a session began and ended, in order of time. */
export function eachHttpMoment(store: Store, session: number): Generator<HttpMoment> {
  const sql = `SELECT number, at, 0 AS isEnd FROM http_exchange WHERE session = @session
    UNION ALL
    SELECT number, ended_at, 1 FROM http_exchange WHERE session = @session AND ended_at IS NOT NULL`;
  return eachRow<HttpMoment>(store, sql, ['at', 'isEnd', 'number'], { session });
}

/** An HTTP exchange that may have ended without answers to what was asked on it. */
export type ClosedHttpExchange = {
  number: number;
  how: HttpClosing;
  /** The session's last frame when it ended: it concludes what was asked up to there. */
  after: number;
};

/** The ones of a session, in the order in which they ended. */
export function prepareClosedHttpExchanges(store: Store): (session: number) => ClosedHttpExchange[] {
  const select = store.prepare<[number], Ending>(
    `SELECT number, status, closed_by AS closedBy, ended_after AS endedAfter FROM http_exchange
     WHERE session = ? AND ended_at IS NOT NULL AND (closed_by = 'client' OR status >= 400)
     ORDER BY ended_after, ended_at`,
  );
  return (session) => select.all(session).flatMap(closingOf);
}

type Ending = Pick<HttpExchange, 'number' | 'status' | 'closedBy' | 'endedAfter'>;

/** How an exchange concludes what was asked on it; empty where it has not ended, or messages alone do. */
export function closingOf({
  number,
  status,
  closedBy,
  endedAfter: after,
}: Ending): readonly ClosedHttpExchange[] {
  const how = httpClosing({ status, closedBy });
  return after === null || how === null ? NONE : [{ number, how, after }];
}

const NONE: readonly ClosedHttpExchange[] = [];

export type PrimingEvent = { retry: string | null };

type EventReader = {
  hadId(seq: number): boolean;
  /** The event without a message by which a stream gave its client an id, shortly before its event `seq`. */
  primingBefore(seq: number, exchange: number): PrimingEvent | null;
};

const PRIMING_WITHIN_FRAMES = 1000;

/** What the events of a session's streams had besides their messages. */
export function prepareEventReader(store: Store, session: number): EventReader {
  const hasId = store
    .prepare<[number, number], 0 | 1>(
      "SELECT ifnull(id, '') <> '' FROM sse_event WHERE session = ? AND seq = ?",
    )
    .pluck();
  const priming = store.prepare<[number, number, number, number], PrimingEvent>(
    `SELECT e.retry FROM sse_event AS e JOIN frame AS f ON f.session = e.session AND f.seq = e.seq
     WHERE e.session = ? AND e.seq < ? AND e.seq >= ? AND ifnull(e.id, '') <> '' AND f.http = ? AND f.flags LIKE '%block%'
     ORDER BY e.seq LIMIT 1`,
  );
  return {
    hadId: (seq) => hasId.get(session, seq) === 1,
    primingBefore: (seq, exchange) =>
      priming.get(session, seq, seq - PRIMING_WITHIN_FRAMES, exchange) ?? null,
  };
}

/** What the sender had sent in place of a frame that was edited. */
export function originalOf(store: Store, session: number, seq: number): Buffer | null {
  const select = store
    .prepare<[number, number], Buffer>('SELECT original FROM frame_edit WHERE session = ? AND seq = ?')
    .pluck();
  return select.get(session, seq) ?? null;
}

function rowOf(columns: Columns): HttpExchangeRow {
  const { requestHeaders, requestTrailers, informations, responseHeaders, responseTrailers, edits } = columns;
  return {
    ...columns,
    requestHeaders: JSON.parse(requestHeaders),
    requestTrailers: parsed(requestTrailers) ?? [],
    informations: parsed(informations) ?? [],
    responseHeaders: parsed(responseHeaders),
    responseTrailers: parsed(responseTrailers) ?? [],
    edits: parsed(edits) ?? [],
  };
}

function parsed<T>(json: string | null): T | null {
  return json === null ? null : (JSON.parse(json) as T);
}

/**
 * Reads HTTP heads by exchange number. Reads 32 rows ahead, because callers walk them in order, and often ask for the same one
 * again. Most exchanges have the same headers as others: these are parsed once, and are the same object then. Memory is
 * bounded: a few MB.
 */

export type HttpHead = Pick<
  HttpExchangeRow,
  'method' | 'path' | 'status' | 'closedBy' | 'responseHeaders'
> & {
  /** Read when they are asked for, which is seldom. */
  requestHeaders(): HeaderFields;
};

type Row = [
  number: number,
  method: string,
  path: string,
  status: number | null,
  closedBy: HttpHead['closedBy'],
  responseHeaders: string | null,
];

const AHEAD = 32;

const MAX_KEPT = 16_384;

const FIELDS_KEPT = { maxEntries: 256, maxLength: 8 * 1024 };

/** Returns undefined for an exchange that does not exist. */
export function prepareHttpHeads(store: Store, session: number): (number: number) => HttpHead | undefined {
  const select = store
    .prepare<[number, number, number], Row>(
      `SELECT number, method, path, status, closed_by, response_headers FROM http_exchange
       WHERE session = ? AND number >= ? AND number < ?`,
    )
    .raw();
  const selectRequest = store
    .prepare<[number, number], string>(
      'SELECT request_headers FROM http_exchange WHERE session = ? AND number = ?',
    )
    .pluck();
  const kept = new Map<number, HttpHead | undefined>();
  const fieldsOf = memoize((json): HeaderFields => JSON.parse(json), FIELDS_KEPT);

  function read(from: number): HttpHead | undefined {
    if (kept.size + AHEAD > MAX_KEPT) kept.clear();
    kept.set(from, undefined);
    for (const row of select.all(session, from, from + AHEAD)) kept.set(row[0], headOf(row));
    return kept.get(from);
  }

  function headOf([number, method, path, status, closedBy, response]: Row): HttpHead {
    const responseHeaders = response === null ? null : fieldsOf(response);
    const requestHeaders = () => fieldsOf(selectRequest.get(session, number) ?? '[]');
    return { method, path, status, closedBy, requestHeaders, responseHeaders };
  }

  return (number) => kept.get(number) ?? (kept.has(number) ? undefined : read(number));
}

/** When the heads of HTTP exchanges passed and when they ended, in an order that depends on what is recorded alone. */

export const REQUEST_HEAD = 0;

export const INFORMATION = 1;

const RESPONSE_HEAD = 2;

/** A head that passed. `index` tells the answers of status 1xx of one exchange apart. */
export type HeadMoment = {
  number: number;
  kind: typeof REQUEST_HEAD | typeof INFORMATION | typeof RESPONSE_HEAD;
  index: number;
  /** Never later than the exchange's end. */
  at: number;
};

/** In order of time; of one moment requests first, then by number. */
export function eachHeadMoment(store: Store, session: number): Generator<HeadMoment> {
  const sql = `SELECT number, ${REQUEST_HEAD} AS kind, 0 AS "index", min(at, ifnull(ended_at, at)) AS at
    FROM http_exchange WHERE session = @session
    UNION ALL
    SELECT number, ${INFORMATION}, one.key,
      min(json_extract(one.value, '$.at'), ifnull(ended_at, json_extract(one.value, '$.at')))
    FROM http_exchange, json_each(informations) AS one WHERE session = @session AND informations IS NOT NULL
    UNION ALL
    SELECT number, ${RESPONSE_HEAD}, 0, min(response_at, ifnull(ended_at, response_at))
    FROM http_exchange WHERE session = @session AND response_at IS NOT NULL`;
  return eachRow<HeadMoment>(store, sql, ['at', 'kind', 'number', 'index'], { session });
}

/** `after` is the session's last frame by then. */
export type EndMoment = { number: number; at: number; after: number };

export function eachEndMoment(store: Store, session: number): Generator<EndMoment> {
  const sql = `SELECT number, ended_at AS at, ifnull(ended_after, 0) AS after FROM http_exchange
    WHERE session = @session AND ended_at IS NOT NULL`;
  return eachRow<EndMoment>(store, sql, ['after', 'at', 'number'], { session });
}

/** The bodies and events of a session's HTTP exchanges, by exchange. */

export type Bodies = {
  request: BareFrame[];
  /** A response body, or the events of a stream, in their order. */
  response: BareFrame[];
};

/**
 * Returns the frames of one exchange; undefined where none of them is in the selection. Keeps the number of every frame,
 * eight bytes each, and reads their bytes when they are asked for.
 */
export function prepareBodies(
  store: Store,
  session: number,
  only?: FrameSelection,
): (exchange: number) => Bodies | undefined {
  const frameAfter = prepareFramesAfter(store, session, 1);
  const places = framesByExchange(store, session);
  const selected = only === undefined ? null : exchangesOf(store, session, only);
  return (exchange) => {
    if (selected !== null && !selected.has(exchange)) return undefined;
    const frames = (places.get(exchange) ?? []).flatMap((seq) => frameAfter(seq - 1));
    return {
      request: frames.filter(({ channel }) => channel === 'request'),
      response: frames.filter(({ channel }) => channel !== 'request'),
    };
  };
}

function framesByExchange(store: Store, session: number): Map<number, number[]> {
  const rows = store
    .prepare<[number], { seq: number; http: number }>(
      'SELECT seq, http FROM frame WHERE session = ? AND http IS NOT NULL ORDER BY seq',
    )
    .iterate(session);
  const places = new Map<number, number[]>();
  for (const { seq, http } of rows) {
    const known = places.get(http);
    if (known === undefined) places.set(http, [seq]);
    else known.push(seq);
  }
  return places;
}

/** The numbers of the HTTP exchanges that carried a selected frame. */
export function exchangesOf(store: Store, session: number, { sql, values }: FrameSelection): Set<number> {
  const select = `SELECT DISTINCT http FROM frame WHERE session = @session AND http IS NOT NULL AND seq IN (${sql})`;
  return new Set(
    store
      .prepare<[object], number>(select)
      .pluck()
      .all({ ...values, session }),
  );
}
