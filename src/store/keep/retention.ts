/** Which sessions have to go so that a store keeps within its limits. Whole sessions only, and never one that is open. */

import { hostname } from 'node:os';
import type { EndReason } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { stateOf } from '../read/sessions.ts';
import type { RetentionLimits } from './limits.ts';

/** What is known of a session when it is decided whether it goes. */
export type Candidate = {
  number: number;
  id: string;
  name: string | null;
  target: string;
  transport: string;
  startedAt: number;
  /** When it ended, or last had traffic, or was imported: the latest of these, in microseconds since the Unix epoch. */
  lastAt: number;
  endReason: EndReason | null;
  host: string;
  pid: number;
  processStarted: string | null;
  frames: number;
  indexed: number;
  bytes: number;
  errors: number;
  /** Whether the engine that the store is shipped to has all of it, is to get it, or is never to, by its sample; null: neither. */
  shipping: 'sealed' | 'unshipped' | 'sampled-out' | null;
  /** It is no part of the sample that was asked for. */
  isLeftOut: 0 | 1;
  /** Whether it is part of that sample is decided once it has ended. */
  isUndecided: 0 | 1;
};

export type Reason = 'sample' | 'named' | 'filter' | 'age' | 'count' | 'size' | 'shipped' | 'unshipped';

/** `bytes`: about what it takes on disk. */
export type Departure = { session: Candidate; reason: Reason; bytes: number };

export type Plan = {
  /** The first to go first. */
  departures: Departure[];
  /** Bytes that stay above `maxBytes`, because sessions that are open or kept have them. */
  excessBytes: number;
};

/** Nobody here can tell whether a session of another host goes on: one that was silent for so long does not. */
const SILENT_ELSEWHERE_US = 7 * 24 * 3600 * 1e6;

/** Its recorder decides for a session within seconds, or the next one does; where there is none, it is not waited for any longer. */
const DECIDED_WITHIN_US = 60e6;

/** What a frame takes beside its payload: its row's other columns, its place in the index, its message. */
const FRAME_BYTES = 220;

/** By HTTP also its share of an HTTP exchange with its headers. */
const HTTP_FRAME_BYTES = 1200;

const SHIPPING = `CASE
  WHEN sample = 0 THEN NULL
  WHEN NOT EXISTS (SELECT 1 FROM shipper) THEN NULL
  WHEN EXISTS (SELECT 1 FROM shipped AS p WHERE p.target = (SELECT target FROM shipper) AND p.session = session.number
    AND p.sample = 0) THEN 'sampled-out'
  WHEN EXISTS (SELECT 1 FROM shipped AS p WHERE p.target = (SELECT target FROM shipper) AND p.session = session.number
    AND p.state IN ('sealed', 'skipped') AND p.revision = session.revision) THEN 'sealed'
  WHEN (imported_at IS NULL OR (SELECT imported FROM shipper))
    AND (redaction IS NOT NULL OR (SELECT unredacted FROM shipper)) THEN 'unshipped' END`;

export function candidates(store: Store): Candidate[] {
  return store
    .prepare<[], Candidate>(
      `SELECT number, id, name, target, transport, started_at AS startedAt, end_reason AS endReason, host, pid,
         process_started AS processStarted, frames, indexed, bytes, errors,
         max(started_at, ifnull(imported_at, 0), ifnull(ended_at, max(
           ifnull((SELECT at FROM frame WHERE session = number ORDER BY seq DESC LIMIT 1), 0),
           ifnull((SELECT max(at, ifnull(ended_at, 0)) FROM http_exchange AS h WHERE h.session = session.number
             ORDER BY h.number DESC LIMIT 1), 0)))) AS lastAt,
         ifnull(sample, 1) = 0 AS isLeftOut, sampling IS NOT NULL AS isUndecided,
         ${SHIPPING} AS shipping
       FROM session`,
    )
    .all()
    .sort((a, b) => a.lastAt - b.lastAt || a.number - b.number);
}

type Circumstances = {
  /** In microseconds since the Unix epoch. */
  now: number;
  /** What the sessions take in the store together. */
  bytesInUse: number;
  /** Sessions that stay whatever the limits, as open ones do. */
  isKept?: (session: Candidate) => boolean;
};

