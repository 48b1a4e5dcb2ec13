/**
 * What has to be done to an engine from time to time: partitions ahead of time, those of strange clocks, the end of what is old,
 * and the index of texts. Doing it twice changes nothing; whatever stops it leaves every step done or not done.
 */

import type { Client } from 'pg';
import { readEngine, whileLocked } from './install.ts';
import { INDEXED_BYTES, WEEKS_AHEAD } from './schema.ts';
import { TABLES } from './tables.ts';
import { sqlStateOf } from './trouble.ts';

/** A condition on `s`, a row of `session`. */
export type SessionTest = { sql: string; values: readonly unknown[] };

export type MaintainOptions = {
  /** Weeks that were over so long ago, by the engine's clock, go with all of their sessions; null: none. */
  olderThanMs?: number | null;
  /** Which of them stay. */
  kept?: SessionTest | null;
  /** Whether texts of weeks that are over get an index. */
  hasTextIndex?: boolean;
};

/** What was done, by the Monday of its week. `hosts`: at most five of them. */
export type MaintainStep =
  | { step: 'made'; week: string }
  | { step: 'left-in-default'; weeks: number }
  | { step: 'dropped'; week: string; sessions: number; kept: number }
  | { step: 'unsealed'; week: string; sessions: number; hosts: string[] }
  | { step: 'indexed'; week: string };

/** Sessions with errors, and those of which that is not known: as the local retention takes them. */
export const WITH_ERRORS: SessionTest = {
  sql: "(s.errors > 0 OR s.indexed < s.frames OR s.end_reason = 'not-started')",
  values: [],
};

/** Each week is ten tables: a clock that is set anew again and again shall not make thousands at once. */
const ODD_WEEKS_AT_ONCE = 52;

/** How long writers wait at most because a step waits for its locks, and how often it tries. */
const LOCK_TIMEOUT = '5s';

const ATTEMPTS = 6;

/** `onStep` is called as things are done, and waited for. Throws what PostgreSQL does, where we are not in the role `tapedeck_admin`. */
export async function maintainEngine(
  client: Client,
  { olderThanMs = null, kept = null, hasTextIndex = false }: MaintainOptions,
  onStep: (step: MaintainStep) => Promise<void>,
): Promise<void> {
  await readEngine(client);
  // An extension is made with the rights that we have ourselves.
  if (hasTextIndex) await client.query('CREATE EXTENSION IF NOT EXISTS pg_trgm');
  await whileLocked(client, async () => {
    await client.query('SET ROLE tapedeck_admin');
    try {
      await makeWeeks(client, onStep);
      if (olderThanMs !== null) await dropWeeks(client, olderThanMs, kept, onStep);
      if (hasTextIndex) await indexTexts(client, onStep);
    } finally {
      await client.query('RESET ROLE').catch(() => {});
    }
  });
}

async function makeWeeks(client: Client, onStep: (step: MaintainStep) => Promise<void>): Promise<void> {
  const ahead = await client.query<{ week: string }>(
    `SELECT date_trunc('week', (current_timestamp AT TIME ZONE 'UTC') + n * interval '1 week')::date::text AS week
     FROM generate_series(0, ${WEEKS_AHEAD - 1}) AS n`,
  );
  const odd = await client.query<{ week: string }>(
    `SELECT DISTINCT date_trunc('week', day::timestamp)::date::text AS week FROM tapedeck.session_default ORDER BY week`,
  );
  const weeks = [...ahead.rows, ...odd.rows.slice(0, ODD_WEEKS_AT_ONCE)].map(({ week }) => week);
  for (const week of new Set(weeks)) {
    const { rows } = await inTransaction(client, () =>
      client.query<{ made: boolean }>('SELECT tapedeck.add_week($1::date) AS made', [week]),
    );
    if (rows[0]?.made === true) await onStep({ step: 'made', week });
  }
  const left = odd.rows.length - ODD_WEEKS_AT_ONCE;
  if (left > 0) await onStep({ step: 'left-in-default', weeks: left });
}

/** The weeks that have partitions and were over so many milliseconds ago, the oldest first. */
async function weeksOver(client: Client, agoMs: number): Promise<string[]> {
  const { rows } = await client.query<{ week: string }>(
    `SELECT to_date(right(relname, 8), 'YYYYMMDD')::text AS week FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
     WHERE inhparent = 'tapedeck.session'::regclass AND relname ~ '^session_[0-9]{8}$'
       AND to_date(right(relname, 8), 'YYYYMMDD') + interval '7 days'
         <= (current_timestamp AT TIME ZONE 'UTC') - $1 * interval '1 ms'
     ORDER BY week`,
    [agoMs],
  );
  return rows.map(({ week }) => week);
}

async function dropWeeks(
  client: Client,
  olderThanMs: number,
  kept: SessionTest | null,
  onStep: (step: MaintainStep) => Promise<void>,
): Promise<void> {
  for (const week of await weeksOver(client, olderThanMs)) {
    const step = await inTransaction(client, () => dropWeek(client, week, kept ?? NONE));
    if (step !== null) await onStep(step);
  }
}

const NONE: SessionTest = { sql: 'false', values: [] };

