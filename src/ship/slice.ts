/** What of one session goes to the engine in one transaction: read from the local store at one moment, in bounded memory. */

import { withStandIns } from '../engine/odd.ts';
import { tableNamed } from '../engine/tables.ts';
import { partSql, payloadSql } from '../store/file/codec.ts';
import { PART_BYTES } from '../store/file/columns.ts';
import type { Store } from '../store/file/open.ts';
import { type CopyRow, dayNumber, uuidBytes } from './copy-rows.ts';
import { type DigestedFrame, digestWith } from './key.ts';
import type { Advance, ExchangeProgress, SessionProgress } from './progress.ts';

/** The rest of a frame that is too large for one slice. */
export type LargePart = { seq: number; part: number; bytes: Buffer };

export type Slice = {
  progress: SessionProgress;
  /** The columns of the session's row, as the local store has them. */
  row: Record<string, unknown>;
  /** By table: rows that cannot be there yet. */
  rows: ReadonlyMap<string, readonly CopyRow[]>;
  /** HTTP exchanges that are there, and have changed since. */
  changed: readonly Record<string, unknown>[];
  /** We do not know which HTTP exchanges are there: those of `rows` are the first ones. */
  clearsExchanges: boolean;
  parts: readonly LargePart[];
  /** Requests whose outcome may have come after them. */
  outcomes: readonly { seq: number; n: number; outcome: string }[];
  /** What takes the place of what is there; null: nothing has changed. */
  unfinished: (() => Iterable<CopyRow>) | null;
  /** How far the session is, once all of that is committed. */
  after: Advance;
  /** There is more of it at this moment. */
  hasMore: boolean;
  /** About how much memory its rows take. */
  weight: number;
};

/** What a slice may hold. It is exceeded by one frame at most. */
export type Budget = { frames: number; bytes: number };

/** `isOver`: its recorder has ended it, or is gone. */
export type SessionToShip = { progress: SessionProgress; isOver: boolean };

/** A frame with more parts than that has slices of its own. */
const PARTS_AT_ONCE = 4;

const MESSAGES_AT_ONCE = 10_000;

const EXCHANGES_AT_ONCE = 500;

/** Larger beginnings of lines and bodies wait until the session has ended. */
const UNFINISHED_WITHIN_BYTES = 256 * 1024;

/** Beside its payload. */
const ROW_BYTES = 200;

type FrameRow = DigestedFrame & { payload: Buffer };

type Row = Record<string, string | number | Buffer | null>;

const SESSION_COLUMNS = new Set(tableNamed('session').columns.map(({ name }) => name));

