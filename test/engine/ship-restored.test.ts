/**
 * Sessions that are gone here, by retention or everywhere, and an engine that is not what it was: restored from a backup, or kept small.
 * By chance, and repeatable: `TAPEDECK_SEED=… npx vitest run test/engine/ship-restored.test.ts`.
 */
import { expect, test } from 'vitest';
import { TABLES } from '../../src/engine/tables.ts';
import { openStore } from '../../src/store/file/open.ts';
import { type Database, withEngine } from '../support/engine.ts';
import { query } from '../support/http-record.ts';
import { chance } from '../support/relay.ts';
import { scale } from '../support/scale.ts';
import { engineForHosts, filledStore, shipOnce } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { tapedeckInProcess } from '../support/tapedeck.ts';

const SEED = Number(process.env['TAPEDECK_SEED'] ?? Date.now() % 1_000_000);

const random = chance(SEED);

/** Sessions of some years ago: n0, n1, … */
function add(file: string, from: number, count: number): void {
  const store = openStore(file);
  for (let i = from; i < from + count; i += 1)
    storeSession(store, {
      start: { at: 1.7e15 + i * 1e9, name: `n${i}` },
      lines: ['one', 'two', `of n${i}`],
    });
  store.close();
}

function stored(count: number): string {
  const file = filledStore(() => {});
  add(file, 0, count);
  return file;
}

async function prune(file: string, ...options: string[]): Promise<void> {
  const { code, stderr } = await tapedeckInProcess(['prune', '--db', file, ...options]);
  expect(code, stderr).toBe(0);
}

const status = async (file: string) =>
  JSON.parse((await tapedeckInProcess(['ship', 'status', '--json', '--db', file])).stdout.toString());

const names = async (database: Database) =>
  (await database.query<{ name: string }>('SELECT name FROM tapedeck.session ORDER BY started_at')).map(
    ({ name }) => name,
  );

const COPIED = [...TABLES.map(({ name }) => name), 'loss'];

/** As a dump would have it. */
async function backUp({ query: run }: Database): Promise<void> {
  await run('DROP SCHEMA IF EXISTS backup CASCADE; CREATE SCHEMA backup');
  for (const name of COPIED) await run(`CREATE TABLE backup.${name} AS TABLE tapedeck.${name}`);
}

async function restore({ query: run }: Database): Promise<void> {
  for (const name of COPIED)
    await run(`TRUNCATE tapedeck.${name}; INSERT INTO tapedeck.${name} TABLE backup.${name}`);
}

withEngine('an engine that has lost what it had', () => {
  test('is told what is in no store any more: counted, named, and once', async () => {
    const { database, host } = await engineForHosts();
    const file = stored(4);
    await shipOnce(host, file);
    const ids = query<{ id: string }>(file, 'SELECT id FROM session ORDER BY started_at').map(({ id }) => id);
    await prune(file, '--local-keep', '1h');
    expect(query(file, 'SELECT 1 FROM session')).toEqual([]);
    const verify = () => tapedeckInProcess(['ship', 'verify', '--to', host, '--db', file]);
    expect(await verify()).toMatchObject({ code: 0 });

    // n3 came last, and n2 before it in two transactions.
    await database.query(
      `DELETE FROM tapedeck.frame WHERE session IN (SELECT session FROM tapedeck.session WHERE name = 'n3');
       DELETE FROM tapedeck.session WHERE name = 'n3';
       DELETE FROM tapedeck.frame WHERE seq > 1 AND session IN (SELECT session FROM tapedeck.session WHERE name = 'n2');
       UPDATE tapedeck.session SET cursor = 1, sealed_at = NULL WHERE name = 'n2'`,
    );
    expect(await verify()).toMatchObject({ code: 1, stderr: expect.stringMatching(/2 lost/) });
    expect((await shipOnce(host, file)).stderr).toMatch(/the engine has lost 2 sessions/);
    expect((await shipOnce(host, file)).stderr).not.toMatch(/lost/);
    const lost = { sessions: 2, frames: 5, bytes: 19 };
    const { gone, ...counted } = await status(file);
    expect(counted).toMatchObject({ lost });
    expect(new Map(gone.map((one: { session: string }) => [one.session, one]))).toEqual(
      new Map([
        [ids[2], { session: ids[2], day: '2023-11-14', frames: 2, bytes: 8 }],
        [ids[3], { session: ids[3], day: '2023-11-14', frames: 3, bytes: 11 }],
      ]),
    );
    const told = await database.query<{ names: string[] }>(
      'SELECT sessions::int, frames::int, bytes::int, cause, names FROM tapedeck.loss',
    );
    expect(told).toEqual([{ ...lost, cause: 'engine', names: expect.any(Array) }]);
    expect(told[0]?.names.toSorted()).toEqual([ids[2], ids[3]].toSorted());
    const text = (await tapedeckInProcess(['ship', 'status', '--db', file])).stdout.toString();
    expect(text).toContain(`  ${ids[3]}  of 2023-11-14: the engine had it, and has lost 3 frames`);
    expect(await verify()).toMatchObject({ code: 1, stderr: expect.stringMatching(/2 lost/) });

    // What it was told is lost with the next restore, too.
    await database.query('DELETE FROM tapedeck.loss');
    await shipOnce(host, file);
    expect(await database.query('SELECT 1 FROM tapedeck.loss')).toHaveLength(1);
  });

  test('on purpose, because it was old, is told of no loss, and does not get it again', async () => {
    const { database, host } = await engineForHosts();
    const file = stored(3);
    await shipOnce(host, file);
    await prune(file, 'n0');
    const { url } = database;
    for (const options of [[], ['--older-than', '90d']])
      await tapedeckInProcess(['engine', 'maintain', '--to', url, ...options]);
    expect(await names(database)).toEqual([]);
    expect(await shipOnce(host, file)).toMatchObject({ code: 0 });
    expect(await names(database)).toEqual([]);
    expect(await status(file)).toMatchObject({ lost: { sessions: 0 }, gone: [] });
    // What it never had comes in its week.
    add(file, 3, 1);
    await shipOnce(host, file);
    expect(await names(database)).toEqual(['n3']);
  });

  test('and has again what was redacted and pruned here since then, loses that', async () => {
    const { database, host } = await engineForHosts();
    const file = stored(2);
    await shipOnce(host, file);
    await backUp(database);
    await tapedeckInProcess(['ship', 'retry', 'n0', '--db', file]);
    await shipOnce(host, file);
    await prune(file, 'n0');
    await restore(database);
    await shipOnce(host, file);
    expect(await names(database)).toEqual(['n1']);
    expect(await status(file)).toMatchObject({ lost: { sessions: 1, frames: 3 } });
  });
});

