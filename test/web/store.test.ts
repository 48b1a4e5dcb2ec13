import { copyFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { MIGRATIONS } from '../../src/store/file/schema.ts';
import {
  fixture,
  listSessions,
  record,
  start,
  tapedeckInProcess,
  tempStore,
  until,
} from '../support/tapedeck.ts';
import { startUi, storeOf } from '../support/ui.ts';

/** Changes the store's version alone, as another tapedeck has it. */
function setVersion(db: string, version: number): void {
  const store = new Database(db);
  store.pragma(`user_version = ${version}`);
  store.close();
}

/** Puts another store in the place of this one, as `mv` does. */
function replace(db: string, other: string): void {
  for (const end of ['-wal', '-shm']) rmSync(db + end, { force: true });
  const beside = join(dirname(db), 'other.db');
  copyFileSync(other, beside);
  renameSync(beside, db);
}

function remove(db: string): void {
  for (const end of ['', '-wal', '-shm']) rmSync(db + end, { force: true });
}

test('an older store is brought up to date before the viewer listens', async () => {
  const db = tempStore();
  const old = new Database(db);
  for (const sql of MIGRATIONS.slice(0, 2)) old.exec(sql);
  old.pragma('user_version = 2');
  old.pragma(`application_id = ${0x7470646b}`);
  old.close();
  const ui = await startUi(db);
  expect(await ui.json('/api/sessions')).toMatchObject({ total: 0 });
  const store = new Database(db, { readonly: true });
  expect(store.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length);
  store.close();
});

test('a newer store is refused, at the start and in words later on, and so is an older one later on', async () => {
  const db = await storeOf('everything-stdio');
  const [newer, older] = [await storeOf('everything-stdio'), await storeOf('everything-stdio')];
  setVersion(newer, MIGRATIONS.length + 1);
  setVersion(older, MIGRATIONS.length - 1);
  const refused = await tapedeckInProcess(['ui', '--db', newer, '--listen', '127.0.0.1:0']);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('written by a newer tapedeck')]);

  const ui = await startUi(db);
  expect(await ui.json('/api/sessions')).toMatchObject({ total: 1 });
  replace(db, newer);
  const first = await ui.get('/api/sessions');
  expect([first.status, await first.json()]).toMatchObject([500, { error: { code: 'newer' } }]);
  replace(db, older);
  const second = await ui.get('/api/sessions');
  expect([second.status, await second.json()]).toMatchObject([
    409,
    { error: { code: 'refused', message: expect.stringContaining('tapedeck list') } },
  ]);
  // It says what helps, and does not do it: nothing is written.
  const store = new Database(db, { readonly: true });
  expect(store.pragma('user_version', { simple: true })).toBe(MIGRATIONS.length - 1);
  store.close();
});

test('a store that is deleted is an empty one, and another of its name is shown', async () => {
  const db = await storeOf('everything-stdio');
  const ui = await startUi(db);
  const { session } = (await ui.json('/api/sessions')).sessions[0];
  remove(db);
  expect(await ui.json('/api/sessions')).toEqual({ sessions: [], next: null, total: 0 });
  expect((await ui.get(`/api/sessions/${session}`)).status).toBe(404);
  const { code } = await tapedeckInProcess(['import', 'recordings/modern-http.ndjson', '--db', db]);
  expect(code).toBe(0);
  expect(await ui.json('/api/sessions')).toMatchObject({ total: 1, sessions: [{ name: 'modern-http' }] });
});

test('a store that a writer holds is read all the same, and what no SQLite reads is said to be so', async () => {
  const db = await storeOf('everything-stdio');
  const ui = await startUi(db);
  const holder = start(process.execPath, [fixture('hold-lock.js'), db]);
  await until('it is locked', () => holder.stdout().length > 0);
  expect(await ui.json('/api/sessions')).toMatchObject({ total: 1 });
  expect(await ui.json('/api/sessions/latest/frames/1')).toMatchObject({ seq: 1 });
  holder.child.kill('SIGKILL');
  await holder.ended;
  replace(db, 'package.json');
  const answer = await ui.get('/api/sessions');
  expect(answer.status).toBe(500);
  expect((await answer.json()).error.message).toMatch(/cannot be used|Expected a tapedeck store/);
});

test('a recording goes on while the viewer reads, and its store can be carried over', async () => {
  const db = tempStore();
  const run = record(db, ['echo.js']);
  run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  await until('it is stored', async () => (await listSessions(db).catch(() => []))[0]?.frames === 2);
  const ui = await startUi(db);
  expect((await ui.json('/api/sessions')).sessions[0]?.frames).toBe(2);
  await Promise.all([1, 2, 3].map(() => ui.json('/api/sessions/latest/outline')));
  const writer = new Database(db);
  // Nobody reads an older state of it: all of the WAL could be carried over.
  const [{ busy, log, checkpointed }] = writer.pragma('wal_checkpoint(FULL)') as [Record<string, number>];
  expect([busy, checkpointed]).toEqual([0, log]);
  writer.close();
  run.child.stdin.end();
  await run.ended;
});
