/** Reading a store. Long results are iterators: a session of any length is read in constant memory. */

import { hostname } from 'node:os';
import { TapedeckError } from '../errors.ts';
import type { Era } from '../protocol/conversation.ts';
import type { Channel, FrameHttp, FramePart, LineEnd } from '../protocol/frame.ts';
import { formOf } from './frame-flags.ts';
import { amongSql, type FrameSelection } from './frame-selection.ts';
import { PART_BYTES } from './frame-writer.ts';
import { createMessageCursor } from './message-reader.ts';
import type { Store } from './open.ts';
import { isAlive } from './process.ts';
import type { EndReason } from './session-writer.ts';

/** A row of `session`. Times in microseconds since the Unix epoch. */
export type SessionRow = {
  number: number;
  id: string;
  name: string | null;
  basis: string;
  transport: string;
  target: string;
  startedAt: number;
  endedAt: number | null;
  endReason: EndReason | null;
  exitCode: number | null;
  signal: string | null;
  host: string;
  pid: number;
  processStarted: string | null;
  clientPid: number | null;
  clientProgram: string | null;
  era: Era | null;
  protocolVersion: string | null;
  clientName: string | null;
  clientVersion: string | null;
  serverName: string | null;
  serverVersion: string | null;
  frames: number;
  indexed: number;
  bytes: number;
  exchanges: number;
  errors: number;
  unanswered: number;
  dropped: number;
  droppedBytes: number;
  truncated: number;
  /** `meta`: its frames have no payloads. */
  capture: 'full' | 'meta';
  httpExchanges: number;
  /** The other tool that recorded it; null: tapedeck did. */
  importedFrom: string | null;
};

/** A row of `message`, and for an answer the method and target of what it answers. */
export type MessageRow = {
  seq: number;
  n: number;
  kind: string;
  idType: string | null;
  id: string | null;
  method: string | null;
  relation: string | null;
  toSeq: number | null;
  toN: number | null;
  latency: number | null;
  outcome: string | null;
  problem: string | null;
  askedMethod: string | null;
  askedTarget: string | null;
};

/** A stored frame, whole. A line that a killed recorder left unfinished has `isUnfinished` and comes last. */
export type StoredFrame = {
  seq: number;
  at: number;
  channel: Channel;
  size: number;
  lineEnd: LineEnd;
  part: FramePart;
  truncated: boolean;
  /** Without the original of an edited frame, which `originalOf` reads. */
  http: FrameHttp | null;
  /** The rules that replaced something in it. */
  redacted?: readonly string[];
  isEdited: boolean;
  isUnfinished: boolean;
  payload: Buffer;
  messages: MessageRow[];
};

/** The label that says which other tool has recorded a session. */
export const IMPORTED = 'imported';

const SESSION_COLUMNS = `number, id, name, basis, transport, target, started_at AS startedAt, ended_at AS endedAt,
  end_reason AS endReason, exit_code AS exitCode, signal, host, pid, process_started AS processStarted,
  client_pid AS clientPid, client_program AS clientProgram, era, protocol_version AS protocolVersion,
  client_name AS clientName, client_version AS clientVersion, server_name AS serverName,
  server_version AS serverVersion, frames, indexed, bytes, exchanges, errors, unanswered, dropped,
  dropped_bytes AS droppedBytes, truncated,
  CASE WHEN redaction ->> '$.capture' = 'meta' THEN 'meta' ELSE 'full' END AS capture,
  (SELECT ifnull(max(h.number), 0) FROM http_exchange AS h WHERE h.session = session.number) AS httpExchanges,
  CASE WHEN imported_at IS NOT NULL THEN
    (SELECT l.value FROM label AS l WHERE l.session = session.number AND l.key = '${IMPORTED}') END AS importedFrom`;

/** All sessions, the newest first. */
export function eachSession(store: Store): IterableIterator<SessionRow> {
  const sql = `SELECT ${SESSION_COLUMNS} FROM session ORDER BY started_at DESC, number DESC`;
  return store.prepare<[], SessionRow>(sql).iterate();
}