/** `own`: columns that are the same for all sessions of this store. */
export function prepareSlices(
  store: Store,
  own: Readonly<Record<string, unknown>>,
): (session: SessionToShip, budget: Budget) => Slice | null {
  const selectSession = store.prepare<[number], Row>('SELECT * FROM session WHERE number = ?');
  const isMasked = store.prepare<[number], 1>('SELECT 1 FROM masking WHERE session = ?').pluck();
  const readFrames = prepareFrames(store);
  const readMessages = prepareMessages(store);
  const readExchanges = prepareExchanges(store);
  const readUnfinished = prepareUnfinished(store);
  const readRow = prepareRow(store, own);
  const outcomes = store.prepare<[number], { seq: number; n: number; outcome: string }>(
    `SELECT seq, n, outcome FROM message WHERE session = ? AND kind = 'request' AND outcome IS NOT NULL ORDER BY seq, n`,
  );
  const lastSeq = store
    .prepare<[number], number>('SELECT ifnull(max(seq), 0) FROM frame WHERE session = ?')
    .pluck();

  function read({ progress, isOver }: SessionToShip, budget: Budget): Slice | null {
    const { number } = progress;
    const row = selectSession.get(number);
    if (row === undefined || isMasked.get(number) !== undefined) return null;
    if (row['revision'] !== progress.revision) return null;
    const base = { session: uuidBytes(progress.key), day: dayNumber(progress.day) };
    const rows = new Map<string, CopyRow[]>();
    const add = (table: string, one: CopyRow) => {
      const list = rows.get(table);
      if (list === undefined) rows.set(table, [{ ...one, ...base }]);
      else list.push({ ...one, ...base });
    };
    const frames = readFrames(progress, budget, add);
    const messages = readMessages(progress, Math.min(Number(row['indexed']), frames.after.seq), add);
    const exchanges = readExchanges(progress, add);
    const hasMore = frames.hasMore || messages.hasMore || exchanges.hasMore;
    const isWhole =
      isOver && !hasMore && Number(row['indexed']) >= Number(lastSeq.get(number)) && frames.after.part === 0;
    const unfinished = readUnfinished(progress, isWhole);
    return {
      ...{ progress, rows, hasMore, parts: frames.parts },
      row: readRow(number, row),
      changed: exchanges.changed,
      clearsExchanges: progress.exchanges === null && rows.has('http_exchange'),
      outcomes: isWhole ? outcomes.all(number) : [],
      unfinished: unfinished && (() => mapped(unfinished.rows(), (one) => ({ ...one, ...base }))),
      after: {
        ...frames.after,
        revision: progress.revision,
        indexed: messages.indexed,
        exchanges: exchanges.progress,
        unfinished: unfinished?.word ?? progress.unfinished,
        state: isWhole ? 'sealed' : 'open',
      },
      weight: frames.weight + ROW_BYTES * messages.count,
    };
  }
  return store.transaction(read).deferred;
}

/** Whether a slice has anything that the engine does not have yet. */
export function isEmpty({ rows, changed, parts, unfinished, after, progress }: Slice): boolean {
  const isNothing = rows.size === 0 && changed.length === 0 && parts.length === 0 && unfinished === null;
  return isNothing && after.state === progress.state && after.seq === progress.seq;
}

function* mapped<T, U>(items: Iterable<T>, change: (item: T) => U): Generator<U> {
  for (const item of items) yield change(item);
}

type Add = (table: string, row: CopyRow) => void;

type Frames = {
  after: Pick<Advance, 'seq' | 'frames' | 'bytes' | 'digest' | 'part'>;
  parts: LargePart[];
  hasMore: boolean;
  weight: number;
};

/** Frames with what belongs to them. */
function prepareFrames(store: Store): (progress: SessionProgress, budget: Budget, add: Add) => Frames {
  const select = store.prepare<[number, number], FrameRow>(
    `SELECT f.seq, f.at, f.channel, f.size, f.flags, f.http, f.sha256, r.rules, ${payloadSql('f.')} AS payload FROM frame AS f
       LEFT JOIN frame_redaction AS r ON r.session = f.session AND r.seq = f.seq
       WHERE f.session = ? AND f.seq > ? ORDER BY f.seq`,
  );
  const lastPart = store
    .prepare<[number, number], number>(
      'SELECT ifnull(max(part), 0) FROM frame_part WHERE session = ? AND seq = ?',
    )
    .pluck();
  const partsAfter = store.prepare<[number, number, number], LargePart>(
    `SELECT seq, part, ${partSql()} AS bytes FROM frame_part WHERE session = ? AND seq = ? AND part > ? ORDER BY part`,
  );
  const addDetails = prepareDetails(store);

  function* payloadOf(session: number, { seq, payload }: FrameRow): Generator<Buffer> {
    yield payload;
    if (payload.length < PART_BYTES) return;
    for (const { bytes } of partsAfter.iterate(session, seq, 0)) yield bytes;
  }

  /** Some of the parts of a large frame; null: all of them are there, and the frame itself can follow. */
  function someParts(
    { number, part: there }: SessionProgress,
    seq: number,
    last: number,
  ): LargePart[] | null {
    if (there >= last) return null;
    const parts: LargePart[] = [];
    for (const part of partsAfter.iterate(number, seq, there)) {
      parts.push(part);
      if (parts.length === PARTS_AT_ONCE) break;
    }
    return parts;
  }

  return (progress, budget, add) => {
    const { number } = progress;
    let { seq, frames, bytes, digest } = progress;
    let weight = 0;
    let count = 0;
    const result = (hasMore: boolean, parts: LargePart[] = []): Frames => {
      const part = parts.at(-1)?.part ?? 0;
      if (seq > progress.seq) addDetails(number, progress.seq, seq, add);
      return { after: { seq, frames, bytes, digest, part }, parts, hasMore, weight };
    };
    for (const frame of select.iterate(number, seq)) {
      if (count >= budget.frames || weight >= budget.bytes) return result(true);
      const last = frame.payload.length < PART_BYTES ? 0 : Number(lastPart.get(number, frame.seq));
      if (last >= PARTS_AT_ONCE) {
        // It begins a slice: its parts are counted from there.
        if (count > 0) return result(true);
        const parts = someParts(progress, frame.seq, last);
        if (parts !== null) return result(true, parts);
      } else if (last > 0) {
        for (const part of partsAfter.iterate(number, frame.seq, 0)) {
          add('frame_part', part);
          weight += part.bytes.length;
        }
      }
      digest = digestWith(digest, frame, payloadOf(number, frame));
      add('frame', frame as unknown as CopyRow);
      seq = frame.seq;
      frames += 1;
      bytes += frame.size;
      count += 1;
      weight += frame.payload.length + ROW_BYTES;
    }
    return result(false);
  };
}

