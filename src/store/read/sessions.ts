/** Reading a store. Long results are iterators: a session of any length is read in constant memory. */

import { hostname } from 'node:os';
import { TapedeckError } from '../../errors.ts';
import type { Era } from '../../protocol/message/conversation.ts';
import type { EndReason, RunEvidence, SessionRedaction } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { isAlive } from '../file/process.ts';

/** A row of `session`. Times in microseconds since the Unix epoch. */
export type SessionRow = {
  number: number;
  id: string;
  name: string | null;
  basis: string;
  transport: string;
  target: string;
  startedAt: number;
  endedAt: number | null;
  endReason: EndReason | null;
  exitCode: number | null;
  signal: string | null;
  host: string;
  pid: number;
  processStarted: string | null;
  clientPid: number | null;
  clientProgram: string | null;
  era: Era | null;
  protocolVersion: string | null;
  clientName: string | null;
  clientVersion: string | null;
  serverName: string | null;
  serverVersion: string | null;
  frames: number;
  indexed: number;
  bytes: number;
  exchanges: number;
  errors: number;
  unanswered: number;
  dropped: number;
  droppedBytes: number;
  truncated: number;
  /** The share of such sessions that are kept, so that it stands for 1 / sample of them; null: all are. 0: it is not, and is to go. */
  sample: number | null;
  /** `meta`: its frames have no payloads. */
  capture: 'full' | 'meta';
  /** A JSON list of the filters of `record --meta-for`: frames that one of them holds for have no payloads. Null: there are none. */
  metaFor: string | null;
  httpExchanges: number;
  /** The other tool that recorded it; null: tapedeck did. */
  importedFrom: string | null;
  /** The client run that it belongs to (runs.ts); null: nothing tells. */
  run: string | null;
};

/** The label that says which other tool has recorded a session. */
export const IMPORTED = 'imported';

const SESSION_COLUMNS = `number, id, name, basis, transport, target, started_at AS startedAt, ended_at AS endedAt,
  end_reason AS endReason, exit_code AS exitCode, signal, host, pid, process_started AS processStarted,
  client_pid AS clientPid, client_program AS clientProgram, era, protocol_version AS protocolVersion,
  client_name AS clientName, client_version AS clientVersion, server_name AS serverName,
  server_version AS serverVersion, frames, indexed, bytes, exchanges, errors, unanswered, dropped,
  dropped_bytes AS droppedBytes, truncated, sample,
  CASE WHEN redaction ->> '$.capture' = 'meta' THEN 'meta' ELSE 'full' END AS capture,
  redaction ->> '$.metaFor' AS metaFor,
  (SELECT ifnull(max(h.number), 0) FROM http_exchange AS h WHERE h.session = session.number) AS httpExchanges,
  CASE WHEN imported_at IS NOT NULL THEN
    (SELECT l.value FROM label AS l WHERE l.session = session.number AND l.key = '${IMPORTED}') END AS importedFrom,
  (SELECT r.id FROM run AS r WHERE r.session = session.number LIMIT 1) AS run`;

/** All sessions, the newest first. */
export function eachSession(store: Store): IterableIterator<SessionRow> {
  const sql = `SELECT ${SESSION_COLUMNS} FROM session ORDER BY started_at DESC, number DESC`;
  return store.prepare<[], SessionRow>(sql).iterate();
}

/** Those whose index of messages is behind their frames. */
export function sessionsBehind(store: Store): SessionRow[] {
  // The frames of one that lost its first ones are not numbered from 1 on.
  const last = '(SELECT max(seq) FROM frame WHERE frame.session = session.number)';
  return prepareSelect(store)(`(indexed < frames OR (dropped > 0 AND indexed < ${last}))`, NO_LIMIT);
}

const NO_LIMIT = -1;

/** One session by its number. */
export function prepareSession(store: Store): (number: number) => SessionRow | undefined {
  const one = store.prepare<[number], SessionRow>(`SELECT ${SESSION_COLUMNS} FROM session WHERE number = ?`);
  return (number) => one.get(number);
}

/**
 * The session that `reference` names: an id, a name (the newest of that name), a unique prefix of an id, or `latest`.
 * `among`: numbers of the sessions that may be meant; undefined: all. Throws `TapedeckError` `not-found` or `ambiguous`.
 */
