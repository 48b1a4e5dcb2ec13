/** Who may do what in an engine, asked of PostgreSQL itself, with roles that are nothing else. */
import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { TABLES } from '../../src/engine/tables.ts';
import { engineTroubleOf } from '../../src/engine/trouble.ts';
import { daysAgo, engineOfGroup, plantSession, rowCounts, withEngine } from '../support/engine.ts';

async function connected(url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const DENIED = expect.objectContaining({ code: '42501' });

withEngine('a role', () => {
  const engineHere = engineOfGroup();

  test('tapedeck_ship writes every table, and reads of others’ traffic nothing but keys and sizes', async () => {
    const engine = engineHere();
    const ship = await connected(await engine.login('tapedeck_ship'));
    const planted = await plantSession(ship);
    expect(await rowCounts(engine, planted)).toEqual({});
    for (const { name, key, columns } of TABLES.filter((table) => table.name !== 'session')) {
      const readable = [...(key ?? ['session', 'day']), ...(name === 'frame' ? ['size'] : [])];
      for (const column of columns) {
        const reading = ship.query(`SELECT ${column.name} FROM tapedeck.${name}`);
        if (readable.includes(column.name))
          expect((await reading).rowCount, `${name}.${column.name}`).toBeGreaterThan(0);
        else await expect(reading, `${name}.${column.name}`).rejects.toEqual(DENIED);
      }
      await expect(ship.query(`DELETE FROM tapedeck.${name}`)).rejects.toEqual(DENIED);
    }
    for (const statement of [
      'SELECT * FROM tapedeck.frame_default',
      'TRUNCATE tapedeck.frame',
      'DROP TABLE tapedeck.frame',
      'UPDATE tapedeck.frame SET payload = NULL',
      "UPDATE tapedeck.meta SET value = 'x'",
      "SELECT tapedeck.add_week('2030-01-01')",
      'CREATE TABLE tapedeck.mine (name text)',
      'SET ROLE tapedeck_admin',
    ])
      await expect(ship.query(statement), statement).rejects.toEqual(DENIED);
  });

  test('tapedeck_ship deletes only what is of the recorder that it names, and all of it', async () => {
    const engine = engineHere();
    const ship = await connected(await engine.login('tapedeck_ship'));
    const { session, day, recorder } = await plantSession(ship, { cursor: 7 });
    const other = await plantSession(ship);
    const call = async (sql: string) => (await ship.query(`SELECT tapedeck.${sql} AS done`)).rows[0]?.done;
    expect(await call(`forget('${session}', '${day}', '${randomUUID()}')`)).toBe(false);
    expect(await call(`remove('${session}', '${day}', '${randomUUID()}')`)).toBe(false);
    expect(await call(`clear_rows('${session}', '${day}', '${randomUUID()}', 'message', 0)`)).toBe(false);
    expect(await rowCounts(engine, { session, day, recorder })).toEqual({});

    expect(await call(`clear_rows('${session}', '${day}', '${recorder}', 'unfinished', 0)`)).toBe(true);
    expect(await call(`clear_rows('${session}', '${day}', '${recorder}', 'message', 1)`)).toBe(true);
    expect(await rowCounts(engine, { session, day, recorder })).toEqual({ unfinished: 0 });
    expect(await call(`clear_rows('${session}', '${day}', '${recorder}', 'message', 0)`)).toBe(true);
    expect(await rowCounts(engine, { session, day, recorder })).toEqual({ unfinished: 0, message: 0 });
    await expect(call(`clear_rows('${session}', '${day}', '${recorder}', 'frame', 0)`)).rejects.toThrow(
      /case not found/,
    );

    expect(await call(`forget('${session}', '${day}', '${recorder}')`)).toBe(true);
    const left = Object.fromEntries(TABLES.slice(1).map(({ name }) => [name, 0]));
    expect(await rowCounts(engine, { session, day, recorder })).toEqual(left);
    const [row] = await engine.query(
      'SELECT cursor, digest, sealed_at FROM tapedeck.session WHERE session = $1',
      [session],
    );
    expect(row).toEqual({ cursor: '0', digest: null, sealed_at: null });
    expect(await call(`remove('${session}', '${day}', '${recorder}')`)).toBe(true);
    expect(await rowCounts(engine, { session, day, recorder })).toEqual({ ...left, session: 0 });
    expect(await rowCounts(engine, other)).toEqual({});
  });

  test('tapedeck_read reads every table and writes none', async () => {
    const engine = engineHere();
    await plantSession(engine.owner);
    const read = await connected(await engine.login('tapedeck_read'));
    for (const { name } of TABLES) {
      expect((await read.query(`SELECT * FROM tapedeck.${name}`)).rowCount).toBeGreaterThan(0);
      await expect(read.query(`DELETE FROM tapedeck.${name}`)).rejects.toEqual(DENIED);
      await expect(read.query(`INSERT INTO tapedeck.${name} DEFAULT VALUES`)).rejects.toEqual(DENIED);
    }
    await expect(read.query('SELECT tapedeck.forget(NULL, NULL, NULL)')).rejects.toEqual(DENIED);
    expect((await read.query('SELECT * FROM tapedeck.meta')).rowCount).toBe(5);
    expect((await read.query('SELECT * FROM tapedeck.loss')).rowCount).toBe(0);
  });

  test('rows of texts that no index could hold, and of clocks that no week has, are taken', async () => {
    const engine = engineHere();
    const ship = await connected(await engine.login('tapedeck_ship'));
    // Random, so that it cannot be made small.
    const long = Array.from({ length: 4_000 }, () => randomUUID()).join('');
    const texts = ['id', 'tenant', 'host', 'name', 'target', 'canonical', 'method', 'path'];
    const everywhere = Object.fromEntries(texts.map((name) => [name, long]));
    const jsonb = { labels: JSON.stringify({ [long]: long }), runs: JSON.stringify([{ key: long }]) };
    for (const day of ['2099-01-01', '1916-01-01', daysAgo(0)]) {
      const planted = await plantSession(
        ship,
        { day, ...everywhere, ...jsonb },
        { ...everywhere, kind: 'request' },
      );
      expect(await rowCounts(engine, planted)).toEqual({});
    }
  });

  test('rows with U+0000 are refused, as data that the engine does not take', async () => {
    const engine = engineHere();
    const ship = await connected(await engine.login('tapedeck_ship'));
    const refusals = [
      { name: 'a\0b' },
      { labels: JSON.stringify({ key: '\0' }) },
      { labels: JSON.stringify({ key: '\ud800' }) },
    ];
    for (const given of refusals) {
      const error = await plantSession(ship, given).catch((one: unknown) => one);
      expect(engineTroubleOf(error)).toBe('data');
    }
  });
});
