/** When what belongs to a request passed: its answer, its cancellation, and what may be missing. A few looks into the index each. */

import { jsonOf } from '../../protocol/message/conversation.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { readId } from '../../protocol/message/details.ts';
import { parseMessages } from '../../protocol/message/message.ts';
import type { Channel } from '../../protocol/wire/frame.ts';
import { payloadSql } from '../../store/file/codec.ts';
import type { Store } from '../../store/file/open.ts';
import { type HttpExchangeRow, prepareHttpExchange, prepareHttpSummary } from '../../store/read/http.ts';
import { type SessionRow, sessionDetails, stateOf } from '../../store/read/sessions.ts';

/** So far ahead is looked for what tells more, in frames. */
const MAX_AHEAD = 1000;

/** So far back a cancellation's request is looked for, in messages. */
const MAX_BACK = 20_000;

/** When and on which channel an answer passed. */
export type AnswerPassage = { seq: number; at: number; channel: string; outcome: string | null };

/** `isOfOther`: it came from a further client of its session, which had a pipe of its own. */
export type RequestPassage = { at: number; channel: string; http: number | null; isOfOther: 0 | 1 };

type Cancelled = { by: 'client' | 'server'; at: number; request: Place | null; isSure: boolean };

export type Lookups = {
  /** Whether the store has all that passed. */
  isKept: boolean;
  closings: { clientClosedAt: number | null; serverClosedAt: number | null };
  httpExchange(number: number): HttpExchangeRow | undefined;
  /** Who ended an HTTP exchange. */
  closedBy(httpExchange: number): HttpExchangeRow['closedBy'] | undefined;
  asked(place: Place): RequestPassage | undefined;
  answerTo(place: Place): AnswerPassage | undefined;
  cancelOf(place: Place): { by: 'client' | 'server'; at: number } | undefined;
  /** An answer to no request, with the id of this one: as another type, else it would be its answer. */
  strayAnswer(channel: string, place: Place): { seq: number; at: number } | undefined;
  /** A later request on the same channel that was answered. */
  readBy(channel: string, place: Place): number | null;
  /** Why an answer may have passed unseen; null where none can have. */
  doubt(request: RequestPassage, place: Place): string | null;
  /** What a cancellation names that no open request had. */
  cancelled(place: Place): Cancelled | undefined;
};

export function prepareLookups(store: Store, session: SessionRow): Lookups {
  const { number } = session;
  const { clientClosedAt, serverClosedAt } = sessionDetails(store, number);
  const asked = store.prepare<[number, number], RequestPassage>(
    `SELECT at, channel, http, ${isOfOther('frame')} AS isOfOther FROM frame WHERE session = ? AND seq = ?`,
  );
  const linked = (relation: string) =>
    `SELECT m.seq, m.outcome, f.at, f.channel FROM message AS m JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
     WHERE m.session = ? AND m.to_seq = ? AND m.to_n = ? AND m.relation = '${relation}' ORDER BY m.seq LIMIT 1`;
  const answer = store.prepare<[number, number, number], AnswerPassage>(linked('reply'));
  const cancel = store.prepare<[number, number, number], AnswerPassage>(linked('cancel'));
  // `CROSS JOIN`: in this order SQLite ends at the first that it finds, in another it reads all frames ahead, and sorts them.
  const read = store
    .prepare<[number, number, number, string], number>(
      `SELECT q.seq FROM message AS a
       CROSS JOIN message AS q ON q.session = a.session AND q.seq = a.to_seq AND q.n = a.to_n
       CROSS JOIN frame AS f ON f.session = q.session AND f.seq = q.seq
       WHERE a.session = ? AND a.to_seq > ? AND a.to_seq <= ? AND a.relation = 'reply' AND f.channel = ?
         AND NOT ${isOfOther('f')} ORDER BY a.to_seq LIMIT 1`,
    )
    .pluck();
  const stray = store.prepare<[object], { seq: number; at: number }>(
    `SELECT m.seq, f.at FROM message AS m CROSS JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
     JOIN message AS q ON q.session = @number AND q.seq = @seq AND q.n = @n
     WHERE m.session = @number AND m.seq > @seq AND m.seq <= @upTo AND m.kind IN ('result', 'error')
       AND m.relation IS NULL AND m.id = q.id AND m.id_type <> q.id_type
       AND (f.channel IN ('stdin', 'request')) <> @isClients
       AND (f.flags IS NULL OR instr(f.flags, 'replayed') = 0) ORDER BY m.seq LIMIT 1`,
  );
  const undecoded = store
    .prepare<[number, number, number, number], 1>(
      `SELECT 1 FROM frame WHERE session = ? AND seq > ? AND seq <= ? AND http = ? AND instr(flags, 'undecoded') > 0 LIMIT 1`,
    )
    .pluck();
  const summaryOf = prepareHttpSummary(store, number);
  const whole = doubtOfSession(session);

  function doubt({ http }: RequestPassage, { seq }: Place): string | null {
    if (whole !== null) return whole;
    const isCoded = http !== null && undecoded.get(number, seq, seq + MAX_AHEAD, http) === 1;
    return isCoded ? 'its answer came in a content coding that was not read' : null;
  }

  return {
    isKept: !mayMissFrames(session),
    closings: { clientClosedAt, serverClosedAt },
    httpExchange: prepareHttpExchange(store, number),
    closedBy: (httpExchange) => summaryOf(httpExchange)?.closedBy,
    asked: ({ seq }) => asked.get(number, seq),
    answerTo: ({ seq, n }) => answer.get(number, seq, n),
    cancelOf({ seq, n }) {
      const found = cancel.get(number, seq, n);
      return found === undefined ? undefined : { by: senderOn(found.channel), at: found.at };
    },
    strayAnswer: (channel, { seq, n }) =>
      stray.get({ number, seq, n, upTo: seq + MAX_AHEAD, isClients: senderOn(channel) === 'client' ? 1 : 0 }),
    readBy: (channel, { seq }) => read.get(number, seq, seq + MAX_AHEAD, channel) ?? null,
    doubt,
    cancelled: prepareCancelled(store, session),
  };
}

