/** Databases for tests of the engine. */
import { randomBytes, randomUUID } from 'node:crypto';
import { Client, type QueryResultRow } from 'pg';
import { afterAll, beforeAll, describe, inject, onTestFinished } from 'vitest';
import { connectEngine, readAddress } from '../../src/engine/connect.ts';
import { initEngine } from '../../src/engine/install.ts';
import { type EngineColumn, TABLES } from '../../src/engine/tables.ts';

const shared = inject('postgres');

/** A group of tests that need PostgreSQL. */
export const withEngine: (name: string, tests: () => void) => void = (name, tests) =>
  describe.skipIf(shared === null)(shared === null ? `${name} (skipped: no PostgreSQL)` : name, tests);

/** A database on a server, and who may do everything in it and is no superuser. */
export type Database = {
  /** As the owner, who may make roles. */
  url: string;
  /** The same database for a new role, which is in these. */
  login(...roles: readonly string[]): Promise<string>;
  /** Runs SQL as the superuser. */
  query<Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
};

/** A new database, on the shared server where no other is given. It goes with the server. */
export async function newDatabase(
  port: number = shared?.port ?? 0,
  atEnd: (work: () => Promise<void>) => void = onTestFinished,
): Promise<Database> {
  const name = `deck_${randomBytes(6).toString('hex')}`;
  const owner = `owner_${name.slice(5)}`;
  const urlOf = (role: string, database = name) => `postgres://${role}@127.0.0.1:${port}/${database}`;
  await once(urlOf('postgres', 'postgres'), [
    `CREATE ROLE ${owner} LOGIN CREATEROLE`,
    `CREATE DATABASE ${name} OWNER ${owner}`,
  ]);
  const client = new Client({ connectionString: urlOf('postgres') });
  client.on('error', () => {});
  await client.connect();
  atEnd(() => client.end());
  return {
    url: urlOf(owner),
    async login(...roles) {
      const role = `user_${randomBytes(6).toString('hex')}`;
      await client.query(
        `CREATE ROLE ${role} LOGIN ${roles.length > 0 ? `IN ROLE ${roles.join(', ')}` : ''}`,
      );
      return urlOf(role);
    },
    query: async (text, values = []) => (await client.query(text, [...values])).rows,
  };
}

/** The same database over a connection that did not die with its server. */
export async function reconnected(database: Database): Promise<Database> {
  const url = new URL(database.url);
  url.username = 'postgres';
  const client = new Client({ connectionString: url.href });
  await client.connect();
  onTestFinished(() => client.end());
  return { ...database, query: async (text, values = []) => (await client.query(text, [...values])).rows };
}

async function once(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}

/** The Monday of a day's week. */
export function weekOf(day: string): string {
  const monday = new Date(`${day}T00:00:00Z`);
  monday.setUTCDate(monday.getUTCDate() - ((monday.getUTCDay() + 6) % 7));
  return monday.toISOString().slice(0, 10);
}

/** The UTC day so many days ago. */
export function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
}

type Planted = { session: string; day: string; recorder: string };

const VALUES: Readonly<Record<EngineColumn['type'], unknown>> = {
  uuid: '00000000-0000-8000-8000-000000000000',
  date: '2026-01-01',
  text: 'text',
  integer: 1,
  bigint: 0,
  real: 1,
  bytea: Buffer.from('{"jsonrpc":"2.0"}'),
  jsonb: '{}',
  timestamptz: '2026-01-01T00:00:00Z',
};

/** A session with a row in each table, in which these values of `session` are given. Sealed, and without errors. */
export async function plantSession(
  client: Pick<Client, 'query'>,
  { day = daysAgo(0), ...given }: { day?: string } & Readonly<Record<string, unknown>> = {},
  everywhere: Readonly<Record<string, unknown>> = {},
): Promise<Planted> {
  const session = randomUUID();
  const recorder = String(given['recorder'] ?? randomUUID());
  for (const { name, columns } of TABLES) {
    const own = name === 'session' ? { recorder, end_reason: 'client-closed', ...given } : {};
    const row: Record<string, unknown> = { ...everywhere, session, day, ...own };
    const values = columns.map((column) => (column.name in row ? row[column.name] : VALUES[column.type]));
    const places = values.map((_, i) => `$${i + 1}`).join(', ');
    await client.query(`INSERT INTO tapedeck.${name} VALUES (${places})`, values);
  }
  return { session, day, recorder };
}

/** How many rows each table has for a session, but for the tables that have one. */
export async function rowCounts(database: Database, { session }: Planted): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { name } of TABLES) {
    const [row] = await database.query<{ count: number }>(
      `SELECT count(*)::int FROM tapedeck.${name} WHERE session = $1`,
      [session],
    );
    if (row?.count !== 1) counts[name] = row?.count ?? 0;
  }
  return counts;
}

/** An engine, and its owner's connection. */
export type TestEngine = Database & { owner: Client };

/** A new engine, for one test. */
export async function newEngine(
  atEnd: (work: () => Promise<void>) => void = onTestFinished,
): Promise<TestEngine> {
  const database = await newDatabase(undefined, atEnd);
  const owner = await connectEngine(readAddress(database.url, {}));
  atEnd(() => owner.end());
  await initEngine(owner);
  return { ...database, owner };
}

/** An engine for all tests of a group, which is set up once: that takes as long as twenty of them. */
export function engineOfGroup(): () => TestEngine {
  let engine: TestEngine | undefined;
  const endings: (() => Promise<void>)[] = [];
  beforeAll(async () => {
    engine = await newEngine((work) => void endings.push(work));
  });
  afterAll(async () => {
    for (const end of endings) await end();
  });
  return () => {
    if (engine === undefined) throw new Error('asked for before the tests began');
    return engine;
  };
}
