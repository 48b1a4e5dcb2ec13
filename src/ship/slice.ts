/** What of one session goes to the engine in one transaction: read from the local store at one moment, in bounded memory. */

import { withStandIns } from '../engine/odd.ts';
import { tableNamed } from '../engine/tables.ts';
import type { Store } from '../store/file/open.ts';
import { sampleOfBoth } from '../store/sample/ship-sample.ts';
import { type Copied, type CopyValue, createRowCopy, type RowCopy, valueColumns } from './copy-rows.ts';
import {
  type Budget,
  type CopyOf,
  columnListOf,
  type LargePart,
  prepareFrameCopies,
  ROW_BYTES,
} from './frames.ts';
import type { Advance, ExchangeProgress, SessionProgress } from './progress.ts';

export type Slice = {
  progress: SessionProgress;
  /** The columns of the session's row, as the local store has them. */
  row: Record<string, unknown>;
  /** By table: rows that cannot be there yet. */
  rows: ReadonlyMap<string, Copied>;
  /** HTTP exchanges that are there, and have changed since. */
  changed: readonly Record<string, unknown>[];
  /** We do not know which HTTP exchanges are there: those of `rows` are the first ones. */
  clearsExchanges: boolean;
  parts: readonly LargePart[];
  /** Rows of `frame_edit` that are read when they are sent, one piece at a time. */
  largeEdits: () => Iterable<Copied>;
  /** Requests whose outcome may have come after them. */
  outcomes: readonly { seq: number; n: number; outcome: string }[];
  /** What takes the place of what is there; null: nothing has changed. */
  unfinished: (() => Iterable<Copied>) | null;
  /** How far the session is, once all of that is committed. */
  after: Advance;
  /** There is more of it at this moment. */
  hasMore: boolean;
  /** About how much memory its rows take. */
  weight: number;
};

/** `isOver`: its recorder has ended it, or is gone. `sample`: the share of such sessions that are shipped; null: all are. */
export type SessionToShip = { progress: SessionProgress; isOver: boolean; sample: number | null };

const MESSAGES_AT_ONCE = 10_000;

const EXCHANGES_AT_ONCE = 500;

/** Larger beginnings of lines and bodies wait until the session has ended. */
const UNFINISHED_WITHIN_BYTES = 256 * 1024;

type Row = Record<string, string | number | Buffer | null>;

const SESSION_COLUMNS = new Set(tableNamed('session').columns.map(({ name }) => name));

