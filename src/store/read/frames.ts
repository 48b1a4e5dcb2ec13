import type { Channel, FrameHttp, FramePart, LineEnd } from '../../protocol/wire/frame.ts';
import { formOf, PART_BYTES } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import type { SessionRow } from './sessions.ts';

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
  /** Its client, where the session has several: from 2 on. */
  client?: number;
  isEdited: boolean;
  isUnfinished: boolean;
  payload: Buffer;
  messages: MessageRow[];
};

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
  try {
    for (const row of rows) yield { ...complete(row), messages: messages.take(row.seq) };
  } finally {
    messages.close();
  }
  for (const frame of unfinishedFrames(store, session.number, lastSeqOf(store, session.number))) {
    if (only === undefined || only.hasUnfinished(session, frame)) yield frame;
  }
}

/** Of all frames, whether they are selected or not. */
function lastSeqOf(store: Store, session: number): number {
  const last = store.prepare<[number], number | null>('SELECT max(seq) FROM frame WHERE session = ?').pluck();
  return last.get(session) ?? 0;
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

/** Reading the messages of a session. */

/** With the method and target of what an answer answers. */
const SELECT_MESSAGES = `SELECT m.seq, m.n, m.kind, m.id_type AS idType, m.id, m.method, m.relation, m.to_seq AS toSeq,
    m.to_n AS toN, m.latency, m.outcome, m.problem, asked.canonical AS askedMethod, asked.target AS askedTarget
  FROM message AS m
  LEFT JOIN message AS asked ON asked.session = m.session AND asked.seq = m.to_seq AND asked.n = m.to_n
  WHERE m.session = @session`;

/** The messages of the frames after one up to another, that one too. */
export function prepareMessagesBetween(
  store: Store,
  session: number,
): (after: number, upTo: number) => MessageRow[] {
  const select = store.prepare<[object], MessageRow>(
    `${SELECT_MESSAGES} AND m.seq > @after AND m.seq <= @upTo ORDER BY m.seq, m.n`,
  );
  return (after, upTo) => select.all({ session, after, upTo });
}

/** Walks the messages in step with the frames, or with those of a selection. */
function createMessageCursor(
  store: Store,
  session: number,
  only?: FrameSelection,
): { take(seq: number): MessageRow[]; close(): void } {
  const sql = `${SELECT_MESSAGES} ${amongSql('m.seq', only)} ORDER BY m.seq, m.n`;
  const rows = store.prepare<[object], MessageRow>(sql).iterate({ ...only?.values, session });
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

/** The joint between the filter language, which the store does not know, and all that reads frames. */

/** Some frames of a session: SQL for their `seq`, with `@session` for the session's number and these values by name. */
export type FrameSelection = {
  sql: string;
  values: Readonly<Record<string, string | number>>;
  /** Whether a frame that has not ended is among them. */
  hasUnfinished: (session: SessionRow, frame: StoredFrame) => boolean;
};

/** The condition that a `seq` is among the selected; nothing where all are. */
export function amongSql(seq: string, only: FrameSelection | undefined): string {
  return only === undefined ? '' : `AND ${seq} IN (${only.sql})`;
}

/**
 * Reads the payloads of a session's frames by number. Callers need few at a time, mostly one after another: where they ask in
 * order, small ones that follow are read ahead. Memory is bounded: nothing large is kept.
 */

type Payload = { channel: Channel; payload: Buffer };

/** Lists with a space between, and the payloads in the same order, one after another. Null where there is no frame. */
type Together = [seqs: string, channels: string, lengths: string, bytes: Buffer] | [null, null, null, null];

const MOST_AHEAD = 64;

/** An answer mostly follows its request. */
const LEAST_AHEAD = 2;

/** Larger ones are read when they are asked for. */
const MAX_BYTES_AHEAD = 16 * 1024;

const MAX_KEPT = 256;

const NOTHING: Together = [null, null, null, null];

/** Returns undefined for a frame that does not exist. */
export function preparePayloads(store: Store, session: number): (seq: number) => Payload | undefined {
  // In one value, as to hand over a row costs more than all else. As text they are joined byte for byte, whatever they are.
  const selectSmall = store
    .prepare<[number, number, number], Together>(
      `SELECT group_concat(seq, ' '), group_concat(channel, ' '), group_concat(length(payload), ' '),
         CAST(group_concat(payload, '') AS BLOB)
       FROM frame WHERE session = ? AND seq >= ? AND seq < ? AND size <= ${MAX_BYTES_AHEAD}`,
    )
    .raw();
  const select = store.prepare<[number, number], Payload>(
    'SELECT channel, payload FROM frame WHERE session = ? AND seq = ?',
  );
  const parts = store
    .prepare<[number, number], Buffer>(
      'SELECT bytes FROM frame_part WHERE session = ? AND seq = ? ORDER BY part',
    )
    .pluck();
  const kept = new Map<number, Payload>();
  /** What was read last ends before this one. */
  let next = 0;
  let ahead = LEAST_AHEAD;

  function read(from: number): Payload | undefined {
    ahead = from >= next && from < next + LEAST_AHEAD ? Math.min(ahead * 2, MOST_AHEAD) : LEAST_AHEAD;
    next = from + ahead;
    if (kept.size + ahead > MAX_KEPT) kept.clear();
    keep(selectSmall.get(session, from, next) ?? NOTHING);
    return kept.get(from) ?? readAlone(from);
  }

  function keep([seqs, channels, lengths, bytes]: Together): void {
    if (seqs === null) return;
    const channelOf = channels.split(' ') as Channel[];
    const lengthOf = lengths.split(' ');
    let at = 0;
    for (const [i, seq] of seqs.split(' ').entries()) {
      const end = at + Number(lengthOf[i]);
      kept.set(Number(seq), { channel: channelOf[i] as Channel, payload: bytes.subarray(at, end) });
      at = end;
    }
  }

  /** Joins a large payload, which is stored in parts. */
  function readAlone(seq: number): Payload | undefined {
    const frame = select.get(session, seq);
    const rest = frame?.payload.length === PART_BYTES ? parts.all(session, seq) : [];
    if (frame === undefined || rest.length === 0) return frame;
    return { channel: frame.channel, payload: Buffer.concat([frame.payload, ...rest]) };
  }

  return (seq) => kept.get(seq) ?? read(seq);
}
