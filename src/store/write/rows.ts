/** One session into the store: its row, its frames, its end. */

import { randomBytes } from 'node:crypto';
import { TapedeckError } from '../../errors.ts';
import type { HttpExchange } from '../../protocol/http/exchange.ts';
import type { Redactor } from '../../protocol/redact/redactor.ts';
import type { Frame } from '../../protocol/wire/frame.ts';
import { readSse } from '../../protocol/wire/sse.ts';
import {
  flagsOf,
  type Held,
  type Loss,
  PART_BYTES,
  type SessionEnd,
  type SessionStart,
} from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import type { HttpHeld, LiveSession } from './pending.ts';
import { createHeadRedactor } from './redaction.ts';

/** Each method is done whole, or throws SQLite's error and changes nothing. */
export type SessionWriter = {
  /** The session's public id. */
  id: string;
  /** Its number: what `session` means in the other tables. */
  number: number;
  write(frames: readonly Frame[], firstSeq: number, held: readonly Held[], loss: Loss): void;
  serverStarted(pid: number): void;
  end(end: SessionEnd, loss: Loss): void;
};

export function createSessionWriter(store: Store, start: SessionStart): SessionWriter {
  // The parents of every row are rows of this writer: checking them again would only cost time.
  store.pragma('foreign_keys = OFF');
  const { number, id } = insertSession(store, start);
  const insertFrames = prepareFrameInsert(store, number);
  const insertHeld = store.prepare(
    `INSERT INTO unfinished (session, channel, part, at, bytes) VALUES (${number}, ?, ?, ?, ?)`,
  );
  const forgetHeld = store.prepare(`DELETE FROM unfinished WHERE session = ${number} AND channel = ?`);
  const count = store.prepare(
    `UPDATE session SET frames = frames + ?, bytes = bytes + ?, truncated = truncated + ?, dropped = ?,
       dropped_bytes = ? WHERE number = ${number}`,
  );
  const setServer = store.prepare(`UPDATE session SET server_pid = ? WHERE number = ${number}`);
  const setEnd = store.prepare(
    `UPDATE session SET ended_at = ?, end_reason = ?, exit_code = ?, signal = ?, client_closed_at = ?,
       server_closed_at = ?, dropped = ?, dropped_bytes = ? WHERE number = ${number}`,
  );
  const channelsWithHeld = new Set<string>();

  function write(frames: readonly Frame[], firstSeq: number, held: readonly Held[], loss: Loss): void {
    let bytes = 0;
    let truncated = 0;
    for (const frame of frames) {
      bytes += frame.size;
      if (frame.truncated) truncated += 1;
      if (channelsWithHeld.size > 0 && channelsWithHeld.has(frame.channel)) forgetHeld.run(frame.channel);
    }
    insertFrames(frames, firstSeq);
    for (const { channel, part, at, bytes } of held) insertHeld.run(channel, part, at, bytes);
    const { changes } = count.run(frames.length, bytes, truncated, loss.frames, loss.bytes);
    if (changes === 0) throw wasRemoved(id);
  }
  // IMMEDIATE, because a transaction that begins as a reader cannot wait for a lock once it starts to write.
  const writeAll = store.transaction(write).immediate;

  return {
    id,
    number,
    write(frames, firstSeq, held, loss) {
      writeAll(frames, firstSeq, held, loss);
      if (channelsWithHeld.size > 0) for (const { channel } of frames) channelsWithHeld.delete(channel);
      for (const { channel } of held) channelsWithHeld.add(channel);
    },
    serverStarted: (pid) => void setServer.run(pid),
    end({ at, reason, exitCode, signal, clientClosedAt, serverClosedAt }, loss) {
      setEnd.run(at, reason, exitCode, signal, clientClosedAt, serverClosedAt, loss.frames, loss.bytes);
    },
  };
}

/** Frames without the row of their session could never be found. */
function wasRemoved(id: string): TapedeckError {
  return new TapedeckError('not-found', `session ${id} was removed from the store while it was recorded`);
}

/** Not one of a session whose rows are still being removed: they would become the new one's. */
const NEXT_NUMBER = `1 + max(ifnull((SELECT max(number) FROM session), 0), ifnull((SELECT max(session) FROM removal), 0))`;

