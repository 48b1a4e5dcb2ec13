/** A session that was recorded elsewhere into the store, as a new one. */

import type { HttpExchange } from '../../protocol/http/exchange.ts';
import { joinedProfiles, type RedactionProfile } from '../../protocol/redact/profile.ts';
import type { Channel, Frame } from '../../protocol/wire/frame.ts';
import type {
  Basis,
  EndReason,
  Loss,
  SessionEnd,
  SessionRedaction,
  SessionStart,
  Transport,
} from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { keyFingerprint } from '../file/secret.ts';
import { createPendingSession, type PendingSession, type SessionKey } from './pending.ts';
import { createFrameRedactor, createStoreRedactor, redactionColumnOf, redactStart } from './redaction.ts';
import { removeSession } from './removal.ts';
import { raiseRevision, withdrawSessions } from './revision.ts';
import { createRowWriter, insertSession, type RowWriter } from './rows.ts';

/** Few enough for recorders of the same store not to notice. */
const FRAMES_AT_ONCE = 1000;

const BYTES_AT_ONCE = 4 * 1024 * 1024;

/** A large unfinished payload is stored in parts, as a large frame is. */
const REST_PART_BYTES = 1024 * 1024;

/** The beginning of a line, body or event that had not ended when its recorder was gone. */
export type ImportedRest = { channel: Channel; at: number; bytes: Buffer; exchange: number | null };

export type SessionImport = {
  add(frame: Frame): void;
  /** The exchange is whole: nothing more is known of it. Its heads are as they were stored, redacted already. */
  addHttpExchange(exchange: HttpExchange): void;
  hasHttpExchange(number: number): boolean;
  addRest(rest: ImportedRest): void;
  /** Frames that its recorder has lost, besides those of `loss`. */
  lose(frames: number): void;
  /** Frames so far. */
  count(): number;
  /** Stores what is left, and how the session ended; null: nobody knows. */
  finish(end: SessionEnd | null): SessionKey;
  /** Removes what is stored of it. */
  discard(): void;
};

/**
 * A small session is stored in one transaction, a larger one in several: until `finish` it looks like one being recorded.
 * `profile`: what it is redacted by before it is stored; null: it is stored as it is.
 */
export function beginImport(
  store: Store,
  foreign: SessionStart,
  loss: Loss,
  profile: RedactionProfile | null,
): SessionImport {
  const { start, redactor, redactFrame } = redactionOf(store, foreign, profile);
  const writer = createRowWriter(store, redactor);
  const { basis, transport } = start;
  const pending = createPendingSession({ basis, transport, loss });
  const exchanges = store.prepare<[number, number], number>(
    'SELECT 1 FROM http_exchange WHERE session = ? AND number = ?',
  );
  const rests: ImportedRest[] = [];
  const waitingHttpExchanges = new Set<number>();
  let waitingBytes = 0;

  const save = store.transaction((end: SessionEnd | null) => {
    const key = pending.key ?? insertImported(store, start);
    if (end !== null) pending.change({ end });
    writer.write(key, pending);
    for (const rest of rests) writeRest(writer, key.number, rest);
    return key;
  }).immediate;

  function flushIfMany(bytes: number): void {
    waitingBytes += bytes;
    if (pending.frames().length + pending.changedHttpExchanges().size + rests.length < FRAMES_AT_ONCE) {
      if (waitingBytes < BYTES_AT_ONCE) return;
    }
    flush(null);
  }

  function flush(end: SessionEnd | null): SessionKey {
    const key = save(end);
    pending.key = key;
    pending.confirm();
    waitingHttpExchanges.clear();
    rests.length = 0;
    waitingBytes = 0;
    return key;
  }

  return {
    add(given) {
      const frame = redactFrame(given);
      pending.add(frame, false);
      flushIfMany(frame.payload.length + ((frame.fault?.original ?? frame.http?.original)?.length ?? 0));
    },
    addHttpExchange(exchange) {
      pending.touch(exchange);
      waitingHttpExchanges.add(exchange.number);
      flushIfMany(0);
    },
    hasHttpExchange(number) {
      if (waitingHttpExchanges.has(number)) return true;
      return pending.key !== null && exchanges.get(pending.key.number, number) !== undefined;
    },
    addRest(given) {
      const { channel, bytes } = given;
      const found = channel === 'sse' ? redactor?.event(bytes, true) : redactor?.payload(bytes, false, true);
      const rest = found ? { ...given, bytes: found.payload } : given;
      rests.push(rest);
      flushIfMany(rest.bytes.length);
    },
    lose: (frames) => pending.lose(frames, 0),
    count: () => pending.lastSeq(),
    finish: flush,
    discard() {
      if (pending.key !== null) removeSession(store, pending.key.number);
    },
  };
}