/** `sessions`: all of the store, those first that ended longest ago. */
export function planRetention(
  sessions: readonly Candidate[],
  limits: RetentionLimits,
  { now, bytesInUse, isKept = () => false }: Circumstances,
): Plan {
  const weight = weigher(sessions, bytesInUse);
  const departures = new Map<number, Departure>();
  const stay = new Map<number, boolean>();
  let excessBytes = bytesInUse - (limits.maxBytes ?? bytesInUse);
  let excessCount = sessions.length - (limits.maxSessions ?? sessions.length);

  function mayGo(session: Candidate): boolean {
    const isWaiting = session.shipping === 'unshipped';
    const stays = stay.get(session.number) ?? (isWaiting || isKept(session) || isOpen(session, now));
    stay.set(session.number, stays);
    return !stays;
  }

  function part(session: Candidate, reason: Reason): void {
    if (!departures.has(session.number) && mayGo(session)) leave(session, reason);
  }

  function leave(session: Candidate, reason: Reason): void {
    const bytes = weight(session);
    departures.set(session.number, { session, reason, bytes });
    excessBytes -= bytes;
    excessCount -= 1;
  }

  /** What is left out of a sample goes before all others; and at once, where there is no room to be had that it could wait in. */
  function partLeftOut(): void {
    const mayWait = limits.maxBytes !== null || limits.maxSessions !== null;
    for (const session of sessions)
      if (session.isLeftOut === 1 && (!mayWait || excessCount > 0 || excessBytes > 0))
        part(session, 'sample');
  }

  /** So does what the engine is not to get, where there is no room; otherwise it stays as long as all others. */
  function partSampledOut(): void {
    for (const session of sessions) {
      if (excessCount <= 0 && excessBytes <= 0) break;
      const isSpared = limits.keepErrors && hasErrors(session);
      if (session.shipping === 'sampled-out' && !isSpared) part(session, 'sample');
    }
  }

  /** The end of waiting for an engine: the oldest go, and count as lost. */
  function partUnshipped(mostBytes: number): void {
    const waiting = sessions.filter(
      (session) => session.shipping === 'unshipped' && !isUndecided(session, now),
    );
    let excess = waiting.reduce((sum, session) => sum + weight(session), -mostBytes);
    for (const session of waiting) {
      if (excess <= 0) break;
      if (isKept(session) || isOpen(session, now)) continue;
      leave(session, 'unshipped');
      excess -= weight(session);
    }
  }

  if (limits.localKeepMs !== null) {
    const shippedBefore = now - limits.localKeepMs * 1000;
    for (const session of sessions) {
      if (session.lastAt >= shippedBefore) break;
      if (session.shipping === 'sealed') part(session, 'shipped');
      else if (session.shipping === 'sampled-out') part(session, 'sample');
    }
  }
  partLeftOut();
  partSampledOut();
  const spared = limits.keepErrors ? sessions.filter(hasErrors) : [];
  const others = limits.keepErrors ? sessions.filter((session) => !hasErrors(session)) : sessions;
  const agedBefore = limits.olderThanMs === null ? Number.NEGATIVE_INFINITY : now - limits.olderThanMs * 1000;
  for (const session of others) {
    if (session.lastAt >= agedBefore) break;
    part(session, 'age');
  }
  for (const session of [...others, ...spared]) {
    if (excessCount > 0) part(session, 'count');
    else if (excessBytes > 0) part(session, 'size');
    else break;
  }
  const mostUnshipped = limits.maxUnshippedBytes ?? limits.maxBytes;
  if (mostUnshipped !== null) partUnshipped(mostUnshipped);
  return { departures: [...departures.values()], excessBytes: Math.max(0, excessBytes) };
}

/** Sessions that were named, or found by a filter, go, whatever the limits. */
export function planNamed(
  sessions: readonly Candidate[],
  numbers: ReadonlySet<number>,
  reason: 'named' | 'filter',
  bytesInUse: number,
): Plan {
  const weight = weigher(sessions, bytesInUse);
  const departures = sessions
    .filter(({ number }) => numbers.has(number))
    .map((session) => ({ session, reason, bytes: weight(session) }));
  return { departures, excessBytes: 0 };
}

/** Whether it is being recorded or imported. */
export function isOpen(session: Candidate, now: number): boolean {
  if (stateOf(session) !== 'open') return false;
  return session.host === hostname() || now - session.lastAt < SILENT_ELSEWHERE_US;
}

/** It may turn out that it was never to be shipped. */
function isUndecided(session: Candidate, now: number): boolean {
  return session.isUndecided === 1 && (isOpen(session, now) || now - session.lastAt < DECIDED_WITHIN_US);
}

/** A call failed, or the server could not be started. What is not indexed yet may hold such a call. */
function hasErrors({ errors, indexed, frames, endReason }: Candidate): boolean {
  return errors > 0 || indexed < frames || endReason === 'not-started';
}

/** SQLite does not say what a session takes: so each gets its share of the whole. */
function weigher(sessions: readonly Candidate[], bytesInUse: number): (session: Candidate) => number {
  const rough = ({ bytes, frames, transport }: Candidate) =>
    1000 + bytes + frames * (transport === 'stdio' ? FRAME_BYTES : HTTP_FRAME_BYTES);
  const sum = sessions.reduce((total, session) => total + rough(session), 0);
  return (session) => Math.round((rough(session) / Math.max(sum, 1)) * bytesInUse);
}