/** Makes the row of a session, and gives its number and its public id. */
export function insertSession(store: Store, start: SessionStart): { number: number; id: string } {
  const insert = store.prepare(
    `INSERT INTO session (number, id, name, basis, transport, target, command, cwd, started_at, host, pid, process_started,
       client_pid, client_program, tapedeck, redaction)
     VALUES (${NEXT_NUMBER}, @id, @name, @basis, @transport, @target, @command, @cwd, @at, @host, @pid, @processStarted,
       @clientPid, @clientProgram, @tapedeck, @redaction)`,
  );
  const insertLabel = store.prepare('INSERT OR REPLACE INTO label (session, key, value) VALUES (?, ?, ?)');
  const id = randomBytes(6).toString('hex');
  const { labels, command, redaction = null, ...columns } = start;
  return store
    .transaction(() => {
      const { lastInsertRowid } = insert.run({
        ...{ ...columns, id, redaction },
        command: command && JSON.stringify(command),
      });
      const number = Number(lastInsertRowid);
      for (const [key, value] of labels) insertLabel.run(number, key, value);
      return { number, id };
    })
    .immediate();
}

/** Rows of `frame`: the hottest statements of the project, so many rows go into one. */

/** Measured: 1.5 µs a row one by one, 0.8 µs in statements of 32. */
const ROWS_AT_ONCE = 32;

