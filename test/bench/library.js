// The rows of the library: programs of the official SDK that record themselves, against the same ones that do not, one call at a
// time. Both run at once and are called in turn, in blocks of a fraction of a second, so that whatever else the machine does comes
// to both. Of the processes only the one with the door counts for the processor time: that of the thread that runs it, without the
// writer's.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
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

/** Of calls, alternately of the one and of the other program, a round and door. */
const BLOCKS = 10;

/**
 * So many come first: with fewer, what is measured is how fast V8 compiles, and that is slower where there is more to compile. The
 * SDK's server makes new objects for every request, and takes longest to be as fast as it gets.
 */
const WARM_CALLS = { stdio: 2000, others: 500 };

/** A call on stdio takes a tenth of one over HTTP. */
const TIMES = { stdio: 5, others: 1 };

/** Of starts of Node. */
const IMPORTS = 11;

const VARIANTS = ['plain', 'recorded'];

/** `onRows` is given a function that makes the rows of what has been measured so far. */
export async function benchLibrary(folder, { libraryRounds: rounds, libraryCalls: calls, progress, onRows }) {
  const db = join(folder, 'library.db');
  const none = () => ({ p50: { plain: [], recorded: [] }, processor: { plain: [], recorded: [] } });
  const results = Object.fromEntries(Object.keys(DOORS).map((door) => [door, none()]));
  const rows = () => [...doorRows(results), ...(existsSync(db) ? [lossRow(db)] : [])];
  onRows(rows);
  const ofImport = await importRow();
  onRows(() => [...rows(), ofImport]);
  for (let round = 0; round < rounds; round += 1)
    for (const door of Object.keys(DOORS)) {
      progress(`library round ${round + 1} of ${rounds}, ${door}`);
      const count = calls * (TIMES[door] ?? TIMES.others);
      const figures = await measureInTurn(door, db, count, round % 2 === 1);
      for (const name of VARIANTS) {
        results[door].p50[name].push(figures[name].p50);
        results[door].processor[name].push(figures[name].processor);
      }
    }
  return [...rows(), ofImport];
}

function doorRows(results) {
  const bound = { atMost: 1.15, yardstick: 'not recording' };
  return Object.entries(DOORS).flatMap(([door, what]) => {
    const { p50, processor } = results[door];
    if (processor.recorded.length === 0) return [];
    const ofTimes = ratioRow(`${what}, p50 of a call`, p50.recorded, p50.plain, bound, 'µs');
    if (processor.plain.includes(null)) return [ofTimes];
    const own = { ...bound, atMost: undefined };
    return [ofTimes, ratioRow('its own thread for a call', processor.recorded, processor.plain, own, 'µs')];
  });
}

/** Microseconds. */
async function measureInTurn(door, db, calls, isRecordedFirst) {
  const programs = {
    plain: await START[door](door, []),
    recorded: await START[door](door, [db]),
  };
  const figures = {};
  for (const name of VARIANTS) {
    await programs[name].call(WARM_CALLS[door] ?? WARM_CALLS.others);
    figures[name] = { times: [], processor: 0 };
  }
  for (let block = 0; block < BLOCKS; block += 1) {
    const isTurned = (block % 2 === 1) !== isRecordedFirst;
    for (const name of isTurned ? VARIANTS.toReversed() : VARIANTS) {
      const { call, pid } = programs[name];
      const before = ownTime(pid);
      figures[name].times.push(...(await call(calls / BLOCKS)));
      figures[name].processor = before === null ? null : figures[name].processor + ownTime(pid) - before;
    }
  }
  for (const name of VARIANTS) await programs[name].stop();
  return Object.fromEntries(
    Object.entries(figures).map(([name, { times, processor }]) => [
      name,
      { p50: median(times) * 1000, processor: processor && processor / calls },
    ]),
  );
}

/** Each starts what a door is measured at: `call` makes so many calls and gives their times; `pid` is the program with the door. */
const START = {
  async stdio(door, store) {
    const client = await startClient([process.execPath, HOST, door, '-', ...store]);
    return { pid: client.pid, call: (count) => callEcho(client, count, 1), stop: client.close };
  },
  async http(_, store) {
    const server = await startServer(store);
    const client = startHost(['fetch', server.url]);
    return {
      pid: server.pid,
      call: client.call,
      async stop() {
        await client.stop();
        await server.stop();
      },
    };
  },
  fetch: startRecordingClient,
  transport: startRecordingClient,
};

async function startRecordingClient(door, store) {
  const server = await startServer([]);
  const client = startHost([door, server.url, ...store]);
  return {
    pid: client.pid,
    call: client.call,
    async stop() {
      await client.stop();
      await server.stop();
    },
  };
}

async function startServer(store) {
  const { pid, nextLine, stop } = startHost(['http', '-', ...store]);
  return { pid, url: await nextLine(), stop };
}

function startHost(args) {
  const child = spawn(process.execPath, [HOST, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const nextLine = async () => (await lines.next()).value;
  return {
    pid: child.pid,
    nextLine,
    async call(count) {
      child.stdin.write(`${count}\n`);
      return JSON.parse(await nextLine());
    },
    stop() {
      child.stdin.end();
      return once(child, 'exit');
    },
  };
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
