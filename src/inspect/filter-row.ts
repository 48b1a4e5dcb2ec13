/** What a filter is asked of: one message with its frame, or a frame without messages alone. */
import type { Channel } from '../protocol/frame.ts';
import { prepareHttpSummary } from '../store/http-reader.ts';
import type { Store } from '../store/open.ts';
import { findSession, type SessionRow, type StoredFrame } from '../store/reader.ts';

export type SessionFacts = Pick<
  SessionRow,
  | 'id'
  | 'name'
  | 'transport'
  | 'clientName'
  | 'clientVersion'
  | 'clientProgram'
  | 'serverName'
  | 'serverVersion'
> & {
  /** `key=value`. */
  labels: readonly string[];
  isLatest: boolean;
};

export type FrameFacts = {
  /** Microseconds since the Unix epoch. */
  at: number;
  channel: Channel;
  /** Bytes on the wire. */
  size: number;
  payload: Buffer;
  httpStatus: number | null;
};

export type MessageFacts = {
  kind: string;
  id: string | null;
  method: string | null;
  canonical: string | null;
  target: string | null;
  /** Microseconds. */
  latency: number | null;
  outcome: string | null;
  errorCode: number | null;
  problem: string | null;
};

export type FilterRow = {
  session: SessionFacts;
  frame: FrameFacts;
  message: MessageFacts | null;
  /** The request that the message belongs to; the message itself, where it belongs to none. */
  call: MessageFacts | null;
  /** What answered the call. */
  answer: MessageFacts | null;
  /** Whether a notification cancelled the call. */
  isCancelled: boolean;
};

/** The row of a frame without messages. */
export function rowOfFrame(store: Store, session: SessionRow, frame: StoredFrame): FilterRow {
  const { number, id } = session;
  const exchange = frame.http?.exchange;
  const httpStatus =
    exchange === undefined ? null : (prepareHttpSummary(store, number)(exchange)?.status ?? null);
  return {
    session: {
      ...session,
      labels: labelsOf(store, number),
      isLatest: findSession(store, 'latest').id === id,
    },
    frame: { ...frame, httpStatus },
    message: null,
    call: null,
    answer: null,
    isCancelled: false,
  };
}

/** The labels of a session, as `key=value`. */
function labelsOf(store: Store, session: number): string[] {
  const sql = "SELECT key || '=' || value FROM label WHERE session = ?";
  return store.prepare<[number], string>(sql).pluck().all(session);
}
