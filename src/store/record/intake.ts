/**
 * What stands between the batches that arrive in the writer's thread and the store: a framer makes frames of them, and these
 * wait in sessions until they are stored. Stdio is one session from the start; HTTP has as many as its framer opens.
 */

import { hostname } from 'node:os';
import type { Statement } from 'better-sqlite3';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { SessionEnd, SessionStart } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { createPeerFinder } from '../file/peer.ts';
import { type ClientProcess, processStarted } from '../file/process.ts';
import type { Sampler, SamplingRules } from '../sample/sampling.ts';
import type { RecorderTally } from '../write/figures.ts';
import { createPeers } from '../write/peers.ts';
import { createPendingSession, type PendingSession, type SessionKey } from '../write/pending.ts';
import { redactionColumn, redactStart } from '../write/redaction.ts';
import { createRedactionRules, type MetaFor } from '../write/redaction-rules.ts';
import { hideSessions } from '../write/removal.ts';
import { createRowWriter, newSessionId, prepareSessionInsert, type RowWriter } from '../write/rows.ts';
import { RUN_LABEL } from '../write/run.ts';
import type { Framer } from './framer.ts';
import { createHttpFramer } from './http-framer.ts';
import { createIndexing, type Indexing } from './indexing.ts';
import { createStdioFramer } from './stdio-framer.ts';
import type { RecordingStart } from './thread.ts';
import type { PendingPiece } from './unfinished.ts';

export type Intake = {
  framer: Framer;
  serverStarted(pid: number): void;
  /** Everything goes into this store from now on. Throws SQLite's error. Not to be called in a transaction. */
  open(store: Store): void;
  /** The same for a spool: nothing is indexed until it goes into the store again. */
  openSpool(spool: Store): void;
  /**
   * From now on by these rules, also in sessions under way: their rows name the old ones and the new ones then. Not for a run
   * that began without redaction. `metaFor` goes by the `metaFor` of the profile.
   */
  setRedaction(profile: RedactionProfile, metaFor: MetaFor): void;
  /** Sessions that begin from now on are sampled by these rules, with a sampler made by `create` if there is none; null: all are kept. */
  setSampling(rules: SamplingRules | null, create: ((rules: SamplingRules) => Sampler) | null): void;
  /** So many sessions were left out of the sample. */
  leftOut(): number;
  /** Who uses a recorder, where that is one process; call it before `open`. Null: unknown. */
  setClient(client: ClientProcess | null): void;
  /** So many sessions have not ended. */
  openSessions(): number;
  /** The public id of the session by stdio, once it has a row; null: it has none, or there may be many. */
  sessionId(): string | null;
  /** So many frames wait to be stored. */
  waiting(): number;
  /** Stores the row of a session of stdio without its frames. Throws SQLite's error. */
  saveStart(): void;
  /**
   * Stores everything that is whole, in one transaction; or throws SQLite's error, and nothing has changed. `withUnfinished`:
   * also what is not whole yet, as far as it has come.
   */
  save(withUnfinished: boolean): void;
  /** Forgets what `save` has just stored. Returns the rows of its sessions. */
  confirm(): readonly SessionKey[];
  /** Forgets what waits, and counts it as lost. */
  giveUp(): void;
  /** Indexes for about so many milliseconds. True: nothing is left. Throws SQLite's error. */
  index(maxMs: number): boolean;
  /** Looks for a client of a recorder by HTTP, if it is time; gives the milliseconds until the next one, null: none. Never rejects. */
  findClients(): Promise<number | null>;
  /** Gives up on the index: readers complete it. */
  stopIndexing(): void;
  /** Stores how it ended, and returns rows as `confirm` does. Throws SQLite's error, and may be called again then. */
  end(end: SessionEnd): readonly SessionKey[];
};

/** What the rows of all sessions of this run say. */
type Common = Omit<SessionStart, 'at' | 'basis' | 'transport'>;

/** A file that is open, and what is prepared for it. */
type Opened = {
  store: Store;
  insert: ReturnType<typeof prepareSessionInsert>;
  writer: RowWriter;
  selectKey: Statement<[number, string]>;
};

const NOTHING: readonly PendingPiece[] = [];

