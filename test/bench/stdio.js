// The stdio rows: direct, a bare relay, the plainest recorder, tapedeck's limit, tapedeck with redaction and without; in turn, several
// rounds, in one run.
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { callEcho, startClient } from './client.js';
import { classify, format, median, percentile, ratioRow } from './figures.js';
import { inTurn } from './turns.js';

const here = import.meta.dirname;
/** Ours does next to nothing, so every cost of a relay shows; the official one is what people run. */
export const SERVERS = {
  echo: [process.execPath, join(here, '../fixtures/echo.js')],
  everything: [
    process.execPath,
    join(here, '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js'),
    'stdio',
  ],
};
export const IN_FLIGHT = 64;

/**
 * Another version of tapedeck that takes part in turn, so that the table shows what has changed since:
 *   BENCH_BEFORE=../older npm run bench
 * where that folder is a clone of it, built.
 */
export const before = process.env.BENCH_BEFORE
  ? [process.execPath, join(process.env.BENCH_BEFORE, 'bin/tapedeck.js')]
  : undefined;

export function variants(folder, server = SERVERS.echo) {
  return {
    direct: server,
    relay: [process.execPath, join(here, 'relay.js'), ...server],
    least: [process.execPath, join(here, 'least-relay.js'), join(folder, 'least.db'), ...server],
    limit: [process.execPath, join(here, 'limit-relay.js'), join(folder, 'limit.db'), ...server],
    ...(before && { before: [...before, 'record', '--db', join(folder, 'before.db'), '--', ...server] }),
    tapedeck: [...record(folder), '--', ...server],
    unredacted: [...record(folder), '--no-redact', '--', ...server],
  };
}

function record(folder) {
  return [process.execPath, join(here, '../../bin/tapedeck.js'), 'record', '--db', join(folder, 'bench.db')];
}

export async function benchStdio(
  folder,
  server,
  { rounds, sequentialCalls, parallelCalls, without, progress },
) {
  const commands = Object.entries(variants(folder, server)).filter(([name]) => !without.includes(name));
  const results = Object.fromEntries(
    commands.map(([name]) => [
      name,
      { start: [], p50: [], p99: [], p999: [], classes: [], rate: [], one: [], many: [] },
    ]),
  );
  for (let round = 0; round < rounds; round += 1) {
    progress(`stdio round ${round + 1} of ${rounds}`);
    for (const [name, command] of inTurn(commands, round)) {
      for (const file of ['least.db', 'limit.db']) removeStore(join(folder, file));
      await measure(command, results[name], sequentialCalls, parallelCalls);
    }
  }
  return results;
}

async function measure(command, result, sequentialCalls, parallelCalls) {
  const client = await startClient(command);
  result.start.push(client.startMs);
  await callEcho(client, 2000, 1);
  const beforeOne = client.processor();
  const times = await callEcho(client, sequentialCalls, 1);
  result.one.push((client.processor() - beforeOne) / sequentialCalls);
  for (const [figure, p] of [
    ['p50', 0.5],
    ['p99', 0.99],
    ['p999', 0.999],
  ])
    result[figure].push(percentile(times, p) * 1000);
  result.classes.push(classify(times.map((ms) => ms * 1000)));
  await callEcho(client, 20_000, IN_FLIGHT);
  const beforeMany = client.processor();
  const began = performance.now();
  await callEcho(client, parallelCalls, IN_FLIGHT);
  result.rate.push((parallelCalls / (performance.now() - began)) * 1000);
  result.many.push((client.processor() - beforeMany) / parallelCalls);
  await client.close();
}

export function stdioRows(name, { relay, least, limit, before, tapedeck, unredacted }) {
  const row = (what, figure, bound, unit) =>
    ratioRow(
      `${name}: ${what}`,
      tapedeck[figure],
      relay[figure],
      {
        ...bound,
        yardstick: 'bare relay',
        others: { least: least[figure], limit: limit?.[figure], before: before?.[figure] },
      },
      unit,
    );
  const processor = (what, figure) => {
    const ours = tapedeck[figure];
    // A platform that does not tell has no such row.
    return ours[0] > 0 ? [row(`processor time a call, ${what}`, figure, {}, 'µs')] : [];
  };
  const many = `${IN_FLIGHT} calls in flight`;
  const ofRedaction = `${name}: ${many}, with redaction against without`;
  const bound = { atLeast: 0.9, yardstick: 'no redaction' };
  return [
    row('one call at a time, p50', 'p50', { atMost: 1.25 }, 'µs'),
    row('one call at a time, p99', 'p99', { atMost: 1.5 }, 'µs'),
    row('one call at a time, p99.9', 'p999', {}, 'µs'),
    ...processor('one at a time', 'one'),
    row(many, 'rate', { atLeast: 0.85 }, 'calls/s'),
    ...processor(`${IN_FLIGHT} in flight`, 'many'),
    ...(unredacted === undefined
      ? []
      : [ratioRow(ofRedaction, tapedeck.rate, unredacted.rate, bound, 'calls/s')]),
    row('spawn to first answer', 'start', { atMost: 1.35 }, 'ms'),
  ];
}

export function absoluteRows(results) {
  return Object.entries(results).map(([name, { start, p50, p99, p999, rate, one, many }]) => ({
    variant: name,
    'p50 µs': format(median(p50)),
    'p99 µs': format(median(p99)),
    'p99.9 µs': format(median(p999)),
    'processor µs a call': format(median(one)),
    'calls/s, 64 in flight': format(median(rate)),
    'processor µs a call, 64': format(median(many)),
    'first answer ms': format(median(start)),
  }));
}

export function removeStore(file) {
  for (const one of [file, `${file}-wal`, `${file}-shm`]) rmSync(one, { force: true });
}

/** Frames that tapedeck forwarded but did not store, over all its sessions: a fast recorder that drops proves nothing. */
export function lossOf(folder) {
  const bin = join(here, '../../bin/tapedeck.js');
  const { stdout } = spawnSync(process.execPath, [
    bin,
    'list',
    '--json',
    '--limit',
    '0',
    '--db',
    join(folder, 'bench.db'),
  ]);
  const sessions = String(stdout)
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line));
  return sessions.reduce((sum, { dropped }) => sum + dropped, 0);
}
