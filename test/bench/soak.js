// Many sessions through one proxy for an hour, or for `SOAK_MINUTES`: what it takes and how long calls take must not grow with the time.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { percentile, printTable } from './figures.js';

const MINUTES = Number(process.env.SOAK_MINUTES ?? 60);

/** How many sessions are open at once; each makes its calls and ends, and another one follows. */
const SESSIONS = 64;

const CALLS_A_SESSION = 25;

/** Between two calls of a session, on average: together some 300 calls a second. */
const PAUSE_MS = 200;

const SIZES = [100, 400, 1600, 6400];

const LIMIT_MB = 200;

/** Lines of the table. */
const WINDOWS = 12;

/** Has each thread write down its heap again and again; the least of a while is what it really holds. */
const SAY_HEAP = (folder) => `
  import { appendFileSync } from 'node:fs';
  import { getHeapStatistics } from 'node:v8';
  import { isMainThread } from 'node:worker_threads';
  const file = ${JSON.stringify(folder)} + (isMainThread ? '/heap-main' : '/heap-writer');
  setInterval(() => appendFileSync(file, getHeapStatistics().used_heap_size + '\\n'), 250).unref();`;

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');

const MB = 1024 * 1024;

/** Prints its table, and returns what is wanted of it as rows of the table of the bench. */
export async function benchSoak(folder, { progress }) {
  if (process.platform !== 'linux') return [];
  const upstream = spawn(process.execPath, [join(import.meta.dirname, 'soak-upstream.js')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [port] = await once(upstream.stdout, 'data');
  const db = join(folder, 'soak.db');
  const limit = `${LIMIT_MB}mb`;
  const recorder = spawn(
    process.execPath,
    [
      ...['--import', `data:text/javascript,${encodeURIComponent(SAY_HEAP(folder))}`],
      ...[BIN, 'record', `http://127.0.0.1:${Number(port)}/mcp`, '--listen', '127.0.0.1:0', '--db', db],
      ...['--max-size', limit, '--admin', '127.0.0.1:0', '--no-config'],
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const urls = await urlsOf(recorder);
  const load = startLoad(urls.proxy);
  try {
    progress(`${SESSIONS} sessions at once for ${MINUTES} minutes`);
    const windows = [];
    for (let n = 1; n <= WINDOWS; n += 1) {
      await wait((MINUTES * 60_000) / WINDOWS);
      windows.push(await look(n, { pid: recorder.pid, db, folder, admin: urls.admin, load }));
      progress(`${n} of ${WINDOWS}: ${JSON.stringify(windows.at(-1))}`);
    }
    console.log(`soak, ${MINUTES} minutes, ${SESSIONS} sessions at once, limit ${LIMIT_MB} MB`);
    printTable(windows);
    console.log();
    return verdicts(windows);
  } finally {
    await load.stop();
    recorder.kill('SIGTERM');
    upstream.kill();
    await once(recorder, 'exit');
  }
}

async function urlsOf(recorder) {
  let said = '';
  recorder.stderr.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  for (;;) {
    const [, proxy] = /listening on (\S+) for/.exec(said) ?? [];
    const [, admin] = /health and metrics are at (\S+)/.exec(said) ?? [];
    if (proxy !== undefined && admin !== undefined) return { proxy: new URL(proxy), admin: new URL(admin) };
    if (recorder.exitCode !== null) throw new Error(said);
    await wait(20);
  }
}

/** Clients that come and go. */
function startLoad(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: SESSIONS });
  let isOver = false;
  let times = [];
  const count = { sessions: 0, calls: 0, failed: 0 };

  function send(method, headers, message) {
    return new Promise((resolve, reject) => {
      const sent = request(url, {
        method,
        agent,
        headers: { 'Content-Type': 'application/json', ...headers },
      });
      sent.on('error', reject).on('response', (response) => {
        response.on('data', () => {}).on('error', reject);
        response.on('end', () => resolve(response.headers));
      });
      sent.end(message === undefined ? undefined : JSON.stringify({ jsonrpc: '2.0', ...message }));
    });
  }

  async function call(id, headers) {
    const size = SIZES[id % SIZES.length];
    const began = performance.now();
    await send('POST', headers, { id, method: 'tools/call', params: { name: 'soak', arguments: { size } } });
    times.push(performance.now() - began);
    count.calls += 1;
  }

  async function session() {
    const params = {
      protocolVersion: '2025-11-25',
      capabilities: {},
      clientInfo: { name: 'soak', version: '1' },
    };
    const answer = await send('POST', {}, { id: 0, method: 'initialize', params });
    const headers = { 'Mcp-Session-Id': answer['mcp-session-id'] };
    for (let id = 1; id <= CALLS_A_SESSION && !isOver; id += 1) {
      await wait(PAUSE_MS * 2 * Math.random());
      await call(id, headers);
    }
    await send('DELETE', headers);
    count.sessions += 1;
  }

  const clients = Array.from({ length: SESSIONS }, async () => {
    while (!isOver) {
      await session().catch(() => {
        count.failed += 1;
      });
    }
  });
  return {
    count,
    /** The times of calls since the last question, in milliseconds. */
    takeTimes() {
      const taken = times;
      times = [];
      return taken;
    },
    async stop() {
      isOver = true;
      await Promise.all(clients);
      agent.destroy();
    },
  };
}

async function look(n, { pid, db, folder, admin, load }) {
  const times = load.takeTimes();
  const metrics = await (await fetch(new URL('/metrics', admin))).text();
  const metric = (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(metrics)?.[1]);
  const [, resident] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return {
    minute: ((n * MINUTES) / WINDOWS).toFixed(1),
    sessions: load.count.sessions,
    calls: load.count.calls,
    failed: load.count.failed,
    'memory MB': Math.round(Number(resident) / 1024),
    'main heap MB': takeHeap(join(folder, 'heap-main')),
    'writer heap MB': takeHeap(join(folder, 'heap-writer')),
    handles: readdirSync(`/proc/${pid}/fd`).length,
    'WAL MB': (sizeOf(`${db}-wal`) / MB).toFixed(1),
    'store MB': ((sizeOf(db) + sizeOf(`${db}-wal`)) / MB).toFixed(1),
    'p50 ms': percentile(times, 0.5).toFixed(2),
    'p99 ms': percentile(times, 0.99).toFixed(2),
    lost: metric('tapedeck_frames_lost_total'),
  };
}

/** The least that a thread held since the last question, in MB. */
function takeHeap(file) {
  const told = readFileSync(file, 'utf8').trim().split('\n').map(Number);
  writeFileSync(file, `${told.at(-1)}\n`);
  return (Math.min(...told) / MB).toFixed(1);
}

function sizeOf(file) {
  try {
    return statSync(file).size;
  } catch {
    return 0;
  }
}

/** The last third against the second: what begins is warming up. */
function verdicts(windows) {
  const third = WINDOWS / 3;
  const middle = windows.slice(third, 2 * third);
  const last = windows.slice(2 * third);
  const mean = (rows, column) => rows.reduce((sum, row) => sum + Number(row[column]), 0) / rows.length;
  const flat = (column, atMost) => {
    const [before, after] = [mean(middle, column), mean(last, column)];
    return {
      what: `soak: ${column}`,
      tapedeck: after.toFixed(1),
      against: `${before.toFixed(1)}, the third before`,
      ratio: `${(after / before).toFixed(2)}×`,
      wanted: `≤ ${atMost}×`,
      met: after <= before * atMost ? 'yes' : 'NO',
    };
  };
  const { lost, failed } = windows.at(-1);
  const most = Math.max(...windows.map((row) => Number(row['store MB'])));
  const bound = (what, value, atMost) => ({
    ...{ what: `soak: ${what}`, tapedeck: String(value), against: '', ratio: '' },
    ...{ wanted: `≤ ${atMost}`, met: value <= atMost ? 'yes' : 'NO' },
  });
  return [
    flat('memory MB', 1.1),
    flat('main heap MB', 1.1),
    flat('writer heap MB', 1.1),
    flat('handles', 1.1),
    flat('p99 ms', 1.5),
    bound('most the store took, MB', most, LIMIT_MB * 1.05),
    bound('frames lost', lost, 0),
    bound('sessions that failed', failed, 0),
  ];
}