/** `own`: columns that are the same for all sessions of this store. */
export function prepareSlices(
  store: Store,
  own: Readonly<Record<string, unknown>>,
): (session: SessionToShip, budget: Budget) => Slice | null {
  const selectSession = store.prepare<[number], Row>('SELECT * FROM session WHERE number = ?');
  const isMasked = store.prepare<[number], 1>('SELECT 1 FROM masking WHERE session = ?').pluck();
  const readFrames = prepareFrameCopies(store);
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

  function read({ progress, isOver, sample }: SessionToShip, budget: Budget): Slice | null {
    const { number } = progress;
    const row = selectSession.get(number);
    if (row === undefined || isMasked.get(number) !== undefined) return null;
    if (row['revision'] !== progress.revision) return null;
    const copies = new Map<string, RowCopy>();
    const copyOf = (table: string) => {
      const known = copies.get(table);
      if (known !== undefined) return known;
      const copy = createRowCopy(tableNamed(table), progress.key, progress.day);
      copies.set(table, copy);
      return copy;
    };
    const frames = readFrames(progress, budget, copyOf);
    const messages = readMessages(progress, Math.min(Number(row['indexed']), frames.after.seq), copyOf);
    const exchanges = readExchanges(progress, copyOf);
    const rows = new Map(
      [...copies].flatMap(([table, copy]) => {
        const copied = copy.take();
        return copied.rows > 0 ? [[table, copied] as const] : [];
      }),
    );
    const hasMore = frames.hasMore || messages.hasMore || exchanges.hasMore;
    const isWhole =
      isOver && !hasMore && Number(row['indexed']) >= Number(lastSeq.get(number)) && frames.after.part === 0;
    const unfinished = readUnfinished(progress, isWhole);
    return {
      ...{ progress, rows, hasMore, parts: frames.parts, largeEdits: frames.largeEdits },
      row: readRow(number, { ...row, sample: sampleOfBoth(row['sample'] as number | null, sample) }),
      changed: exchanges.changed,
      clearsExchanges: progress.exchanges === null && rows.has('http_exchange'),
      outcomes: isWhole ? outcomes.all(number) : [],
      unfinished: unfinished?.rows ?? null,
      after: {
        ...frames.after,
        revision: progress.revision,
        indexed: messages.indexed,
        exchanges: exchanges.progress,
        unfinished: unfinished?.word ?? progress.unfinished,
        amendments: Number(row['amendments']),
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
  const isSame = after.state === progress.state && after.amendments === progress.amendments;
  return isNothing && isSame && after.seq === progress.seq;
}

/** The values of a row in the order of the columns. */
function valuesOf(table: string): (row: Readonly<Record<string, unknown>>) => CopyValue[] {
  const names = valueColumns(tableNamed(table)).map(({ name }) => name);
  return (row) => names.map((name) => row[name] as CopyValue);
}

type Messages = { indexed: number; count: number; hasMore: boolean };

/** Messages and traces up to a frame. Those of one frame come together. */
function prepareMessages(
  store: Store,
): (progress: SessionProgress, upTo: number, copyOf: CopyOf) => Messages {
  const select = store
    .prepare<[number, number, number], CopyValue[]>(
      `SELECT ${columnListOf('message')} FROM message WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq, n`,
    )
    .raw();
  const traces = store
    .prepare<[number, number, number], CopyValue[]>(
      `SELECT ${columnListOf('trace')} FROM trace WHERE session = ? AND seq > ? AND seq <= ?`,
    )
    .raw();
  return ({ number, indexed: after }, upTo, copyOf) => {
    if (upTo <= after) return { indexed: after, count: 0, hasMore: false };
    let indexed = after;
    let count = 0;
    let hasMore = false;
    for (const message of select.iterate(number, after, upTo)) {
      const seq = Number(message[0]);
      hasMore = count >= MESSAGES_AT_ONCE && seq > indexed;
      if (hasMore) break;
      copyOf('message').add(message);
      indexed = seq;
      count += 1;
    }
    if (!hasMore) indexed = upTo;
    for (const trace of traces.iterate(number, after, indexed)) copyOf('trace').add(trace);
    return { indexed, count, hasMore };
  };
}

type Exchanges = { changed: Record<string, unknown>[]; progress: ExchangeProgress; hasMore: boolean };

/** HTTP exchanges that are new, and those that have changed since. */
function prepareExchanges(store: Store): (progress: SessionProgress, copyOf: CopyOf) => Exchanges {
  const values = valuesOf('http_exchange');
  const next = store.prepare<[number, number], Row>(
    `SELECT * FROM http_exchange WHERE session = ? AND number > ? ORDER BY number LIMIT ${EXCHANGES_AT_ONCE + 1}`,
  );
  const one = store.prepare<[number, number], Row>(
    'SELECT * FROM http_exchange WHERE session = ? AND number = ?',
  );
  return ({ number, exchanges }, copyOf) => {
    const before = exchanges ?? { upTo: -1, open: new Map<number, string>() };
    const open = new Map(before.open);
    const note = (row: Row) => {
      if (row['ended_at'] === null) open.set(Number(row['number']), wordOf(row));
      else open.delete(Number(row['number']));
    };
    const changed = [...before.open].flatMap(([exchange, word]) => {
      const row = one.get(number, exchange);
      if (row === undefined || wordOf(row) === word) return [];
      note(row);
      return [withStandIns('http_exchange', row)];
    });
    const found = next.all(number, before.upTo);
    const hasMore = found.length > EXCHANGES_AT_ONCE;
    const some = found.slice(0, EXCHANGES_AT_ONCE);
    for (const row of some) {
      note(row);
      copyOf('http_exchange').add(values(row));
    }
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

type Unfinished = { word: string; rows: () => Iterable<Copied> };

/** What has not ended yet; null: nothing has changed, or it is too much for now. */
function prepareUnfinished(store: Store): (progress: SessionProgress, isWhole: boolean) => Unfinished | null {
  const sum = store.prepare<[number], { count: number; bytes: number }>(
    'SELECT count(*) AS count, ifnull(sum(length(bytes)), 0) AS bytes FROM unfinished WHERE session = ?',
  );
  const places = store
    .prepare<[number], number>('SELECT rowid FROM unfinished WHERE session = ? ORDER BY channel, http, part')
    .pluck();
  const piece = store
    .prepare<[number], CopyValue[]>(`SELECT ${columnListOf('unfinished')} FROM unfinished WHERE rowid = ?`)
    .raw();
  return ({ number, key, day, unfinished, frames }, isWhole) => {
    const { count = 0, bytes = 0 } = sum.get(number) ?? {};
    const word = `${count} ${bytes}`;
    const isNew = unfinished === null && frames === 0;
    if ((word === unfinished || isNew) && (count === 0 || !isWhole) && !(isNew && count > 0)) return null;
    if (!isWhole && bytes > UNFINISHED_WITHIN_BYTES) return null;
    const rowids = places.all(number);
    return {
      word,
      *rows() {
        const copy = createRowCopy(tableNamed('unfinished'), key, day);
        for (const rowid of rowids) {
          const row = piece.get(rowid);
          // A row that is gone by now is of a frame that is whole: the next slice has that.
          if (row === undefined) continue;
          copy.add(row);
          yield copy.take();
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
