/** Which sessions of an engine somebody asks for. What of them holds for a filter is decided by whoever has their frames. */

import type { Client } from 'pg';
import type { Condition } from './candidates.ts';

/** A session of the engine, as it is at the moment of the snapshot. */
export type Found = {
  key: string;
  /** Its partition, as `2026-11-23`. */
  day: string;
  id: string;
  host: string;
  /** Microseconds since the Unix epoch. */
  startedAt: number;
  /** Another one as soon as anything of the session is. */
  version: string;
  /** As the local store counts them; how many have arrived, where it is not sealed, nobody has counted. */
  frames: number;
  bytes: number;
  isSealed: boolean;
  /** Whether the index of its messages is complete; else whoever reads it completes it, from its payloads. */
  isIndexed: boolean;
};

const COLUMNS = `s.session::text AS key, s.day::text AS day, coalesce(s.id, '') AS id, coalesce(s.host, '') AS host,
  s.started_at AS "startedAt", s.frames, s.bytes, s.sealed_at IS NOT NULL AS "isSealed",
  (s.sealed_at IS NOT NULL OR s.indexed >= s.frames AND s.dropped = 0) IS TRUE AS "isIndexed",
  concat(s.revision, '.', s.cursor, '.', (extract(epoch FROM s.received_at) * 1000000)::bigint) AS version`;

const NEWEST_FIRST = 'ORDER BY s.started_at DESC, s.session DESC';

export type Finder = {
  /** The newest of those for which the condition holds, at most `limit`, those behind `after` alone. */
  newest(limit: number, condition?: Condition, after?: Found): Promise<Found[]>;
  /**
   * Those that a reference may mean: one by its id, `host/id` or name, else two that begin with it. `latest` is the newest. None:
   * there is no such session.
   */
  named(reference: string): Promise<Found[]>;
  /** Which version of these sessions is here; those that are not here are not among them. */
  versionsOf(keys: readonly string[]): Promise<Map<string, string>>;
  /** All sessions of the runs that these belong to. */
  inRunsOf(sessions: readonly Found[]): Promise<Found[]>;
  /** Sessions of runs that a reference may mean: an id, the beginning of one, a name; `latest` is the run of the newest that has one. */
  inRun(reference: string): Promise<Found[]>;
  /** Sessions that nothing ties to a run and that overlap with these. */
  beside(sessions: readonly Found[]): Promise<Found[]>;
  /** The session, and those before it of the same server, the newest first, among the newest of any server. */
  ofSameServer(session: Found, limit: number): Promise<Found[]>;
  /** Those of which something came since that moment, by the engine's clock in microseconds. */
  receivedSince(time: number): Promise<Found[]>;
  /** The engine's clock, in microseconds since the Unix epoch. */
  clock(): Promise<number>;
};

export function createFinder(client: Client): Finder {
  async function select(where: string, values: readonly unknown[], limit?: number): Promise<Found[]> {
    const most = limit === undefined || limit === Number.POSITIVE_INFINITY ? '' : `LIMIT ${limit}`;
    const { rows } = await client.query<Found>(
      `SELECT ${COLUMNS} FROM tapedeck.session AS s WHERE ${where} ${NEWEST_FIRST} ${most}`,
      [...values],
    );
    return rows;
  }

  const keysOf = (sessions: readonly Found[]) => sessions.map(({ key }) => key);

  return {
    newest(limit, condition = { sql: 'true', values: [] }, after) {
      const { sql, values } = condition;
      if (after === undefined) return select(sql, values, limit);
      const place = `(s.started_at, s.session) < ($${values.length + 1}::bigint, $${values.length + 2}::uuid)`;
      return select(`${sql} AND ${place}`, [...values, after.startedAt, after.key], limit);
    },
    async named(reference) {
      if (reference === 'latest') return select('true', [], 1);
      const byId = await select('left(s.id, 64) = left($1, 64) AND s.id = $1', [reference]);
      if (byId.length > 0) return byId;
      const slash = reference.indexOf('/');
      if (slash > 0) {
        const [host, id] = [reference.slice(0, slash), reference.slice(slash + 1)];
        const there = await select('left(s.id, 64) = left($1, 64) AND s.id = $1 AND s.host = $2', [id, host]);
        if (there.length > 0) return there;
      }
      const byName = await select('s.name = $1', [reference], 1);
      if (byName.length > 0) return byName;
      return select(`left(s.id, 64) LIKE $1 AND starts_with(s.id, $2)`, [beginning(reference), reference], 2);
    },
    async versionsOf(keys) {
      const { rows } = await client.query<Pick<Found, 'key' | 'version'>>(
        `SELECT ${COLUMNS} FROM tapedeck.session AS s WHERE s.session = ANY ($1::uuid[])`,
        [keys],
      );
      return new Map(rows.map(({ key, version }) => [key, version]));
    },
    async inRunsOf(sessions) {
      if (sessions.length === 0) return [];
      return select(
        `EXISTS (SELECT FROM jsonb_array_elements(s.runs) AS r WHERE r ->> 'id' IN (
           SELECT o ->> 'id' FROM tapedeck.session AS t, jsonb_array_elements(t.runs) AS o
           WHERE t.session = ANY ($1::uuid[])))`,
        [keysOf(sessions)],
      );
    },
    async inRun(reference) {
      if (reference === 'latest') {
        const newest = await select(`jsonb_array_length(s.runs) > 0`, [], 1);
        return this.inRunsOf(newest);
      }
      const some = await select(
        `EXISTS (SELECT FROM jsonb_array_elements(s.runs) AS r
           WHERE starts_with(r ->> 'id', $1) OR r ->> 'kind' = 'label' AND r ->> 'key' = 'label ' || $1)`,
        [reference],
      );
      return this.inRunsOf(some);
    },
    async beside(sessions) {
      if (sessions.length === 0) return [];
      return select(
        `jsonb_array_length(coalesce(s.runs, '[]')) = 0 AND EXISTS (SELECT FROM tapedeck.session AS t
           WHERE t.session = ANY ($1::uuid[]) AND t.client_name = s.client_name
             AND s.started_at <= coalesce(t.ended_at, s.started_at) AND t.started_at <= coalesce(s.ended_at, t.started_at))`,
        [keysOf(sessions)],
      );
    },
    ofSameServer({ key, startedAt }, limit) {
      return select(
        `s.session IN (SELECT n.session FROM (
             SELECT session, target, transport, server_name, redaction FROM tapedeck.session
             WHERE started_at <= $1 AND server_name IS NOT NULL AND NOT coalesce(labels ? 'imported', false)
             ORDER BY started_at DESC, session DESC LIMIT ${SESSIONS_LOOKED_AT}) AS n
           JOIN tapedeck.session AS own ON own.session = $2::uuid AND own.target = n.target AND own.transport = n.transport
             AND own.server_name = n.server_name AND own.redaction IS NOT DISTINCT FROM n.redaction)`,
        [startedAt, key],
        limit,
      );
    },
    async clock() {
      const { rows } = await client.query<{ now: number }>(
        'SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now',
      );
      return rows[0]?.now ?? 0;
    },
    receivedSince: (time) => select('s.received_at >= to_timestamp($1::numeric / 1000000)', [time]),
  };
}

/** As `earlierTools` looks back. */
const SESSIONS_LOOKED_AT = 1000;

function beginning(text: string): string {
  return `${text.slice(0, 64).replaceAll(/[\\%_]/g, '\\$&')}%`;
}
