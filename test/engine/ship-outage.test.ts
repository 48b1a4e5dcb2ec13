/**
 * What goes on while an engine is away, a disk is full or connections break: the traffic passes, and in the end the engine has what
 * the store has, and a count of the rest. By chance, and repeatable: `TAPEDECK_SEED=… npx vitest run test/engine/ship-outage.test.ts`.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readAddress } from '../../src/engine/connect.ts';
import { runShipper } from '../../src/ship/shipper.ts';
import { openStore } from '../../src/store/file/open.ts';
import { withEngine } from '../support/engine.ts';
import { query, recordUrl } from '../support/http-record.ts';
import { findPostgres, freePort } from '../support/postgres.ts';
import { chance, type Relay, startRelay } from '../support/relay.ts';
import { inFull, scale } from '../support/scale.ts';
import { differences, engineForHosts, filledStore, shipOnce } from '../support/shipped.ts';
import { storeSession } from '../support/stored.ts';
import {
  BIN,
  fixture,
  record,
  start,
  tapedeckInProcess,
  tempFolder,
  tempStore,
  until,
} from '../support/tapedeck.ts';

const SEED = Number(process.env['TAPEDECK_SEED'] ?? Date.now() % 1_000_000);

const random = chance(SEED);

/** As after an attempt to ship that reached nobody. */
function markShipped(file: string): void {
  const store = openStore(file);
  store.exec('INSERT OR IGNORE INTO shipper (one) VALUES (1)');
  store.close();
}