/** Rows of tables that have one for some frames. */
function prepareDetails(store: Store): (session: number, after: number, upTo: number, add: Add) => void {
  const plain = ['frame_fault', 'sse_event'].map((table) => ({
    table,
    select: store.prepare<[number, number, number], Row>(
      `SELECT * FROM ${table} WHERE session = ? AND seq > ? AND seq <= ?`,
    ),
  }));
  const edits = store.prepare<[number, number, number], { seq: number; original: Buffer }>(
    'SELECT seq, original FROM frame_edit WHERE session = ? AND seq > ? AND seq <= ?',
  );
  return (session, after, upTo, add) => {
    for (const { table, select } of plain)
      for (const row of select.iterate(session, after, upTo)) add(table, withStandIns(table, row) as CopyRow);
    for (const { seq, original } of edits.iterate(session, after, upTo))
      for (let part = 0; part === 0 || part * PART_BYTES < original.length; part += 1)
        add('frame_edit', {
          seq,
          part,
          original: original.subarray(part * PART_BYTES, (part + 1) * PART_BYTES),
        });
  };
}

type Messages = { indexed: number; count: number; hasMore: boolean };

/** Messages and traces up to a frame. Those of one frame come together. */
function prepareMessages(store: Store): (progress: SessionProgress, upTo: number, add: Add) => Messages {
  const select = store.prepare<[number, number, number], Row & { seq: number }>(
    'SELECT * FROM message WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq, n',
  );
  const traces = store.prepare<[number, number, number], Row>(
    'SELECT seq, trace_id, parent_id FROM trace WHERE session = ? AND seq > ? AND seq <= ?',
  );
  return ({ number, indexed: after }, upTo, add) => {
    if (upTo <= after) return { indexed: after, count: 0, hasMore: false };
    let indexed = after;
    let count = 0;
    let hasMore = false;
    for (const message of select.iterate(number, after, upTo)) {
      hasMore = count >= MESSAGES_AT_ONCE && message.seq > indexed;
      if (hasMore) break;
      add('message', withStandIns('message', message) as CopyRow);
      indexed = message.seq;
      count += 1;
    }
    if (!hasMore) indexed = upTo;
    for (const trace of traces.iterate(number, after, indexed)) add('trace', trace as CopyRow);
    return { indexed, count, hasMore };
  };
}

type Exchanges = { changed: Record<string, unknown>[]; progress: ExchangeProgress; hasMore: boolean };

