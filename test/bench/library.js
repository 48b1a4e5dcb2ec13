// The rows of the library: programs of the official SDK that record themselves, against the same ones that do not, one call at a
// time, in turn. Of the two processes only the one with the door counts for the processor time: that of the thread that runs it,
// without the writer's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { callEcho, startClient } from './client.js';
import { figureRow, median, ratioRow } from './figures.js';
import { ownTime } from './processor.js';

const HOST = join(import.meta.dirname, 'library-host.js');

const DOORS = {
  stdio: 'a server on stdio, recordStdio',
  http: 'a server over HTTP, recordedHandler',
  fetch: 'a client over HTTP, recordedFetch',
  transport: 'a client over HTTP, recordedTransport',
};

/** Of starts of Node. */
const IMPORTS = 11;

export async function benchLibrary(folder, { rounds, libraryCalls: calls, progress }) {
  const db = join(folder, 'library.db');
  const none = () => ({ p50: { plain: [], recorded: [] }, processor: { plain: [], recorded: [] } });
  const results = Object.fromEntries(Object.keys(DOORS).map((door) => [door, none()]));
  for (let round = 0; round < rounds; round += 1) {
    progress(`library round ${round + 1} of ${rounds}`);
    for (const door of Object.keys(DOORS)) {
      const both = [
        ['plain', []],
        ['recorded', [db]],
      ];
      for (const [name, store] of round % 2 === 0 ? both : both.toReversed()) {
        const { times, processor } = await MEASURE[door](door, calls, store);
        results[door].p50[name].push(median(times) * 1000);
        results[door].processor[name].push(processor);
      }
    }
  }
  const bound = { atMost: 1.15, yardstick: 'not recording' };
  const rows = Object.entries(DOORS).flatMap(([door, what]) => {
    const { p50, processor } = results[door];
    const ofTimes = ratioRow(`${what}, p50 of a call`, p50.recorded, p50.plain, bound, 'µs');
    if (processor.plain.includes(null)) return [ofTimes];
    const own = ratioRow(
      'its own thread for a call',
      processor.recorded,
      processor.plain,
      { ...bound, atMost: undefined },
      'µs',
    );
    return [ofTimes, own];
  });
  return [...rows, await importRow(), lossRow(db)];
}

const MEASURE = {
  async stdio(door, calls, store) {
    const client = await startClient([process.execPath, HOST, door, '-', '0', ...store]);
    await callEcho(client, calls / 5, 1);
    const before = ownTime(client.pid);
    const times = await callEcho(client, calls, 1);
    const processor = before === null ? null : (ownTime(client.pid) - before) / calls;
    await client.close();
    return { times, processor };
  },
  async http(door, calls, store) {
    const server = await startServer(door, store);
    await askBy('fetch', server.url, calls / 5, []);
    const before = ownTime(server.pid);
    const { times } = await askBy('fetch', server.url, calls, []);
    const processor = before === null ? null : (ownTime(server.pid) - before) / calls;
    await server.stop();
    return { times, processor };
  },
  fetch: measureClient,
  transport: measureClient,
};

async function measureClient(door, calls, store) {
  const server = await startServer('http', []);
  const measured = await askBy(door, server.url, calls, store);
  await server.stop();
  return measured;
}

const IMPORT = `
  const began = performance.now();
  await import('mcp-tapedeck/record');
  process.stdout.write(String(performance.now() - began));`;

async function importRow() {
  const times = [];
  for (let i = 0; i < IMPORTS; i += 1) {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', IMPORT], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    times.push(Number(await text(child.stdout)));
  }
  return figureRow('import of mcp-tapedeck/record, median', median(times), { atMost: 30 });
}

async function startServer(door, store) {
  const child = spawn(process.execPath, [HOST, door, '-', '0', ...store], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const [line] = await once(child.stdout, 'data');
  return {
    url: String(line).trim(),
    pid: child.pid,
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
