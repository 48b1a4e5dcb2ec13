// The rows of the library: programs of the official SDK that record themselves, against the same ones that do not, one call at a
// time, in turn.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { callEcho, startClient } from './client.js';
import { median, ratioRow } from './figures.js';

const HOST = join(import.meta.dirname, 'library-host.js');

const DOORS = {
  stdio: 'a server on stdio, recordStdio',
  http: 'a server over HTTP, recordedHandler',
  fetch: 'a client over HTTP, recordedFetch',
  transport: 'a client over HTTP, recordedTransport',
};

export async function benchLibrary(folder, { rounds, libraryCalls: calls, progress }) {
  const db = join(folder, 'library.db');
  const results = Object.fromEntries(Object.keys(DOORS).map((door) => [door, { plain: [], recorded: [] }]));
  for (let round = 0; round < rounds; round += 1) {
    progress(`library round ${round + 1} of ${rounds}`);
    for (const door of Object.keys(DOORS)) {
      const both = [
        ['plain', []],
        ['recorded', [db]],
      ];
      for (const [name, store] of round % 2 === 0 ? both : both.toReversed())
        results[door][name].push(median(await MEASURE[door](door, calls, store)) * 1000);
    }
  }
  const bound = { atMost: 1.15, yardstick: 'not recording' };
  const rows = Object.entries(DOORS).map(([door, what]) =>
    ratioRow(`${what}, p50 of a call`, results[door].recorded, results[door].plain, bound, 'µs'),
  );
  return [...rows, lossRow(db)];
}

const MEASURE = {
  async stdio(door, calls, store) {
    const client = await startClient([process.execPath, HOST, door, '-', '0', ...store]);
    await callEcho(client, calls / 5, 1);
    const times = await callEcho(client, calls, 1);
    await client.close();
    return times;
  },
  async http(door, calls, store) {
    const server = await startServer(door, store);
    const times = await askBy('fetch', server.url, calls, []);
    await server.stop();
    return times;
  },
  fetch: measureClient,
  transport: measureClient,
};

async function measureClient(door, calls, store) {
  const server = await startServer('http', []);
  const times = await askBy(door, server.url, calls, store);
  await server.stop();
  return times;
}

async function startServer(door, store) {
  const child = spawn(process.execPath, [HOST, door, '-', '0', ...store], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  return {
    url: String(line).trim(),
    stop() {
      child.stdin.end();
      return once(child, 'exit');
    },
  };
}

async function askBy(door, url, calls, store) {
  const child = spawn(process.execPath, [HOST, door, url, String(calls), ...store], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(await text(child.stdout));
}

function lossRow(file) {
  const db = new Database(file, { readonly: true });
  const { sessions, frames, lost } = db
    .prepare('SELECT count(*) AS sessions, sum(frames) AS frames, sum(dropped) AS lost FROM session')
    .get();
  db.close();
  return {
    what: 'frames lost by the library',
    tapedeck: `${lost}`,
    against: `of ${frames} in ${sessions} sessions`,
    ratio: '',
    wanted: 'none',
    met: lost === 0 ? 'yes' : 'NO',
  };
}
