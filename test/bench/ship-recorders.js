// What `record --ship` costs the recorder, against a plain one; how long a frame takes to the engine; and many recorders at once, each
// with a store, a server and a shipper of its own, into one engine.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { openForReading } from '../../build/store/file/open.js';
import { callEcho, startClient } from './client.js';
import { figureRow, format, percentile, ratioRow } from './figures.js';
import { IN_FLIGHT, SERVERS } from './stdio.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');

/** Calls a second, in paced bunches: two frames each. */
const CALLS_A_SECOND = 1000;

const BUNCH_MS = 10;

/** How often the engine is asked how far it is. */
const ASK_MS = 10;

const RECORDERS_DEADLINE_MS = 600_000;

const recorder = (file, ...options) => [
  process.execPath,
  ...[BIN, 'record', '--db', file, ...options, '--', ...SERVERS.echo],
];

/** `rounds` is odd; in each, both recorders have their turn, the first one first in every other round. */
export async function besideTraffic(engine, folder, { rounds, calls, lagSeconds, progress }) {
  const files = { plain: join(folder, 'plain.db'), shipped: join(folder, 'shipped.db') };
  const clients = {
    plain: await startClient(recorder(files.plain)),
    shipped: await startClient(recorder(files.shipped, '--ship', engine.url, '--name', 'shipped')),
  };
  await untilShipping(files.shipped);
  for (const client of Object.values(clients)) await callEcho(client, calls, IN_FLIGHT);
  const results = { plain: { p50: [], rate: [], cpu: [] }, shipped: { p50: [], rate: [], cpu: [] } };
  for (let round = 0; round < rounds; round += 1) {
    progress(`with and without --ship, round ${round + 1} of ${rounds}`);
    const order = round % 2 === 0 ? ['plain', 'shipped'] : ['shipped', 'plain'];
    for (const name of order) await measure(clients[name], results[name], calls);
  }
  const { plain, shipped } = results;
  const against = { yardstick: 'record without --ship' };
  const rows = [
    ratioRow(
      'record --ship: calls in flight',
      shipped.rate,
      plain.rate,
      { ...against, atLeast: 0.9 },
      'calls/s',
    ),
    ratioRow(
      'record --ship: one call at a time, p50',
      shipped.p50,
      plain.p50,
      { ...against, atMost: 1.1 },
      'µs',
    ),
  ];
  if (plain.cpu[0] > 0)
    rows.push(
      ratioRow('record --ship: the recorder’s processor time a call', shipped.cpu, plain.cpu, against, 'µs'),
    );
  rows.push(...(await lag(engine, clients.shipped, files.shipped, lagSeconds, progress)));
  for (const client of Object.values(clients)) await client.close();
  endShipper(files.shipped);
  return rows;
}

async function measure(client, result, calls) {
  const before = client.processor();
  const times = await callEcho(client, calls / 10, 1);
  result.p50.push(percentile(times, 0.5) * 1000);
  const began = performance.now();
  await callEcho(client, calls, IN_FLIGHT);
  result.rate.push((calls / (performance.now() - began)) * 1000);
  result.cpu.push((client.processor() - before) / (calls * 1.1));
}

/** It would go on for a minute. */
function endShipper(file) {
  const store = openForReading(file);
  const pid = store.prepare('SELECT pid FROM shipper WHERE pid IS NOT NULL').pluck().get();
  store.close();
  try {
    if (pid !== undefined) process.kill(pid);
  } catch {
    // It has ended.
  }
}

async function untilShipping(file) {
  for (; ; await sleep(100)) {
    if (!existsSync(file)) continue;
    const store = openForReading(file);
    const target = store.prepare('SELECT target FROM shipper WHERE pid IS NOT NULL').pluck().get();
    store.close();
    if (typeof target === 'string') return;
  }
}

/** From the moment at which a frame passed to the first moment at which the engine is seen to have it. */
async function lag(engine, client, file, seconds, progress) {
  progress(`${seconds} s of ${2 * CALLS_A_SECOND} frames a second`);
  const asked = new Client({ connectionString: engine.url });
  await asked.connect();
  const store = openForReading(file);
  const select = store.prepare('SELECT seq, at FROM frame WHERE seq > ? ORDER BY seq');
  const lastSeq = () => Number(store.prepare('SELECT max(seq) FROM frame').pluck().get());
  const cursor = async () => {
    const { rows } = await asked.query("SELECT cursor FROM tapedeck.session WHERE name = 'shipped'");
    return Number(rows[0]?.cursor ?? 0);
  };
  // What the rounds before have left.
  while ((await cursor()) < lastSeq()) await sleep(ASK_MS);
  const first = lastSeq();
  const seen = [];
  let isOver = false;
  const watching = (async () => {
    while (!isOver || (seen.at(-1)?.cursor ?? 0) < lastSeq()) {
      seen.push({ cursor: await cursor(), at: (performance.timeOrigin + performance.now()) * 1000 });
      await sleep(ASK_MS);
    }
  })();
  const until = performance.now() + seconds * 1000;
  for (let at = performance.now(); at < until; at += BUNCH_MS) {
    await sleep(Math.max(0, at - performance.now()));
    await callEcho(client, (CALLS_A_SECOND * BUNCH_MS) / 1000, IN_FLIGHT);
  }
  // The last frames pass the relay before they are stored.
  await sleep(1000);
  isOver = true;
  await watching;
  await asked.end();
  const frames = select.all(first);
  store.close();
  let place = 0;
  const lags = frames.map(({ seq, at }) => {
    while (seen[place].cursor < seq) place += 1;
    return (seen[place].at - at) / 1e6;
  });
  const rate = format(frames.length / seconds);
  return [
    figureRow(`a frame’s way to the engine at ${rate} frames/s, p50`, percentile(lags, 0.5), { unit: 's' }),
    figureRow('the same, p99', percentile(lags, 0.99), { atMost: 2, unit: 's' }),
  ];
}

/** Frames a second from the first call until the engine has sealed all of them; the start of the processes is left out. */
export async function manyRecorders(engine, folder, { recorders, calls, progress }) {
  progress(`${recorders} recorders at once`);
  const files = Array.from({ length: recorders }, (_, i) => join(folder, `recorder-${i}.db`));
  const clients = await Promise.all(
    files.map((file) => startClient(recorder(file, '--ship', engine.url, '--label', 'bench=many'))),
  );
  const began = performance.now();
  await Promise.all(clients.map((client) => callEcho(client, calls, IN_FLIGHT)));
  await Promise.all(clients.map((client) => client.close()));
  const recorded = (performance.now() - began) / 1000;
  const query = `SELECT count(*), coalesce(sum(cursor), 0) FROM tapedeck.session
    WHERE labels @> '{"bench": "many"}' AND sealed_at IS NOT NULL`;
  for (;;) {
    const [sealed, frames] = engine.sql(query).split('|').map(Number);
    if (sealed === recorders) {
      const rate = frames / ((performance.now() - began) / 1000);
      for (const file of files) endShipper(file);
      return {
        what: `frames a second of ${recorders} recorders at once, each with its shipper, all sealed`,
        tapedeck: format(rate),
        against: `${format(frames / recorded)} were recorded`,
        ratio: '',
        wanted: '≥ 8,000',
        met: rate >= 8000 ? 'yes' : 'NO',
      };
    }
    if (performance.now() - began > RECORDERS_DEADLINE_MS)
      throw new Error(`only ${sealed} of ${recorders} sessions are sealed`);
    await sleep(50);
  }
}