withEngine('what is deleted', () => {
  test('everywhere goes from the engine, although the store does not know that it is there', async () => {
    const { database, host } = await engineForHosts();
    const file = stored(2);
    await shipOnce(host, file);
    // As after a shipper that was killed before it noted what it had shipped.
    const store = openStore(file);
    store.exec('DELETE FROM shipped');
    store.close();
    await prune(file, 'n0', '--everywhere');
    await shipOnce(host, file);
    expect(await names(database)).toEqual(['n1']);
  });

  test('everywhere goes again from an engine that was restored, unless it is here again', async () => {
    const { database, host } = await engineForHosts();
    const file = stored(3);
    await shipOnce(host, file);
    await backUp(database);
    await prune(file, 'n0', '--everywhere');
    await shipOnce(host, file);
    await restore(database);
    await shipOnce(host, file);
    expect(await names(database)).toEqual(['n1', 'n2']);
    expect(await status(file)).toMatchObject({ lost: { sessions: 0 } });
  });

  test('here alone, after it was redacted and before that was shipped, goes from the engine as it was', async () => {
    const { database, host } = await engineForHosts();
    const file = stored(2);
    await shipOnce(host, file);
    await tapedeckInProcess(['ship', 'retry', 'n0', '--db', file]);
    await prune(file, 'n0');
    await shipOnce(host, file);
    expect(await names(database)).toEqual(['n1']);
    expect(await status(file)).toMatchObject({ lost: { sessions: 1, frames: 3 } });
  });

  test(`is where it should be after ${scale(30, 3)} orders of shipping, pruning, backups and restores`, {
    timeout: 300_000,
  }, async () => {
    const { database, host } = await engineForHosts();
    const file = stored(0);
    await shipOnce(host, file);
    const [everywhere, here] = [new Set<string>(), new Set<string>()];
    let count = 0;
    const any = () => {
      const all = query<{ name: string }>(file, 'SELECT name FROM session').map(({ name }) => name);
      return all[Math.floor(random() * all.length)];
    };
    const acts: (() => unknown)[] = [
      () => {
        add(file, count, 2);
        count += 2;
      },
      () => shipOnce(host, file),
      async () => {
        const name = any();
        if (name === undefined) return;
        here.add(name);
        await prune(file, name);
      },
      async () => {
        const name = any();
        if (name === undefined) return;
        everywhere.add(name);
        await prune(file, name, '--everywhere');
      },
      () => {
        const store = openStore(file);
        store.exec('DELETE FROM shipped WHERE random() % 2 = 0');
        store.close();
      },
      () => backUp(database),
      () => restore(database),
    ];
    await backUp(database);
    for (let round = 0; round < scale(30, 3); round += 1) {
      for (let i = 0; i < 4; i += 1) await acts[Math.floor(random() * acts.length)]?.();
      expect(await shipOnce(host, file), `TAPEDECK_SEED=${SEED}`).toMatchObject({ code: 0 });
      const there = new Set(await names(database));
      const kept = query<{ name: string }>(file, 'SELECT name FROM session').map(({ name }) => name);
      expect(
        kept.filter((name) => !there.has(name)),
        `TAPEDECK_SEED=${SEED}`,
      ).toEqual([]);
      expect(
        [...everywhere].filter((name) => there.has(name)),
        `TAPEDECK_SEED=${SEED}`,
      ).toEqual([]);
      const torn = await database.query(
        'SELECT 1 FROM tapedeck.session WHERE cursor <> 3 OR sealed_at IS NULL',
      );
      expect(torn, `TAPEDECK_SEED=${SEED}`).toEqual([]);
      const { lost } = await status(file);
      const missing = [...here].filter((name) => !there.has(name));
      // One that was in a backup may have come back after it was counted.
      expect(lost.sessions, `TAPEDECK_SEED=${SEED}`).toBeGreaterThanOrEqual(missing.length);
      const [told] = await database.query<{ n: number }>(
        'SELECT coalesce(sum(sessions), 0)::int AS n FROM tapedeck.loss',
      );
      expect(told?.n, `TAPEDECK_SEED=${SEED}`).toBe(lost.sessions);
    }
  });
});
