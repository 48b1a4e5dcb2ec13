/** One session's rows into the store. Every method is one transaction: it is done whole or it throws. */
import { randomBytes } from 'node:crypto';
import type { Facts, IndexedMessage } from '../protocol/conversation.ts';
import type { Entry, Held, Loss } from './ingest.ts';
import type { Store } from './open.ts';

export type Basis = 'stdio-process';
export type Transport = 'stdio';

/** Where and how a session began. `at` in microseconds since the Unix epoch. */
export type SessionStart = {
  name: string | null;
  labels: readonly (readonly [key: string, value: string])[];
  basis: Basis;
  transport: Transport;
  /** The wrapped command as one line, for people. */
  target: string;
  command: readonly string[];
  cwd: string;
  at: number;
  host: string;
  pid: number;
  processStarted: string | null;
  clientPid: number | null;
  clientProgram: string | null;
  tapedeck: string;
};

export type EndReason = 'client-closed' | 'server-exited' | 'signalled' | 'not-started' | 'stopped';

export type SessionEnd = {
  at: number;
  reason: EndReason;
  exitCode: number | null;
  signal: string | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
};

/** Larger payloads are stored in parts, so that no copy of a whole large frame is ever made inside SQLite. */
export const PART_BYTES = 1024 * 1024;

export type SessionWriter = {
  /** The session's public id. */
  id: string;
  write(entries: readonly Entry[], held: readonly Held[], facts: Facts, loss: Loss): void;
  serverStarted(pid: number): void;
  end(end: SessionEnd, loss: Loss): void;
};

