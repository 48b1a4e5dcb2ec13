/** Which sessions of the local store are to be shipped, and which of them never are. */

import { hostname } from 'node:os';
import { dayOf } from '../engine/tables.ts';
import type { Store } from '../store/file/open.ts';
import { sessionKey } from '../store/read/session-key.ts';
import { stateOf } from '../store/read/sessions.ts';
import type { OpenDecision } from '../store/sample/sampling.ts';
import { isUndecidedSql, type ShipSampling, type UndecidedSession } from '../store/sample/ship-sample.ts';
import type { ProgressBook } from './progress.ts';
import type { SessionToShip } from './slice.ts';

export type Policy = {
  /** Sessions that came by `import` go too. */
  imported: boolean;
  /** And those that were recorded with --no-redact. */
  unredacted: boolean;
  /** Of which sessions it is decided first whether they go, as it is asked for now; null: all go. */
  sampling: () => ShipSampling | null;
  /** Of this program: what it refused is tried again by another one. */
  version: string;
};

export type Backlog = {
  /** Those that go first come first. */
  due: SessionToShip[];
  /** Sessions that are over, whose index of messages is behind. */
  unindexed: number[];
  /** Sessions of which rows were rewritten, and their revision by now: what the engine has of them has to go first. */
  rewritten: { progress: SessionToShip['progress']; revision: number }[];
  /** Of which it is not decided yet whether they are shipped. */
  undecided: UndecidedSession[];
};

type Row = {
  number: number;
  id: string;
  startedAt: number;
  host: string;
  pid: number;
  processStarted: string | null;
  endReason: null;
  revision: number;
  behind: number;
  masked: number;
  redaction: number;
  lastAt: number | null;
  reason: string | null;
  sampling: string | null;
  /** The share of such sessions that are shipped; null: all are, or that is not decided. */
  sample: number | null;
  isUndecided: 0 | 1;
};

/** Nobody here can tell whether a session of another host goes on: one that was silent for so long does not. */
const SILENT_ELSEWHERE_US = 7 * 24 * 3600 * 1e6;

/** What of a store's sessions is not in the engine yet, by what the table `shipped` says. */
export function prepareBacklog(
  store: Store,
  book: ProgressBook,
  identity: string,
  target: string,
  policy: Policy,
): () => Backlog {
  const select = store.prepare<[object], Row>(
    `SELECT s.number, s.id, s.started_at AS startedAt, s.host, s.pid, s.process_started AS processStarted,
       s.end_reason AS endReason, s.revision, s.redaction IS NOT NULL AS redaction, p.reason, s.sampling, p.sample,
       ${isUndecidedSql('p')} AS isUndecided,
       s.indexed < (SELECT ifnull(max(f.seq), 0) FROM frame AS f WHERE f.session = s.number) AS behind,
       (SELECT f.at FROM frame AS f WHERE f.session = s.number ORDER BY f.seq DESC LIMIT 1) AS lastAt,
       EXISTS (SELECT 1 FROM masking AS m WHERE m.session = s.number) AS masked
     FROM session AS s LEFT JOIN shipped AS p ON p.target = @target AND p.session = s.number
     WHERE (s.imported_at IS NULL OR @imported) AND ifnull(s.sample, 1) > 0 AND ifnull(p.sample, 1) > 0 AND (
       p.state IS NULL OR p.state = 'open' OR p.revision <> s.revision
       OR (p.state = 'sealed' AND (p.frames <> s.frames OR p.amendments <> s.amendments))
       OR (p.state = 'refused' AND instr(p.reason, @version) = 0 AND (s.redaction IS NOT NULL OR @unredacted)))
     ORDER BY s.end_reason IS NULL, s.started_at`,
  );
  const wanted = {
    target,
    imported: Number(policy.imported),
    unredacted: Number(policy.unredacted),
    version: versionMark(policy.version),
  };

  return () => {
    const backlog: Backlog = { due: [], unindexed: [], rewritten: [], undecided: [] };
    const isSampled = policy.sampling() !== null;
    for (const row of select.all(wanted)) {
      const { number, startedAt, revision } = row;
      if (isUndecided(row)) continue;
      const key = sessionKey(identity, row);
      const isHeldBack = row.redaction === 0 && !policy.unredacted;
      if (isSampled && row.isUndecided === 1 && row.masked === 0 && !isHeldBack) {
        const isOver = isEnded(row);
        if (isOver && row.behind === 1) backlog.unindexed.push(number);
        backlog.undecided.push({ number, key, revision, startedAt, isOver });
        continue;
      }
      const progress = book.of({ number, key, day: dayOf(startedAt), revision });
      if (progress.revision !== revision) backlog.rewritten.push({ progress, revision });
      // What is being redacted waits until it is.
      if (progress.revision !== revision || row.masked === 1) continue;
      if (isHeldBack) {
        book.change(progress, { state: 'refused', reason: UNREDACTED });
        continue;
      }
      if (progress.state !== 'open') book.change(progress, { state: 'open', reason: null });
      const isOver = isEnded(row);
      if (isOver && row.behind === 1) backlog.unindexed.push(number);
      backlog.due.push({ progress, isOver, sample: row.sample });
    }
    return backlog;
  };
}

const UNREDACTED = 'it was recorded with --no-redact; ship it with --ship-unredacted';

/** Stands in the reason of what this version was refused. */
export function versionMark(version: string): string {
  return `(tapedeck ${version})`;
}

/** Whether it may yet be left out of the local sample. One whose recorder was killed before it could name it stays. */
function isUndecided(row: Row): boolean {
  if (row.sampling === null) return false;
  const { keep } = JSON.parse(row.sampling) as OpenDecision;
  return keep !== null || !isEnded(row);
}

function isEnded(row: Row): boolean {
  if (stateOf(row) !== 'open') return true;
  if (row.host === hostname()) return false;
  return Date.now() * 1000 - Math.max(row.startedAt, row.lastAt ?? 0) > SILENT_ELSEWHERE_US;
}
