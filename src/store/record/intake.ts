/**
 * What stands between the batches that arrive in the writer's thread and the store: a framer makes frames of them, and these
 * wait in sessions until they are stored. Stdio is one session from the start; HTTP has as many as its framer opens.
 */

import { hostname } from 'node:os';
import type { Statement } from 'better-sqlite3';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { SessionEnd, SessionStart } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { processStarted } from '../file/process.ts';
import { createPendingSession, type PendingSession, type SessionKey } from '../write/pending.ts';
import {
  createFrameRedactor,
  createStoreRedactor,
  redactionColumn,
  redactStart,
} from '../write/redaction.ts';
import { createRowWriter, prepareSessionInsert, type RowWriter } from '../write/rows.ts';
import type { Framer } from './framer.ts';
import { createHttpFramer } from './http-framer.ts';
import { createIndexing, type Indexing } from './indexing.ts';
import { createStdioFramer } from './stdio-framer.ts';
import type { RecordingStart } from './thread.ts';
import type { PendingPiece } from './unfinished.ts';

export type Intake = {
  framer: Framer;
  serverStarted(pid: number): void;
  /** A store has been opened (again). Throws SQLite's error. Not to be called in a transaction. */
  open(store: Store, client: { pid: number; program: string } | null): void;
  /** Stores the row of a session of stdio without its frames. Throws SQLite's error. */
  saveStart(): void;
  /**
   * Stores everything that is whole, in one transaction; or throws SQLite's error, and nothing has changed. `withUnfinished`:
   * also what is not whole yet, as far as it has come.
   */
  save(withUnfinished: boolean): void;
  /** Forgets what `save` has just stored. */
  confirm(): void;
  /** Forgets what waits, and counts it as lost. */
  giveUp(): void;
  /** Indexes for about so many milliseconds. True: nothing is left. Throws SQLite's error. */
  index(maxMs: number): boolean;
  /** Gives up on the index: readers complete it. */
  stopIndexing(): void;
  /** Stores how it ended. Throws SQLite's error. */
  end(end: SessionEnd): void;
};

/** A store that is open, and what is prepared for it. */
type Opened = {
  store: Store;
  /** What the rows of all sessions of this run say. */
  common: Omit<SessionStart, 'at' | 'basis' | 'transport'>;
  insert: ReturnType<typeof prepareSessionInsert>;
  writer: RowWriter;
  indexing: Indexing;
  selectKey: Statement<[number, string]>;
};

const NOTHING: readonly PendingPiece[] = [];

/**
 * `onChange` is called when something waits to be stored, which may come by itself, later than it was fed; `onNotice` with
 * what the recorder's user should know.
 */
