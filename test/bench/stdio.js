// The stdio rows: direct, a bare relay, a relay with tee, tapedeck with redaction and without; in turn, several rounds, in one
// run.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { callEcho, startClient } from './client.js';
import { format, median, percentile, ratioRow } from './figures.js';

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

export function variants(folder, server = SERVERS.echo) {
  return {
    direct: server,
    relay: [process.execPath, join(here, 'relay.js'), ...server],
    tee: [process.execPath, join(here, 'tee.js'), join(folder, 'tee.log'), ...server],
    tapedeck: [...record(folder), '--', ...server],
    unredacted: [...record(folder), '--no-redact', '--', ...server],
  };
}

function record(folder) {
  return [process.execPath, join(here, '../../bin/tapedeck.js'), 'record', '--db', join(folder, 'bench.db')];
}

export async function benchStdio(folder, server, { rounds, sequentialCalls, parallelCalls, progress }) {
  const commands = Object.entries(variants(folder, server));
  const results = Object.fromEntries(
    commands.map(([name]) => [name, { start: [], p50: [], p99: [], rate: [] }]),
  );
  for (let round = 0; round < rounds; round += 1) {
    progress(`stdio round ${round + 1} of ${rounds}`);
    // Another order each round, so that no variant always follows the same one.
    const order = commands.map((_, i) => commands[(i + round) % commands.length]);
    for (const [name, command] of order)
      await measure(command, results[name], sequentialCalls, parallelCalls);
  }
  return results;
}

async function measure(command, result, sequentialCalls, parallelCalls) {
  const client = await startClient(command);
  result.start.push(client.startMs);
  await callEcho(client, 2000, 1);
  const times = await callEcho(client, sequentialCalls, 1);
  result.p50.push(percentile(times, 0.5) * 1000);
  result.p99.push(percentile(times, 0.99) * 1000);
  await callEcho(client, 20_000, IN_FLIGHT);
  const began = performance.now();
  await callEcho(client, parallelCalls, IN_FLIGHT);
  result.rate.push((parallelCalls / (performance.now() - began)) * 1000);
  await client.close();
}

export function stdioRows(name, { relay, tapedeck, unredacted }) {
  return [
    ratioRow(`${name}: one call at a time, p50`, tapedeck.p50, relay.p50, { atMost: 1.25 }, 'µs'),
    ratioRow(`${name}: one call at a time, p99`, tapedeck.p99, relay.p99, { atMost: 1.5 }, 'µs'),
    ratioRow(
      `${name}: ${IN_FLIGHT} calls in flight`,
      tapedeck.rate,
      relay.rate,
      { atLeast: 0.85 },
      'calls/s',
    ),
    ratioRow(
      `${name}: ${IN_FLIGHT} calls in flight, with redaction against without`,
      tapedeck.rate,
      unredacted.rate,
      { atLeast: 0.9 },
      'calls/s',
    ),
    ratioRow(`${name}: spawn to first answer`, tapedeck.start, relay.start, { atMost: 1.35 }, 'ms'),
  ];
}

export function absoluteRows(results) {
  return Object.entries(results).map(([name, { start, p50, p99, rate }]) => ({
    variant: name,
    'p50 µs': format(median(p50)),
    'p99 µs': format(median(p99)),
    'calls/s, 64 in flight': format(median(rate)),
    'first answer ms': format(median(start)),
  }));
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