/** A server that answers each call with its own parameters. */
async function startEcho(): Promise<string> {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    const { id, params } = JSON.parse(body);
    response
      .setHeader('content-type', 'application/json')
      .end(JSON.stringify({ jsonrpc: '2.0', id, result: params }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

withEngine('a host whose engine is away', () => {
  test('for three rounds of retention keeps the newest, and the engine gets these and a count of the rest', async () => {
    const { database, host } = await engineForHosts();
    const file = tempStore();
    markShipped(file);
    let frames = 0;
    for (let round = 0; round < 3; round += 1) {
      const store = openStore(file);
      for (let i = 0; i < 3; i += 1) {
        const lines = ['a'.repeat(300_000 + random() * 700_000), 'b', 'c'].slice(
          0,
          2 + Math.floor(random() * 2),
        );
        storeSession(store, { start: { at: 1.7e15 + (3 * round + i) * 1e9 }, lines });
        frames += lines.length;
      }
      store.close();
      const pruned = await tapedeckInProcess(['prune', '--db', file, '--max-unshipped', '2500kb']);
      expect(pruned.code, pruned.stderr).toBe(0);
    }
    expect(await shipOnce(host, file)).toMatchObject({ code: 0 });
    expect(await differences(database, [file]), `TAPEDECK_SEED=${SEED}`).toEqual([]);
    const [here] = query<{ frames: number }>(file, 'SELECT sum(frames) AS frames FROM session');
    const [lost] = await database.query<{ frames: string }>(
      'SELECT sum(frames) AS frames FROM tapedeck.loss',
    );
    expect(here?.frames).toBeGreaterThan(0);
    expect(Number(lost?.frames), `TAPEDECK_SEED=${SEED}`).toBe(frames - Number(here?.frames));
    expect(Number(lost?.frames)).toBeGreaterThan(0);
  });

  inFull('and whose recorder is strict stops recording in place of losing what was not shipped', async () => {
    const file = tempStore();
    markShipped(file);
    const store = openStore(file);
    for (let i = 0; i < 3; i += 1)
      storeSession(store, { start: { at: 1.7e15 + i * 1e9 }, lines: ['a'.repeat(900_000), 'b'] });
    store.close();
    const run = record(file, ['cat.js'], ['--strict', '--max-unshipped', '1mb']);
    onTestFinished(() => void run.child.kill('SIGKILL'));
    const { code, stderr } = await run.ended;
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/what is not shipped yet takes more than --max-unshipped/);
    expect(
      query(file, 'SELECT 1 FROM session WHERE started_at < 1800000000000000 AND frames = 2').length,
    ).toBe(3);
    expect(query(file, 'SELECT 1 FROM loss')).toEqual([]);
  });
});

/** A PostgreSQL whose databases are on a disk of 64 MB, which gets larger once there is a file `more`. */
async function startSmallEngine(folder: string, port: number): Promise<void> {
  const script = `cd '${folder}' && initdb -D data -U postgres --auth=trust -E UTF8 --locale=C --no-sync &&
    mv data/base data/old && mkdir -m 700 data/base && mount -t tmpfs -o size=64m,mode=700 tmpfs data/base &&
    cp -a data/old/. data/base/ || exit 9
    (until [ -e more ] || [ ! -d data ]; do sleep 0.1; done; mount -o remount,size=512m data/base) &
    exec postgres -D data -p ${port} -k '' -c fsync=off -c max_connections=30`;
  const env = { ...process.env, PATH: `${findPostgres()}:${process.env['PATH']}` };
  // PostgreSQL runs for nobody whose number is 0.
  const user = ['--user', '--map-user=1000', '--map-group=1000', '--keep-caps', '--mount'];
  const run = start('unshare', [...user, 'sh', '-c', script], { env });
  onTestFinished(async () => {
    run.child.kill('SIGQUIT');
    await run.ended;
  });
  let log = '';
  run.child.stderr.on('data', (bytes) => {
    log += bytes;
  });
  await until('PostgreSQL is ready', () => log.includes('ready to accept connections'), 60_000);
}

withEngine('a host in trouble', () => {
  inFull('whose disk is full ships what is on it, and the rest once there is room', async () => {
    const { database, host } = await engineForHosts();
    const folder = join(tempFolder(), 'full');
    mkdirSync(folder);
    const copy = join(tempFolder(), 'copy.db');
    const node = `'${process.execPath}'`;
    const script = `mount -t tmpfs -o size=2m tmpfs '${folder}' || exit 9
      ${node} '${BIN}' record --db '${folder}/x.db' -- ${node} '${fixture('cat.js')}'; recorded=$?
      ${node} '${BIN}' ship --once --to '${host}' --db '${folder}/x.db'
      cp '${folder}/x.db' '${copy}'; cp '${folder}/x.db-wal' '${copy}-wal' 2>/dev/null; exit $recorded`;
    const run = start('unshare', ['--user', '--map-root-user', '--mount', 'sh', '-c', script]);
    const lines = Buffer.from(`${'x'.repeat(1000)}\n`.repeat(4000));
    run.child.stdin.end(lines);
    const { code, stdout, stderr } = await run.ended;
    expect(code, stderr).toBe(0);
    expect(stdout.equals(lines)).toBe(true);
    expect(stderr).toMatch(/the disk is full/);
    expect(await shipOnce(host, copy)).toMatchObject({ code: 0 });
    expect(await differences(database, [copy])).toEqual([]);
  });

  inFull(
    'whose engine has a full disk says so, and ships the rest once there is room',
    { timeout: 120_000 },
    async () => {
      const [folder, port] = [tempFolder(), await freePort()];
      await startSmallEngine(folder, port);
      const { database, host } = await engineForHosts(port);
      const file = filledStore((store) => {
        for (let i = 0; i < 12; i += 1)
          storeSession(store, {
            start: { at: 1.7e15 + i * 1e9 },
            lines: Array.from({ length: 5 }, () => randomBytes(512 * 1024).toString('base64')),
          });
      });
      const said: string[] = [];
      const ending = new AbortController();
      const shipping = runShipper({
        ...{ sampling: () => null, prepareKept: async () => () => true },
        ...{ file, address: readAddress(host, {}), isOnce: false, tenant: null, version: '0' },
        ...{ imported: false, unredacted: false, goesOn: () => true, onShipped() {} },
        onNotice: (text) => void said.push(text),
        signal: ending.signal,
      });
      await until('it says so', () => said.some((text) => text.includes('53100')));
      const sealed = () => database.query('SELECT 1 FROM tapedeck.session WHERE sealed_at IS NOT NULL');
      const before = (await sealed()).length;
      expect(before).toBeLessThan(12);
      writeFileSync(join(folder, 'more'), '');
      await until('all of it is there', async () => (await sealed()).length === 12, 60_000);
      ending.abort();
      await shipping;
      expect(said.at(-1)).toMatch(/takes what is shipped again/);
      expect(await differences(database, [file])).toEqual([]);
    },
  );

  test(`whose connections break ${scale(20, 2)} times answers every call over HTTP, and ships all of them`, async () => {
    const { database, host } = await engineForHosts();
    const direct = new URL(host);
    const relay = await startRelay(Number(direct.port));
    onTestFinished(relay.close);
    direct.port = String(relay.port);
    const proxy = await recordUrl(`${await startEcho()}/mcp`);
    const faults: ((relay: Relay) => void)[] = [
      (one) => one.cut(),
      (one) => one.cut(true),
      (one) => one.stall(100),
      (one) => one.cutNextCommit(),
    ];
    let calls = 0;
    async function call(): Promise<void> {
      calls += 1;
      const body = `{"jsonrpc":"2.0","id":${calls},"method":"echo","params":{"text":"${'x'.repeat(random() * 20_000)}"}}`;
      const response = await fetch(proxy.url, {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json' },
      });
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ id: calls });
    }
    for (let i = 0; i < scale(20, 2); i += 1) {
      relay.after(random() * 60_000, faults[i % faults.length] as (one: Relay) => void);
      const shipping = shipOnce(direct.href, proxy.db);
      for (let j = 0; j < 5; j += 1) await call();
      await shipping;
    }
    await proxy.stop();
    expect(await shipOnce(direct.href, proxy.db)).toMatchObject({ code: 0 });
    expect(query(proxy.db, 'SELECT sum(exchanges) AS n FROM session')).toEqual([{ n: calls }]);
    expect(await differences(database, [proxy.db]), `TAPEDECK_SEED=${SEED}`).toEqual([]);
  });
});
