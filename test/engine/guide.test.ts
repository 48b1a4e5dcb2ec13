/** What the guide for many hosts shows is what there is. */
import { chownSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import { initSql } from '../../src/engine/schema.ts';
import { openStore } from '../../src/store/file/open.ts';
import { blocksOf, textOf } from '../support/documents.ts';
import { newEngine, plantSession, withEngine } from '../support/engine.ts';
import { asOrdinaryUser, findPostgres, freePort, otherUser } from '../support/postgres.ts';
import { inFull } from '../support/scale.ts';
import { storeSession } from '../support/stored.ts';
import { start, tapedeckInProcess, tempFolder, tempStore } from '../support/tapedeck.ts';

const SQL = blocksOf('docs/fleet.md').filter(({ language }) => language === 'sql');

function blockWith(words: string): string {
  const [block, ...others] = SQL.filter(({ text }) => text.includes(words));
  if (block === undefined || others.length > 0) throw new Error(`not one block with ${words}`);
  return block.text;
}

test('the schema of the guide is the one that is made', () => {
  expect(`${blockWith('CREATE SCHEMA').trimEnd()}\n`).toBe(initSql());
});

async function ship(url: string, recordedAt: number): Promise<string> {
  const file = tempStore();
  const store = openStore(file);
  storeSession(store, { start: { at: recordedAt } });
  store.close();
  return (await tapedeckInProcess(['ship', '--once', '--to', url, '--db', file, '--tenant', 'nobody']))
    .stderr;
}

/** The lines of a page that begin so. */
function linesWith(page: string, ...beginnings: readonly string[]): string[] {
  const lines = textOf(page).split('\n');
  return beginnings.map((beginning) => lines.find((line) => line.startsWith(beginning)) ?? '');
}

withEngine('the guide', () => {
  inFull('starts a PostgreSQL to try in three lines', async () => {
    const [folder, port, user] = [tempFolder(), await freePort(), otherUser()];
    if (user !== null) chownSync(folder, user.uid, user.gid);
    const lines = linesWith('docs/fleet.md', 'initdb ', 'pg_ctl ', 'createdb ')
      .join('\n')
      .replaceAll('5433', String(port));
    const [file, args] = asOrdinaryUser('bash', ['-ec', `${lines}\necho ready`]);
    const env = { ...process.env, HOME: folder, PATH: `${findPostgres()}:${process.env['PATH']}` };
    const started = await start(file, args, { cwd: folder, env }).ended;
    const [pid] = readFileSync(join(folder, 'engine/postmaster.pid'), 'utf8').split('\n');
    onTestFinished(() => void process.kill(Number(pid), 'SIGKILL'));
    expect([started.code, started.stderr]).toEqual([0, expect.anything()]);
    const url = `postgres://me@127.0.0.1:${port}/tapedeck`;
    expect((await tapedeckInProcess(['engine', 'init', '--to', url])).code).toBe(0);
  });
});

withEngine('row-level security of the guide', () => {
  inFull('ties a host’s role to its recorder', async () => {
    const engine = await newEngine();
    const [mine, other] = [await engine.login('tapedeck_ship'), await plantSession(engine.owner)];
    const role = new URL(mine).username;
    expect(await ship(mine, 1.7e15)).toMatch(/shipped 2 frames/);
    const [own] = await engine.query<{ recorder: string }>(
      'SELECT recorder FROM tapedeck.session WHERE session <> $1',
      [other.session],
    );
    await engine.query(blockWith('CREATE TABLE tapedeck.host'));
    await engine.query('INSERT INTO tapedeck.host VALUES ($1, $2)', [role, own?.recorder]);
    const ask = async (sql: string) => {
      const client = new Client({ connectionString: mine });
      await client.connect();
      try {
        return (await client.query(sql)).rows;
      } finally {
        await client.end();
      }
    };
    expect(await ask('SELECT DISTINCT recorder FROM tapedeck.session')).toEqual([own]);
    const stranger = `'${other.session}', '${other.day}', '${other.recorder}'`;
    expect(await ask(`SELECT tapedeck.remove(${stranger}) AS done`)).toEqual([{ done: false }]);
    await expect(
      ask(
        `INSERT INTO tapedeck.session (session, day, recorder) VALUES (gen_random_uuid(), '2026-01-01', '${other.recorder}')`,
      ),
    ).rejects.toThrow(/row-level security/);
    expect(await engine.query('SELECT FROM tapedeck.session')).toHaveLength(2);
    expect((await engine.owner.query('SELECT FROM tapedeck.session')).rowCount).toBe(2);
    // Another store, and so another recorder.
    expect(await ship(mine, 1.7e15)).toMatch(/row-level security/);
  });

  inFull('shows a reader the sessions of the tenant of its name', async () => {
    const engine = await newEngine();
    const [host, reader] = [await engine.login('tapedeck_ship'), await engine.login('tapedeck_read')];
    const tenant = new URL(reader).username;
    const own = await plantSession(engine.owner, { tenant });
    await plantSession(engine.owner, { tenant: 'other' });
    const sql = blockWith('own_tenant')
      .replace(/CREATE ROLE acme .*/, '')
      .replace('host1', new URL(host).username);
    await engine.query(sql);
    expect(await ship(host, 1.7e15)).toMatch(/shipped 2 frames/);
    const client = new Client({ connectionString: reader });
    await client.connect();
    for (const table of ['session', 'frame', 'message', 'http_exchange']) {
      const { rows } = await client.query(`SELECT session FROM tapedeck.${table}`);
      expect(rows, table).toEqual([{ session: own.session }]);
    }
    await client.end();
  });
});
