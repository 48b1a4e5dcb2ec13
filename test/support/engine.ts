/** Databases for tests of the engine. */
import { randomBytes } from 'node:crypto';
import { Client, type QueryResultRow } from 'pg';
import { describe, inject, onTestFinished } from 'vitest';

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

/** A new database, which is dropped after the test. On the shared server where no other is given. */
export async function newDatabase(port: number = shared?.port ?? 0): Promise<Database> {
  const name = `deck_${randomBytes(6).toString('hex')}`;
  const owner = `owner_${name.slice(5)}`;
  const urlOf = (role: string, database = name) => `postgres://${role}@127.0.0.1:${port}/${database}`;
  await once(urlOf('postgres', 'postgres'), [
    `CREATE ROLE ${owner} LOGIN CREATEROLE`,
    `CREATE DATABASE ${name} OWNER ${owner}`,
  ]);
  const made = [owner];
  const client = new Client({ connectionString: urlOf('postgres') });
  client.on('error', () => {});
  await client.connect();
  onTestFinished(async () => {
    await client.end();
    await once(urlOf('postgres', 'postgres'), [
      `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`,
      ...made.map((role) => `DROP ROLE IF EXISTS ${role}`),
    ]).catch(() => {});
  });
  return {
    url: urlOf(owner),
    async login(...roles) {
      const role = `user_${randomBytes(6).toString('hex')}`;
      await client.query(
        `CREATE ROLE ${role} LOGIN ${roles.length > 0 ? `IN ROLE ${roles.join(', ')}` : ''}`,
      );
      made.push(role);
      return urlOf(role);
    },
    query: async (text, values = []) => (await client.query(text, [...values])).rows,
  };
}

async function once(url: string, statements: readonly string[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  for (const statement of statements) await client.query(statement);
  await client.end();
}