export function createSessionWriter(store: Store, start: SessionStart): SessionWriter {
  // The parents of every row are rows of this writer: checking them again would only cost time.
  store.pragma('foreign_keys = OFF');
  const { number, id } = insertSession(store, start);
  const insertFrame = store.prepare(
    `INSERT INTO frame (session, seq, at, channel, size, line_end, part, truncated, payload)
     VALUES (${number}, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertPart = store.prepare(
    `INSERT INTO frame_part (session, seq, part, bytes) VALUES (${number}, ?, ?, ?)`,
  );
  const insertHeld = store.prepare(
    `INSERT INTO unfinished (session, channel, part, at, bytes) VALUES (${number}, ?, ?, ?, ?)`,
  );
  const forgetHeld = store.prepare(`DELETE FROM unfinished WHERE session = ${number} AND channel = ?`);
  const insertMessage = prepareMessageInsert(store, number);
  const update = prepareProgress(store, number);
  const channelsWithHeld = new Set<string>();

  function write(entries: readonly Entry[], held: readonly Held[], facts: Facts, loss: Loss): void {
    let bytes = 0;
    let truncated = 0;
    for (const { seq, frame, messages } of entries) {
      if (channelsWithHeld.delete(frame.channel)) forgetHeld.run(frame.channel);
      const { payload } = frame;
      const head = payload.length > PART_BYTES ? payload.subarray(0, PART_BYTES) : payload;
      const isTruncated = frame.truncated ? 1 : 0;
      insertFrame.run(seq, frame.at, frame.channel, frame.size, frame.lineEnd, frame.part, isTruncated, head);
      for (let part = 1; part * PART_BYTES < payload.length; part += 1) {
        insertPart.run(seq, part, payload.subarray(part * PART_BYTES, (part + 1) * PART_BYTES));
      }
      for (const message of messages) insertMessage(message);
      bytes += frame.size;
      truncated += isTruncated;
    }
    for (const { channel, part, at, bytes: piece } of held) {
      insertHeld.run(channel, part, at, piece);
      channelsWithHeld.add(channel);
    }
    update(facts, loss, entries.length, bytes, truncated);
  }

  const end = store.prepare(
    `UPDATE session SET ended_at = ?, end_reason = ?, exit_code = ?, signal = ?, client_closed_at = ?,
       server_closed_at = ?, dropped = ?, dropped_bytes = ? WHERE number = ${number}`,
  );
  const setServer = store.prepare(`UPDATE session SET server_pid = ? WHERE number = ${number}`);

  return {
    id,
    write: inTransaction(store, write),
    serverStarted: (pid) => void setServer.run(pid),
    end: (e, loss) =>
      void end.run(
        e.at,
        e.reason,
        e.exitCode,
        e.signal,
        e.clientClosedAt,
        e.serverClosedAt,
        loss.frames,
        loss.bytes,
      ),
  };
}

/** IMMEDIATE, because a transaction that begins as a reader cannot wait for a lock once it starts to write. */
function inTransaction<A extends unknown[]>(store: Store, work: (...args: A) => void): (...args: A) => void {
  return store.transaction(work).immediate;
}

/** Inserts the rows of one message. Used by the capture and by the rebuild of the index alike. */
export function prepareMessageInsert(store: Store, session: number): (indexed: IndexedMessage) => void {
  const insert = store.prepare(
    `INSERT INTO message (session, seq, n, kind, id_type, id, method, canonical, target, task, relation, to_seq, to_n,
       latency, outcome, error_code, problem)
     VALUES (${session}, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  return ({ seq, n, message, correlation }) => {
    const id = 'id' in message ? message.id : null;
    const method = 'method' in message ? message.method : null;
    const canonical = 'canonical' in message ? message.canonical : null;
    const { relation, to, latency, outcome } = correlation;
    insert.run(
      seq,
      n,
      message.kind,
      id?.type ?? null,
      id?.text ?? null,
      method,
      canonical,
      message.details.target,
      message.details.taskId,
      relation,
      to?.seq ?? null,
      to?.n ?? null,
      latency,
      outcome,
      message.kind === 'error' ? message.code : null,
      problemOf({ message, correlation }),
    );
  };
}

/** The codes of everything wrong with a message, the gravest first, joined by a comma; null when all is well. */
function problemOf({ message, correlation }: Pick<IndexedMessage, 'message' | 'correlation'>): string | null {
  if (message.kind !== 'invalid' && message.remarks.length === 0 && correlation.remark === null) return null;
  const codes: string[] = message.kind === 'invalid' ? [message.reason] : [];
  codes.push(...message.remarks);
  if (correlation.remark !== null) codes.push(correlation.remark);
  return codes.join(',');
}

/** Adds what new frames told to the session's row. */
export function prepareProgress(store: Store, session: number) {
  const update = store.prepare(
    `UPDATE session SET frames = frames + ?, bytes = bytes + ?, truncated = truncated + ?, dropped = ?,
       dropped_bytes = ?, ${FACT_COLUMNS} WHERE number = ${session}`,
  );
  return (facts: Facts, loss: Loss, frames: number, bytes: number, truncated: number) =>
    void update.run(frames, bytes, truncated, loss.frames, loss.bytes, ...factValues(facts));
}

export const FACT_COLUMNS = `era = ?, protocol_version = ?, client_name = ?, client_version = ?, server_name = ?,
  server_version = ?, exchanges = ?, errors = ?, unanswered = ?`;

export function factValues(facts: Facts): unknown[] {
  const { era, protocolVersion, client, server, exchanges, errors, unanswered } = facts;
  return [
    era,
    protocolVersion,
    client?.name ?? null,
    client?.version ?? null,
    server?.name ?? null,
    server?.version ?? null,
    exchanges,
    errors,
    unanswered,
  ];
}

function insertSession(store: Store, start: SessionStart): { number: number; id: string } {
  const insert = store.prepare(
    `INSERT INTO session (id, name, basis, transport, target, command, cwd, started_at, host, pid, process_started,
       client_pid, client_program, tapedeck)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const insertLabel = store.prepare('INSERT OR REPLACE INTO label (session, key, value) VALUES (?, ?, ?)');
  const id = randomBytes(6).toString('hex');
  return store
    .transaction(() => {
      const { lastInsertRowid } = insert.run(
        id,
        start.name,
        start.basis,
        start.transport,
        start.target,
        JSON.stringify(start.command),
        start.cwd,
        start.at,
        start.host,
        start.pid,
        start.processStarted,
        start.clientPid,
        start.clientProgram,
        start.tapedeck,
      );
      const number = Number(lastInsertRowid);
      for (const [key, value] of start.labels) insertLabel.run(number, key, value);
      return { number, id };
    })
    .immediate();
}
