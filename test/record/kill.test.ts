/** Hosts that are ended by `kill -9`: what the library has stored by then is what the command line would have. */
import { availableParallelism } from 'node:os';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { query } from '../support/http-record.ts';
import { fixture, listSessions, ROOT, type Run, start, tempStore, until } from '../support/tapedeck.ts';

const DOORS = ['stdio', 'fetch', 'handler', 'transport'];

const KILLS = 4;

/** The promise: what is older than this is stored. */
const PROMISED_US = 100_000;

/** Numbers, and when each had passed. */
function passedIn(output: string): { n: number; at: number }[] {
  const whole = output.slice(0, output.lastIndexOf('\n') + 1).trimEnd();
  return whole === ''
    ? []
    : whole.split('\n').map((line) => {
        const [n, at] = line.split(' ').map(Number);
        return { n: n as number, at: at as number };
      });
}

/** The numbers that are stored, in their order. */
function storedIn(db: string): number[] {
  return query<{ text: string }>(
    db,
    "SELECT CAST(payload AS TEXT) AS text FROM frame WHERE channel IN ('stdout', 'response', 'stdin') ORDER BY seq",
  ).map(({ text }) => JSON.parse(text).result.n as number);
}

function startNumbers(door: string, db: string) {
  const run = start(process.execPath, [fixture('records-numbers.js'), door], {
    cwd: ROOT,
    env: { TAPEDECK_DB: db },
  });
  return { run, passed: () => passedIn(run.stdout().toString()) };
}

async function kill(run: Run): Promise<void> {
  run.child.kill('SIGKILL');
  const { signal, stderr } = await run.ended;
  expect([signal, stderr]).toEqual(['SIGKILL', '']);
}

/** All from the first on, none twice, in a store that is whole, of a session that shows as cut off. Gives how many. */
async function expectBeginning(db: string): Promise<number> {
  expect(await listSessions(db)).toMatchObject([{ endReason: 'cut-off', endedAt: null }]);
  const stored = storedIn(db);
  expect(stored).toEqual(stored.map((_, index) => index));
  const store = new Database(db);
  expect(store.pragma('integrity_check', { simple: true })).toBe('ok');
  store.close();
  return stored.length;
}

test.each(DOORS)(
  '%s: after kill -9 at any moment all that had passed 100 ms before is stored',
  async (door) => {
    let killsWithSomethingDue = 0;
    for (let i = 0; i < KILLS; i += 1) {
      const db = tempStore();
      const { run, passed } = startNumbers(door, db);
      await until('the first are stored', () => query(db, 'SELECT 1 FROM frame LIMIT 1').length > 0);
      const count = passed().length + ((i + Math.random()) / KILLS) * 100;
      await until('some more have passed', () => passed().length > count);
      const killedAt = (performance.timeOrigin + performance.now()) * 1000;
      await kill(run);
      const due = passed().filter(({ at }) => at < killedAt - PROMISED_US).length;
      if (due > 0) killsWithSomethingDue += 1;
      expect(await expectBeginning(db)).toBeGreaterThanOrEqual(due);
    }
    expect(killsWithSomethingDue).toBeGreaterThanOrEqual(KILLS / 2);
  },
);

test.each(DOORS)(
  '%s: beside busy loops all reaches the store while the host goes on, and stays',
  async (door) => {
    for (let i = 0; i < 2 * availableParallelism(); i += 1) start(process.execPath, ['--eval', 'for (;;);']);
    const db = tempStore();
    const { run, passed } = startNumbers(door, db);
    await until('a hundred have passed', () => passed().length >= 100);
    const count = passed().length;
    await until('these are stored', () => storedIn(db).length >= count);
    await kill(run);
    expect(await expectBeginning(db)).toBeGreaterThanOrEqual(count);
  },
);
