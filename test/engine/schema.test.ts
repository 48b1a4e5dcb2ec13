/** The central schema, in a real PostgreSQL, set up by an owner who is no superuser. */
import type { Client } from 'pg';
import { expect, test } from 'vitest';
import { connectEngine, readAddress } from '../../src/engine/connect.ts';
import { initEngine, migrateEngine, readEngine } from '../../src/engine/install.ts';
import { addedIn, ENGINE_MIGRATIONS, initSql } from '../../src/engine/schema.ts';
import { TABLES } from '../../src/engine/tables.ts';
import { openTemporaryStore } from '../../src/store/file/open.ts';
import { newDatabase, withEngine } from '../support/engine.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';

/** Local tables that tell of the store, not of a session. */
const OF_THE_STORE = [
  'departed',
  'identity',
  'loss',
  'masking',
  'packing',
  'removal',
  'secret',
  'shipped',
  'shipper',
  'upkeep',
  'withdrawal',
];

/** Local tables whose rows are a column there, and columns that need not be there. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  frame_redaction: 'frame.rules',
  label: 'session.labels',
  run: 'session.runs',
};

/** Numbers of the local file's own; how it packs payloads, which are shipped as they passed; and what is undecided, which waits. */
function isOfTheFile(table: string, column: string): boolean {
  if (['rowid', 'codec', 'unpacked'].includes(column)) return true;
  return table === 'session' && ['number', 'sampling', 'amendments'].includes(column);
}

test('every column of the local store’s tables has its place in the central schema', () => {
  const store = openTemporaryStore();
  const names = store
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    .pluck()
    .all();
  const central = new Map(TABLES.map(({ name, columns }) => [name, columns.map((column) => column.name)]));
  for (const name of names.filter((one) => !OF_THE_STORE.includes(one))) {
    const [table = '', column] = (ELSEWHERE[name] ?? name).split('.');
    const columns = store.pragma(`table_info(${name})`) as { name: string }[];
    const wanted = column === undefined ? columns.map((one) => one.name) : [column];
    expect(central.get(table), name).toEqual(
      expect.arrayContaining(wanted.filter((one) => !isOfTheFile(name, one))),
    );
  }
  store.close();
});

withEngine('engine init', () => {
  test('makes the tables as they are defined, whole weeks ahead, and nothing the second time', async () => {
    const database = await newDatabase();
    const first = await tapedeckInProcess(['engine', 'init', '--to', database.url]);
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('is set up\n') });
    for (const { name, columns } of TABLES) {
      const rows = await database.query<{ name: string; type: string }>(
        `SELECT attname AS name, format_type(atttypid, NULL) AS type FROM pg_attribute
         WHERE attrelid = $1::regclass AND attnum > 0 ORDER BY attnum`,
        [`tapedeck.${name}`],
      );
      const defined = columns.map(({ name, type }) => ({
        name,
        type: type === 'timestamptz' ? 'timestamp with time zone' : type,
      }));
      expect(rows).toEqual(defined);
      const [parts] = await database.query<{ count: number }>(
        'SELECT count(*)::int FROM pg_inherits WHERE inhparent = $1::regclass',
        [`tapedeck.${name}`],
      );
      expect(parts?.count).toBe(9);
    }
    const owners = await database.query(
      `SELECT DISTINCT rolname FROM pg_class JOIN pg_roles ON pg_roles.oid = relowner
       WHERE relnamespace = 'tapedeck'::regnamespace`,
    );
    expect(owners).toEqual([{ rolname: 'tapedeck_admin' }]);
    const again = await tapedeckInProcess(['engine', 'init', '--to', database.url]);
    expect(again.stderr).toContain('was set up before; nothing is changed');
  });

  test('prints what it runs', async () => {
    const printed = await tapedeckInProcess(['engine', 'init', '--print']);
    expect(printed.stdout.toString()).toBe(initSql());
  });

  test('is done once by two at once, and migrate does the rest in a transaction for each version', async () => {
    const database = await newDatabase();
    const [client, other] = (await Promise.all(
      [0, 1].map(() => connectEngine(readAddress(database.url, {}))),
    )) as [Client, Client];
    const set = await Promise.all([client, other].map(initEngine));
    expect(set.toSorted()).toEqual([false, true]);
    const newer = TABLES.map((table) => ({
      ...table,
      columns: [...table.columns, { name: 'mood', type: 'text', since: 2 } as const],
    }));
    const second = () => addedIn(2, newer);
    const broken = () => 'ALTER TABLE tapedeck.session ADD COLUMN half text; SELECT 1/0;';
    await expect(migrateEngine(client, [...ENGINE_MIGRATIONS, second, broken])).rejects.toThrow(/division/);
    expect(await readEngine(client)).toMatchObject({ version: 2, minWriter: 1 });
    const columns = await database.query(
      `SELECT attname AS name, count(*)::int FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
       WHERE attname IN ('mood', 'half') AND relnamespace = 'tapedeck'::regnamespace AND relkind IN ('r', 'p')
       GROUP BY attname`,
    );
    expect(columns).toEqual([{ name: 'mood', count: TABLES.length * 10 }]);
    const third = () => 'ALTER TABLE tapedeck.meta ADD COLUMN note text;';
    const versions = await Promise.all(
      [client, other].map((one) => migrateEngine(one, [...ENGINE_MIGRATIONS, second, third])),
    );
    expect(versions.toSorted()).toEqual([2, 3]);
    await Promise.all([client.end(), other.end()]);

    const { stderr } = await tapedeckInProcess(['engine', 'migrate', '--to', database.url]);
    expect(stderr).toContain('newer than this tapedeck (schema 3, expected 1). Update tapedeck on this host');
  });
});

/** What other programs might have made under our name. */
const FOREIGN = [
  'CREATE TABLE tapedeck.cassette (side text)',
  "CREATE TABLE tapedeck.meta (name text, value text); INSERT INTO tapedeck.meta VALUES ('version', '1')",
  'CREATE TABLE tapedeck.meta (artist text)',
];

withEngine('a database that is not ours', () => {
  test('is refused, and one that is nobody’s needs init by whoever may', async () => {
    const database = await newDatabase();
    const run = (action: string, url = database.url) => tapedeckInProcess(['engine', action, '--to', url]);
    expect((await run('migrate')).stderr).toMatch(/is not set up yet. .* engine init --to/);
    const { stderr } = await run('init', await database.login());
    expect(stderr).toMatch(/takes the rights to make roles and a schema: .* engine init --print/);
    for (const sql of FOREIGN) {
      await database.query(`CREATE SCHEMA tapedeck; ${sql}; GRANT ALL ON SCHEMA tapedeck TO PUBLIC`);
      await database.query('GRANT SELECT ON ALL TABLES IN SCHEMA tapedeck TO PUBLIC');
      for (const action of ['init', 'migrate', 'maintain', 'drop']) {
        const { code, stderr } = await run(action);
        expect([code, stderr], sql).toEqual([
          2,
          expect.stringContaining('is another program’s. Use another database'),
        ]);
      }
      await database.query('DROP SCHEMA tapedeck CASCADE');
    }
  });
});
