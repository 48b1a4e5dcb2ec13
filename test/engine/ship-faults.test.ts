/**
 * Whatever is killed or cut on the way: the engine has what the stores have together, byte for byte, every table, nothing twice.
 * By chance, and repeatable: `TAPEDECK_SEED=… npx vitest run test/engine/ship-faults.test.ts`.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { readAddress } from '../../src/engine/connect.ts';
import { backlogOf } from '../../src/ship/report.ts';
import { runShipper, type ShipEnd } from '../../src/ship/shipper.ts';
import { openStore, type Store } from '../../src/store/file/open.ts';
import { type Database, reconnected, withEngine } from '../support/engine.ts';
import { type Postgres, startPostgres } from '../support/postgres.ts';
import { chance, type Relay, startRelay } from '../support/relay.ts';
import { IS_FULL, inFull, scale } from '../support/scale.ts';
import { differences, engineForHosts } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import { BIN, record, tempStore } from '../support/tapedeck.ts';

const SEED = Number(process.env['TAPEDECK_SEED'] ?? Date.now() % 1_000_000);

/** Each takes a process its start. */
const KILLS = IS_FULL ? 200 : 6;

type Fleet = { database: Database; relay: Relay; url: string; file: string; random: () => number };

/** An engine behind a relay, and a store with a few sessions. `lane`: of several at once each has chances of its own. */
async function fleet(port?: number, lane = 0): Promise<Fleet> {
  const { database, host } = await engineForHosts(port);
  const direct = new URL(host);
  const relay = await startRelay(Number(direct.port));
  onTestFinished(relay.close);
  direct.port = String(relay.port);
  const one = { database, relay, url: direct.href, file: tempStore(), random: chance(SEED + lane) };
  fill(one, 3);
  return one;
}

let sessions = 0;

/** Of chance lines; now and then with one in parts, and in slices of its own. */
function addSession(store: Store, random: () => number): void {
  sessions += 1;
  const lines = Array.from({ length: 1 + Math.floor(random() * 40) }, (_, i) =>
    i % 2 === 0
      ? `{"jsonrpc":"2.0","id":${i},"method":"tools/call","params":{"name":"t","text":"${'x'.repeat(random() * 3000)}"}}`
      : `{"jsonrpc":"2.0","id":${i - 1},"result":{}}`,
  );
  if (random() < 0.04) lines.push('y'.repeat(5.5 * 1024 * 1024));
  storeSession(store, { lines, start: { at: 1.7e15 + sessions * 1e9, labels: [['n', String(sessions)]] } });
}

function fill({ file, random }: Pick<Fleet, 'file' | 'random'>, count: number): void {
  const store = openStore(file);
  for (let i = 0; i < count; i += 1) addSession(store, random);
  store.close();
}

/** Ships until nothing is left, in this process. */
async function shipAll(url: string, file: string, onShipped = () => {}): Promise<ShipEnd> {
  return runShipper({
    ...{ sampling: () => null, prepareKept: async () => () => true },
    ...{ file, address: readAddress(url, {}), isOnce: true, tenant: null, version: '0' },
    ...{ imported: false, unredacted: false, goesOn: () => true, onNotice() {}, onShipped },
    signal: new AbortController().signal,
  });
}

