/** One session into the store: its row, its frames, its end. */
import { randomBytes } from 'node:crypto';
import { TapedeckError } from '../errors.ts';
import type { Frame } from '../protocol/frame.ts';
import type { HttpBasis, HttpEndReason, HttpTransport } from '../protocol/http-session.ts';
import { prepareFrameInsert } from './frame-writer.ts';
import type { Held, Loss } from './ingest.ts';
import type { Store } from './open.ts';

export type Basis = 'stdio-process' | HttpBasis;
export type Transport = 'stdio' | HttpTransport;

/** Where and how a session began. `at` in microseconds since the Unix epoch. */
export type SessionStart = {
  name: string | null;
  labels: readonly (readonly [key: string, value: string])[];
  basis: Basis;
  transport: Transport;
  /** The wrapped command as one line, or the URL of the HTTP server. */
  target: string;
  /** Null for HTTP. */
  command: readonly string[] | null;
  cwd: string | null;
  at: number;
  host: string;
  pid: number;
  processStarted: string | null;
  clientPid: number | null;
  clientProgram: string | null;
  tapedeck: string;
  /** With which rules it is redacted (redaction.ts); null or missing: with none. */
  redaction?: string | null;
};

/** `stopped`: tapedeck was, while the session was open. */
export type EndReason =
  | 'client-closed'
  | 'server-exited'
  | 'signalled'
  | 'not-started'
  | 'stopped'
  | HttpEndReason;

export type SessionEnd = {
  at: number;
  reason: EndReason;
  exitCode: number | null;
  signal: string | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
};

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
