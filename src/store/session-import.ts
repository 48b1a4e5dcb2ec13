/** A session that was recorded elsewhere into the store, as a new one. */
import type { Channel, Frame } from '../protocol/frame.ts';
import type { HttpExchange } from './http-exchange.ts';
import { createHttpWriter } from './http-writer.ts';
import type { Loss } from './ingest.ts';
import { createLiveSession } from './live-session.ts';
import type { Store } from './open.ts';
import { removeSession } from './removal.ts';
import { insertSession, type SessionEnd, type SessionStart } from './session-writer.ts';

/** Few enough for recorders of the same store not to notice. */
const FRAMES_AT_ONCE = 1000;
const BYTES_AT_ONCE = 4 * 1024 * 1024;
/** A large unfinished payload is stored in parts, as a large frame is. */
const HELD_PART_BYTES = 1024 * 1024;

/** The beginning of a line, body or event that had not ended when its recorder was gone. */
export type ImportedRest = { channel: Channel; at: number; bytes: Buffer; exchange: number | null };

export type SessionImport = {
  add(frame: Frame): void;
  /** The exchange is whole: nothing more is known of it. Its heads are as they were stored, masked already. */
  addExchange(exchange: HttpExchange): void;
  hasExchange(number: number): boolean;
  addRest(rest: ImportedRest): void;
  /** Frames that its recorder has lost, besides those of `loss`. */
  lose(frames: number): void;
  /** Frames so far. */
  count(): number;
  /** Stores what is left, and how the session ended; null: nobody knows. Gives its number and its public id. */
  finish(end: SessionEnd | null): { number: number; id: string };
  /** Removes what is stored of it. */
  discard(): void;
};

/** A small session is stored in one transaction, a larger one in several: until `finish` it looks like one being recorded. */
export function beginImport(store: Store, start: SessionStart, loss: Loss): SessionImport {
  // As for a recorder: parts of a frame go in before the frame itself.
  store.pragma('foreign_keys = OFF');
  const writer = createHttpWriter(store, null);
  const live = createLiveSession(0, start.at, () => {});
  const { basis, transport } = start;
  live.change({ basis, transport });
  live.lose(loss.frames, loss.bytes);
  const exchanges = store.prepare<[number, number], number>(
    'SELECT 1 FROM http_exchange WHERE session = ? AND number = ?',
  );
  const rests: ImportedRest[] = [];
  const waitingExchanges = new Set<number>();
  let session: { number: number; id: string } | null = null;
  let waitingBytes = 0;

  const flush = store.transaction((end: SessionEnd | null) => {
    const stored = session ?? insertImported(store, start);
    if (end !== null) live.change({ end });
    writer.write(stored.number, live);
    for (const rest of rests) insertRest(store, stored.number, rest);
    if (end !== null) setEnd(store, stored.number, end);
    return stored;
  }).immediate;

  function flushIfMany(bytes: number): void {
    waitingBytes += bytes;
    if (live.frames().length + live.changed().size + rests.length < FRAMES_AT_ONCE) {
      if (waitingBytes < BYTES_AT_ONCE) return;
    }
    flushNow(null);
  }

  function flushNow(end: SessionEnd | null): { number: number; id: string } {
    session = flush(end);
    live.confirm();
    waitingExchanges.clear();
    rests.length = 0;
    waitingBytes = 0;
    return session;
  }

  return {
    add(frame) {
      live.add(frame, false);
      flushIfMany(frame.payload.length + (frame.http?.original?.length ?? 0));
    },
    addExchange(exchange) {
      live.touch(exchange);
      waitingExchanges.add(exchange.number);
      flushIfMany(0);
    },
    hasExchange(number) {
      if (waitingExchanges.has(number)) return true;
      return session !== null && exchanges.get(session.number, number) !== undefined;
    },
    addRest(rest) {
      rests.push(rest);
      flushIfMany(rest.bytes.length);
    },
    lose: (frames) => live.lose(frames, 0),
    count: live.lastSeq,
    finish: flushNow,
    discard() {
      if (session !== null) removeSession(store, session.number);
    },
  };
}

/** What was recorded long ago is new in this store: limits of age count from the import. */
function insertImported(store: Store, start: SessionStart): { number: number; id: string } {
  const stored = insertSession(store, start);
  store.prepare('UPDATE session SET imported_at = ? WHERE number = ?').run(Date.now() * 1000, stored.number);
  return stored;
}

function insertRest(store: Store, session: number, { channel, at, bytes, exchange }: ImportedRest): void {
  const insert = store.prepare(
    'INSERT INTO unfinished (session, channel, part, at, bytes, http) VALUES (?, ?, ?, ?, ?, ?)',
  );
  for (let part = 0; part === 0 || part * HELD_PART_BYTES < bytes.length; part += 1) {
    const piece = bytes.subarray(part * HELD_PART_BYTES, (part + 1) * HELD_PART_BYTES);
    insert.run(session, channel, part, at, piece, exchange);
  }
}

function setEnd(store: Store, session: number, end: SessionEnd): void {
  const { exitCode, signal, clientClosedAt, serverClosedAt } = end;
  store
    .prepare(
      'UPDATE session SET exit_code = ?, signal = ?, client_closed_at = ?, server_closed_at = ? WHERE number = ?',
    )
    .run(exitCode, signal, clientClosedAt, serverClosedAt, session);
}
