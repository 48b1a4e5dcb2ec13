import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { inFull, scale } from '../support/scale.ts';
import {
  isRunning,
  listSessions,
  payloadOf,
  record,
  showFrames,
  start,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

test('twelve recorders that start at once on a store that is not there yet keep every frame', async () => {
  const db = join(tempFolder(), 'new', 'folder', 'recordings.db');
  const lines = (who: number) =>
    Array.from({ length: scale(2000) }, (_, i) => `{"jsonrpc":"2.0","id":${i},"method":"by/${who}"}\n`);
  const recorders = scale(12, 4);
  const runs = Array.from({ length: recorders }, (_, who) => record(db, ['cat.js'], ['--name', `by-${who}`]));
  for (const [who, run] of runs.entries()) run.child.stdin.end(lines(who).join(''));
  for (const { ended } of runs) expect(await ended).toMatchObject({ code: 0, stderr: '' });

  const sessions = await listSessions(db);
  expect(sessions.map(({ frames, dropped }) => [frames, dropped])).toEqual(
    Array(recorders).fill([2 * scale(2000), 0]),
  );
  for (const who of [0, Math.floor(recorders / 2) - 1, recorders - 1]) {
    const frames = await showFrames(db, `by-${who}`);
    const sent = frames.filter((frame) => frame.channel === 'stdin').map((frame) => `${frame.text}\n`);
    expect(sent).toEqual(lines(who));
  }
  expect(statSync(db).mode & 0o777).toBe(0o600);
  expect(statSync(join(db, '..')).mode & 0o777).toBe(0o700);
});

function hasSession(db: string, name: string): boolean {
  if (!existsSync(db)) return false;
  const store = new Database(db, { readonly: true });
  try {
    return store.prepare('SELECT 1 FROM session WHERE name = ?').get(name) !== undefined;
  } catch {
    return false;
  } finally {
    store.close();
  }
}

/** What the fixture `numbered.js` put into a line. */
function numberOf(frame: { text?: string }): { n: number; at: number } {
  return JSON.parse(frame.text ?? '').params.data;
}

function microseconds(): number {
  return (performance.timeOrigin + performance.now()) * 1000;
}

test('after kill -9 at any moment everything forwarded 100 ms before is stored and the session is cut off', async () => {
  const db = tempStore();
  const kills = scale(50);
  let killsWithSomethingDue = 0;
  for (let i = 0; i < kills; i += 1) {
    const name = `kill-${i}`;
    const { child, stdout, ended } = record(db, ['numbered.js'], ['--name', name]);
    await until('lines flow', () => stdout().length > 2000);
    await until('the session is there', () => hasSession(db, name));
    // The writer has begun. What passed before that counts from here.
    const begunAt = microseconds();
    await new Promise((resolve) => setTimeout(resolve, ((i + Math.random()) / kills) * 300));
    const killedAt = microseconds();
    child.kill('SIGKILL');
    const { stdout: forwarded } = await ended;
    const lines = forwarded.toString().split('\n').slice(0, -1);
    const isDue = ({ at }: { at: number }) => Math.max(at, begunAt) < killedAt - 100_000;
    const due = lines.map((text) => numberOf({ text })).filter(isDue).length;
    const session = (await listSessions(db)).find((row) => row.name === name);
    expect(session).toMatchObject({ endReason: 'cut-off', endedAt: null });
    const stored = (await showFrames(db, name)).filter((frame) => frame.messages.length > 0).map(numberOf);
    expect(stored.map(({ n }) => n)).toEqual(stored.map((_, index) => index));
    expect(stored.length).toBeGreaterThanOrEqual(due);
    if (due > 0) killsWithSomethingDue += 1;
  }
  expect(killsWithSomethingDue).toBeGreaterThan(kills / 4);
  const store = new Database(db);
  expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
  store.close();
}, 300_000);

test('the beginning of a line that was still coming when tapedeck was killed is kept', async () => {
  const db = tempStore();
  const { child, stdout, ended } = record(db, ['cat.js']);
  child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"half":');
  await until('both have passed', () => stdout().toString().endsWith('{"half":'));
  await until('both are stored', async () => (await showFrames(db).catch(() => [])).length === 4);
  child.kill('SIGKILL');
  await ended;
  const unfinished = (await showFrames(db))
    .slice(2)
    .map((frame) => [frame.channel, payloadOf(frame).toString()]);
  expect(unfinished).toEqual([
    ['stdin', '{"half":'],
    ['stdout', '{"half":'],
  ]);
});

inFull('a server does not outlive a tapedeck that was killed with -9', async () => {
  const { child, stdout, ended } = record(tempStore(), ['numbered.js']);
  await until('lines flow', () => stdout().length > 0);
  const { stdout: list } = await start('pgrep', ['-P', String(child.pid)]).ended;
  const server = Number(list.toString());
  expect(isRunning(server)).toBe(true);
  child.kill('SIGKILL');
  await ended;
  await until('the server has gone', () => !isRunning(server));
});