/** Those whose index of messages is behind their frames. */
export function sessionsBehind(store: Store): SessionRow[] {
  return select(store, 'indexed < frames', NO_LIMIT);
}

const NO_LIMIT = -1;

/** One session by its number. */
export function prepareSession(store: Store): (number: number) => SessionRow | undefined {
  const one = store.prepare<[number], SessionRow>(`SELECT ${SESSION_COLUMNS} FROM session WHERE number = ?`);
  return (number) => one.get(number);
}

/**
 * The session that `reference` names: an id, a name (the newest of that name), a unique prefix of an id, or `latest`.
 * Throws `TapedeckError` `not-found` or `ambiguous`.
 */
export function findSession(store: Store, reference: string): SessionRow {
  const [newest] = select(store, '1', 1);
  if (newest === undefined) {
    throw new TapedeckError(
      'not-found',
      'The store has no session yet. Record one: tapedeck record -- <command>',
    );
  }
  if (reference === 'latest') return newest;
  const [exact] = [...select(store, 'id = ?', 1, reference), ...select(store, 'name = ?', 1, reference)];
  if (exact !== undefined) return exact;
  const [match, another] = select(store, 'instr(id, ?) = 1', 2, reference);
  if (match === undefined) {
    throw new TapedeckError(
      'not-found',
      `No session has the id or name \`${reference}\`. See: tapedeck list`,
    );
  }
  if (another !== undefined) {
    throw new TapedeckError(
      'ambiguous',
      `Several sessions begin with \`${reference}\`. Give more of the id. See: tapedeck list`,
    );
  }
  return match;
}

function select(store: Store, where: string, limit: number, ...values: string[]): SessionRow[] {
  const sql = `SELECT ${SESSION_COLUMNS} FROM session WHERE ${where} ORDER BY started_at DESC, number DESC LIMIT ${limit}`;
  return store.prepare<string[], SessionRow>(sql).all(...values);
}

/**
 * `open`: its recorder is at work. `cut-off`: its recorder was killed before it could say how the session ended. Else
 * how it ended. A session of another host counts as open, because nobody here can tell. `unknown`: the tool that recorded
 * it does not write how sessions end.
 */
export function stateOf(
  session: Pick<SessionRow, 'endReason' | 'host' | 'pid' | 'processStarted'> &
    Partial<Pick<SessionRow, 'importedFrom'>>,
): EndReason | 'open' | 'cut-off' | 'unknown' {
  if (session.endReason !== null) return session.endReason;
  if (session.host !== hostname()) return 'open';
  if (isAlive(session.pid, session.processStarted)) return 'open';
  return session.importedFrom == null ? 'cut-off' : 'unknown';
}

export type BareFrame = Omit<StoredFrame, 'messages'>;
type FrameRow = Pick<StoredFrame, 'seq' | 'at' | 'channel' | 'size' | 'payload'> & {
  flags: string | null;
  exchange: number | null;
  sha256: string | null;
  rules: string | null;
};

const FRAME_COLUMNS = `seq, at, channel, size, flags, payload, http AS exchange, sha256,
  (SELECT rules FROM frame_redaction AS r WHERE r.session = frame.session AND r.seq = frame.seq) AS rules`;
const SELECT_FRAMES = `SELECT ${FRAME_COLUMNS} FROM frame
  WHERE session = ? AND seq > ? ORDER BY seq`;

/** The frames of a session with their messages, in order of `seq`; all of them, or those of a selection. */
export function* eachFrame(store: Store, session: SessionRow, only?: FrameSelection): Generator<StoredFrame> {
  const rows = frameRows(store, session.number, only);
  const complete = prepareCompletion(store, session.number);
  const messages = createMessageCursor(store, session.number, only);
  let lastSeq = 0;
  try {
    for (const row of rows) {
      lastSeq = row.seq;
      yield { ...complete(row), messages: messages.take(row.seq) };
    }
  } finally {
    messages.close();
  }
  for (const frame of unfinishedFrames(store, session.number, lastSeq)) {
    if (only === undefined || only.hasUnfinished(session, frame)) yield frame;
  }
}

