/** Reading a store. Long results are iterators: a session of any length is read in constant memory. */

import { hostname } from 'node:os';
import { TapedeckError } from '../errors.ts';
import type { Channel, FramePart, LineEnd } from '../protocol/frame.ts';
import { formOf } from './frame-flags.ts';
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
  isUnfinished: boolean;
  payload: Buffer;
  messages: MessageRow[];
};

const SESSION_COLUMNS = `number, id, name, basis, transport, target, started_at AS startedAt, ended_at AS endedAt,
  end_reason AS endReason, exit_code AS exitCode, signal, host, pid, process_started AS processStarted,
  client_pid AS clientPid, client_program AS clientProgram, protocol_version AS protocolVersion,
  client_name AS clientName, client_version AS clientVersion, server_name AS serverName,
  server_version AS serverVersion, frames, indexed, bytes, exchanges, errors, unanswered, dropped,
  dropped_bytes AS droppedBytes, truncated`;

/** All sessions, the newest first. */
export function eachSession(store: Store): IterableIterator<SessionRow> {
  const sql = `SELECT ${SESSION_COLUMNS} FROM session ORDER BY started_at DESC, number DESC`;
  return store.prepare<[], SessionRow>(sql).iterate();
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
 * how it ended. A session of another host counts as open, because nobody here can tell.
 */
export function stateOf(session: SessionRow): EndReason | 'open' | 'cut-off' {
  if (session.endReason !== null) return session.endReason;
  if (session.host !== hostname()) return 'open';
  return isAlive(session.pid, session.processStarted) ? 'open' : 'cut-off';
}

type BareFrame = Omit<StoredFrame, 'messages'>;
type FrameRow = Pick<StoredFrame, 'seq' | 'at' | 'channel' | 'size' | 'payload'> & { flags: string | null };

const SELECT_FRAMES = `SELECT seq, at, channel, size, flags, payload FROM frame
  WHERE session = ? AND seq > ? ORDER BY seq`;

/** The frames of a session with their messages, in order of `seq`. */
export function* eachFrame(store: Store, session: SessionRow): Generator<StoredFrame> {
  const rows = store.prepare<[number, number], FrameRow>(SELECT_FRAMES).iterate(session.number, 0);
  const complete = prepareCompletion(store, session.number);
  const messages = createMessageCursor(store, session.number);
  let lastSeq = 0;
  try {
    for (const row of rows) {
      lastSeq = row.seq;
      yield { ...complete(row), messages: messages.take(row.seq) };
    }
  } finally {
    messages.close();
  }
  yield* unfinishedFrames(store, session.number, lastSeq);
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
  return ({ flags, ...row }) => {
    const rest = row.payload.length < row.size ? parts.all(session, row.seq) : [];
    const payload = rest.length > 0 ? Buffer.concat([row.payload, ...rest]) : row.payload;
    return { ...row, ...formOf(flags), payload, isUnfinished: false };
  };
}

/** Walks the messages in step with the frames. */
function createMessageCursor(
  store: Store,
  session: number,
): { take(seq: number): MessageRow[]; close(): void } {
  const rows = store
    .prepare<[number], MessageRow>(
      `SELECT m.seq, m.n, m.kind, m.id_type AS idType, m.id, m.method, m.relation, m.to_seq AS toSeq, m.latency,
         m.outcome, m.problem, asked.canonical AS askedMethod, asked.target AS askedTarget
       FROM message AS m
       LEFT JOIN message AS asked ON asked.session = m.session AND asked.seq = m.to_seq AND asked.n = m.to_n
       WHERE m.session = ? ORDER BY m.seq, m.n`,
    )
    .iterate(session);
  let next = rows.next();
  return {
    take(seq) {
      const taken: MessageRow[] = [];
      while (!next.done && next.value.seq <= seq) {
        if (next.value.seq === seq) taken.push(next.value);
        next = rows.next();
      }
      return taken;
    },
    close: () => void rows.return?.(),
  };
}

function* unfinishedFrames(store: Store, session: number, lastSeq: number): Generator<StoredFrame> {
  const rows = store
    .prepare<[number], { channel: Channel; at: number; bytes: Buffer }>(
      'SELECT channel, at, bytes FROM unfinished WHERE session = ? ORDER BY channel, part',
    )
    .all(session);
  let seq = lastSeq;
  for (const channel of new Set(rows.map((row) => row.channel))) {
    const own = rows.filter((row) => row.channel === channel);
    const payload = Buffer.concat(own.map((row) => row.bytes));
    const at = own.at(-1)?.at ?? 0;
    seq += 1;
    yield {
      seq,
      at,
      channel,
      size: payload.length,
      lineEnd: '',
      part: 'line',
      truncated: true,
      isUnfinished: true,
      payload,
      messages: [],
    };
  }
}

/** The places (`seq.n`) of a session's requests that were neither answered nor cancelled. */
export function unansweredPlaces(store: Store, session: SessionRow): Set<string> {
  const rows = store
    .prepare<[number], string>(
      `SELECT m.seq || '.' || m.n FROM message AS m
       WHERE m.session = ? AND m.kind = 'request' AND NOT EXISTS (
         SELECT 1 FROM message AS a WHERE a.session = m.session AND a.to_seq = m.seq AND a.to_n = m.n
           AND a.relation IN ('reply', 'cancel'))`,
    )
    .pluck()
    .all(session.number);
  return new Set(rows);
}
