// What it costs a recorder to be operated: with the admin port, a log for machines, sampling, a filter for frames without payload,
// each against the same recorder without options, by processor time a call, which other programs do not change. One more
// without options says how far such a ratio is off by itself.
import { join } from 'node:path';
import { callEcho, startClient } from './client.js';
import { format, median, ratioRow } from './figures.js';
import { IN_FLIGHT, removeStore, SERVERS } from './stdio.js';
import { inTurn } from './turns.js';

const TAPEDECK = join(import.meta.dirname, '../../bin/tapedeck.js');

/** Without options first. */
const OPTIONS = {
  plain: [],
  again: [],
  admin: ['--admin', '127.0.0.1:0'],
  log: ['--log', 'json'],
  sample: ['--sample', '100%'],
  meta: ['--meta-for', 'tool=nobody'],
};

/** A round is measured in so many blocks, in which all take turns: so whatever else the machine does is alike for all. */
const BLOCKS = 4;

export async function benchOperate(
  folder,
  { operateRounds: rounds, sequentialCalls, parallelCalls, progress },
) {
  const names = Object.keys(OPTIONS);
  const results = Object.fromEntries(names.map((name) => [name, { one: [], many: [] }]));
  for (let round = 0; round < rounds; round += 1) {
    progress(`operate round ${round + 1} of ${rounds}`);
    const clients = {};
    for (const name of names) clients[name] = await start(folder, name);
    for (let block = 0; block < BLOCKS; block += 1)
      for (const name of inTurn(names, block)) {
        const costOf = (calls, inFlight) => processorOf(clients[name], Math.ceil(calls / BLOCKS), inFlight);
        results[name].one.push(await costOf(sequentialCalls, 1));
        results[name].many.push(await costOf(parallelCalls, IN_FLIGHT));
      }
    for (const name of names) await clients[name].close();
    for (const name of names) removeStore(storeOf(folder, name));
  }
  const absolute = names.map((name) => ({
    variant: OPTIONS[name].join(' ') || 'without options',
    'processor µs a call': format(median(results[name].one)),
    [`processor µs a call, ${IN_FLIGHT}`]: format(median(results[name].many)),
  }));
  return { absolute, rows: results.plain.one[0] > 0 ? rowsOf(results) : [] };
}

function storeOf(folder, name) {
  return join(folder, `operate-${name}.db`);
}

async function start(folder, name) {
  const options = ['--db', storeOf(folder, name), ...OPTIONS[name]];
  const client = await startClient([process.execPath, TAPEDECK, 'record', ...options, '--', ...SERVERS.echo]);
  await callEcho(client, 20_000, IN_FLIGHT);
  await whenQuiet(client);
  return client;
}

/** In microseconds of all threads of the recorder, with what its writer does once they are through; 0 where the platform does not tell. */
async function processorOf(client, calls, inFlight) {
  const before = client.processor();
  await callEcho(client, calls, inFlight);
  return ((await whenQuiet(client)) - before) / calls;
}

/** A recorder that takes less than this in a while has stored and indexed what it was given. */
const QUIET = { us: 1500, ms: 100 };

async function whenQuiet(client) {
  for (let before = client.processor(); ; ) {
    await new Promise((resolve) => setTimeout(resolve, QUIET.ms));
    const now = client.processor();
    if (now - before < QUIET.us) return now;
    before = now;
  }
}

/** Where frames are asked for their calls, their messages are read once more, and each is tied to its request. */
const MOST = { admin: 1.1, log: 1.1, sample: 1.1, meta: 1.5 };

function rowsOf(results) {
  const row = (name, what, figure) => {
    const bound = { ...(MOST[name] && { atMost: MOST[name] }), yardstick: 'no options' };
    const options = OPTIONS[name].join(' ') || 'without options again';
    return ratioRow(
      `${options}: processor time a call, ${what}`,
      results[name][figure],
      results.plain[figure],
      bound,
      'µs',
    );
  };
  return Object.keys(OPTIONS)
    .slice(1)
    .flatMap((name) => [row(name, 'one at a time', 'one'), row(name, `${IN_FLIGHT} in flight`, 'many')]);
}