type IntakeOptions = {
  /** Called again and again in what may take long: before secrets are looked for in a frame, and before it is stored. */
  onWork?: () => void;
  /** Counts what is stored. */
  tally?: RecorderTally | null;
  /** Decides which sessions are kept, where not all are. */
  sampler?: Sampler | null;
  /** Decides which frames are kept without their payloads; it goes by the `metaFor` of the profile. */
  metaFor?: MetaFor;
};

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
  { onWork = () => {}, tally = null, metaFor = null, ...more }: IntakeOptions = {},
): Intake {
  const [isStdio, rules] = [start.transport === 'stdio', createRedactionRules(redaction, onWork, metaFor)];
  /** By their numbers within this run. */
  const sessions = new Map<number, PendingSession>();
  /** Those with something that waits to be stored. */
  const fresh = new Set<PendingSession>();
  /** The store, once it has been open, and its index; what is written to at the moment. */
  let [store, opened, indexing]: [Opened | null, Opened | null, Indexing | null] = [null, null, null];
  let [common, client]: [Common | null, ClientProcess | null] = [null, null];
  let sampler = more.sampler ?? null;
  /** What `save` has stored, until `confirm`. */
  let [saved, pieces] = [new Map<PendingSession, SessionKey>(), NOTHING];
  const peers = createPeers(() => opened?.store ?? null, hostname(), createPeerFinder());
  const [detour, framer] = [createDetour(), createFramer()];

  function createFramer(): Framer {
    if (isStdio) return createStdioFramer(sessionOf(1), maxFrameBytes, rules.firstSign, start.basis);
    return createHttpFramer({
      ...{ maxFrameBytes, firstSign: rules.firstSign, sessionOf, onConnection: peers.saw },
      keepsUndecoded: !rules.redactor()?.isOn('undecoded'),
      mcpPath: new URL(start.target).pathname,
      onTold: (session, key) => sampler?.decide(session, key),
      // What of it waits to be stored is kept where it waits.
      onForgotten(number) {
        const session = sessions.get(number);
        sessions.delete(number);
        if (session !== undefined && !fresh.has(session)) indexing?.release(session);
      },
      onCrowd: (mostOpen) =>
        onNotice(
          `more than ${mostOpen} sessions are open, so those that are idle for longest are recorded as ended (\`crowded-out\`); their traffic goes on, and one that is used again goes on too`,
        ),
    });
  }

  function sessionOf(number: number, startedAt = start.at): PendingSession {
    const known = sessions.get(number);
    if (known !== undefined) return known;
    const { basis, transport } = start;
    const session = createPendingSession({
      ...{ basis, transport, startedAt },
      id: newSessionId(),
      onChange: hasChanged,
    });
    sessions.set(number, session);
    fresh.add(session);
    sampler?.begin(session);
    if (isStdio) sampler?.decide(session, runOf(start));
    return session;
  }

  function hasChanged(session: PendingSession): void {
    fresh.add(session);
    onChange();
  }

  function save(withUnfinished: boolean): void {
    pieces = withUnfinished ? keptOf(framer.unfinished()) : NOTHING;
    // Of a save that failed, none of the new rows is there.
    saved = new Map();
    if (opened === null || (fresh.size === 0 && pieces.length === 0)) return;
    for (const session of fresh) rules.redact(session);
    // IMMEDIATE, because a transaction that begins as a reader cannot wait for a lock once it starts to write.
    opened.store.transaction(saveAll).immediate(opened);
  }

  function saveAll({ store: file, writer }: Opened): void {
    for (const session of fresh) {
      const known = keyOf(session);
      if (session.isLeftOut) {
        // What was stored of it before that was decided goes. What is in a spool is on its way into the store, and goes there.
        if (known !== null && opened === store) hideSessions(file, [known.number]);
        else if (known !== null) sampler?.mark(file, known);
        continue;
      }
      const key = known ?? insert(session, session.key === null ? session.id : newSessionId());
      saved.set(session, key);
      rules.restate(file, key, session);
      sampler?.write(file, key, session);
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

  function insert(
    { state: { basis, transport }, startedAt: at }: PendingSession,
    id: string | null,
  ): SessionKey {
    const row = { ...(common as Common), basis, transport, at };
    return (opened as Opened).insert(row, id ?? newSessionId());
  }

  /** A run has one key for placeholders, whatever file it writes to: its sessions say which. */
  function commonOf(file: Store): Common {
    const { parentPid: _, ...given } = start;
    const row = rules.open(file);
    return {
      ...(row === null ? given : redactStart(given, row)),
      host: hostname(),
      processStarted: processStarted(start.pid),
      clientPid: client?.pid ?? null,
      clientProgram: client?.program ?? null,
      clientStarted: client?.started ?? null,
      redaction: redactionColumn(file, rules.profile()),
    };
  }

  function prepare(file: Store): Opened {
    common ??= commonOf(file);
    return {
      store: file,
      insert: prepareSessionInsert(file),
      writer: createRowWriter(file, rules.redactor(), onWork),
      selectKey: file.prepare('SELECT 1 FROM session WHERE number = ? AND id = ?'),
    };
  }

  function confirm(): readonly SessionKey[] {
    for (const [session, key] of saved) {
      if (opened === store && session.key !== key) indexing?.begin(session, key);
      if (opened !== store) detour.add(session);
      session.key = key;
      session.id = key.id;
      indexing?.takeStored(session, opened === store);
      tally?.stored(session, key);
      rules.confirm(session);
      sampler?.confirm(session, key);
      session.confirm();
      fresh.delete(session);
    }
    for (const session of fresh) {
      if (!session.isLeftOut) continue;
      indexing?.forget(session);
      fresh.delete(session);
      // In a spool its row was marked, and comes back as one of the store.
      if (opened === store) session.key = null;
    }
    const keys = [...saved.values()];
    for (const { frame, part } of pieces) frame.confirm(part);
    saved = new Map();
    pieces = NOTHING;
    return keys;
  }

  return {
    ...{ framer, save },
    serverStarted: (serverPid) => sessionOf(1).change({ serverPid }),
    open(file) {
      if (store?.store !== file) {
        // Which rows sessions have in one file says nothing of another.
        if (store !== null) detour.begin([...sessions.values(), ...fresh]);
        store = prepare(file);
        indexing = createIndexing(file, isThere);
        for (const session of detour.sessions()) indexing.setBehind(session);
      }
      opened = store;
      detour.end(file);
      for (const session of sessions.values())
        if (session.isLeftOut && session.key !== null) fresh.add(session);
      if (isStdio) fresh.add(sessionOf(1));
    },
    openSpool(spool) {
      const file = prepare(spool);
      detour.begin([...sessions.values(), ...fresh]);
      opened = file;
      if (isStdio) fresh.add(sessionOf(1));
    },
    setRedaction(profile, metaFor) {
      rules.set(profile, metaFor, [...sessions.values(), ...fresh]);
      common = null;
      const isOnDetour = opened !== store;
      store = store && prepare(store.store);
      opened = isOnDetour ? opened && prepare(opened.store) : store;
    },
    setSampling(rules, create) {
      if (sampler !== null) sampler.setRules(rules);
      else if (rules !== null) sampler = create?.(rules) ?? null;
    },
    leftOut: () => sampler?.leftOut() ?? 0,
    setClient(found) {
      client = found;
    },
    waiting() {
      let frames = 0;
      for (const session of fresh) frames += session.frames().length;
      return frames;
    },
    openSessions: () =>
      [...sessions.values()].filter(({ state, isLeftOut }) => state.end === null && !isLeftOut).length,
    sessionId: () => (isStdio ? (sessionOf(1).key?.id ?? null) : null),
    saveStart() {
      if (!isStdio) return;
      const session = sessionOf(1);
      if (session.isLeftOut || session.key !== null) return;
      session.key = insert(session, session.id);
      indexing?.begin(session, session.key);
    },
    confirm,
    giveUp() {
      // They stay fresh: each row wants the count of what was lost.
      for (const session of fresh) {
        session.giveUp();
        tally?.lost(session);
      }
    },
    index: (maxMs) => (opened === store ? (indexing?.advance(maxMs) ?? true) : true),
    findClients: peers.look,
    stopIndexing: () => indexing?.stop(),
    end(end) {
      peers.stop();
      for (const session of sessions.values()) sampler?.decide(session, null);
      for (const session of sessions.values()) if (session.state.end === null) session.change({ end });
      // Rows that are there first: they need hardly any room on a disk that may be full.
      const missing = [...fresh].filter(({ key }) => key === null);
      for (const session of missing) fresh.delete(session);
      const keys: SessionKey[] = [];
      try {
        save(false);
        keys.push(...confirm());
      } finally {
        for (const session of missing) fresh.add(session);
      }
      save(false);
      return [...keys, ...confirm()];
    },
  };
}

/** Pieces of what is left out count as stored. */
function keptOf(pieces: readonly PendingPiece[]): readonly PendingPiece[] {
  return pieces.filter(({ session, frame, part }) => {
    if (session.isLeftOut) frame.confirm(part);
    return !session.isLeftOut;
  });
}

/** The run that its user has named: all sessions of it are kept, or none. */
function runOf({ labels }: RecordingStart): string | null {
  return labels.find(([key]) => key === RUN_LABEL)?.[1] ?? null;
}

/** Sessions on their way by a spool: which rows they have in the store does not count there, and is needed afterwards. */
type Detour = {
  begin(all: readonly PendingSession[]): void;
  /** A part of this session is in the spool. */
  add(session: PendingSession): void;
  sessions(): Iterable<PendingSession>;
  /** All that was in the spool is in this store. Throws SQLite's error. */
  end(store: Store): void;
};

function createDetour(): Detour {
  const kept = new Set<PendingSession>();
  const spooled = new Set<PendingSession>();
  return {
    begin(all) {
      for (const session of all) {
        if (session.key !== null) kept.add(session);
        session.key = null;
      }
    },
    add: (session) => void spooled.add(session),
    sessions: () => spooled,
    end(store) {
      const find = store.prepare<[string], { number: number; dropped: number }>(
        'SELECT number, dropped FROM session WHERE id = ?',
      );
      for (const session of new Set([...kept, ...spooled])) {
        const id = session.id as string;
        const row = find.get(id);
        session.key = row === undefined ? null : { number: row.number, id };
        // What was stored before may be gone: pruned, or with the file that it was in.
        const stored = session.state.end === null ? session.firstSeq() - 1 : 0;
        const missing = row === undefined ? stored : row.dropped - session.loss.frames;
        if (missing > 0) session.lose(missing, 0);
      }
      kept.clear();
      spooled.clear();
    },
  };
}