/**
 * Takes a week's partitions away, in seconds however much is in them; what is kept is copied into new ones before. A week with
 * a session of which more may come stays as it is. Null: nothing of it has to go.
 */
async function dropWeek(client: Client, week: string, kept: SessionTest): Promise<MaintainStep | null> {
  const digits = week.replaceAll('-', '');
  // Who writes begins with the row of the session: so nobody writes to this week from here on.
  await client.query(`LOCK TABLE tapedeck.session_${digits} IN SHARE ROW EXCLUSIVE MODE`);
  const { rows } = await client.query<{
    all: number;
    kept: number;
    unsealed: number;
    hosts: string[] | null;
  }>(
    `SELECT count(*)::int AS all, (count(*) FILTER (WHERE ${kept.sql}))::int AS kept,
       (count(*) FILTER (WHERE sealed_at IS NULL))::int AS unsealed,
       (array_agg(DISTINCT host) FILTER (WHERE sealed_at IS NULL))[1:5] AS hosts
     FROM tapedeck.session_${digits} AS s`,
    [...kept.values],
  );
  const found = rows[0] ?? { all: 0, kept: 0, unsealed: 0, hosts: null };
  if (found.unsealed > 0)
    return { step: 'unsealed', week, sessions: found.unsealed, hosts: found.hosts ?? [] };
  if (found.kept > 0 && found.kept === found.all) return null;
  if (found.kept > 0) for (const { name } of TABLES) await copyKept(client, name, digits, kept);
  // In the order in which writers come to them, so that nobody waits for the other.
  for (const { name } of TABLES)
    await client.query(`LOCK TABLE ONLY tapedeck.${name} IN ACCESS EXCLUSIVE MODE`);
  for (const { name } of TABLES) {
    const part = `tapedeck.${name}_${digits}`;
    await client.query(`DROP TABLE ${part}`);
    if (found.kept > 0) {
      await client.query(`ALTER TABLE ${part}_kept RENAME TO ${name}_${digits}`);
      await client.query(
        `ALTER TABLE tapedeck.${name} ATTACH PARTITION ${part} FOR VALUES FROM ('${week}') TO (date '${week}' + 7)`,
      );
    }
  }
  // Hosts shall not take it for a loss, and ship again what they still have.
  await client.query(
    `INSERT INTO tapedeck.meta AS m (name, value) VALUES ('kept_from', (date '${week}' + 7)::text)
       ON CONFLICT (name) DO UPDATE SET value = greatest(m.value, excluded.value)`,
  );
  return { step: 'dropped', week, sessions: found.all - found.kept, kept: found.kept };
}

async function copyKept(client: Client, name: string, digits: string, kept: SessionTest): Promise<void> {
  const part = `tapedeck.${name}_${digits}`;
  await client.query(`CREATE TABLE ${part}_kept (LIKE tapedeck.${name} INCLUDING ALL)`);
  await client.query(
    `INSERT INTO ${part}_kept SELECT * FROM ${part}
     WHERE session IN (SELECT s.session FROM tapedeck.session_${digits} AS s WHERE ${kept.sql})`,
    [...kept.values],
  );
}

/**
 * Of weeks that are over: trigrams of texts, as far as they are in the index, and which frames are larger than that. Building them takes
 * far longer than storing the frames did. Nobody waits for it.
 */
async function indexTexts(client: Client, onStep: (step: MaintainStep) => Promise<void>): Promise<void> {
  const { rows } = await client.query<{ schema: string }>(
    `SELECT quote_ident(nspname) AS schema FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'pg_trgm'`,
  );
  const { schema = 'public' } = rows[0] ?? {};
  const kinds = [
    ['text', `USING gin (tapedeck.payload_text(payload) ${schema}.gin_trgm_ops)`],
    ['large', `(size) WHERE size > ${INDEXED_BYTES}`],
  ];
  for (const week of await weeksOver(client, 0)) {
    const table = `frame_${week.replaceAll('-', '')}`;
    let isMade = false;
    for (const [kind, definition] of kinds)
      isMade = (await makeIndex(client, table, `${table}_${kind}`, definition ?? '')) || isMade;
    if (isMade) await onStep({ step: 'indexed', week });
  }
}

/** False: it is there. */
async function makeIndex(client: Client, table: string, name: string, definition: string): Promise<boolean> {
  const { rows } = await client.query<{ valid: boolean }>(
    'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)',
    [`tapedeck.${name}`],
  );
  if (rows[0]?.valid === true) return false;
  // One that was not finished.
  await client.query(`DROP INDEX CONCURRENTLY IF EXISTS tapedeck.${name}`);
  await client.query(`CREATE INDEX CONCURRENTLY ${name} ON tapedeck.${table} ${definition}`);
  return true;
}

/** Tries again where somebody was in the way: those who write come first. */
async function inTransaction<T>(client: Client, work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(
        `BEGIN; SET LOCAL lock_timeout = '${LOCK_TIMEOUT}'; SET LOCAL search_path = pg_catalog, pg_temp`,
      );
      const result = await work();
      await client.query('COMMIT');
      return result;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});
      const isInTheWay = ['40P01', '55P03'].includes(sqlStateOf(error) ?? '');
      if (!isInTheWay || attempt === ATTEMPTS) throw error;
    }
  }
}