export function findSession(store: Store, reference: string, among?: Iterable<number>): SessionRow {
  const select = prepareSelect(store, among);
  const [newest] = select('1', 1);
  if (newest === undefined) {
    throw new TapedeckError(
      'not-found',
      'The store has no session yet. Record one: tapedeck record -- <command>',
    );
  }
  if (reference === 'latest') return newest;
  const [exact] = [...select('id = ?', 1, reference), ...select('name = ?', 1, reference)];
  if (exact !== undefined) return exact;
  const [match, another] = select('instr(id, ?) = 1', 2, reference);
  if (match === undefined) {
    throw new TapedeckError(
      'not-found',
      `No session has the id or name \`${reference}\`. See: tapedeck list`,
    );
  }
  if (another !== undefined) {
    throw new TapedeckError(
      'ambiguous',
      `Several sessions begin with \`${reference}\`. Give more of the id. See: tapedeck list`,
    );
  }
  return match;
}

type Select = (where: string, limit: number, ...values: string[]) => SessionRow[];

function prepareSelect(store: Store, among?: Iterable<number>): Select {
  const numbers = among === undefined ? [] : [JSON.stringify([...among])];
  const isAmong = among === undefined ? '' : 'AND number IN (SELECT value FROM json_each(?))';
  return (where, limit, ...values) => {
    const sql = `SELECT ${SESSION_COLUMNS} FROM session WHERE ${where} ${isAmong} ORDER BY started_at DESC, number DESC LIMIT ${limit}`;
    return store.prepare<string[], SessionRow>(sql).all(...values, ...numbers);
  };
}

/**
 * `open`: its recorder is at work. `cut-off`: its recorder was killed before it could say how the session ended. Else
 * how it ended. A session of another host counts as open, because nobody here can tell. `unknown`: the tool that recorded
 * it does not write how sessions end.
 */
export function stateOf(
  session: Pick<SessionRow, 'endReason' | 'host' | 'pid' | 'processStarted'> &
    Partial<Pick<SessionRow, 'importedFrom'>>,
): EndReason | 'open' | 'cut-off' | 'unknown' {
  if (session.endReason !== null) return session.endReason;
  if (session.host !== hostname()) return 'open';
  if (isAlive(session.pid, session.processStarted)) return 'open';
  return session.importedFrom == null ? 'cut-off' : 'unknown';
}

/** What the row of a session says besides. An export of the whole session needs it. */

export type SessionDetails = {
  labels: [key: string, value: string][];
  /** Null for HTTP. */
  command: string[] | null;
  /** Where the server was started; null for HTTP. */
  cwd: string | null;
  serverPid: number | null;
  /** Null where it was recorded here. */
  importedAt: number | null;
  clientClosedAt: number | null;
  serverClosedAt: number | null;
  /** The version that recorded it. */
  tapedeck: string;
  /** Null: nothing was redacted. */
  redaction: SessionRedaction | null;
  /** The client's process, where it tells the session's run. */
  run: RunEvidence | null;
};

type Columns = Omit<SessionDetails, 'labels' | 'command' | 'redaction' | 'run'> & {
  command: string | null;
  redaction: string | null;
};

/** Throws `TapedeckError` `not-found` for one that was removed. */
export function sessionDetails(store: Store, session: number): SessionDetails {
  const row = store
    .prepare<[number], Columns>(
      `SELECT command, cwd, server_pid AS serverPid, imported_at AS importedAt, client_closed_at AS clientClosedAt, server_closed_at AS serverClosedAt, tapedeck,
         redaction
       FROM session WHERE number = ?`,
    )
    .get(session);
  // It was found a moment ago.
  if (row === undefined) throw new TapedeckError('not-found', 'The session was removed meanwhile.');
  const labels = store
    .prepare<[number], { key: string; value: string }>(
      'SELECT key, value FROM label WHERE session = ? ORDER BY key',
    )
    .all(session);
  const run = store
    .prepare<[number], RunEvidence>(
      "SELECT kind, key FROM run WHERE session = ? AND kind IN ('process', 'peer') ORDER BY kind DESC LIMIT 1",
    )
    .get(session);
  return {
    ...row,
    run: run ?? null,
    command: row.command === null ? null : (JSON.parse(row.command) as string[]),
    redaction: row.redaction === null ? null : (JSON.parse(row.redaction) as SessionRedaction),
    labels: labels.map(({ key, value }) => [key, value]),
  };
}