function isOfOther(frame: string): string {
  return `instr(ifnull(${frame}.flags, ''), 'client-') > 0`;
}

function senderOn(channel: string): 'client' | 'server' {
  return channel === 'stdin' || channel === 'request' ? 'client' : 'server';
}

/** Whether something may have passed before its end that the recording does not have, or not whole. */
export function mayMissFrames({ dropped, truncated, importedFrom, metaFor }: SessionRow): boolean {
  return dropped > 0 || truncated > 0 || importedFrom !== null || metaFor !== null;
}

/** Why what did not come may only not have been recorded. */
function doubtOfSession(session: SessionRow): string | null {
  const { dropped, truncated, indexed, frames, importedFrom, metaFor } = session;
  if (dropped > 0) return `frames of the session were lost: ${dropped}`;
  if (truncated > 0) return `frames of the session were recorded cut: ${truncated}`;
  if (metaFor !== null) return 'frames of the session have no payload, which may hold its answer';
  if (importedFrom !== null) return `${importedFrom} recorded it, and may not have kept everything`;
  if (indexed < frames) return 'not all of the session is indexed yet';
  return stateOf(session) === 'cut-off' ? 'the recording was cut off' : null;
}

/** An id as rows have it: the text of its source. */
type IdRow = Place & { type: 'string' | 'number'; id: string };

function prepareCancelled(store: Store, session: SessionRow): Lookups['cancelled'] {
  const { number, basis } = session;
  const frame = store.prepare<[number, number], { at: number; channel: Channel; payload: Buffer }>(
    `SELECT at, channel, ${payloadSql()} AS payload FROM frame WHERE session = ? AND seq = ?`,
  );
  // One id may be written in several ways: `1` and `1.0`.
  const requests = store.prepare<[object], IdRow>(
    `SELECT m.seq, m.n, m.id_type AS type, m.id FROM message AS m
     JOIN frame AS f ON f.session = m.session AND f.seq = m.seq
     WHERE m.session = @number AND m.seq < @seq AND m.seq >= @from AND m.kind = 'request'
       AND (m.id = @text OR m.id GLOB '*[\\.eE-]*') AND f.channel IN ('stdin', 'request') = @isClients
     ORDER BY m.seq DESC, m.n DESC`,
  );

  function requestBefore(seq: number, key: string, by: 'client' | 'server'): Place | null {
    const named = {
      number,
      seq,
      from: seq - MAX_BACK,
      text: key.slice(1),
      isClients: by === 'client' ? 1 : 0,
    };
    for (const row of requests.iterate(named)) if (keyOf(row) === key) return { seq: row.seq, n: row.n };
    return null;
  }

  return ({ seq, n }) => {
    const found = frame.get(number, seq);
    const key = found === undefined ? null : (parseMessages(jsonOf(found))[n]?.details.cancels ?? null);
    if (found === undefined || key === null) return undefined;
    const by = senderOn(found.channel);
    // Stateless traffic may have come from several clients, of which some had asked elsewhere.
    const isSure = basis !== 'stateless' && seq <= MAX_BACK;
    return { by, at: found.at, request: requestBefore(seq, key, by), isSure };
  };
}

function keyOf({ type, id }: IdRow): string | null {
  const source = Buffer.from(type === 'string' ? `"${id}"` : id);
  const read = readId(source, { type, start: 0, end: source.length });
  return typeof read === 'string' ? null : read.key;
}