/** What redacts a session on its way in, and what its row then says. */
function redactionOf(store: Store, start: SessionStart, profile: RedactionProfile | null) {
  if (profile === null) return { start, redactor: null, redactFrame: (frame: Frame) => frame };
  const { redactor, open } = createStoreRedactor(profile);
  open(store);
  const redact = createFrameRedactor(redactor);
  const before: SessionRedaction | null = start.redaction ? JSON.parse(start.redaction) : null;
  // Placeholders that the session has by another key stay: none of them can be told by the key of this store.
  const key = before?.key ?? keyFingerprint(store) ?? '';
  const redaction = redactionColumnOf(key, joinedProfiles(before, profile));
  return {
    start: { ...redactStart(start, redactor), redaction },
    redactor,
    redactFrame(frame: Frame): Frame {
      const after = redact(frame);
      if (after === frame || frame.redacted === undefined) return after;
      return { ...after, redacted: [...new Set([...frame.redacted, ...(after.redacted ?? [])])] };
    },
  };
}

/** What was recorded long ago is new in this store: limits of age count from the import. */
function insertImported(store: Store, start: SessionStart): SessionKey {
  const stored = insertSession(store, start);
  store.prepare('UPDATE session SET imported_at = ? WHERE number = ?').run(Date.now() * 1000, stored.number);
  return stored;
}

function writeRest(writer: RowWriter, session: number, { bytes, ...place }: ImportedRest): void {
  for (let part = 0; part === 0 || part * REST_PART_BYTES < bytes.length; part += 1) {
    const piece = bytes.subarray(part * REST_PART_BYTES, (part + 1) * REST_PART_BYTES);
    writer.writeUnfinished(session, { ...place, part, bytes: piece });
  }
}

/**
 * More frames for a session that is stored: behind its last one, as a block of their own, whole or not at all. How it
 * began and ended stays as it was. Its index is behind afterwards; who is done with adding calls `reindexSession`, and if
 * nobody does, the next reader that needs the index.
 */

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

/** Several processes may add to one session at once: each block gets the numbers that are free when it is stored. */
export function appendTo(store: Store, session: number): SessionAppend {
  // What is added was redacted before.
  const writer = createRowWriter(store, null);
  const select = store.prepare<[number], AppendRow>(SELECT_APPEND);

  function write({ frames, exchanges }: Block, exchangesBefore: number | undefined): void {
    const row = select.get(session);
    if (row === undefined) throw new Error('the session is not in the store any more');
    const { lastSeq } = row;
    const before = Math.max(exchangesBefore ?? 0, row.lastExchange);
    const pending = pendingOf(row);
    for (const exchange of exchanges) {
      const endedAfter = exchange.endedAfter === null ? null : exchange.endedAfter + lastSeq;
      pending.touch({ ...exchange, number: exchange.number + before, endedAfter });
    }
    for (const frame of frames) {
      const { http } = frame;
      const numbered = http && { ...http, exchange: http.exchange + before };
      pending.add(http === null ? frame : { ...frame, http: numbered }, false);
    }
    writer.write({ number: session, id: row.id }, pending);
    raiseRevision(store, session);
  }
  const add = store.transaction(write).immediate;

  return { add: (block, exchangesBefore) => add(block, exchangesBefore) };
}

type AppendRow = {
  id: string;
  basis: Basis;
  transport: Transport;
  serverPid: number | null;
  endedAt: number | null;
  endReason: EndReason | null;
  exitCode: number | null;
  signal: string | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
  dropped: number;
  droppedBytes: number;
  lastSeq: number;
  lastExchange: number;
};

const SELECT_APPEND = `SELECT id, basis, transport, server_pid AS serverPid, ended_at AS endedAt, end_reason AS endReason,
    exit_code AS exitCode, signal, client_closed_at AS clientClosedAt, server_closed_at AS serverClosedAt, dropped,
    dropped_bytes AS droppedBytes, (SELECT ifnull(max(seq), 0) FROM frame WHERE session = number) AS lastSeq,
    (SELECT ifnull(max(h.number), 0) FROM http_exchange AS h WHERE h.session = session.number) AS lastExchange
  FROM session WHERE number = ?`;

/** Nothing of the session's row but its counts is to change. */
function pendingOf(row: AppendRow): PendingSession {
  const { basis, transport, serverPid, endedAt: at, endReason: reason } = row;
  const { exitCode, signal, clientClosedAt, serverClosedAt } = row;
  const how = { exitCode, signal, clientClosedAt, serverClosedAt };
  return createPendingSession({
    ...{ basis, transport, serverPid },
    end: at === null || reason === null ? null : { at, reason, ...how },
    storedFrames: row.lastSeq,
    loss: { frames: row.dropped, bytes: row.droppedBytes },
  });
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
      .prepare<[number], { id: string; name: string | null; revision: number }>(
        'SELECT id, name, revision FROM session WHERE number = ?',
      )
      .get(old);
    if (row === undefined) return;
    withdrawSessions(store, [old]);
    store.prepare('UPDATE session SET revision = ? WHERE number = ?').run(row.revision + 1, now);
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
