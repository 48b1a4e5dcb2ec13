/**
 * The official conformance suite through a recorder that ships to an engine in trouble: killed and started again, slow, cut off. Every
 * check comes out as it does without a recorder, and in the end the engine has all that passed.
 */
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { compareRuns } from '../conformance/compare.js';
import { findReason } from '../conformance/expected-differences.js';
import { startRecording } from '../conformance/proxy.js';
import { servers } from '../conformance/servers.js';
import { testServer, testServerScenario } from '../conformance/suite.js';
import { reconnected, withEngine } from '../support/engine.ts';
import { type Postgres, startPostgres } from '../support/postgres.ts';
import { type Relay, startRelay } from '../support/relay.ts';
import { differences, endShipper, engineForHosts, shipOnce } from '../support/shipped.ts';
import { tempFolder, until } from '../support/tapedeck.ts';

type Difference = ReturnType<typeof compareRuns>[number];

const REVISION = '2025-11-25';

const MOST_RUNS = 10;

type Done = Record<'killed' | 'slowed' | 'cut', number>;

/** What goes on around the engine, again and again, until `isOver`. Counts in `done` how often each was done. */
async function trouble(relay: Relay, engine: Postgres, done: Done, isOver: () => boolean): Promise<void> {
  const acts = [
    async () => {
      await engine.kill();
      await engine.start();
      done.killed += 1;
    },
    () => {
      relay.stall(500);
      done.slowed += 1;
    },
    () => {
      relay.cut(true);
      done.cut += 1;
    },
  ];
  for (let i = 0; ; i += 1) {
    // In the midst of what is shipped.
    let isDue = false;
    relay.after(2000, () => {
      isDue = true;
    });
    await until('more is shipped, or all is over', () => isDue || isOver(), 90_000);
    if (isOver()) return;
    await acts[i % acts.length]?.();
  }
}

withEngine('the conformance suite through a recorder that ships', () => {
  test('finds nothing of an engine that is killed, slow and cut off, and all of it is there in the end', {
    timeout: 240_000,
  }, async () => {
    const engine = await startPostgres({ settings: { synchronous_commit: 'on', full_page_writes: 'on' } });
    onTestFinished(engine.remove);
    const { database, host } = await engineForHosts(engine.port);
    const url = new URL(host);
    const relay = await startRelay(engine.port);
    onTestFinished(relay.close);
    url.port = String(relay.port);
    const server = await servers['dual-era']();
    onTestFinished(server.stop);
    const db = join(tempFolder(), 'recordings.db');
    const recorder = await startRecording(server.url, db, { TAPEDECK_SHIP: url.href });
    onTestFinished(recorder.stop);

    const done = { killed: 0, slowed: 0, cut: 0 };
    const run = { isOver: false };
    const troubling = trouble(relay, engine, done, () => run.isOver);
    const through: Awaited<ReturnType<typeof testServer>>[] = [];
    try {
      // A fast run may be over before the shipper, which waits longer after each failure, has met all of it.
      do through.push(await testServer(recorder.url, REVISION));
      while (Object.values(done).includes(0) && through.length < MOST_RUNS);
    } finally {
      run.isOver = true;
    }
    await troubling;
    expect(Object.values(done), JSON.stringify(done)).not.toContain(0);
    const direct = await testServer(server.url, REVISION);
    expect(direct.accepted).toBe(true);

    const leg = { subject: 'server dual-era' };
    const unexplained = (other: typeof direct, without: typeof direct): Difference[] =>
      compareRuns(without.scenarios, other.scenarios).filter(
        (one: Difference) => findReason(leg, one) === undefined,
      );
    const lasting: Difference[] = [];
    // Timing decides some checks: what differs has to differ again, run alone.
    const differing = through.flatMap((one) => unexplained(one, direct));
    for (const scenario of new Set(differing.map((one) => one.scenario)))
      lasting.push(
        ...unexplained(
          await testServerScenario(recorder.url, REVISION, scenario),
          await testServerScenario(server.url, REVISION, scenario),
        ),
      );
    expect(lasting).toEqual([]);

    await recorder.stop();
    endShipper(db);
    const shipped = await shipOnce(host, db);
    expect(shipped.code, shipped.stderr).toBe(0);
    expect(await differences(await reconnected(database), [db])).toEqual([]);
  });
});
