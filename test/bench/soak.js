// Many sessions through one proxy for an hour, or for `SOAK_MINUTES`, at `SOAK_RATE` calls a second: what it takes and how long calls
// take must not grow with the time. A signal ends it early, and prints what it has by then.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { percentile, printTable } from './figures.js';

const MINUTES = Number(process.env.SOAK_MINUTES ?? 60);

/** Calls a second of all sessions together, beside which each session has its beginning and its end. */
const RATE = Number(process.env.SOAK_RATE ?? 300);

/** How many sessions are open at once; each makes its calls and ends, and another one follows. */
const SESSIONS = 64;

const CALLS_A_SESSION = 25;

/** From one call of a session to the next, on average. */
const PAUSE_MS = (SESSIONS * 1000) / RATE;

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

/** Of how many clock ticks a second `/proc` tells, on every Linux that Node runs on. */
const TICKS_A_SECOND = 100;

/** Prints its table, and returns what is wanted of it as rows of the table of the bench. */
export async function benchSoak(folder, { progress, onRows }) {
  if (process.platform !== 'linux') return [];
  for (const [name, value] of Object.entries({ SOAK_MINUTES: MINUTES, SOAK_RATE: RATE }))
    if (!(value > 0)) throw new Error(`Expected a number above 0 in ${name}, got ${process.env[name]}.`);
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
  const isGone = once(recorder, 'exit');
  const urls = await urlsOf(recorder);
  const load = startLoad(urls.proxy);
  const gauges = startGauges({ pid: recorder.pid, server: upstream.pid, db, admin: urls.admin });
  const windows = [];
  const look = (minutes) => windows.push(windowOf(minutes, { folder, load, gauges: gauges.take() }));
  const began = performance.now();
  onRows(() => {
    for (const child of [recorder, upstream]) child.kill('SIGKILL');
    const minutes = (performance.now() - began) / 60_000;
    // The window under way counts where it is long enough to say something.
    if (minutes - (windows.at(-1)?.minute ?? 0) > MINUTES / WINDOWS / 2) look(minutes);
    return report(windows);
  });
  try {
    progress(`${SESSIONS} sessions at once, ${RATE} calls a second, for ${MINUTES} minutes`);
    for (let n = 1; n <= WINDOWS; n += 1) {
      const end = began + (n * MINUTES * 60_000) / WINDOWS;
      await Promise.race([wait(end - performance.now()), isGone]);
      if (recorder.exitCode !== null || recorder.signalCode !== null)
        throw new Error(`The recorder ended after ${windows.at(-1)?.minute ?? 0} minutes.`);
      look((n * MINUTES) / WINDOWS);
      progress(`${n} of ${WINDOWS}: ${JSON.stringify(windows.at(-1))}`);
    }
    return report(windows);
  } finally {
    gauges.stop();
    await load.stop();
    recorder.kill('SIGTERM');
    await isGone;
    upstream.kill();
  }
}

