import type { Channel, FrameFault, FrameHttp, FramePart, LineEnd } from '../../protocol/wire/frame.ts';
import { partSql, payloadLengthSql, payloadSql } from '../file/codec.ts';
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
  canonical: string | null;
  target: string | null;
  errorCode: number | null;
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
  /** What was done to it on purpose. */
  fault?: FrameFault;
  /** Its sender had sent something else, which `originalOf` reads. */
  isEdited: boolean;
  isUnfinished: boolean;
  payload: Buffer;
  messages: MessageRow[];
};

export type BareFrame = Omit<StoredFrame, 'messages'>;

export type FrameRow = Pick<StoredFrame, 'seq' | 'at' | 'channel' | 'size' | 'payload'> & {
  flags: string | null;
  exchange: number | null;
  sha256: string | null;
  rules: string | null;
  /** Number, rule and action, as a JSON array. */
  fault: string | null;
};

export const FAULT_COLUMN = `(SELECT json_array(x.number, x.rule, x.action) FROM frame_fault AS x
    WHERE x.session = frame.session AND x.seq = frame.seq) AS fault`;

const FRAME_COLUMNS = `seq, at, channel, size, flags, ${payloadSql()} AS payload, http AS exchange, sha256,
  (SELECT rules FROM frame_redaction AS r WHERE r.session = frame.session AND r.seq = frame.seq) AS rules,
  ${FAULT_COLUMN}`;

const SELECT_FRAMES = `SELECT ${FRAME_COLUMNS} FROM frame
  WHERE session = ? AND seq > ? ORDER BY seq`;

/**
 * The frames of a session with their messages, in order of `seq`; all that it has now, or those of a selection. Between two frames
 * no statement is open.
 */
export function* eachFrame(store: Store, session: SessionRow, only?: FrameSelection): Generator<StoredFrame> {
  const complete = prepareCompletion(store, session.number);
  const messagesBetween = prepareMessagesBetween(store, session.number);
  const last = lastSeqOf(store, session.number);
  for (const rows of framePages(store, session.number, last, only)) {
    // Those of a selection may lie far apart.
    const together =
      only === undefined ? messagesBetween((rows[0]?.seq ?? 1) - 1, rows.at(-1)?.seq ?? 0) : [];
    const bySeq = groupBySeq(together);
    for (const row of rows) {
      const messages = only === undefined ? bySeq.get(row.seq) : messagesBetween(row.seq - 1, row.seq);
      yield Object.assign(complete(row), { messages: messages ?? [] });
    }
  }
  for (const frame of unfinishedFrames(store, session.number, last)) {
    if (only === undefined || only.hasUnfinished(session, frame)) yield frame;
  }
}

/** The messages of a stretch of frames, by frame. */
export function groupBySeq<M extends { seq: number }>(messages: readonly M[]): ReadonlyMap<number, M[]> {
  const groups = new Map<number, M[]>();
  for (const message of messages) {
    const group = groups.get(message.seq);
    if (group === undefined) groups.set(message.seq, [message]);
    else group.push(message);
  }
  return groups;
}

/** The number of a session's last whole frame; 0 where it has none. */
export function lastSeqOf(store: Store, session: number): number {
  const last = store.prepare<[number], number | null>('SELECT max(seq) FROM frame WHERE session = ?').pluck();
  return last.get(session) ?? 0;
}

/** So many frames are read together, or fewer where they are large. */
export const PAGE_FRAMES = 1000;

const PAGE_BYTES = 1024 * 1024;

/** The frames up to one, in pages. */
function* framePages(
  store: Store,
  session: number,
  last: number,
  only: FrameSelection | undefined,
): Generator<FrameRow[]> {
  const select = store.prepare<[object], FrameRow>(
    `SELECT ${FRAME_COLUMNS} FROM frame
     WHERE session = @session AND seq > @after AND seq <= @upTo ${amongStretchSql('seq', only)} ORDER BY seq`,
  );
  for (let after = 0; after < last; ) {
    const upTo = Math.min(last, after + PAGE_FRAMES);
    const rows: FrameRow[] = [];
    let bytes = 0;
    for (const row of select.iterate({ ...only?.values, session, after, upTo })) {
      rows.push(row);
      bytes += row.payload.length;
      if (bytes >= PAGE_BYTES) break;
    }
    after = bytes >= PAGE_BYTES ? (rows.at(-1)?.seq ?? upTo) : upTo;
    if (rows.length > 0) yield rows;
  }
}

