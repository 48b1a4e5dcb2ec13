// `npm run bench`: every row of the design's speed table, as ratios within one run. `--quick` gives a first idea.
import { mkdtempSync, rmSync } from 'node:fs';
import { arch, cpus, platform, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { printTable } from './figures.js';
import { benchMemory } from './memory.js';
import { absoluteRows, benchStdio, lossOf, stdioRows } from './stdio.js';
import { benchStore } from './store.js';

const isQuick = process.argv.includes('--quick');
const size = isQuick
  ? { rounds: 2, sequentialCalls: 4000, parallelCalls: 20_000, messages: 100_000 }
  : { rounds: 9, sequentialCalls: 20_000, parallelCalls: 150_000, messages: 1_000_000 };
const progress = (text) => process.stderr.write(`${text}\n`);
const folder = mkdtempSync(join(tmpdir(), 'tapedeck-bench-'));

try {
  const [cpu] = cpus();
  console.log(
    `${cpus().length} × ${cpu?.model}, ${Math.round(totalmem() / 1e9)} GB, ${platform()} ${arch()}, Node ${process.version}\n`,
  );
  const stdio = await benchStdio(folder, { ...size, progress });
  printTable(absoluteRows(stdio));
  console.log(`\nFrames lost by tapedeck in these runs: ${lossOf(folder)}\n`);
  const memory = await benchMemory(folder, { ...size, progress });
  printTable([...stdioRows(stdio), ...memory, ...benchStore(folder, { ...size, progress })]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
