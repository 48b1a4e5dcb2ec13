/** The exchanges of a session: each request, and what became of it. */
import type { FrameSelection } from './frame-selection.ts';
import type { Store } from './open.ts';

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
  outcome: 'ok' | 'tool-error' | 'error' | 'cancelled' | 'input-required' | 'unanswered';
  errorCode: number | null;
  http: number | null;
};

/** In the order of the requests; of a selection those whose request or answer is in it. */
export function eachExchange(
  store: Store,
  session: { id: string; number: number },
  only?: FrameSelection,
): IterableIterator<ExchangeRow> {
  const among = only === undefined ? '' : `AND (request_seq IN (${only.sql}) OR answer_seq IN (${only.sql}))`;
  return store
    .prepare<[object], ExchangeRow>(
      `SELECT request_seq AS requestSeq, answer_seq AS answerSeq, asked_by AS askedBy, id,
         id_type AS idType, method, target, asked_at AS at, CAST(round(latency_ms * 1000) AS INTEGER) AS latency, outcome,
         error_code AS errorCode, http
       FROM exchange WHERE session = @id ${among} ORDER BY request_seq`,
    )
    .iterate({ ...only?.values, id: session.id, session: session.number });
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
