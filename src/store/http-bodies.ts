/** The bodies and events of a session's HTTP exchanges, by exchange. */
import type { FrameSelection } from './frame-selection.ts';
import type { Store } from './open.ts';
import { type BareFrame, prepareFramesAfter } from './reader.ts';

export type Bodies = {
  request: BareFrame[];
  /** A response body, or the events of a stream, in their order. */
  response: BareFrame[];
};

/**
 * Gives the frames of one exchange; undefined where none of them is in the selection. Keeps the number of every frame,
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

function exchangesOf(store: Store, session: number, { sql, values }: FrameSelection): Set<number> {
  const select = `SELECT DISTINCT http FROM frame WHERE session = @session AND http IS NOT NULL AND seq IN (${sql})`;
  return new Set(
    store
      .prepare<[object], number>(select)
      .pluck()
      .all({ ...values, session }),
  );
}
