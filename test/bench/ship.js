// What shipping a store to an engine costs: processor time a frame, against `psql \copy` of the same rows, fifty stores at once,
// memory, a shipper that has nothing to do, and what `ship-recorders.js` measures. The engine is a PostgreSQL of its own, which syncs
// nothing. `SHIP_FRAMES` says how many frames are shipped, `SHIP_RECORDERS` how many recorders are at once.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readAddress } from '../../build/engine/connect.js';
import { runShipper } from '../../build/ship/shipper.js';
import { openForReading, openStore } from '../../build/store/file/open.js';
import { beginImport } from '../../build/store/write/import.js';
import { reindexSession } from '../../build/store/write/index.js';
import { figureRow, format, ratioRow } from './figures.js';
import { mixLines } from './mix.js';
import { memoryOf } from './processor.js';
import { besideTraffic, manyRecorders } from './ship-recorders.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const FRAME_BYTES = 1600;
const SESSION_FRAMES = 2000;
const STORES = 50;
const MIB = 1024 * 1024;

/** V8 tidies up once, some 8 s after there was work: half a tenth of a second of processor time. */
const TIDY_MS = 12_000;

const SAY_USAGE = `process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  process.stderr.write('@' + JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, mb: maxRSS / 1024 }));
});`;
const PRELOAD = ['--import', `data:text/javascript,${encodeURIComponent(SAY_USAGE)}`];

export async function benchShip(folder, { messages, rounds, progress }) {
  const frames = Number(process.env.SHIP_FRAMES ?? messages / 10);
  const isQuick = rounds < 5;
  const recorders = Number(process.env.SHIP_RECORDERS ?? (isQuick ? 5 : STORES));
  progress('an engine');
  const engine = await startEngine(folder);
  try {
    const file = join(folder, 'ship.db');
    progress(`${frames} frames of ${FRAME_BYTES} bytes`);
    fill(file, frames, SESSION_FRAMES);
    const first = await ship(engine.url, file);
    const start = await ship(engine.url, file);
    const copied = copyWithPsql(engine);
    const rows = [
      {
        what: 'frames of 1.6 kB for a second of the shipper’s processor',
        tapedeck: format(frames / (first.cpu - start.cpu)),
        against: '',
        ratio: '',
        wanted: '≥ 30,000',
        met: frames / (first.cpu - start.cpu) >= 30_000 ? 'yes' : 'NO',
      },
      {
        what: 'frames of 1.6 kB a second, over one connection at first',
        tapedeck: format(frames / (first.seconds - start.seconds)),
        against: '',
        ratio: '',
        wanted: '≥ 12,000',
        met: frames / (first.seconds - start.seconds) >= 12_000 ? 'yes' : 'NO',
      },
      ratioRow(
        'the same, against psql',
        [frames / (first.seconds - start.seconds)],
        [frames / copied],
        {
          atLeast: 0.5,
          yardstick: 'psql \\copy of the same rows of all tables, with their indexes, in one transaction',
        },
        'frames/s',
      ),
      figureRow(`memory of the shipper at most, of ${format(frames)} frames`, first.mb, {
        atMost: 150,
        unit: 'MB',
      }),
      ...flatness(first),
      await largeFrame(engine, folder, progress),
      await manyStores(engine, folder, frames, progress),
      await room(engine, folder, progress),
      await idle(engine, file, isQuick ? 5000 : 30_000, progress),
      ...(await besideTraffic(engine, folder, {
        ...{ rounds: isQuick ? 2 : 9, calls: isQuick ? 10_000 : 50_000, lagSeconds: isQuick ? 4 : 60 },
        progress,
      })),
      await manyRecorders(engine, folder, { recorders, calls: isQuick ? 500 : 2000, progress }),
    ];
    return rows;
  } finally {
    await engine.stop();
  }
}

/** Of a run that is long enough to tell: whether it takes more and more. */
function flatness({ samples }) {
  if (samples.length < LEAST_SAMPLES) return [];
  const middle = Math.floor(samples.length / 2);
  const [early, late] = [samples.slice(0, middle), samples.slice(middle)].map((some) => Math.max(...some));
  const bound = { atMost: 1.2, yardstick: 'in the first half' };
  return [ratioRow('memory at most in the second half of that run', [late], [early], bound, 'MB')];
}

const SAMPLE_MS = 200;

const LEAST_SAMPLES = 20;

