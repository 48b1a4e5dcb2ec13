// A store of ordinary traffic before and after `tapedeck pack`: its size on disk, and the processor time of whole commands that read
// it. As processor time, because it says what unpacking costs whatever else the machine does.
import { spawn } from 'node:child_process';
import { copyFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../build/store/file/open.js';
import { beginImport } from '../../build/store/write/import.js';
import { reindexSession } from '../../build/store/write/index.js';
import { format, median } from './figures.js';
import { mixLines } from './mix.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const SESSIONS = 26;
const FRAMES = 12_934;
const RUNS = 9;
const NAME = 'mix-7';
const COMMANDS = [
  { what: 'show of a session', args: ['show', NAME] },
  { what: 'export of a session', args: ['export', NAME] },
  { what: 'search, found in few frames', args: ['search', '"id":4711'] },
  { what: 'list with a filter over all texts', args: ['list', '--filter', 'text~no-such-text'] },
];

export async function benchPack(folder, { progress }) {
  const [plain, packed] = [join(folder, 'plain.db'), join(folder, 'packed.db')];
  progress(`a store of ${FRAMES} frames in ${SESSIONS} sessions, and a packed copy of it`);
  fill(plain);
  copyFileSync(plain, packed);
  const { cpuMs } = await run(['pack', '--db', packed]);
  // The first search makes the index beside the store.
  for (const file of [plain, packed]) await run(['search', 'x', '--db', file]);
  return [
    sizeRow(statSync(packed).size, statSync(plain).size),
    packingRow(cpuMs),
    ...(await readingRows(plain, packed, progress)),
  ];
}

function fill(file) {
  const store = openStore(file);
  const lines = [...mixLines(FRAMES)];
  const each = Math.ceil(FRAMES / SESSIONS / 2) * 2;
  for (let s = 0; s < SESSIONS; s += 1) fillSession(store, s, lines.slice(s * each, (s + 1) * each));
  // As `pack` ends: otherwise its rewriting alone would gain something.
  store.exec('VACUUM');
  store.pragma('wal_checkpoint(TRUNCATE)');
  store.close();
}

function fillSession(store, s, lines) {
  const at = 1.7e15 + s * 1e9;
  const unknown = {
    cwd: null,
    host: 'bench',
    pid: 1,
    processStarted: null,
    clientPid: null,
    clientProgram: null,
  };
  const session = beginImport(
    store,
    {
      ...{ name: `mix-${s}`, labels: [], basis: 'stdio-process', transport: 'stdio', target: 'server' },
      ...{ command: ['server'], at, tapedeck: '0', redaction: null, ...unknown },
    },
    { frames: 0, bytes: 0 },
    null,
  );
  for (const [i, line] of lines.entries()) {
    const payload = Buffer.from(line);
    const form = { lineEnd: '\n', size: payload.length, truncated: false, part: 'line', http: null };
    session.add({ channel: i % 2 === 0 ? 'stdin' : 'stdout', at: at + i * 1000, payload, ...form });
  }
  const end = { at: at + 1e8, reason: 'client-closed', exitCode: 0, signal: null };
  reindexSession(store, session.finish({ ...end, clientClosedAt: null, serverClosedAt: null }).number);
}

function sizeRow(packed, plain) {
  return {
    what: 'store on disk, packed',
    tapedeck: `${format(packed / 1e6)} MB`,
    against: `${format(plain / 1e6)} MB before`,
    ratio: `${(packed / plain).toFixed(2)}×`,
    wanted: '≤ 0.5×',
    met: packed / plain <= 0.5 ? 'yes' : 'NO',
  };
}

function packingRow(cpuMs) {
  return {
    ...{ what: 'pack, whole process', tapedeck: `${format(cpuMs)} ms of a core` },
    ...{ against: `${format(FRAMES)} frames`, ratio: '', wanted: '', met: '' },
  };
}

async function readingRows(plain, packed, progress) {
  const times = COMMANDS.map(() => ({ plain: [], packed: [] }));
  for (let round = 0; round < RUNS; round += 1) {
    progress(`reading both, round ${round + 1} of ${RUNS}`);
    for (const [i, { args }] of COMMANDS.entries()) {
      times[i].plain.push((await run([...args, '--db', plain])).cpuMs);
      times[i].packed.push((await run([...args, '--db', packed])).cpuMs);
    }
  }
  return COMMANDS.map(({ what }, i) => {
    const [after, before] = [median(times[i].packed), median(times[i].plain)];
    return {
      what: `${what}, whole process`,
      tapedeck: `${format(after)} ms of a core`,
      against: `${format(before)} ms unpacked`,
      ratio: `${(after / before).toFixed(2)}×`,
      wanted: '≤ 1.2×',
      met: after / before <= 1.2 ? 'yes' : 'NO',
    };
  });
}

const SAY_TIME = `process.on('exit', () => { const { user, system } = process.cpuUsage(); process._rawDebug('cpu ' + (user + system)); })`;

/** The processor time of a whole process, in milliseconds. */
function run(args) {
  const preload = ['--import', `data:text/javascript,${encodeURIComponent(SAY_TIME)}`];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...preload, BIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    child.stdout.resume();
    child.stderr.on('data', (text) => {
      errors += text;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const [, microseconds = '0'] = /cpu (\d+)/.exec(errors) ?? [];
      if (code === 0) resolve({ cpuMs: Number(microseconds) / 1000 });
      else reject(new Error(`exit ${code}: ${errors}`));
    });
  });
}