/** In a process of its own, which can be killed. */
function shipper(url: string, file: string): ChildProcess {
  const child = spawn(process.execPath, [BIN, 'ship', '--once', '--to', url, '--db', file], {
    stdio: 'ignore',
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

/** What was looked at before, by the engine's clock: each transaction says when it was. */
const lookedAt = new WeakMap<Database, unknown>();

/** What is there of each session is its beginning, whole, up to the cursor. */
async function expectPrefixes(database: Database): Promise<void> {
  const [now] = await database.query<{ now: Date }>('SELECT now()');
  const since = lookedAt.get(database) ?? '-infinity';
  const torn = await database.query(
    `SELECT s.id FROM tapedeck.session AS s, LATERAL (
         SELECT count(*) AS n, coalesce(max(f.seq), 0) AS last FROM tapedeck.frame AS f
         WHERE f.session = s.session AND f.day = s.day) AS f
       WHERE s.received_at >= $1::timestamptz - interval '5 s' AND (s.cursor <> f.n OR s.cursor <> f.last)`,
    [since],
  );
  expect(torn, `TAPEDECK_SEED=${SEED}`).toEqual([]);
  lookedAt.set(database, now?.now);
}

async function expectSame({ database, url, file }: Fleet, more: readonly string[] = []): Promise<void> {
  for (const one of [file, ...more]) expect(await shipAll(url, one)).toEqual({ isDone: true, trouble: null });
  expect(await differences(database, [file, ...more]), `TAPEDECK_SEED=${SEED}`).toEqual([]);
}

/** What the store knows to be still here: somewhere in that a shipper is killed, so that now and then it comes to the end of it. */
function bytesLeft(file: string): number {
  const store = openStore(file);
  const target = store.prepare<[], string | null>('SELECT target FROM shipper').pluck().get() ?? null;
  const { bytes } = backlogOf(store, target);
  store.close();
  return bytes;
}

/** Less than what a round sends: so that nearly all of them are hit. */
const SESSION_BYTES = 30_000;

async function killShippers(one: Fleet, times: number): Promise<void> {
  for (let kills = 0; kills < times; ) {
    fill(one, 2);
    const child = shipper(one.url, one.file);
    one.relay.after(one.random() * (bytesLeft(one.file) + SESSION_BYTES), () => {
      kills += 1;
      child.kill('SIGKILL');
    });
    await once(child, 'exit');
    await expectPrefixes(one.database);
  }
}

withEngine('shipping under fire', () => {
  test(`a shipper that is killed at any moment, ${KILLS} times`, { timeout: 600_000 }, async () => {
    // Two at once: a process that starts waits most of the time.
    const lanes = await Promise.all([fleet(undefined, 1), fleet(undefined, 2)]);
    await Promise.all(lanes.map((one) => killShippers(one, KILLS / lanes.length)));
    for (const one of lanes) await expectSame(one);
  });

  test(`connections that are cut, reset, stalled, slow, or cut between COMMIT and its answer, ${scale(80, 5)} times`, {
    timeout: 600_000,
  }, async () => {
    const one = await fleet();
    const faults: ((relay: Relay) => void)[] = [
      (relay) => relay.cut(),
      (relay) => relay.cut(true),
      (relay) => relay.stall(200),
      (relay) => relay.slow(300, 10),
      (relay) => relay.cutNextCommit(),
    ];
    for (let i = 0; i < scale(80, 5); i += 1) {
      fill(one, 2);
      one.relay.after(one.random() * SESSION_BYTES, faults[i % faults.length] as (relay: Relay) => void);
      expect(await shipAll(one.url, one.file)).toMatchObject({ isDone: true });
      await expectPrefixes(one.database);
    }
    if (one.relay.counts().commitsCut === 0) {
      // Each may have come after the last COMMIT of its round: this one is there before the first.
      fill(one, 2);
      one.relay.cutNextCommit();
      expect(await shipAll(one.url, one.file)).toMatchObject({ isDone: true });
      await expectPrefixes(one.database);
    }
    expect(one.relay.counts().commitsCut).toBeGreaterThan(0);
    await expectSame(one);
  });

  inFull(
    'an engine that goes away after each slice that it takes is not waited for ever longer',
    async () => {
      const one = await fleet();
      // A frame in parts begins anew with each connection: this store has none.
      one.file = tempStore();
      const store = openStore(one.file);
      for (let i = 0; i < 12; i += 1)
        storeSession(store, { lines: ['z'.repeat(400_000)], start: { at: 1.8e15 + i } });
      store.close();
      // Doubled each time, the pauses would be longer than `--once` waits for an engine.
      expect(await shipAll(one.url, one.file, () => one.relay.cut())).toMatchObject({ isDone: true });
      await expectSame(one);
    },
  );

  test(`backends that are terminated, ${scale(50, 3)} times`, { timeout: 600_000 }, async () => {
    const one = await fleet();
    const end = () =>
      void one.database.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tapedeck ship' AND datname = current_database()",
      );
    let ended = 0;
    while (ended < scale(50, 3)) {
      fill(one, 2);
      one.relay.after(one.random() * SESSION_BYTES, () => {
        ended += 1;
        end();
      });
      expect(await shipAll(one.url, one.file)).toMatchObject({ isDone: true });
    }
    await expectSame(one);
  });

  test('two shippers on one store, and a copy of the store on a second host', {
    timeout: 600_000,
  }, async () => {
    const one = await fleet();
    for (let i = 0; i < scale(20, 2); i += 1) {
      fill(one, 6);
      if (i % 3 === 2) one.relay.after(one.random() * 4 * SESSION_BYTES, (relay) => relay.cut());
      await Promise.all([shipAll(one.url, one.file), shipAll(one.url, one.file)]);
      await expectPrefixes(one.database);
    }
    const store = openStore(one.file);
    store.pragma('wal_checkpoint(TRUNCATE)');
    store.close();
    const copy = tempStore();
    copyFileSync(one.file, copy);
    fill({ ...one, file: copy }, 2);
    fill(one, 2);
    await Promise.all([shipAll(one.url, copy), shipAll(one.url, one.file)]);
    await expectSame(one, [copy]);
  });

  inFull('an engine whose postmaster is killed 100 times', { timeout: 900_000 }, async () => {
    const engine = await ownEngine();
    const one = await fleet(engine.port);
    for (let kills = 0; kills < 100; ) {
      fill(one, 2);
      let restarted = Promise.resolve();
      one.relay.after(one.random() * SESSION_BYTES, () => {
        kills += 1;
        restarted = engine.kill().then(engine.start);
      });
      expect(await shipAll(one.url, one.file)).toMatchObject({ isDone: true });
      await restarted;
    }
    await expectSame({ ...one, database: await reconnected(one.database) });
  });

  inFull('an engine that is restored from an older dump', { timeout: 600_000 }, async () => {
    const engine = await ownEngine();
    const one = await fleet(engine.port);
    await shipAll(one.url, one.file);
    const name = new URL(one.url).pathname.slice(1);
    const dump = engine.run('pg_dump', [
      '-h',
      engine.folder,
      '-p',
      String(engine.port),
      '-U',
      'postgres',
      '--clean',
      '-f',
      `${engine.folder}/dump.sql`,
      name,
    ]);
    expect(dump).toBe('');
    fill(one, 30);
    await shipAll(one.url, one.file);
    engine.run('psql', [
      '-X',
      '-q',
      '-h',
      engine.folder,
      '-p',
      String(engine.port),
      '-U',
      'postgres',
      '-d',
      name,
      '-f',
      `${engine.folder}/dump.sql`,
    ]);
    expect(await one.database.query('SELECT 1 FROM tapedeck.session')).toHaveLength(3);
    await expectSame(one);
  });

  inFull('recorders that are killed 50 times while a shipper is at work', { timeout: 900_000 }, async () => {
    const one = await fleet();
    for (let kill = 0; kill < 50; kill += 1) {
      const run = record(one.file, ['cat.js']);
      for (let i = 0; i < 20; i += 1) run.child.stdin.write(`{"jsonrpc":"2.0","id":${i},"method":"ping"}\n`);
      await once(run.child.stdout, 'data');
      const shipping = shipAll(one.url, one.file);
      run.child.stdin.write('{"jsonrpc":"2.0","id":99,"met');
      await new Promise((resolve) => setImmediate(resolve));
      run.child.kill('SIGKILL');
      await run.ended;
      await shipping;
    }
    await expectSame(one);
  });
});

/** Whose commits survive its being killed. */
async function ownEngine(): Promise<Postgres> {
  const engine = await startPostgres({ settings: { synchronous_commit: 'on', full_page_writes: 'on' } });
  onTestFinished(engine.remove);
  return engine;
}