/** Of what passes between clients and servers by size and kind, in sessions of 1,000 frames. */
async function room(engine, folder, progress) {
  progress(`room for ${MIX_FRAMES} frames`);
  const file = join(folder, 'room.db');
  fill(file, MIX_FRAMES, 1000, mixLines(MIX_FRAMES));
  const store = openForReading(file);
  const passed = store.prepare('SELECT sum(bytes) FROM session').pluck().get();
  store.close();
  const before = bytesIn(engine);
  await ship(engine.url, file);
  const taken = bytesIn(engine) - before;
  return {
    what: 'room in the engine, with indexes, for a frame of the mix',
    tapedeck: `${format(taken / MIX_FRAMES)} bytes`,
    against: `${format(passed / MIX_FRAMES)} bytes, its payload`,
    ratio: `${(taken / passed).toFixed(2)}×`,
    wanted: '',
    met: '',
  };
}

function bytesIn(engine) {
  return Number(
    engine.sql(`SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c
      WHERE c.relnamespace = 'tapedeck'::regnamespace AND c.relkind = 'r'`),
  );
}

const MIX_FRAMES = 20_000;

async function largeFrame(engine, folder, progress) {
  progress('a frame of 256 MB');
  const file = join(folder, 'large.db');
  fill(file, 1, 1);
  const store = openStore(file);
  const part = store.prepare('INSERT INTO frame_part (session, seq, part, bytes) VALUES (1, 1, ?, ?)');
  store.prepare('UPDATE frame SET payload = zeroblob(1048576), size = 268435456').run();
  store.prepare('UPDATE session SET bytes = 268435456').run();
  for (let i = 1; i < 256; i += 1) part.run(i, Buffer.alloc(MIB, i));
  store.close();
  const { mb } = await ship(engine.url, file);
  return figureRow('the same with a frame of 256 MB', mb, { atMost: 150, unit: 'MB' });
}

/** In one process: its processor is what fifty hosts would share here, too. */
async function manyStores(engine, folder, frames, progress) {
  progress(`${STORES} stores at once`);
  const files = Array.from({ length: STORES }, (_, i) => join(folder, `host-${i}.db`));
  for (const file of files) fill(file, frames / STORES, 200);
  const began = performance.now();
  const ends = await Promise.all(files.map((file) => runShipper(options(engine.url, file))));
  const rate = frames / ((performance.now() - began) / 1000);
  const unsealed = engine.sql('SELECT count(*) FROM tapedeck.session WHERE sealed_at IS NULL');
  if (!ends.every(({ isDone }) => isDone) || unsealed !== '0') throw new Error('not all sessions are sealed');
  return {
    what: `frames a second of ${STORES} stores at once, all sealed`,
    tapedeck: format(rate),
    against: '',
    ratio: '',
    wanted: '≥ 8,000',
    met: rate >= 8000 ? 'yes' : 'NO',
  };
}

async function idle(engine, file, idleMs, progress) {
  progress(`${(TIDY_MS + idleMs) / 1000} s of nothing to do`);
  const child = spawn(process.execPath, [BIN, 'ship', '--to', engine.url, '--db', file], { stdio: 'ignore' });
  await sleep(TIDY_MS);
  const before = processorSeconds(child.pid);
  await sleep(idleMs);
  const share = (processorSeconds(child.pid) - before) / (idleMs / 1000);
  child.kill();
  await once(child, 'exit');
  return figureRow('processor of an idle shipper, once V8 has tidied up', share * 100, {
    atMost: 0.2,
    unit: '%',
  });
}

