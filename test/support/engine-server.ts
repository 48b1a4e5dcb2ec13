/** Set up once for all tests of the engine: one PostgreSQL, in which each test has a database of its own. */
import type { TestProject } from 'vitest/node';
import { findPostgres, startPostgres } from './postgres.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Of the shared server; null where there is none. */
    postgres: { port: number; folder: string } | null;
  }
}

/** Without PostgreSQL the tests are skipped; with `REQUIRE_POSTGRES` they fail. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  if (findPostgres() === null) {
    if (process.env['REQUIRE_POSTGRES'] === '1')
      throw new Error('No PostgreSQL was found, and REQUIRE_POSTGRES=1 asks for one. Debian: postgresql.');
    process.stderr.write('Tests of the engine are skipped: no PostgreSQL. Debian has it as `postgresql`.\n');
    project.provide('postgres', null);
    return undefined;
  }
  const server = await startPostgres();
  project.provide('postgres', { port: server.port, folder: server.folder });
  return server.remove;
}
