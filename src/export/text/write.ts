/**
 * A session as a text recording, format 1: a line for the session, then one for each frame in order of `seq`. The lines
 * of HTTP exchanges stand between them: a head where its time is, an end after the frame that it came after.
 */
import type { Store } from '../../store/file/open.ts';
import { type BareFrame, eachBareFrame, type FrameSelection } from '../../store/read/frames.ts';
import {
  type EndMoment,
  eachEndMoment,
  eachHeadMoment,
  type HeadMoment,
  originalOf,
  prepareHttpExchange,
  REQUEST_HEAD,
} from '../../store/read/http.ts';
import { type SessionRow, sessionDetails } from '../../store/read/sessions.ts';
import type { WriteOptions } from '../format.ts';
import { frameLine } from './frame.ts';
import { headerLine } from './header.ts';
import { endLine, headLine, headTime } from './http-exchange.ts';
import { msText } from './lines.ts';

/**
 * Writes the session in pieces, in constant memory. Of a selection it writes the frames and the HTTP exchanges that they
 * came on.
 */
export function* writeNdjson(
  store: Store,
  session: SessionRow,
  { onFrame, only }: WriteOptions,
): Generator<string> {
  yield headerLine(session, sessionDetails(store, session.number));
  let last = session.startedAt;
  const since = (at: number): string => {
    const ms = msText(at - last);
    last = at;
    return ms;
  };
  const selected = only === undefined ? null : selectedPlaces(store, session.number, only);
  const http = createHttpLines(store, session.number, since, selected?.exchanges ?? null);
  let count = 0;
  for (const frame of eachBareFrame(store, session.number)) {
    if (selected !== null && !selected.seqs.has(frame.seq)) continue;
    // What was still under way comes last, whenever it began.
    if (frame.isUnfinished) yield* http.rest();
    else yield* http.before(frame);
    const original = frame.isEdited ? originalOf(store, session.number, frame.seq) : null;
    yield* frameLine(frame, since(frame.at), original);
    count += 1;
    onFrame(count);
  }
  yield* http.rest();
}

type HttpLines = {
  /** The lines that belong before this frame and are not written yet. */
  before(frame: BareFrame): Generator<string>;
  rest(): Generator<string>;
};

/** By number. */
type Selection = { seqs: Set<number>; exchanges: Set<number> };

function selectedPlaces(store: Store, session: number, { sql, values }: FrameSelection): Selection {
  const rows = store
    .prepare<[object], { seq: number; http: number | null }>(
      `SELECT seq, http FROM frame WHERE session = @session AND seq IN (${sql})`,
    )
    .all({ ...values, session });
  return {
    seqs: new Set(rows.map(({ seq }) => seq)),
    exchanges: new Set(rows.flatMap(({ http }) => (http === null ? [] : [http]))),
  };
}

/** `only`: the HTTP exchanges whose lines are wanted; null for all. */
function createHttpLines(
  store: Store,
  session: number,
  since: (at: number) => string,
  only: ReadonlySet<number> | null,
): HttpLines {
  const heads = createCursor(eachHeadMoment(store, session));
  const ends = createCursor(eachEndMoment(store, session));
  const exchangeBy = prepareHttpExchange(store, session);
  const httpExchangeOf = (number: number) =>
    only === null || only.has(number) ? exchangeBy(number) : undefined;

  function* headsWhile(isDue: (head: HeadMoment) => boolean): Generator<string> {
    for (const head of heads.takeWhile(isDue)) {
      const row = httpExchangeOf(head.number);
      if (row !== undefined) yield headLine(row, head, since(headTime(row, head)));
    }
  }

  function* endsWhile(isDue: (end: EndMoment) => boolean): Generator<string> {
    for (const { number, at } of ends.takeWhile(isDue)) {
      // Its own heads are among them, because none is later than its end.
      yield* headsWhile((head) => head.at <= at);
      const row = httpExchangeOf(number);
      if (row !== undefined) yield endLine(row, since(row.endedAt ?? at));
    }
  }

  return {
    *before({ seq, at, channel }) {
      yield* endsWhile(({ after }) => after < seq);
      // Of one moment: a request's head, its body, the answer's head, its body.
      const isAnswer = channel !== 'request';
      yield* headsWhile(
        (head) => head.at < at || (head.at === at && (isAnswer || head.kind === REQUEST_HEAD)),
      );
    },
    *rest() {
      yield* endsWhile(() => true);
      yield* headsWhile(() => true);
    },
  };
}

function createCursor<T>(rows: Iterator<T>) {
  let next = rows.next();
  return {
    *takeWhile(isWanted: (row: T) => boolean): Generator<T> {
      while (!next.done && isWanted(next.value)) {
        const { value } = next;
        next = rows.next();
        yield value;
      }
    },
  };
}
