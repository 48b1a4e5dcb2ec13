/**
 * Takes what a recorder wrote into its spool into the store, in short transactions, beside other recorders. It can be
 * killed at any moment and begun again by anybody: a session has one id in both files, frames are copied in their order
 * behind the last one that the store has, and all else replaces what stood there. Nothing comes in twice. Frames between the
 * two are gone with what was pruned or removed meanwhile: the session counts them as lost.
 *
 * The index of messages does not come along: the session is behind afterwards, and its recorder or the next reader indexes it.
 */

import type { RunEvidence } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { adoptKey, placeholderKey } from '../file/secret.ts';
import { insertRow, NEXT_NUMBER } from './rows.ts';
import { prepareRunJoin } from './run.ts';

export type TakeIn = {
  /** More of this session, by its number in the spool, is to be taken in. */
  add(session: number): void;
  /**
   * Takes in for about `maxMs` milliseconds, at least one transaction. True: nothing is left. Throws SQLite's errors; then
   * nothing is half done.
   */
  advance(maxMs: number): boolean;
};

/** One transaction takes so much at most (or one frame): other writers wait for some milliseconds. */
const ROWS_AT_ONCE = 512;

const BYTES_AT_ONCE = 1024 * 1024;

/** What belongs to a frame, by its place. */
const OF_FRAMES = ['frame_part', 'frame_redaction', 'frame_edit', 'frame_fault', 'sse_event'];

/** What only the newest row of a session knows. Losses only grow. */
const NEWEST = [
  ...['basis', 'transport', 'server_pid', 'ended_at', 'end_reason', 'exit_code', 'signal'],
  ...['client_closed_at', 'server_closed_at', 'sample', 'sampling'],
];

/** What may be found out later than the session begins. */
const CLIENT = ['client_pid', 'client_program', 'client_started'];

type SessionColumns = { number: number; id: string; dropped: number; dropped_bytes: number };

type FrameColumns = {
  seq: number;
  channel: string;
  size: number;
  flags: string | null;
  http: number | null;
  payload: Buffer;
};

/** Takes all sessions of the spool in. The two are connections of the same thread. */
export function createTakeIn(store: Store, spool: Store): TakeIn {
  // The parents of every row come before it: checking that would only cost time.
  store.pragma('foreign_keys = OFF');
  const due = new Set(spool.prepare<[], number>('SELECT number FROM session ORDER BY number').pluck().all());
  const takeSession = prepareSession(store, spool);
  const exchanges = prepareExchanges(store, spool);
  const takeFrames = prepareFrames(store, spool);
  const takeUnfinished = prepareUnfinishedCopy(store, spool);
  const key = placeholderKey(spool);

  /** One transaction. Returns the last exchange that it took, if it took any, and whether nothing is left. */
  function takeSome(session: number): { exchange: number | undefined; isAll: boolean } {
    if (key !== undefined) adoptKey(store, key);
    const number = takeSession(session);
    const exchange = exchanges.take(session, number);
    const isAll = exchange === undefined && takeFrames(session, number);
    if (isAll) takeUnfinished(session, number);
    return { exchange, isAll };
  }
  const take = store.transaction(takeSome).immediate;

  return {
    add: (session) => void due.add(session),
    advance(maxMs) {
      const deadline = performance.now() + maxMs;
      for (const session of due) {
        for (let isAll = false; !isAll; ) {
          const taken = take(session);
          if (taken.exchange !== undefined) exchanges.forget(session, taken.exchange);
          isAll = taken.isAll;
          if (isAll) due.delete(session);
          if (performance.now() >= deadline) return due.size === 0;
        }
      }
      return due.size === 0;
    },
  };
}

/** Sees to a session's row, and returns its number in the store. */
function prepareSession(store: Store, spool: Store): (session: number) => number {
  const select = spool.prepare<[number], SessionColumns>('SELECT * FROM session WHERE number = ?');
  const labels = spool.prepare<[number], { key: string; value: string }>(
    'SELECT key, value FROM label WHERE session = ?',
  );
  const find = store.prepare<[string], number>('SELECT number FROM session WHERE id = ?').pluck();
  const nextNumber = store.prepare<[], number>(`SELECT ${NEXT_NUMBER}`).pluck();
  const insert = insertRow(store, 'session', columnsOf(spool, 'session'));
  const insertLabel = store.prepare('INSERT OR IGNORE INTO label (session, key, value) VALUES (?, ?, ?)');
  const update = store.prepare(
    `UPDATE session SET ${NEWEST.map((column) => `${column} = @${column}`).join(', ')},
       ${CLIENT.map((column) => `${column} = coalesce(@${column}, ${column})`).join(', ')},
       dropped = max(dropped, @dropped), dropped_bytes = max(dropped_bytes, @dropped_bytes) WHERE number = @number`,
  );
  const evidence = spool.prepare<[number], RunEvidence>(
    "SELECT kind, key FROM run WHERE session = ? AND kind <> 'trace'",
  );
  const join = prepareRunJoin(store);
  return (session) => {
    const row = select.get(session) as SessionColumns;
    const known = find.get(row.id);
    const number = known ?? Number(nextNumber.get());
    if (known === undefined) {
      insert({ ...row, number, frames: 0, bytes: 0, truncated: 0 });
      for (const { key, value } of labels.all(session)) insertLabel.run(number, key, value);
    } else update.run({ ...row, number });
    for (const one of evidence.all(session)) join(number, one);
    return number;
  };
}

