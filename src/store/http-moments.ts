/** When the heads of HTTP exchanges passed and when they ended, in an order that depends on what is recorded alone. */
import type { Store } from './open.ts';

export const REQUEST_HEAD = 0;
export const INFORMATION = 1;
export const RESPONSE_HEAD = 2;

/** A head that passed. `index` tells the answers of status 1xx of one exchange apart. */
export type HeadMoment = {
  number: number;
  kind: typeof REQUEST_HEAD | typeof INFORMATION | typeof RESPONSE_HEAD;
  index: number;
  /** Never later than the exchange's end. */
  at: number;
};

/** In order of time; of one moment requests first, then by number. */
export function eachHeadMoment(store: Store, session: number): IterableIterator<HeadMoment> {
  return store
    .prepare<[number, number, number], HeadMoment>(
      `SELECT number, ${REQUEST_HEAD} AS kind, 0 AS "index", min(at, ifnull(ended_at, at)) AS at
       FROM http_exchange WHERE session = ?
       UNION ALL
       SELECT number, ${INFORMATION}, one.key,
         min(json_extract(one.value, '$.at'), ifnull(ended_at, json_extract(one.value, '$.at')))
       FROM http_exchange, json_each(informations) AS one WHERE session = ? AND informations IS NOT NULL
       UNION ALL
       SELECT number, ${RESPONSE_HEAD}, 0, min(response_at, ifnull(ended_at, response_at))
       FROM http_exchange WHERE session = ? AND response_at IS NOT NULL
       ORDER BY at, kind, number, "index"`,
    )
    .iterate(session, session, session);
}

/** `after` is the session's last frame by then. */
export type EndMoment = { number: number; at: number; after: number };

export function eachEndMoment(store: Store, session: number): IterableIterator<EndMoment> {
  return store
    .prepare<[number], EndMoment>(
      `SELECT number, ended_at AS at, ifnull(ended_after, 0) AS after FROM http_exchange
       WHERE session = ? AND ended_at IS NOT NULL ORDER BY ended_after, ended_at, number`,
    )
    .iterate(session);
}