function frameRows(store: Store, session: number, only?: FrameSelection): IterableIterator<FrameRow> {
  const sql = `SELECT ${FRAME_COLUMNS} FROM frame WHERE session = @session ${amongSql('seq', only)} ORDER BY seq`;
  return store.prepare<[object], FrameRow>(sql).iterate({ ...only?.values, session });
}

/** The frames of a session without their messages, in order of `seq`; those left unfinished come last. */
export function* eachBareFrame(store: Store, session: number): Generator<BareFrame> {
  const complete = prepareCompletion(store, session);
  let lastSeq = 0;
  for (const row of store.prepare<[number, number], FrameRow>(SELECT_FRAMES).iterate(session, 0)) {
    lastSeq = row.seq;
    yield complete(row);
  }
  yield* unfinishedFrames(store, session, lastSeq);
}

/** Up to `limit` frames after a `seq`, without their messages. Unlike an iterator it leaves the store free for writing. */
export function prepareFramesAfter(
  store: Store,
  session: number,
  limit: number,
): (seq: number) => BareFrame[] {
  const select = store.prepare<[number, number], FrameRow>(`${SELECT_FRAMES} LIMIT ${limit}`);
  const complete = prepareCompletion(store, session);
  return (seq) => select.all(session, seq).map(complete);
}

/** Joins a large payload, which is stored in parts. */
function prepareCompletion(store: Store, session: number): (row: FrameRow) => BareFrame {
  const parts = store
    .prepare<[number, number], Buffer>(
      'SELECT bytes FROM frame_part WHERE session = ? AND seq = ? ORDER BY part',
    )
    .pluck();
  const edited = new Set(
    store.prepare<[number], number>('SELECT seq FROM frame_edit WHERE session = ?').pluck().all(session),
  );
  return ({ flags, exchange, sha256, rules, ...row }) => {
    const rest = row.payload.length === PART_BYTES ? parts.all(session, row.seq) : [];
    const payload = rest.length > 0 ? Buffer.concat([row.payload, ...rest]) : row.payload;
    const { marks, ...form } = formOf(flags, row.channel);
    const http = exchange === null ? null : { exchange, marks, original: null, sha256 };
    const redacted = rules === null ? {} : { redacted: rules.split(' ') };
    return {
      ...row,
      ...form,
      payload,
      http,
      ...redacted,
      isEdited: edited.has(row.seq),
      isUnfinished: false,
    };
  };
}

type UnfinishedRow = { channel: Channel; part: number; at: number; bytes: Buffer; exchange: number | null };

/** What had not ended when the recorder was gone, or has not yet; numbered on after `lastSeq`. */
export function* unfinishedFrames(store: Store, session: number, lastSeq: number): Generator<StoredFrame> {
  const rows = store
    .prepare<[number], UnfinishedRow>(
      `SELECT channel, part, at, bytes, http AS exchange FROM unfinished
       WHERE session = ? ORDER BY channel, exchange, part`,
    )
    .all(session);
  let seq = lastSeq;
  const starts = rows.filter(({ part }) => part === 0);
  for (const { channel, exchange } of starts) {
    const own = rows.filter((row) => row.channel === channel && row.exchange === exchange);
    const payload = Buffer.concat(own.map((row) => row.bytes));
    const at = own.at(-1)?.at ?? 0;
    const http = exchange === null ? null : { exchange, marks: [], original: null, sha256: null };
    seq += 1;
    yield {
      seq,
      at,
      channel,
      size: payload.length,
      lineEnd: '',
      part: 'line',
      truncated: true,
      http,
      isEdited: false,
      isUnfinished: true,
      payload,
      messages: [],
    };
  }
}