type Exchanges = {
  /** Copies some, and returns the number of the last of them; undefined: there are none. */
  take(session: number, number: number): number | undefined;
  /** Removes them from the spool up to this one, once they are in the store: of theirs, nothing else tells that. */
  forget(session: number, upTo: number): void;
};

function prepareExchanges(store: Store, spool: Store): Exchanges {
  const select = spool.prepare<[number], { number: number }>(
    `SELECT * FROM http_exchange WHERE session = ? ORDER BY number LIMIT ${ROWS_AT_ONCE}`,
  );
  const put = insertRow(store, 'http_exchange', columnsOf(spool, 'http_exchange'), 'REPLACE');
  const remove = spool.prepare('DELETE FROM http_exchange WHERE session = ? AND number <= ?');
  return {
    take(session, number) {
      const rows = select.all(session);
      for (const row of rows) put({ ...row, session: number });
      return rows.at(-1)?.number;
    },
    forget: (session, upTo) => void remove.run(session, upTo),
  };
}

/** Copies some frames behind the last one that the store has. True: these were the last. */
function prepareFrames(store: Store, spool: Store): (session: number, number: number) => boolean {
  const lastSeq = store.prepare<[number], number>('SELECT ifnull(max(seq), 0) FROM frame WHERE session = ?');
  const select = spool.prepare<[number, number], FrameColumns>(
    'SELECT * FROM frame WHERE session = ? AND seq > ? ORDER BY seq',
  );
  const insert = insertRow(store, 'frame', columnsOf(spool, 'frame'));
  const details = OF_FRAMES.map((table) => prepareDetails(store, spool, table));
  const endUnfinished = store.prepare(
    'DELETE FROM unfinished WHERE session = ? AND channel = ? AND http IS ?',
  );
  const count = store.prepare(
    `UPDATE session SET frames = frames + ?, bytes = bytes + ?, truncated = truncated + ?, dropped = dropped + ?
       WHERE number = ?`,
  );

  return (session, number) => {
    const from = Number(lastSeq.pluck().get(number));
    const ended = new Map<string, FrameColumns>();
    let frames = 0;
    let bytes = 0;
    let truncated = 0;
    let missing = 0;
    let isLast = true;
    let last = from;
    for (const frame of select.iterate(session, from)) {
      if (frames === ROWS_AT_ONCE || bytes >= BYTES_AT_ONCE) {
        isLast = false;
        break;
      }
      insert({ ...frame, session: number });
      missing += frame.seq - last - 1;
      ended.set(`${frame.channel} ${frame.http}`, frame);
      frames += 1;
      bytes += frame.size;
      if (frame.flags?.split(' ').includes('truncated')) truncated += 1;
      last = frame.seq;
    }
    if (frames === 0) return true;
    for (const copy of details) copy(session, number, from, last);
    // Their beginnings, which the store had before there was a spool.
    for (const { channel, http } of ended.values()) endUnfinished.run(number, channel, http);
    count.run(frames, bytes, truncated, missing, number);
    return isLast;
  };
}

/** Copies what belongs to the frames after `from`, up to `last`. */
function prepareDetails(
  store: Store,
  spool: Store,
  table: string,
): (session: number, number: number, from: number, last: number) => void {
  const select = spool.prepare<[number, number, number], object>(
    `SELECT * FROM ${table} WHERE session = ? AND seq > ? AND seq <= ?`,
  );
  const insert = insertRow(store, table, columnsOf(spool, table));
  return (session, number, from, last) => {
    for (const row of select.iterate(session, from, last)) insert({ ...row, session: number });
  };
}

/** Copies what was not whole at the last commit. All frames are in the store before. */
function prepareUnfinishedCopy(store: Store, spool: Store): (session: number, number: number) => void {
  const select = spool.prepare<[number], { channel: string; http: number | null; part: number }>(
    'SELECT * FROM unfinished WHERE session = ? ORDER BY channel, http, part',
  );
  const insert = insertRow(store, 'unfinished', columnsOf(spool, 'unfinished'));
  const remove = store.prepare(
    'DELETE FROM unfinished WHERE session = ? AND channel = ? AND http IS ? AND part >= ?',
  );
  return (session, number) => {
    let before = '';
    for (const piece of select.all(session)) {
      const { channel, http, part } = piece;
      const place = `${channel} ${http}`;
      // Those before it were stored before there was a spool.
      if (place !== before) remove.run(number, channel, http, part);
      before = place;
      insert({ ...piece, session: number });
    }
  };
}

/** The columns of a table, but for a number that each file gives anew. */
function columnsOf(store: Store, table: string): string[] {
  const columns = store.pragma(`table_info(${table})`) as { name: string }[];
  return columns.map(({ name }) => name).filter((name) => name !== 'rowid');
}
