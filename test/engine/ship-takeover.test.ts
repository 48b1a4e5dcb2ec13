/** Recorders of one store have one shipper; whichever of them is left sees to it that there is one. */
import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { createBackOff } from '../../src/cli/record/ship-child.ts';
import { withEngine } from '../support/engine.ts';
import { query } from '../support/http-record.ts';
import { inFull } from '../support/scale.ts';
import { differences, endShipper, engineForHosts } from '../support/shipped.ts';
import { record, tempStore, until } from '../support/tapedeck.ts';

test('a shipper that dies soon is started later each time, and one that was well at once', () => {
  const backOff = createBackOff();
  const soon = Array.from({ length: 12 }, () => backOff(100));
  expect(soon).toEqual(soon.toSorted((a, b) => a - b));
  expect([soon[0], soon.at(-1)]).toEqual([2000, 300_000]);
  expect([backOff(60_000), backOff(100), backOff(60_000)]).toEqual([2000, 4000, 2000]);
});

const childrenOf = (pid = 0) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').length - 1;

withEngine('several recorders', () => {
  inFull(
    'leave no shipper behind for long, also where it began when the recorder had ended',
    { timeout: 150_000 },
    async () => {
      const { host } = await engineForHosts();
      const file = tempStore();
      const run = record(file, ['cat.js'], ['--ship', host]);
      run.child.stdin.end('{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
      await run.ended;
      const pidOf = () => query<{ pid: number | null }>(file, 'SELECT pid FROM shipper')[0]?.pid ?? null;
      await until('it has begun', () => pidOf() !== null);
      await expect.poll(pidOf, { timeout: 120_000, interval: 500 }).toBeNull();
    },
  );

  inFull('ship on where the one whose shipper it was is killed with it', async () => {
    const { database, host } = await engineForHosts();
    const file = tempStore();
    onTestFinished(() => endShipper(file));
    const shipped = async () =>
      (await database.query<{ n: number }>('SELECT count(*)::int AS n FROM tapedeck.frame'))[0]?.n ?? 0;
    const say = (run: ReturnType<typeof record>, id: number) =>
      run.child.stdin.write(`{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`);

    const first = record(file, ['cat.js'], ['--ship', host]);
    say(first, 1);
    await until('it is shipped', async () => (await shipped()) === 2);
    const second = record(file, ['cat.js'], ['--ship', host]);
    say(second, 1);
    await until('all of it is shipped', async () => (await shipped()) === 4);
    // Beside its server: the shipper that finds another one at work, and goes.
    await until('its own has begun', () => childrenOf(second.child.pid) === 2);
    await until('its own has gone', () => childrenOf(second.child.pid) === 1);
    const pidOf = () => query<{ pid: number }>(file, 'SELECT pid FROM shipper')[0]?.pid;
    const before = pidOf();
    first.child.kill('SIGKILL');
    endShipper(file);

    say(second, 2);
    await until('the other one ships', async () => (await shipped()) === 6);
    expect(pidOf()).not.toBe(before);
    second.child.stdin.end();
    expect((await second.ended).code).toBe(0);
    await until('both are sealed', async () => (await differences(database, [file])).length === 0);
  });
});