/** HTTP exchanges that are new, and those that have changed since. */
function prepareExchanges(store: Store): (progress: SessionProgress, add: Add) => Exchanges {
  const next = store.prepare<[number, number], Row>(
    `SELECT * FROM http_exchange WHERE session = ? AND number > ? ORDER BY number LIMIT ${EXCHANGES_AT_ONCE + 1}`,
  );
  const one = store.prepare<[number, number], Row>(
    'SELECT * FROM http_exchange WHERE session = ? AND number = ?',
  );
  return ({ number, exchanges }, add) => {
    const before = exchanges ?? { upTo: -1, open: new Map<number, string>() };
    const open = new Map(before.open);
    const note = (row: Row) => {
      if (row['ended_at'] === null) open.set(Number(row['number']), wordOf(row));
      else open.delete(Number(row['number']));
      return withStandIns('http_exchange', row);
    };
    const changed = [...before.open].flatMap(([exchange, word]) => {
      const row = one.get(number, exchange);
      return row === undefined || wordOf(row) === word ? [] : [note(row)];
    });
    const found = next.all(number, before.upTo);
    const hasMore = found.length > EXCHANGES_AT_ONCE;
    const some = found.slice(0, EXCHANGES_AT_ONCE);
    for (const row of some) add('http_exchange', note(row) as CopyRow);
    return { changed, progress: { upTo: Number(some.at(-1)?.['number'] ?? before.upTo), open }, hasMore };
  };
}

/** Changes whenever the exchange does. */
function wordOf(row: Row): string {
  return JSON.stringify([
    row['request_bytes'],
    row['response_bytes'],
    row['status'],
    row['ended_at'],
    row['error'],
  ]);
}

type Unfinished = { word: string; rows: () => Iterable<CopyRow> };

/** What has not ended yet; null: nothing has changed, or it is too much for now. */
function prepareUnfinished(store: Store): (progress: SessionProgress, isWhole: boolean) => Unfinished | null {
  const sum = store.prepare<[number], { count: number; bytes: number }>(
    'SELECT count(*) AS count, ifnull(sum(length(bytes)), 0) AS bytes FROM unfinished WHERE session = ?',
  );
  const places = store
    .prepare<[number], number>('SELECT rowid FROM unfinished WHERE session = ? ORDER BY channel, http, part')
    .pluck();
  const piece = store.prepare<[number], CopyRow>(
    'SELECT channel, part, at, bytes, http FROM unfinished WHERE rowid = ?',
  );
  return ({ number, unfinished, frames }, isWhole) => {
    const { count = 0, bytes = 0 } = sum.get(number) ?? {};
    const word = `${count} ${bytes}`;
    const isNew = unfinished === null && frames === 0;
    if ((word === unfinished || isNew) && (count === 0 || !isWhole) && !(isNew && count > 0)) return null;
    if (!isWhole && bytes > UNFINISHED_WITHIN_BYTES) return null;
    const rowids = places.all(number);
    return {
      word,
      *rows() {
        for (const rowid of rowids) {
          const row = piece.get(rowid);
          // A row that is gone by now is of a frame that is whole: the next slice has that.
          if (row !== undefined) yield row;
        }
      },
    };
  };
}

/** The session's own row, as the engine has it. */
function prepareRow(
  store: Store,
  own: Readonly<Record<string, unknown>>,
): (session: number, row: Row) => Record<string, unknown> {
  const labels = store.prepare<[number], { key: string; value: string }>(
    'SELECT key, value FROM label WHERE session = ? ORDER BY key',
  );
  const runs = store.prepare<[number], object>(
    'SELECT kind, key, id FROM run WHERE session = ? ORDER BY key',
  );
  return (session, row) => {
    const columns = Object.fromEntries(Object.entries(row).filter(([name]) => SESSION_COLUMNS.has(name)));
    const labelsOf = Object.fromEntries(labels.all(session).map(({ key, value }) => [key, value]));
    return withStandIns('session', { ...columns, ...own, labels: labelsOf, runs: runs.all(session) });
  };
}