/** The frames of a session without their messages, as `eachFrame` has them; those left unfinished come last. */
export function* eachBareFrame(store: Store, session: number): Generator<BareFrame> {
  const complete = prepareCompletion(store, session);
  const last = lastSeqOf(store, session);
  for (const rows of framePages(store, session, last, undefined)) for (const row of rows) yield complete(row);
  yield* unfinishedFrames(store, session, last);
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

/** The same for whatever session: for those who go through many, where a statement for each would cost its memory. */
export function prepareFramesOfAny(
  store: Store,
  limit: number,
): (session: number, seq: number) => BareFrame[] {
  const select = store.prepare<[number, number], FrameRow>(`${SELECT_FRAMES} LIMIT ${limit}`);
  const completionOf = prepareCompletions(store);
  return (session, seq) => {
    const rows = select.all(session, seq);
    if (rows.length === 0) return [];
    const complete = completionOf(session, seq, rows.at(-1)?.seq ?? seq);
    return rows.map((row) => {
      const frame = complete(row);
      frame.payload = ofNode(frame.payload);
      return frame;
    });
  };
}

/**
 * V8 tells buffers that better-sqlite3 has made from those of Node. Where a recorder has read messages out of the ones, the first of the
 * others makes it give up some twenty functions that it had compiled, and compile them again, for both and slower. This view is of
 * Node; one by `subarray` would be, too, and make V8 give up that function.
 */
function ofNode(bytes: Buffer): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** Joins a large payload, which is stored in parts. */
function prepareCompletion(store: Store, session: number): (row: FrameRow) => BareFrame {
  return prepareCompletions(store)(session, 0, Number.MAX_SAFE_INTEGER);
}

/** The same for the frames of any session after one up to another. */
function prepareCompletions(
  store: Store,
): (session: number, after: number, upTo: number) => (row: FrameRow) => BareFrame {
  const parts = store
    .prepare<[number, number], Buffer>(
      `SELECT ${partSql()} FROM frame_part WHERE session = ? AND seq = ? ORDER BY part`,
    )
    .pluck();
  const originals = store
    .prepare<[number, number], Buffer>('SELECT original FROM frame_edit WHERE session = ? AND seq = ?')
    .pluck();
  const editedBetween = store
    .prepare<[number, number, number], number>(
      'SELECT seq FROM frame_edit WHERE session = ? AND seq > ? AND seq <= ?',
    )
    .pluck();
  return (session, after, upTo) => {
    const edited = new Set(editedBetween.all(session, after, upTo));
    return (row) => {
      const frame = frameOf(row, edited.has(row.seq));
      const rest = row.payload.length === PART_BYTES ? parts.all(session, row.seq) : [];
      if (rest.length > 0) frame.payload = Buffer.concat([row.payload, ...rest]);
      if (frame.fault !== undefined && frame.isEdited)
        frame.fault.original = originals.get(session, row.seq) ?? null;
      return frame;
    };
  };
}

/**
 * Without the original of a fault, which may be large. Field by field: spreading objects took a reader of 1,000 frames a tenth of
 * its time, while V8 has not compiled this.
 */
export function frameOf(row: FrameRow, isEdited: boolean): BareFrame {
  const { exchange, sha256, rules, fault } = row;
  const { lineEnd, part, truncated, client, marks } = formOf(row.flags, row.channel);
  const frame: BareFrame = {
    seq: row.seq,
    at: row.at,
    channel: row.channel,
    size: row.size,
    lineEnd,
    part,
    truncated,
    http: exchange === null ? null : { exchange, marks, original: null, sha256 },
    isEdited,
    isUnfinished: false,
    payload: row.payload,
  };
  if (client !== undefined) frame.client = client;
  if (rules !== null) frame.redacted = rules.split(' ');
  if (fault !== null) frame.fault = readFault(fault);
  return frame;
}

function readFault(text: string): FrameFault {
  const [number, rule, action] = JSON.parse(text) as [number, string, string];
  return { number, rule, action, original: null };
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
const SELECT_MESSAGES = `SELECT m.seq, m.n, m.kind, m.id_type AS idType, m.id, m.method, m.canonical, m.target,
    m.error_code AS errorCode, m.relation, m.to_seq AS toSeq, m.to_n AS toN, m.latency, m.outcome, m.problem,
    asked.canonical AS askedMethod, asked.target AS askedTarget
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

/** The joint between the filter language, which the store does not know, and all that reads frames. */

/** Some frames of a session: SQL for their `seq`, a column of that name, with `@session` for the session's number and these values by name. */
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
 * The same where it is known to be between `@after`, left out, and `@upTo`: of a long session it takes its time to select all
 * frames, and would take it for each stretch.
 */
export function amongStretchSql(seq: string, only: FrameSelection | undefined): string {
  if (only === undefined) return '';
  return `AND ${seq} IN (SELECT seq FROM (${only.sql}) WHERE seq > @after AND seq <= @upTo)`;
}

/**
 * Reads the payloads of a session's frames by number. Callers ask for most of them, mostly in order, and often again: small ones
 * are read together with those around them, and stay in memory, so that a recording of some thousand calls is read once. Memory
 * is bounded: of a longer one the latest are kept, and nothing large is.
 */

type Payload = { channel: Channel; payload: Buffer };

/** Lists with a comma between, and the payloads in the same order, one after another. Null where there is no frame. */
type Together = [seqs: string, channels: string, lengths: string, bytes: Buffer] | [null, null, null, null];

/** Frames that were read together. `ends`: where the payload of each ends in `bytes`. */
type Batch = { seqs: readonly number[]; channels: readonly string[]; ends: number[]; bytes: Buffer };

const TOGETHER = 64;

/** Larger ones are read when they are asked for. */
const MAX_SMALL_BYTES = 16 * 1024;

const MAX_KEPT_BYTES = 16 * 1024 * 1024;

/** Besides the payloads. */
const BATCH_BYTES = 1024;

/** Returns undefined for a frame that does not exist. */
export function preparePayloads(store: Store, session: number): (seq: number) => Payload | undefined {
  // In one value, as to hand over a row costs more than all else. As text they are joined byte for byte, whatever they are.
  const selectSmall = store
    .prepare<[number, number, number], Together>(
      `SELECT group_concat(seq), group_concat(channel), group_concat(${payloadLengthSql()}),
         CAST(group_concat(${payloadSql()}, '') AS BLOB)
       FROM frame WHERE session = ? AND seq >= ? AND seq < ? AND size <= ${MAX_SMALL_BYTES}`,
    )
    .raw();
  const select = store.prepare<[number, number], Payload>(
    `SELECT channel, ${payloadSql()} AS payload FROM frame WHERE session = ? AND seq = ?`,
  );
  const parts = store
    .prepare<[number, number], Buffer>(
      `SELECT ${partSql()} FROM frame_part WHERE session = ? AND seq = ? ORDER BY part`,
    )
    .pluck();
  const kept = new Map<number, Batch>();
  let keptBytes = 0;

  function read(number: number): Batch {
    const from = number * TOGETHER;
    const batch = batchOf(selectSmall.get(session, from, from + TOGETHER));
    keptBytes += batch.bytes.length + BATCH_BYTES;
    if (keptBytes > MAX_KEPT_BYTES) {
      kept.clear();
      keptBytes = batch.bytes.length + BATCH_BYTES;
    }
    kept.set(number, batch);
    return batch;
  }

  /** Joins a large payload, which is stored in parts. */
  function readAlone(seq: number): Payload | undefined {
    const frame = select.get(session, seq);
    const rest = frame?.payload.length === PART_BYTES ? parts.all(session, seq) : [];
    if (frame === undefined || rest.length === 0) return frame;
    return { channel: frame.channel, payload: Buffer.concat([frame.payload, ...rest]) };
  }

  return (seq) => {
    const number = Math.floor(seq / TOGETHER);
    const { seqs, channels, ends, bytes } = kept.get(number) ?? read(number);
    // Mostly none is missing between them.
    const near = seq - (seqs[0] ?? 0);
    const i = seqs[near] === seq ? near : seqs.indexOf(seq);
    if (i < 0) return readAlone(seq);
    return { channel: channels[i] as Channel, payload: bytes.subarray(i === 0 ? 0 : ends[i - 1], ends[i]) };
  };
}

function batchOf(found: Together | undefined): Batch {
  const [seqs, channels, lengths, bytes] = found ?? [null, null, null, null];
  if (seqs === null) return { seqs: [], channels: [], ends: [], bytes: Buffer.alloc(0) };
  const ends: number[] = JSON.parse(`[${lengths}]`);
  for (let i = 1; i < ends.length; i += 1) ends[i] = (ends[i] as number) + (ends[i - 1] as number);
  return { seqs: JSON.parse(`[${seqs}]`), channels: channels.split(','), ends, bytes };
}
