/**
 * More frames for a session that is stored: behind its last one, as a block of their own, whole or not at all. How it
 * began and ended stays as it was. Its index is behind afterwards; who is done with adding calls `reindexSession`, and if
 * nobody does, the next reader that needs the index.
 */
import type { Frame } from '../protocol/frame.ts';
import type { HttpExchange } from './http-exchange.ts';
import { createHttpWriter } from './http-writer.ts';
import { createLiveSession } from './live-session.ts';
import type { Store } from './open.ts';
import { removeSession } from './removal.ts';
import type { Basis, EndReason, Transport } from './session-writer.ts';

/** HTTP exchanges count from 1 within the block, and so do the frames that `endedAfter` counts. */
export type Block = { frames: readonly Frame[]; exchanges: readonly HttpExchange[] };

/** What blocks are added to. */
export type Tape = {
  /** Throws where it cannot be stored. */
  add(block: Block): void;
  /** Settles when everything is where it is to be. `at`: when it ended. Rejects with `TapedeckError` or SQLite's errors. */
  finish(at: number): Promise<void>;
  /** Leaves a recording that was to be replaced as it was. */
  discard(): Promise<void>;
};

export type SessionAppend = {
  /** `exchangesBefore`: so many have numbers elsewhere; else as many as are stored. Throws SQLite's errors. */
  add(block: Block, exchangesBefore?: number): void;
};

type State = {
  basis: Basis;
  transport: Transport;
  endedAt: number | null;
  endReason: EndReason | null;
  dropped: number;
  droppedBytes: number;
  lastSeq: number;
  lastExchange: number;
};

/** Several processes may add to one session at once: each block gets the numbers that are free when it is stored. */
export function appendTo(store: Store, session: number): SessionAppend {
  // As for a recorder: parts of a frame go in before the frame itself.
  store.pragma('foreign_keys = OFF');
  // What is added was redacted before.
  const writer = createHttpWriter(store, null);
  const select = store.prepare<[number], State>(
    `SELECT basis, transport, ended_at AS endedAt, end_reason AS endReason, dropped, dropped_bytes AS droppedBytes,
       (SELECT ifnull(max(seq), 0) FROM frame WHERE session = number) AS lastSeq,
       (SELECT ifnull(max(h.number), 0) FROM http_exchange AS h WHERE h.session = session.number) AS lastExchange
     FROM session WHERE number = ?`,
  );

  function write({ frames, exchanges }: Block, exchangesBefore: number | undefined): void {
    const state = select.get(session);
    if (state === undefined) throw new Error('the session is not in the store any more');
    const { basis, transport, endedAt, endReason, lastSeq, lastExchange } = state;
    const before = Math.max(exchangesBefore ?? 0, lastExchange);
    const live = createLiveSession(session, 0, () => {}, lastSeq);
    const end = endedAt === null || endReason === null ? null : { at: endedAt, reason: endReason };
    live.change({ basis, transport, end });
    live.lose(state.dropped, state.droppedBytes);
    for (const exchange of exchanges) {
      const endedAfter = exchange.endedAfter === null ? null : exchange.endedAfter + lastSeq;
      live.touch({ ...exchange, number: exchange.number + before, endedAfter });
    }
    for (const frame of frames) {
      const { http } = frame;
      live.add(
        http === null ? frame : { ...frame, http: { ...http, exchange: http.exchange + before } },
        false,
      );
    }
    writer.write(session, live);
  }
  const add = store.transaction(write).immediate;

  return { add: (block, exchangesBefore) => add(block, exchangesBefore) };
}

/** It ends because we do: its client and its server are not the ones that it knows. */
export function endSession(store: Store, session: number, at: number): void {
  const end = store.prepare("UPDATE session SET ended_at = ?, end_reason = 'stopped' WHERE number = ?");
  end.run(at, session);
}

/** Of a session by HTTP that was made here the era is known once it is indexed: 2026-07-28 has no session ids. */
export function settleBasis(store: Store, session: number): void {
  store
    .prepare(
      "UPDATE session SET basis = 'stateless' WHERE number = ? AND transport = 'http' AND era = 'modern'",
    )
    .run(session);
}

/** The new session takes the old one's place, with its id, its name and its labels; then the old one is removed. */
export function replaceSession(store: Store, old: number, now: number): void {
  const swap = store.transaction(() => {
    const row = store
      .prepare<[number], { id: string; name: string | null }>('SELECT id, name FROM session WHERE number = ?')
      .get(old);
    if (row === undefined) return;
    const freed = store.prepare<[number], string>('SELECT id FROM session WHERE number = ?').pluck().get(now);
    const rename = store.prepare('UPDATE session SET id = ?, name = ? WHERE number = ?');
    rename.run(`${freed}-old`, null, old);
    rename.run(row.id, row.name, now);
    rename.run(freed, null, old);
    store.prepare('UPDATE OR REPLACE label SET session = ? WHERE session = ?').run(now, old);
  }).immediate;
  swap();
  removeSession(store, old);
}