/** User and system, in hundredths of a second. */
function processorSeconds(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** `lines`: what the frames are; without it, they are of 1.6 kB. */
function fill(file, frames, each, lines = null) {
  const store = openStore(file);
  const start = {
    ...{
      name: null,
      labels: [],
      basis: 'stdio-process',
      transport: 'stdio',
      target: 'server',
      command: ['server'],
    },
    ...{
      cwd: '/',
      host: 'host',
      pid: 1,
      processStarted: null,
      clientPid: null,
      clientProgram: null,
      tapedeck: '0',
    },
    redaction: '{}',
  };
  const text = 'words that repeat themselves somewhat '.repeat(100);
  for (let done = 0; done < frames; done += each) {
    const session = beginImport(store, { ...start, at: 1.7e15 + done }, { frames: 0, bytes: 0 }, null);
    for (let i = 0; i < Math.min(each, frames - done); i += 1) {
      const head = `{"jsonrpc":"2.0","id":${i >> 1},${i % 2 ? '"result"' : '"method":"tools/call","params"'}:{"n":${done + i},"text":"`;
      const usual = `${head}${text.slice(i % 30, (i % 30) + FRAME_BYTES - head.length - 3)}"}}`;
      const payload = Buffer.from(lines === null ? usual : lines.next().value);
      const form = { lineEnd: '\n', size: payload.length, truncated: false, part: 'line', http: null };
      session.add({ channel: i % 2 ? 'stdout' : 'stdin', at: 1.7e15 + done + i, payload, ...form });
    }
    const end = { at: 1.7e15 + done + each, reason: 'client-closed', exitCode: 0, signal: null };
    const { number } = session.finish({ ...end, clientClosedAt: null, serverClosedAt: null });
    reindexSession(store, number);
  }
  store.exec('UPDATE session SET imported_at = NULL');
  store.close();
}

async function ship(url, file) {
  const began = performance.now();
  const child = spawn(process.execPath, [...PRELOAD, BIN, 'ship', '--once', '--to', url, '--db', file]);
  let said = '';
  child.stderr.on('data', (bytes) => {
    said += bytes;
  });
  const samples = [];
  const timer = setInterval(() => {
    try {
      samples.push(memoryOf(child.pid) ?? 0);
    } catch {
      // It has just ended.
    }
  }, SAMPLE_MS);
  const [code] = await once(child, 'close');
  clearInterval(timer);
  if (code !== 0) throw new Error(said);
  return {
    ...JSON.parse(said.slice(said.lastIndexOf('@{') + 1)),
    ...{ seconds: (performance.now() - began) / 1000, samples },
  };
}

function options(url, file) {
  return {
    ...{ file, address: readAddress(url, {}), isOnce: true, tenant: null, version: '0' },
    ...{ imported: false, unredacted: false, sampling: () => null, prepareKept: () => null },
    ...{ goesOn: () => true, onNotice() {}, onShipped() {} },
    signal: new AbortController().signal,
  };
}

/**
 * How long `psql` takes to copy the same rows into tables of the same columns, keys and indexes, in one transaction, in seconds. It has
 * nothing to read, to hash or to ask; so it is what any shipper could come near.
 */
function copyWithPsql(engine) {
  const tables = ['session', 'frame', 'message'];
  const path = (table) => join(engine.folder, `${table}.bin`);
  for (const table of tables) {
    engine.sql(`COPY (SELECT * FROM tapedeck.${table}) TO '${path(table)}' (FORMAT binary)`);
    engine.sql(`CREATE TABLE copied_${table} (LIKE tapedeck.${table} INCLUDING ALL)`);
  }
  const began = performance.now();
  const copies = tables.map((table) => `\\copy copied_${table} FROM '${path(table)}' (FORMAT binary)`);
  engine.sql('BEGIN', ...copies, 'COMMIT');
  return (performance.now() - began) / 1000;
}

/** Debian's PostgreSQL, as another user where we are root. */
export async function startEngine(parent) {
  const versions = '/usr/lib/postgresql';
  const bins = existsSync(versions)
    ? readdirSync(versions).map((version) => join(versions, version, 'bin'))
    : [];
  const bin = bins.find((one) => existsSync(join(one, 'initdb')));
  if (bin === undefined) throw new Error('no PostgreSQL: install it (Debian: postgresql)');
  const folder = join(parent, 'engine');
  mkdirSync(folder);
  const isRoot = process.getuid() === 0;
  const id = (which) => Number(execFileSync('id', [which, 'postgres'], { encoding: 'utf8' }));
  if (isRoot) for (const path of [parent, folder]) chownSync(path, id('-u'), id('-g'));
  const as = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups', '--'] : ['env'];
  const run = (program, args) => {
    const [file, ...words] = [...as, join(bin, program), ...args];
    return execFileSync(file, words, { encoding: 'utf8', cwd: folder, stdio: 'pipe' });
  };
  run('initdb', ['-D', join(folder, 'data'), '-U', 'postgres', '--auth=trust', '-E', 'UTF8', '--no-sync']);
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  const settings = [
    'fsync=off',
    'max_connections=200',
    'listen_addresses=127.0.0.1',
    `unix_socket_directories=${folder}`,
  ];
  const [file, ...words] = [...as, join(bin, 'postgres'), '-D', join(folder, 'data'), '-p', String(port)];
  const child = spawn(file, [...words, ...settings.flatMap((one) => ['-c', one])], {
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await new Promise((ready) => {
    child.stderr.on('data', (bytes) => String(bytes).includes('ready to accept') && ready());
  });
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  execFileSync(process.execPath, [BIN, 'engine', 'init', '--to', url], { stdio: 'pipe' });
  return {
    ...{ folder, url },
    sql: (...texts) =>
      run('psql', [
        '-X',
        '-q',
        '-A',
        '-t',
        '-h',
        folder,
        '-p',
        String(port),
        '-U',
        'postgres',
        ...texts.flatMap((text) => ['-c', text]),
      ]).trim(),
    async stop() {
      child.kill('SIGINT');
      await once(child, 'exit');
    },
  };
}
