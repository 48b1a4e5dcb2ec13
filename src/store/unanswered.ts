/** Requests that stayed open. */
import { amongSql, type FrameSelection } from './frame-selection.ts';
import type { Store } from './open.ts';
import type { SessionRow } from './reader.ts';

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