export function createIntake(
  start: RecordingStart,
  maxFrameBytes: number,
  redaction: RedactionProfile | null,
  onChange: () => void,
  onNotice: (text: string) => void,
): Intake {
  const isStdio = start.transport === 'stdio';
  const secrets = redaction === null ? null : createStoreRedactor(redaction);
  const redactFrame = secrets && createFrameRedactor(secrets.redactor);
  const firstSign = secrets?.redactor.firstSign ?? null;
  /** By their numbers within this run. */
  const sessions = new Map<number, PendingSession>();
  /** Those with something that waits to be stored. */
  const fresh = new Set<PendingSession>();
  let opened: Opened | null = null;
  /** What `save` has stored, until `confirm`. */
  let saved = new Map<PendingSession, SessionKey>();
  let pieces = NOTHING;

  const framer = isStdio
    ? createStdioFramer(sessionOf(1), maxFrameBytes, firstSign)
    : createHttpFramer({
        ...{ maxFrameBytes, firstSign, sessionOf },
        mcpPath: new URL(start.target).pathname,
        // What of it waits to be stored or indexed is kept where it waits.
        onForgotten: (number) => sessions.delete(number),
        onCrowd: (mostOpen) =>
          onNotice(
            `more than ${mostOpen} sessions are open, so those that are idle for longest are recorded as ended (\`crowded-out\`); their traffic goes on, and one that is used again goes on too`,
          ),
      });

  function sessionOf(number: number, startedAt = start.at): PendingSession {
    const known = sessions.get(number);
    if (known !== undefined) return known;
    const { basis, transport } = start;
    const session = createPendingSession({ basis, transport, startedAt, onChange: hasChanged });
    function hasChanged(): void {
      fresh.add(session);
      onChange();
    }
    sessions.set(number, session);
    fresh.add(session);
    return session;
  }

  function save(withUnfinished: boolean): void {
    pieces = withUnfinished ? framer.unfinished() : NOTHING;
    // Of a save that failed, none of the new rows is there.
    saved = new Map();
    if (opened === null || (fresh.size === 0 && pieces.length === 0)) return;
    if (redactFrame !== null) for (const session of fresh) session.redact(redactFrame);
    // IMMEDIATE, because a transaction that begins as a reader cannot wait for a lock once it starts to write.
    opened.store.transaction(saveAll).immediate(opened);
  }

  function saveAll({ writer }: Opened): void {
    for (const session of fresh) {
      const key = keyOf(session) ?? insert(session);
      saved.set(session, key);
      writer.write(key, session);
    }
    for (const piece of pieces) {
      const key = saved.get(piece.session) ?? keyOf(piece.session);
      if (key !== null) writer.writeUnfinished(key.number, piece);
    }
  }

  /**
   * A session by HTTP that had ended may have been pruned since: if it speaks again, what it says goes into a row of its own.
   * One by stdio that was removed cannot go on.
   */
  function keyOf({ key }: PendingSession): SessionKey | null {
    return key !== null && (isStdio || isThere(key)) ? key : null;
  }

  function isThere({ number, id }: SessionKey): boolean {
    return opened?.selectKey.get(number, id) !== undefined;
  }

  function insert({ state: { basis, transport }, startedAt: at }: PendingSession): SessionKey {
    const { common, insert: insertRow } = opened as Opened;
    return insertRow({ ...common, basis, transport, at });
  }

  function commonOf(store: Store, client: { pid: number; program: string } | null): Opened['common'] {
    const { parentPid: _, ...given } = start;
    return {
      ...(secrets === null ? given : redactStart(given, secrets.row)),
      host: hostname(),
      processStarted: processStarted(start.pid),
      clientPid: client?.pid ?? null,
      clientProgram: client?.program ?? null,
      redaction: redactionColumn(store, redaction),
    };
  }

  function confirm(): void {
    for (const [session, key] of saved) {
      const isNew = session.key !== key;
      if (isNew) opened?.indexing.forget(session);
      session.key = key;
      opened?.indexing.takeStored(session, isNew);
      session.confirm();
      fresh.delete(session);
    }
    for (const { frame, part } of pieces) frame.confirm(part);
    saved = new Map();
    pieces = NOTHING;
  }

  return {
    framer,
    serverStarted: (serverPid) => sessionOf(1).change({ serverPid }),
    open(store, client) {
      secrets?.open(store);
      opened = {
        store,
        common: commonOf(store, isStdio ? client : null),
        insert: prepareSessionInsert(store),
        writer: createRowWriter(store, secrets?.redactor ?? null),
        indexing: createIndexing(store, isThere),
        selectKey: store.prepare('SELECT 1 FROM session WHERE number = ? AND id = ?'),
      };
      // Another file: what this one does not have begins anew in it.
      for (const session of sessions.values()) session.key = null;
      if (isStdio) fresh.add(sessionOf(1));
    },
    saveStart() {
      const session = sessionOf(1);
      if (isStdio) session.key = insert(session);
    },
    save,
    confirm,
    giveUp() {
      // They stay fresh: each row wants the count of what was lost.
      for (const session of fresh) session.giveUp();
    },
    index: (maxMs) => opened?.indexing.advance(maxMs) ?? true,
    stopIndexing: () => opened?.indexing.stop(),
    end(end) {
      for (const session of sessions.values()) if (session.state.end === null) session.change({ end });
      // Rows that are there first: they need hardly any room on a disk that may be full.
      const missing = [...fresh].filter(({ key }) => key === null);
      for (const session of missing) fresh.delete(session);
      save(false);
      confirm();
      for (const session of missing) fresh.add(session);
      save(false);
      confirm();
    },
  };
}
