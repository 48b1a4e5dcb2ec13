/** What became of one request of a session: a few looks into the index, for who does not read all of it. */
import type { Place } from '../protocol/correlate.ts';
import type { Store } from './open.ts';

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
