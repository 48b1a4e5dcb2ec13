/** A session in the order of time: its frames, and between them where its HTTP exchanges began and ended. */

import type { Store } from '../../store/file/open.ts';
import { eachFrame, type FrameSelection, type StoredFrame } from '../../store/read/frames.ts';
import {
  eachHttpMoment,
  type HttpExchangeRow,
  type HttpMoment,
  prepareHttpExchange,
} from '../../store/read/http.ts';
import type { SessionRow } from '../../store/read/sessions.ts';

export type Happening =
  | { type: 'frame'; frame: StoredFrame }
  /** An HTTP exchange, before its first frame. */
  | { type: 'begin'; httpExchange: HttpExchangeRow }
  /** And after its last. */
  | { type: 'end'; httpExchange: HttpExchangeRow };

/**
 * In constant memory, however long the session is, and without a statement open between two of them. Of a selection of frames,
 * with the HTTP exchanges that they came on.
 */
export function* eachHappening(
  store: Store,
  session: SessionRow,
  only?: FrameSelection,
): Generator<Happening> {
  const isSelected = only === undefined ? () => true : selectedHttpExchanges(store, session.number, only);
  const moments = eachHttpMoment(store, session.number);
  const httpExchangeOf = prepareHttpExchange(store, session.number);
  let next = moments.next();

  function* momentsBefore(isBefore: (moment: HttpMoment) => boolean): Generator<Happening> {
    for (; !next.done && isBefore(next.value); next = moments.next()) {
      const httpExchange = isSelected(next.value.number) ? httpExchangeOf(next.value.number) : undefined;
      if (httpExchange !== undefined)
        yield { type: next.value.isEnd === 1 ? 'end' : 'begin', httpExchange: httpExchange };
    }
  }

  for (const frame of eachFrame(store, session, only)) {
    // What was still under way comes last, whenever it began.
    yield* momentsBefore(
      ({ at, isEnd }) => frame.isUnfinished || at < frame.at || (at === frame.at && !isEnd),
    );
    yield { type: 'frame', frame };
  }
  yield* momentsBefore(() => true);
}

/** Which HTTP exchanges have a frame of the selection. */
export function selectedHttpExchanges(
  store: Store,
  session: number,
  only: FrameSelection,
): (exchange: number) => boolean {
  const sql = `SELECT DISTINCT http FROM frame WHERE session = @session AND http IS NOT NULL AND seq IN (${only.sql})`;
  const numbers = store
    .prepare<[object], number>(sql)
    .pluck()
    .all({ ...only.values, session });
  const selected = new Set(numbers);
  return (exchange) => selected.has(exchange);
}
