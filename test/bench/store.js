// The store with a million messages in 2,000 sessions: its size on disk, and how long whole commands take to read from it,
// and how much memory, while two recorders write into it.
import { spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { callEcho, startClient } from './client.js';
import { format, median } from './figures.js';
import { fillStore, NEWEST_NAME } from './million.js';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(ROOT, 'bin/tapedeck.js');
const FRAMES_PER_SESSION = 500;
const FRAMES_SHOWN = 1000;
const RUNS = 9;
const RECORDERS = 2;
/** `atMost`: times as long as `node -e 0`. */
const COMMANDS = [
  { what: 'list (50 of all sessions)', args: ['list'], atMost: 3 },
  { what: 'show of 1,000 frames', args: ['show', NEWEST_NAME], atMost: 4 },
  { what: 'show of 1,000 frames, filtered', args: ['show', NEWEST_NAME, '--filter', 'dur>500ms'], atMost: 4 },
  { what: 'search, found in few frames', args: ['search', 'rarissimum'], atMost: 5 },
  { what: 'search, found in most frames', args: ['search', 'tools/call'], atMost: 5 },
  { what: 'search, found nowhere', args: ['search', 'no-such-text'], atMost: 5 },
  { what: 'stats of all sessions', args: ['stats', '--all'], atMost: 5 },
  { what: 'stats of one session', args: ['stats', NEWEST_NAME], atMost: 5 },
];

export async function benchStore(folder, { messages, progress }) {
  const file = join(folder, 'million.db');
  const sessions = Math.ceil(messages / FRAMES_PER_SESSION);
  progress(`a store of ${messages} messages in ${sessions} sessions`);
  const bytes = fillStore(file, { messages, sessions, newest: FRAMES_SHOWN });
  const onDisk = sizeRow(statSync(file).size, bytes + 200 * messages);

  progress('the first search, and the first stats, which make the index beside it');
  const made = [
    madeRow('the first search', await run(['search', 'rarissimum', '--db', file]), messages),
    madeRow('the first stats', await run(['stats', '--all', '--db', file]), messages),
  ];
  const index = statSync(`${file}.index`).size;
  made.push({
    ...EMPTY,
    what: 'the index beside it',
    tapedeck: `${format(index / 1e6)} MB`,
    against: `${format(bytes / 1e6)} MB payload`,
    ratio: `${(index / bytes).toFixed(2)}×`,
  });

  const recorders = await startRecorders(file);
  try {
    return [onDisk, ...made, ...(await commandRows(file, progress))];
  } finally {
    await recorders.stop();
  }
}

const EMPTY = { what: '', tapedeck: '', against: '', ratio: '', wanted: '', met: '' };

function sizeRow(onDisk, allowed) {
  return {
    what: 'store on disk',
    tapedeck: `${format(onDisk / 1e6)} MB`,
    against: `${format(allowed / 1e6)} MB payload + 200 B a message`,
    ratio: `${(onDisk / allowed).toFixed(2)}×`,
    wanted: '≤ 1.3×',
    met: onDisk / allowed <= 1.3 ? 'yes' : 'NO',
  };
}

function madeRow(what, { ms }, messages) {
  const rate = Math.round(messages / (ms / 1000));
  return {
    ...EMPTY,
    what: `${what}, whole process`,
    tapedeck: `${format(ms / 1000)} s`,
    against: `${format(rate)} messages/s`,
  };
}

async function commandRows(file, progress) {
  const times = new Map(COMMANDS.map(({ what }) => [what, []]));
  const bare = [];
  const memory = [];
  // In turn, so that what else the machine does meets all of them.
  for (let round = 0; round < RUNS; round += 1) {
    progress(`reading it while ${RECORDERS} recorders write, round ${round + 1} of ${RUNS}`);
    bare.push((await run(['-e', '0'], [])).ms);
    for (const { what, args } of COMMANDS) {
      const { ms, memoryMb } = await run([...args, '--db', file]);
      times.get(what).push(ms);
      memory.push({ what, memoryMb });
    }
  }
  const most = memory.reduce((a, b) => (b.memoryMb > a.memoryMb ? b : a));
  return [
    ...COMMANDS.map(({ what, atMost }) => commandRow(what, times.get(what), bare, atMost)),
    { ...EMPTY, what: `memory of these, the most (${most.what})`, tapedeck: `${format(most.memoryMb)} MB` },
  ];
}

function commandRow(what, times, bare, atMost) {
  const ms = median(times);
  const ratio = ms / median(bare);
  return {
    what: `${what}, whole process`,
    tapedeck: `${format(ms)} ms`,
    against: `${format(median(bare))} ms for node -e 0`,
    ratio: `${ratio.toFixed(2)}×`,
    wanted: `≤ ${atMost}×`,
    met: ratio <= atMost ? 'yes' : 'NO',
  };
}

const SAY_MEMORY = `process.on('exit', () => process._rawDebug('peak ' + process.resourceUsage().maxRSS))`;
const PRELOAD = ['--import', `data:text/javascript,${encodeURIComponent(SAY_MEMORY)}`];

/** How long a whole process takes, from its start to the end of its output, and its memory at the peak. */
function run(args, program = [...PRELOAD, BIN]) {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    const child = spawn(process.execPath, [...program, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let errors = '';
    child.stdout.resume();
    child.stderr.on('data', (text) => {
      errors += text;
    });
    child.on('error', reject);
    child.on('close', (code) => {
      const ms = performance.now() - began;
      const [, kilobytes = '0'] = /peak (\d+)/.exec(errors) ?? [];
      if (code === 0) resolve({ ms, memoryMb: Number(kilobytes) / 1024 });
      else reject(new Error(`exit ${code}: ${errors}`));
    });
  });
}

/** Clients of recorded servers, each with a hundred calls a second. */
async function startRecorders(file) {
  const server = ['--', process.execPath, join(ROOT, 'test/fixtures/echo.js')];
  const command = [process.execPath, BIN, 'record', '--db', file, '--name', 'writer', ...server];
  let isOver = false;
  const clients = await Promise.all(Array.from({ length: RECORDERS }, () => startClient(command)));
  const talks = clients.map(async (client) => {
    while (!isOver) {
      await callEcho(client, 10, 1);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await client.close();
  });
  return {
    stop() {
      isOver = true;
      return Promise.all(talks);
    },
  };
}