function report(windows) {
  if (windows.length === 0) return [];
  console.log(
    `soak, ${windows.at(-1).minute} minutes, ${SESSIONS} sessions at once, ${RATE} calls a second, limit ${LIMIT_MB} MB`,
  );
  printTable(windows);
  console.log();
  return verdicts(windows);
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

  /** Its time runs from when it was due, so that a standstill counts for every call that it held up. */
  async function call(id, headers, due) {
    const size = SIZES[id % SIZES.length];
    await send('POST', headers, { id, method: 'tools/call', params: { name: 'soak', arguments: { size } } });
    times.push(performance.now() - due);
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
    let due = performance.now();
    for (let id = 1; id <= CALLS_A_SESSION && !isOver; id += 1) {
      due += PAUSE_MS * 2 * Math.random();
      const early = due - performance.now();
      if (early >= 1) await wait(early);
      await call(id, headers, Math.min(due, performance.now()));
    }
    await send('DELETE', headers);
    count.sessions += 1;
  }

  const clients = Array.from({ length: SESSIONS }, async () => {
    while (!isOver) {
      await session().catch(() => {
        count.failed += 1;
        // A server that is not there answers at once.
        return wait(PAUSE_MS);
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

/** Asks once a second what the recorder takes, so that no peak between two lines of the table is missed. */
function startGauges({ pid, server, db, admin }) {
  let told = [];
  let lost = 0;
  const [ownTime, serverTime] = [sinceLast(pid), sinceLast(server)];
  const timer = setInterval(() => {
    try {
      const [, resident] = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      const wal = sizeOf(`${db}-wal`);
      const handles = readdirSync(`/proc/${pid}/fd`).length;
      told.push({ resident: Number(resident) * 1024, handles, wal, store: sizeOf(db) + wal });
    } catch {
      // It is gone: the calls that fail say so.
    }
    askLost().catch(() => {});
  }, 1000);

  async function askLost() {
    const metrics = await (await fetch(new URL('/metrics', admin))).text();
    lost = Number(/^tapedeck_frames_lost_total (\S+)$/m.exec(metrics)?.[1]);
  }

  return {
    /** Of the time since the last question: sizes in bytes, processor time in milliseconds. */
    take() {
      const most = (gauge) => Math.max(...told.map((each) => each[gauge]));
      const taken = {
        ...{
          resident: most('resident'),
          handles: most('handles'),
          wal: most('wal'),
          store: most('store'),
          lost,
        },
        processor: ownTime(),
        serverProcessor: serverTime(),
      };
      told = told.slice(-1);
      return taken;
    },
    stop: () => clearInterval(timer),
  };
}

/** Tells the processor time of a process since it was last asked, in milliseconds. */
function sinceLast(pid) {
  let before = ticksOf(pid);
  return () => {
    const ticks = ticksOf(pid);
    const ms = ((ticks - before) / TICKS_A_SECOND) * 1000;
    before = ticks;
    return ms;
  };
}

/** The processor time of a process until now, in clock ticks. */
function ticksOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return Number(user) + Number(system);
}

/** A line of the table: sizes and handles are the most of the time since the line before. */
function windowOf(minutes, { folder, load, gauges }) {
  const times = load.takeTimes();
  return {
    minute: minutes.toFixed(1),
    sessions: load.count.sessions,
    calls: load.count.calls,
    failed: load.count.failed,
    'memory MB': Math.round(gauges.resident / MB),
    'main heap MB': takeHeap(join(folder, 'heap-main')),
    'writer heap MB': takeHeap(join(folder, 'heap-writer')),
    handles: gauges.handles,
    'WAL MB': (gauges.wal / MB).toFixed(1),
    'store MB': (gauges.store / MB).toFixed(1),
    'CPU ms a call': (gauges.processor / times.length).toFixed(2),
    // It does the same all the time: where it takes more, the machine has become slower.
    'server CPU ms': (gauges.serverProcessor / times.length).toFixed(3),
    'p50 ms': percentile(times, 0.5).toFixed(2),
    'p99 ms': percentile(times, 0.99).toFixed(2),
    lost: gauges.lost,
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

/** The last third against the one before: what begins is warming up. Less than three lines show no course. */
function verdicts(windows) {
  const third = Math.floor(windows.length / 3);
  if (third === 0) return [];
  const middle = windows.slice(-2 * third, -third);
  const last = windows.slice(-third);
  const mean = (rows, column) => rows.reduce((sum, row) => sum + Number(row[column]), 0) / rows.length;
  const flat = (column, atMost) => {
    const [before, after] = [mean(middle, column), mean(last, column)];
    return {
      what: `soak: ${column}`,
      tapedeck: after.toFixed(2),
      against: `${before.toFixed(2)}, the third before`,
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
    flat('WAL MB', 1.1),
    flat('CPU ms a call', 1.1),
    flat('p99 ms', 1.5),
    bound('most the store took, MB', most, LIMIT_MB * 1.05),
    bound('frames lost', lost, 0),
    bound('sessions that failed', failed, 0),
  ];
}
