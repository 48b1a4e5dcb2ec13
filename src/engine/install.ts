/** Setting an engine up, and knowing one: whose schema it is, of which version, and who may write and read it. */

import type { Client } from 'pg';
import { TapedeckError } from '../errors.ts';
import { CREATED_BY, ENGINE_MIGRATIONS, initSql, SCHEMA_VERSION, stampSql } from './schema.ts';
import { TABLES } from './tables.ts';

/** What an engine says of itself. `minWriter`: the oldest version of the schema whose writers it takes. */
export type EngineMeta = {
  id: string;
  version: number;
  minWriter: number;
  /** Sessions of days before this one, as `2026-11-23`, may have been deleted because they were old; null: none were. */
  keptFrom: string | null;
};

/** Any number that is ours: whoever changes the schema holds it. */
const SCHEMA_LOCK = 7_203_311_001;

const OLDEST_SERVER = 15;

/** Sets an engine up, unless it is one already. True: it was not. Throws `TapedeckError` for another program's schema. */
export async function initEngine(client: Client): Promise<boolean> {
  await assertServer(client);
  return whileLocked(client, async () => {
    if ((await findEngine(client)) !== null) return false;
    await client.query(initSql());
    return true;
  });
}

/**
 * Brings an engine up to date, each version in a transaction of its own. Returns the version that it had. Throws `TapedeckError`
 * `newer` for one that is newer than this program.
 */
export async function migrateEngine(
  client: Client,
  migrations: readonly (() => string)[] = ENGINE_MIGRATIONS,
): Promise<number> {
  return whileLocked(client, async () => {
    const { version } = await readEngine(client);
    if (version > migrations.length) throw newerEngine(version, migrations.length);
    for (const [i, migration] of migrations.entries()) {
      if (i < version) continue;
      await client.query(
        `BEGIN; SET LOCAL ROLE tapedeck_admin; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL lock_timeout = '10s';
         ${migration()}
         ${stampSql(i + 1)}
         COMMIT`,
      );
    }
    return version;
  });
}

/** Removes an engine with all that is in it. The roles stay: they are of the whole server. */
export async function dropEngine(client: Client): Promise<void> {
  await readEngine(client);
  await whileLocked(client, async () => {
    // One after the other: a server has locks for some thousand tables at once.
    for (const { name } of TABLES) await client.query(`DROP TABLE IF EXISTS tapedeck.${name} CASCADE`);
    await client.query('DROP SCHEMA tapedeck CASCADE');
  });
}

/** Nobody else changes the schema meanwhile. What fails is rolled back. */
export async function whileLocked<T>(client: Client, work: () => Promise<T>): Promise<T> {
  await client.query('SELECT pg_advisory_lock($1)', [SCHEMA_LOCK]);
  try {
    return await work();
  } catch (error) {
    // Without a transaction this only warns.
    await client.query('ROLLBACK').catch(() => {});
    throw error;
  } finally {
    await client.query('SELECT pg_advisory_unlock($1)', [SCHEMA_LOCK]).catch(() => {});
  }
}

/** What the engine is. Throws `TapedeckError` `refused` where the database is none, or has another program's schema. */
export async function readEngine(client: Client): Promise<EngineMeta> {
  const meta = await findEngine(client);
  if (meta !== null) return meta;
  throw new TapedeckError(
    'refused',
    `The database ${databaseOf(client)} is not set up yet. Somebody with the right to make roles runs: tapedeck engine init --to postgres://…`,
  );
}

/** Null: the database has no schema `tapedeck`. Throws `TapedeckError` for one that is another program's. */
async function findEngine(client: Client): Promise<EngineMeta | null> {
  const { rows } = await client.query<{ schema: boolean; meta: boolean }>(
    `SELECT to_regnamespace('tapedeck') IS NOT NULL AS schema, to_regclass('tapedeck.meta') IS NOT NULL AS meta`,
  );
  if (rows[0]?.schema !== true) return null;
  const values = rows[0].meta ? await metaOf(client) : new Map<string, string>();
  const [id, version] = [values.get('id'), Number(values.get('version'))];
  if (values.get('created_by') !== CREATED_BY || id === undefined || !Number.isSafeInteger(version)) {
    throw new TapedeckError(
      'refused',
      `The schema \`tapedeck\` of the database ${databaseOf(client)} is another program’s. Use another database.`,
    );
  }
  const keptFrom = values.get('kept_from') ?? null;
  return { id, version, minWriter: Number(values.get('min_writer')), keptFrom };
}

async function metaOf(client: Client): Promise<Map<string, string>> {
  try {
    const { rows } = await client.query<{ name: string; value: string }>(
      'SELECT name, value FROM tapedeck.meta',
    );
    return new Map(rows.map(({ name, value }) => [name, value]));
  } catch (error) {
    // It has other columns.
    if ((error as { code?: string }).code === '42703') return new Map();
    throw error;
  }
}

/**
 * Throws `TapedeckError` unless a writer of this program's version is one that the engine takes: a newer engine takes older
 * writers, down to `min_writer`. The message says who must update. `own` is our version of the schema.
 */
export function assertWritable({ version, minWriter }: EngineMeta, own = SCHEMA_VERSION): void {
  if (version < own) throw olderEngine(version, own);
  if (minWriter > own) throw newerEngine(version, own);
}

/** The same for a reader: it reads no engine that is newer than itself. */
export function assertReadable({ version }: EngineMeta, own = SCHEMA_VERSION): void {
  if (version < own) throw olderEngine(version, own);
  if (version > own) throw newerEngine(version, own);
}

function olderEngine(version: number, own: number): TapedeckError {
  return new TapedeckError(
    'refused',
    `The engine is older than this tapedeck (schema ${version}, expected ${own}). Its administrator brings it up to date: tapedeck engine migrate --to postgres://…`,
  );
}

function newerEngine(version: number, own: number): TapedeckError {
  return new TapedeckError(
    'newer',
    `The engine is newer than this tapedeck (schema ${version}, expected ${own}). Update tapedeck on this host: npm install -g mcp-tapedeck@latest`,
  );
}

async function assertServer(client: Client): Promise<void> {
  const { rows } = await client.query<{ version: string }>('SHOW server_version');
  const version = rows[0]?.version ?? '';
  if (Number.parseInt(version, 10) < OLDEST_SERVER)
    throw new TapedeckError('refused', `Expected PostgreSQL ${OLDEST_SERVER} or newer, got ${version}.`);
}

function databaseOf(client: Client): string {
  return `\`${client.database ?? ''}\``;
}
