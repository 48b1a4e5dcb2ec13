// A store within 50 MB that is fed 1 GB, 10 MB a session: how much it takes at most, what was lost, and what it costs the
// sessions, against sessions without a limit that run in turn with them.
import { spawn } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { format, median } from './figures.js';

const BIN = join(import.meta.dirname, '../../bin/tapedeck.js');
const FLOOD = join(import.meta.dirname, '../fixtures/flood.js');
const MB = 1024 * 1024;
const LIMIT_MB = 50;
const ALLOWED_MB = 75;
const SESSION_MB = 10;

export async function benchRetention(folder, { retentionMegabytes, progress }) {
  const limited = join(folder, 'limited.db');
  progress(`${retentionMegabytes} MB into a store within ${LIMIT_MB} MB`);
  let most = 0;
  const timer = setInterval(() => {
    most = Math.max(most, bytesOf(limited) + bytesOf(`${limited}-wal`));
  }, 2);
  const times = { limited: [], free: [] };
  for (let fed = 0; fed < retentionMegabytes; fed += SESSION_MB) {
    times.limited.push(await record(limited, ['--max-size', `${LIMIT_MB}mb`]));
    // Each into a store of its own, or they would slow down with its size.
    if (fed % (5 * SESSION_MB) === 0) times.free.push(await record(join(folder, `free-${fed}.db`), []));
  }
  clearInterval(timer);
  assertWhole(limited);
  return [
    {
      what: `${retentionMegabytes} MB into a store within ${LIMIT_MB} MB: most on disk`,
      tapedeck: `${format(most / MB)} MB`,
      against: `${LIMIT_MB} MB`,
      ratio: `${(most / MB / LIMIT_MB).toFixed(2)}×`,
      wanted: `≤ ${ALLOWED_MB} MB`,
      met: most <= ALLOWED_MB * MB ? 'yes' : 'NO',
    },
    {
      what: `a session of ${SESSION_MB} MB into it, whole process`,
      tapedeck: `${format(median(times.limited))} ms`,
      against: `${format(median(times.free))} ms without a limit`,
      ratio: `${(median(times.limited) / median(times.free)).toFixed(2)}×`,
      wanted: '–',
      met: '–',
    },
  ];
}

/** Settles with its milliseconds. Fails unless all has passed and nothing was said. */
function record(db, options) {
  const began = performance.now();
  const args = [
    BIN,
    'record',
    '--db',
    db,
    '--no-config',
    ...options,
    '--',
    process.execPath,
    FLOOD,
    SESSION_MB,
  ];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let passed = 0;
  let said = '';
  child.stdout.on('data', (bytes) => {
    passed += bytes.length;
  });
  child.stderr.on('data', (bytes) => {
    said += bytes;
  });
  return new Promise((resolve, reject) => {
    child.on('close', (code) => {
      if (code === 0 && passed === SESSION_MB * MB && said === '') resolve(performance.now() - began);
      else reject(new Error(`exit ${code}, ${passed} bytes, ${said}`));
    });
  });
}

/** Whatever is left is whole, and is the newest. */
function assertWhole(db) {
  const store = new Database(db, { readonly: true });
  const [damage] = store
    .prepare(
      'SELECT id FROM session WHERE frames <> ? OR dropped > 0 OR frames <> (SELECT count(*) FROM frame WHERE frame.session = number)',
    )
    .all(SESSION_MB * 1024);
  const left = store.prepare('SELECT count(*) FROM session').pluck().get();
  const isSound = store.pragma('integrity_check', { simple: true }) === 'ok';
  store.close();
  if (damage !== undefined || left < 2 || !isSound) throw new Error(`the store is not whole: ${damage?.id}`);
}

function bytesOf(file) {
  return existsSync(file) ? (statSync(file, { throwIfNoEntry: false })?.size ?? 0) : 0;
}
