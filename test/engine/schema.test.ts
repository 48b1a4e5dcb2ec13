/** The central schema, in a real PostgreSQL, set up by an owner who is no superuser. */
import { expect, test } from 'vitest';
import { connectEngine, readAddress } from '../../src/engine/connect.ts';
import { initEngine, migrateEngine, readEngine } from '../../src/engine/install.ts';
import { addedIn, ENGINE_MIGRATIONS, initSql } from '../../src/engine/schema.ts';
import { TABLES } from '../../src/engine/tables.ts';
import { openTemporaryStore } from '../../src/store/file/open.ts';
import { newDatabase, withEngine } from '../support/engine.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';

/** Local tables that tell of the store, not of a session. */
const OF_THE_STORE = ['identity', 'masking', 'removal', 'secret', 'shipped', 'upkeep'];

/** Local tables whose rows are a column there, and columns that need not be there. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  frame_redaction: 'frame.rules',
  label: 'session.labels',
  run: 'session.runs',
};

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
    // A number of the local file's own.
    const own = name === 'session' ? 'number' : 'rowid';
    expect(central.get(table), name).toEqual(expect.arrayContaining(wanted.filter((one) => one !== own)));
  }
  store.close();
});

withEngine('engine init', () => {
  test('makes the tables as they are defined, whole weeks ahead, and tells who they belong to', async () => {
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
  });

  test('changes nothing the second time, and is what it prints', async () => {
    const database = await newDatabase();
    const printed = await tapedeckInProcess(['engine', 'init', '--print']);
    expect(printed.stdout.toString()).toBe(initSql());
    const client = await connectEngine(readAddress(database.url, {}));
    await client.query(printed.stdout.toString());
    const before = await readEngine(client);
    expect(await initEngine(client)).toBe(false);
    expect(await readEngine(client)).toEqual(before);
    await client.end();
    const again = await tapedeckInProcess(['engine', 'init', '--to', database.url]);
    expect(again.stderr).toContain('was set up before; nothing is changed');
  });
});

withEngine('engine migrate', () => {
  test('adds what newer versions have, each in a transaction of its own, to all partitions', async () => {
    const database = await newDatabase();
    const client = await connectEngine(readAddress(database.url, {}));
    await initEngine(client);
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
    expect(await migrateEngine(client, [...ENGINE_MIGRATIONS, second])).toBe(2);
    await client.end();

    const { stderr } = await tapedeckInProcess(['engine', 'migrate', '--to', database.url]);
    expect(stderr).toContain('newer than this tapedeck (schema 2, expected 1). Update tapedeck on this host');
  });

  test('two at once do it once', async () => {
    const database = await newDatabase();
    const clients = await Promise.all([1, 2].map(() => connectEngine(readAddress(database.url, {}))));
    const set = await Promise.all(clients.map(initEngine));
    expect(set.toSorted()).toEqual([false, true]);
    const second = () => 'ALTER TABLE tapedeck.meta ADD COLUMN note text;';
    const versions = await Promise.all(
      clients.map((client) => migrateEngine(client, [...ENGINE_MIGRATIONS, second])),
    );
    expect(versions.toSorted()).toEqual([1, 2]);
    await Promise.all(clients.map((client) => client.end()));
  });
});

withEngine('a database that is not ours', () => {
  test.each([
    ['CREATE SCHEMA tapedeck; CREATE TABLE tapedeck.cassette (side text)'],
    [
      "CREATE SCHEMA tapedeck; CREATE TABLE tapedeck.meta (name text, value text); INSERT INTO tapedeck.meta VALUES ('version', '1')",
    ],
    ['CREATE SCHEMA tapedeck; CREATE TABLE tapedeck.meta (artist text)'],
  ])('is refused: %s', async (sql) => {
    const database = await newDatabase();
    await database.query(`${sql}; GRANT ALL ON SCHEMA tapedeck TO PUBLIC`);
    await database.query('GRANT SELECT ON ALL TABLES IN SCHEMA tapedeck TO PUBLIC');
    for (const action of ['init', 'migrate']) {
      const { code, stderr } = await tapedeckInProcess(['engine', action, '--to', database.url]);
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining('is another program’s. Use another database'),
      ]);
    }
  });

  test('needs init before anything else', async () => {
    const { url } = await newDatabase();
    const { stderr } = await tapedeckInProcess(['engine', 'migrate', '--to', url]);
    expect(stderr).toMatch(/is not set up yet. .* engine init --to/);
  });

  test('is left to whoever may set it up', async () => {
    const database = await newDatabase();
    const { stderr } = await tapedeckInProcess(['engine', 'init', '--to', await database.login()]);
    expect(stderr).toMatch(/takes the rights to make roles and a schema: .* engine init --print/);
  });
});
