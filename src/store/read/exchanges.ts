/** The exchanges of a session: each request, and what became of it; and the notifications, which have no answer. */

import type { Place } from '../../protocol/message/correlate.ts';
import type { Store } from '../file/open.ts';
import { amongSql, amongStretchSql, type FrameSelection, lastSeqOf, PAGE_FRAMES } from './frames.ts';
import { stretches } from './pages.ts';
import type { SessionRow } from './sessions.ts';

export type ExchangeRow = {
  requestSeq: number;
  answerSeq: number | null;
  askedBy: 'client' | 'server';
  id: string;
  idType: string;
  /** Canonical. */
  method: string;
  target: string | null;
  /** Microseconds since the Unix epoch. */
  at: number;
  /** Microseconds. */
  latency: number | null;
  outcome: 'ok' | 'tool-error' | 'error' | 'cancelled' | 'input-required' | 'unanswered' | 'fault';
  errorCode: number | null;
  http: number | null;
};

/** In the order of the requests, those after `start`; of a selection those whose request or answer is in it. */
export function* eachExchange(
  store: Store,
  { id, number }: { id: string; number: number },
  only?: FrameSelection,
  start = 0,
): Generator<ExchangeRow> {
  const select = store.prepare<[object], ExchangeRow>(
    `SELECT request_seq AS requestSeq, answer_seq AS answerSeq, asked_by AS askedBy, id,
       id_type AS idType, method, target, asked_at AS at, CAST(round(latency_ms * 1000) AS INTEGER) AS latency, outcome,
       error_code AS errorCode, http
     FROM exchange WHERE session = @id AND request_seq > @after AND request_seq <= @upTo ORDER BY request_seq`,
  );
  // An answer may stand anywhere behind its request.
  const selected = only === undefined ? null : selectedSeqs(store, number, only);
  for (const [after, upTo] of stretches(start, lastSeqOf(store, number), PAGE_FRAMES)) {
    for (const row of select.all({ id, after, upTo }))
      if (selected === null || selected.has(row.requestSeq) || selected.has(row.answerSeq ?? 0)) yield row;
  }
}

function selectedSeqs(store: Store, session: number, { sql, values }: FrameSelection): ReadonlySet<number> {
  const all = store.prepare<[object], number>(`SELECT seq FROM (${sql})`).pluck();
  return new Set(all.all({ ...values, session }));
}

/** A request by its place, with the place of its answer. */
export type CallRow = {
  seq: number;
  n: number;
  /** Canonical. */
  method: string;
  target: string | null;
  askedBy: 'client' | 'server';
  answerSeq: number | null;
  answerN: number | null;
  /** Microseconds. */
  latency: number | null;
};

/** Every request of a session, in order. */
export function eachCall(store: Store, session: number): IterableIterator<CallRow> {
  return store
    .prepare<[number], CallRow>(
      `SELECT r.seq, r.n, r.canonical AS method, r.target, a.seq AS answerSeq, a.n AS answerN, a.latency,
         CASE WHEN f.channel IN ('stdin', 'request') THEN 'client' ELSE 'server' END AS askedBy
       FROM message AS r JOIN frame AS f ON f.session = r.session AND f.seq = r.seq
       LEFT JOIN message AS a ON a.session = r.session AND a.to_seq = r.seq AND a.to_n = r.n AND a.relation = 'reply'
       WHERE r.session = ? AND r.kind = 'request' ORDER BY r.seq, r.n`,
    )
    .iterate(session);
}

export type NotificationRow = {
  seq: number;
  n: number;
  sentBy: 'client' | 'server';
  /** Canonical. */
  method: string;
  target: string | null;
  /** Microseconds since the Unix epoch. */
  at: number;
  http: number | null;
  /** The request that it belongs to, such as the one whose progress it tells; null where there is none. */
  about: Pick<ExchangeRow, 'requestSeq' | 'askedBy' | 'id' | 'idType'> | null;
};

type NotificationColumns = Omit<NotificationRow, 'about'> & {
  requestSeq: number | null;
  askedBy: 'client' | 'server';
  id: string;
  idType: string;
};