/** Returns a function that inserts frames, the first of them as number `firstSeq`; call it inside a transaction. */
function prepareFrameInsert(
  store: Store,
  session: number,
): (frames: readonly Frame[], firstSeq: number) => void {
  const row = `(${session}, ?, ?, ?, ?, ?, ?)`;
  const sql = 'INSERT INTO frame (session, seq, at, channel, size, flags, payload) VALUES ';
  const insertOne = store.prepare(sql + row);
  const insertMany = store.prepare(sql + Array(ROWS_AT_ONCE).fill(row).join(', '));
  const insertPart = store.prepare(
    `INSERT INTO frame_part (session, seq, part, bytes) VALUES (${session}, ?, ?, ?)`,
  );
  const insertRedaction = prepareRedactionInsert(store);
  let values: unknown[] = [];

  function addRow(frame: Frame, seq: number): void {
    const { payload } = frame;
    const isLarge = payload.length > PART_BYTES;
    values.push(seq, frame.at, frame.channel, frame.size, flagsOf(frame));
    values.push(isLarge ? payload.subarray(0, PART_BYTES) : payload);
    if (frame.redacted !== undefined) insertRedaction(session, seq, frame.redacted);
    for (let part = 1; part * PART_BYTES < payload.length; part += 1) {
      insertPart.run(seq, part, payload.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
    }
  }

  return (frames, firstSeq) => {
    const many = frames.length - (frames.length % ROWS_AT_ONCE);
    for (const [i, frame] of frames.entries()) {
      addRow(frame, firstSeq + i);
      if (i < many && (i + 1) % ROWS_AT_ONCE !== 0) continue;
      (i < many ? insertMany : insertOne).run(...values);
      values = [];
    }
  };
}

/** Returns a function that keeps which rules replaced something in a frame. */
function prepareRedactionInsert(
  store: Store,
): (session: number, seq: number, rules: readonly string[]) => void {
  const insert = store.prepare('INSERT INTO frame_redaction (session, seq, rules) VALUES (?, ?, ?)');
  return (session, seq, rules) => void insert.run(session, seq, rules.join(' '));
}

/** HTTP sessions into the store: their rows, frames, HTTP exchanges. All methods run inside the caller's transaction. */

export type HttpWriter = {
  /** `session` is the number of its row. */
  write(session: number, live: LiveSession): void;
  hold(session: number, held: HttpHeld): void;
};

/** What goes into `sse_event`; larger events say nothing more there. */
const SSE_FIELDS_WITHIN_BYTES = 1024 * 1024;

/** `redactor`: for the heads; null: they are stored as they are. */
export function createHttpWriter(store: Store, redactor: Redactor | null): HttpWriter {
  const redactHeads = createHeadRedactor(redactor);
  const row = '(?, ?, ?, ?, ?, ?, ?, ?, ?)';
  const sql = 'INSERT INTO frame (session, seq, at, channel, size, flags, payload, http, sha256) VALUES ';
  const insertFrame = store.prepare(sql + row);
  const insertFrames = store.prepare(sql + Array(ROWS_AT_ONCE).fill(row).join(', '));
  const insertPart = store.prepare('INSERT INTO frame_part (session, seq, part, bytes) VALUES (?, ?, ?, ?)');
  const insertEvent = store.prepare(
    'INSERT INTO sse_event (session, seq, event, id, retry) VALUES (?, ?, ?, ?, ?)',
  );
  const insertRedaction = prepareRedactionInsert(store);
  const insertEdit = store.prepare('INSERT INTO frame_edit (session, seq, original) VALUES (?, ?, ?)');
  const insertHeld = store.prepare(
    'INSERT INTO unfinished (session, channel, part, at, bytes, http) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const forgetHeld = store.prepare('DELETE FROM unfinished WHERE session = ? AND channel = ? AND http = ?');
  const putExchange = store.prepare(
    `INSERT OR REPLACE INTO http_exchange (session, number, method, path, version, client, request_headers,
       request_trailers, request_bytes, informations, status, status_text, response_headers, response_trailers,
       response_bytes, at, request_ended_at, response_at, ended_at, ended_after, closed_by, error, edits)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const putSession = store.prepare(
    `UPDATE session SET frames = frames + ?, bytes = bytes + ?, truncated = truncated + ?, dropped = ?,
       dropped_bytes = ?, basis = ?, transport = ?, ended_at = ?, end_reason = ? WHERE number = ?`,
  );

  function write(session: number, live: LiveSession): void {
    const frames = live.frames();
    writeFrames(session, frames, live.firstSeq());
    for (const { channel, http } of live.finished()) forgetHeld.run(session, channel, http?.exchange);
    for (const exchange of live.changed()) writeExchange(session, exchange);
    const bytes = frames.reduce((sum, { size }) => sum + size, 0);
    const truncated = frames.filter((frame) => frame.truncated).length;
    const { basis, transport, end } = live.row;
    const { loss } = live;
    const ended = [end?.at ?? null, end?.reason ?? null];
    putSession.run(
      frames.length,
      bytes,
      truncated,
      loss.frames,
      loss.bytes,
      basis,
      transport,
      ...ended,
      session,
    );
  }

  function writeFrames(session: number, frames: readonly Frame[], firstSeq: number): void {
    const many = frames.length - (frames.length % ROWS_AT_ONCE);
    let values: unknown[] = [];
    for (const [i, frame] of frames.entries()) {
      const { payload, at, channel, size, http } = frame;
      const first = payload.length > PART_BYTES ? payload.subarray(0, PART_BYTES) : payload;
      values.push(session, firstSeq + i, at, channel, size, flagsOf(frame), first);
      values.push(http?.exchange ?? null, http?.sha256 ?? null);
      writeBeside(session, firstSeq + i, frame);
      if (i < many && (i + 1) % ROWS_AT_ONCE !== 0) continue;
      (i < many ? insertFrames : insertFrame).run(...values);
      values = [];
    }
  }

  /** What of a frame has a table of its own. */
  function writeBeside(session: number, seq: number, { payload, channel, http, redacted }: Frame): void {
    for (let part = 1; part * PART_BYTES < payload.length; part += 1) {
      insertPart.run(session, seq, part, payload.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
    }
    if (redacted !== undefined) insertRedaction(session, seq, redacted);
    if (http !== null && http.original !== null) insertEdit.run(session, seq, http.original);
    if (channel === 'sse' && payload.length <= SSE_FIELDS_WITHIN_BYTES) {
      const { event, id, retry } = readSse(payload);
      if (event !== null || id !== null || retry !== null) insertEvent.run(session, seq, event, id, retry);
    }
  }

  function writeExchange(session: number, one: HttpExchange): void {
    const heads = redactHeads(one);
    putExchange.run(
      session,
      one.number,
      one.method,
      heads.path,
      one.version,
      one.client,
      heads.requestHeaders,
      heads.requestTrailers,
      one.requestBytes,
      heads.informations,
      one.status,
      heads.statusText,
      heads.responseHeaders,
      heads.responseTrailers,
      one.responseBytes,
      one.at,
      one.requestEndedAt,
      one.responseAt,
      one.endedAt,
      one.endedAfter,
      one.closedBy,
      heads.error,
      heads.edits,
    );
  }

  return {
    write,
    hold: (session, { channel, part, at, bytes, exchange }) =>
      void insertHeld.run(session, channel, part, at, bytes, exchange),
  };
}
