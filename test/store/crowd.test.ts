import { availableParallelism } from 'node:os';
import { expect, onTestFinished, test } from 'vitest';
import { spoolsOf } from '../../src/store/file/spool.ts';
import { inFull, scale } from '../support/scale.ts';
import { fixture, listSessions, record, start, tempStore, until } from '../support/tapedeck.ts';

const BIG = `{"jsonrpc":"2.0","method":"big","params":{"text":"${'x'.repeat(scale(17_000_000, 1_700_000))}"}}\n`;

/** Twice as many busy programs as there are processors. */
const LOOPS = 2 * availableParallelism();

/** What a recorder says that kept to its spool for long, which is no fault where many write much. */
const NOTICE = /^(tapedeck: .*another process keeps it locked.* what passes is kept in .*\n)?$/;

function startLoops(count: number): void {
  const busy = Array.from({ length: count }, () => start(process.execPath, ['-e', 'for (;;);']));
  onTestFinished(() => busy.forEach(({ child }) => void child.kill('SIGKILL')));
}

/** Calls, and in the middle and at the end a large one. */
function traffic(who: number, calls: number, isBig: boolean): string {
  const line = (id: number) =>
    `{"jsonrpc":"2.0","id":${id},"method":"by/${who}","params":{"text":"${'y'.repeat(100)}"}}\n`;
  const half = (from: number, to: number) =>
    Array.from({ length: to - from }, (_, i) => line(from + i)).join('');
  const [middle, end] = [Math.floor(calls / 2), isBig ? BIG : ''];
  return half(0, middle) + end + half(middle, calls) + end;
}

test.each([
  { recorders: scale(30, 6), calls: scale(500, 200), isBig: false, loops: 0 },
  { recorders: scale(30, 3), calls: scale(500, 50), isBig: false, loops: LOOPS },
  { recorders: scale(12, 2), calls: scale(400, 20), isBig: true, loops: 0 },
])(
  '$recorders recorders on one store at once lose nothing: $calls calls, large ones $isBig, $loops busy loops',
  async ({ recorders, calls, isBig, loops }) => {
    const db = tempStore();
    startLoops(loops);
    const runs = Array.from({ length: recorders }, (_, who) =>
      record(db, ['cat.js'], ['--name', `by-${who}`]),
    );
    for (const [who, { child }] of runs.entries()) child.stdin.end(traffic(who, calls, isBig));
    for (const { ended } of runs) {
      const { code, stderr } = await ended;
      expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(isBig ? NOTICE : /^$/) });
    }
    const sessions = await listSessions(db);
    const frames = 2 * (calls + (isBig ? 2 : 0));
    expect(sessions.map(({ frames, dropped }) => [frames, dropped])).toEqual(
      Array(recorders).fill([frames, 0]),
    );
    expect(spoolsOf(db)).toEqual([]);
  },
  300_000,
);

inFull(
  'beside twice as many busy programs as processors all frames reach the store while their sessions go on, and stay after kill -9',
  async () => {
    const db = tempStore();
    startLoops(LOOPS);
    const runs = Array.from({ length: 12 }, () => record(db, ['cat.js']));
    for (const [who, { child }] of runs.entries()) child.stdin.write(traffic(who, 100, false));
    const stored = async () => (await listSessions(db).catch(() => [])).map(({ frames }) => frames);
    await until(
      'all frames are stored',
      async () => {
        const frames = await stored();
        return frames.length === runs.length && frames.every((count) => count === 200);
      },
      60_000,
    );
    for (const { child } of runs) child.kill('SIGKILL');
    for (const { ended } of runs) await ended;
    const sessions = await listSessions(db);
    expect(sessions.map(({ frames, dropped, endReason }) => [frames, dropped, endReason])).toEqual(
      Array(runs.length).fill([200, 0, 'cut-off']),
    );
    expect(spoolsOf(db)).toEqual([]);
  },
  300_000,
);

test('sessions end without waiting for a store that is locked, and lose nothing by that', async () => {
  const db = tempStore();
  const run = record(db, ['cat.js'], ['--name', 'first']);
  run.child.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  await until('it is stored', async () => (await listSessions(db).catch(() => []))[0]?.frames === 2);
  const lock = start(process.execPath, [fixture('hold-lock.js'), db]);
  await until('the store is locked', () => lock.stdout().includes('locked'));
  const others = Array.from({ length: scale(6, 2) }, () => record(db, ['cat.js']));
  for (const { child } of [run, ...others]) child.stdin.end(traffic(0, 50, false));
  for (const { ended } of [run, ...others]) expect(await ended).toMatchObject({ code: 0, stderr: '' });
  expect(spoolsOf(db)).toHaveLength(others.length + 1);
  lock.child.stdin.end();
  await lock.ended;
  // Readers that meet take each spool in once.
  await Promise.all([listSessions(db), listSessions(db)]);
  const sessions = await listSessions(db);
  expect(sessions.map(({ frames, dropped, endReason }) => [frames, dropped, endReason]).sort()).toEqual([
    ...others.map(() => [100, 0, 'client-closed']),
    [102, 0, 'client-closed'],
  ]);
});