/** In order. What came a second time, on a resumed stream, is left out. */
export function* eachNotification(
  store: Store,
  session: number,
  only?: FrameSelection,
): Generator<NotificationRow> {
  const sender = (frame: string) =>
    `CASE WHEN ${frame}.channel IN ('stdin', 'request') THEN 'client' ELSE 'server' END`;
  const select = store.prepare<[object], NotificationColumns>(
    `SELECT m.seq, m.n, ${sender('f')} AS sentBy, m.canonical AS method, m.target, f.at, f.http,
       r.seq AS requestSeq, ${sender('asked')} AS askedBy, r.id, r.id_type AS idType
     FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
     LEFT JOIN message AS r ON r.session = m.session AND r.seq = m.to_seq AND r.n = m.to_n AND r.kind = 'request'
     LEFT JOIN frame AS asked ON asked.session = r.session AND asked.seq = r.seq
     WHERE m.session = @session AND m.seq > @after AND m.seq <= @upTo AND m.kind = 'notification'
       ${amongStretchSql('m.seq', only)} AND (f.flags IS NULL OR f.flags NOT LIKE '%replayed%')
     ORDER BY m.seq, m.n`,
  );
  for (const [after, upTo] of stretches(0, lastSeqOf(store, session), PAGE_FRAMES)) {
    for (const { requestSeq, askedBy, id, idType, ...row } of select.all({
      ...only?.values,
      session,
      after,
      upTo,
    }))
      yield { ...row, about: requestSeq === null ? null : { requestSeq, askedBy, id, idType } };
  }
}

/** What became of one request of a session: a few looks into the index instead of a walk through all of it. */

export type MessageLinks = {
  /** Where the first answer to the request at this place stands; null where it has none. */
  answerTo(request: Place): Place | null;
  /** Whether the client took its request back, by a message or by closing the HTTP exchange that it was asked on. */
  wasCancelled(request: Place): boolean;
  /** Where the results of all requests of this (canonical) method stand, in the order of the requests. */
  resultsOf(method: string): Place[];
};

export function prepareLinks(store: Store, session: number): MessageLinks {
  const linked = 'FROM message WHERE session = $session AND to_seq = $seq AND to_n = $n AND relation =';
  type Values = Place & { session: number };
  const answer = store.prepare<[Values], Place>(`SELECT seq, n ${linked} 'reply' ORDER BY seq, n LIMIT 1`);
  const cancelled = store
    .prepare<[Values], 0 | 1>(
      `SELECT EXISTS (SELECT 1 ${linked} 'cancel') OR EXISTS (SELECT 1 FROM message
         WHERE session = $session AND seq = $seq AND n = $n AND outcome = 'cancelled')`,
    )
    .pluck();
  const results = store.prepare<[number, string], Place>(
    `SELECT a.seq, a.n FROM message AS q
     JOIN message AS a ON a.session = q.session AND a.to_seq = q.seq AND a.to_n = q.n AND a.relation = 'reply'
     WHERE q.session = ? AND q.canonical = ? AND q.kind = 'request' AND a.kind = 'result' ORDER BY q.seq, q.n`,
  );
  return {
    resultsOf: (method) => results.all(session, method),
    answerTo: ({ seq, n }) => answer.get({ session, seq, n }) ?? null,
    wasCancelled: ({ seq, n }) => cancelled.get({ session, seq, n }) === 1,
  };
}

/** Requests that stayed open. */

/** The places (`seq.n`) of requests that were neither answered nor cancelled: of a session, or of a selection of it. */
export function unansweredPlaces(store: Store, { number }: SessionRow, only?: FrameSelection): Set<string> {
  const rows = store
    .prepare<[object], string>(
      `SELECT m.seq || '.' || m.n FROM message AS m
       WHERE m.session = @session ${amongSql('m.seq', only)} AND m.kind = 'request' AND m.outcome IS NULL
         AND NOT EXISTS (
           SELECT 1 FROM message AS a WHERE a.session = m.session AND a.to_seq = m.seq AND a.to_n = m.n
             AND a.relation IN ('reply', 'cancel'))`,
    )
    .pluck()
    .all({ ...only?.values, session: number });
  return new Set(rows);
}
