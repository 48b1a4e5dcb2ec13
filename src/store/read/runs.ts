/** The runs of clients: sessions with different servers that one process of a client had, or that belong together otherwise. */

import { TapedeckError } from '../../errors.ts';
import { joinedFields } from '../../protocol/http/headers.ts';
import type { RunEvidence } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import { prepareHttpExchange } from './http.ts';
import { eachSession, type SessionRow } from './sessions.ts';

export type RunRow = {
  id: string;
  /** What ties its sessions together, the strongest first. */
  evidence: RunEvidence['kind'][];
  /** What its user called it by the label `run`. */
  name: string | null;
  /** The oldest first. */
  sessions: SessionRow[];
};

/** Runs with one of these sessions, the one with the newest session first; undefined: all of them. */
export function runsOf(store: Store, among?: Iterable<SessionRow>): RunRow[] {
  const wanted = among && new Set([...among].map(({ run }) => run));
  const byId = new Map<string, SessionRow[]>();
  for (const session of eachSession(store)) {
    if (session.run === null || (wanted !== undefined && !wanted.has(session.run))) continue;
    const known = byId.get(session.run);
    if (known === undefined) byId.set(session.run, [session]);
    else known.unshift(session);
  }
  const select = prepareEvidence(store);
  return [...byId].map(([id, sessions]) => ({ id, sessions, ...select(id) }));
}

/**
 * The run that `reference` names: an id, the value of a label `run`, a unique prefix of an id, or `latest`. Throws `TapedeckError`
 * `not-found` or `ambiguous`.
 */
export function findRun(store: Store, reference: string): RunRow {
  const all = runsOf(store);
  const [newest] = all;
  if (newest !== undefined && reference === 'latest') return newest;
  const exact = all.find(({ id, name }) => id === reference || name === reference);
  if (exact !== undefined) return exact;
  const [match, another] = all.filter(({ id }) => id.startsWith(reference));
  if (match === undefined) {
    throw new TapedeckError(
      'not-found',
      `No run has the id or name \`${reference}\`. See: tapedeck list --by run`,
    );
  }
  if (another !== undefined) {
    throw new TapedeckError(
      'ambiguous',
      `Several runs begin with \`${reference}\`. Give more of the id. See: tapedeck list --by run`,
    );
  }
  return match;
}

const STRENGTH: readonly RunEvidence['kind'][] = ['process', 'label', 'trace', 'peer'];

const LABEL_KEY = 'label ';

function prepareEvidence(store: Store): (id: string) => Pick<RunRow, 'evidence' | 'name'> {
  const select = store.prepare<[string], RunEvidence>(
    'SELECT DISTINCT r.kind, r.key FROM run AS r JOIN session AS s ON s.number = r.session WHERE r.id = ? ORDER BY r.session',
  );
  return (id) => {
    const rows = select.all(id);
    const label = rows.find(({ kind }) => kind === 'label')?.key;
    return {
      evidence: STRENGTH.filter((kind) => rows.some((row) => row.kind === kind)),
      name: label?.slice(LABEL_KEY.length) ?? null,
    };
  };
}

/**
 * On which clock each of the sessions was recorded, by a word that means nothing but that. Of sessions that were recorded
 * elsewhere only those of one process are known to have one clock.
 */
export function prepareClock(store: Store): (session: SessionRow) => string {
  const select = store.prepare<[number], { key: string | null; isImported: number }>(
    `SELECT imported_at IS NOT NULL AS isImported,
         (SELECT r.key FROM run AS r WHERE r.session = number AND r.kind IN ('process', 'peer') LIMIT 1) AS key
       FROM session WHERE number = ?`,
  );
  return ({ number, id, host }) => {
    const row = select.get(number);
    return row?.isImported ? (row.key ?? id) : host;
  };
}

/**
 * Sessions that may belong to the run and have nothing that tells: a client of the same name and version, and by HTTP of the same
 * user agent, at the same time. That is a guess, and is to be shown as one.
 */
export function perhapsOf(store: Store, { sessions }: RunRow): SessionRow[] {
  const agentOf = prepareUserAgent(store);
  const agents = new Set(sessions.map(agentOf).filter((agent) => agent !== null));
  const isLike = (one: SessionRow) =>
    sessions.some(
      (own) =>
        own.clientName !== null &&
        own.clientName === one.clientName &&
        own.clientVersion === one.clientVersion &&
        overlaps(own, one),
    );
  return [...eachSession(store)].filter((one) => {
    if (one.run !== null || !isLike(one)) return false;
    const agent = agentOf(one);
    return agent === null || agents.size === 0 || agents.has(agent);
  });
}

function overlaps(one: SessionRow, other: SessionRow): boolean {
  const endOf = ({ endedAt }: SessionRow) => endedAt ?? Number.POSITIVE_INFINITY;
  return one.startedAt <= endOf(other) && other.startedAt <= endOf(one);
}

/** What a client by HTTP calls itself, in its first request. */
function prepareUserAgent(store: Store): (session: SessionRow) => string | null {
  return ({ number, transport }) => {
    if (transport === 'stdio') return null;
    const headers = prepareHttpExchange(store, number)(1)?.requestHeaders ?? [];
    return joinedFields(headers).get('user-agent') ?? null;
  };
}
