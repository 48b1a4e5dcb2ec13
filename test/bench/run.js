// `npm run bench`: every row of the design's speed table, as ratios within one run. `--quick` gives a first idea.
import { mkdtempSync, rmSync } from 'node:fs';
import { arch, cpus, platform, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { printTable } from './figures.js';
import { benchMemory } from './memory.js';
import { absoluteRows, benchStdio, lossOf, SERVERS, stdioRows } from './stdio.js';
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
  const rows = [];
  for (const [name, server] of Object.entries(SERVERS)) {
    // The official server takes some fifty times longer for a call.
    const scale = name === 'echo' ? 1 : 0.1;
    const calls = {
      sequentialCalls: size.sequentialCalls * scale,
      parallelCalls: size.parallelCalls * scale,
    };
    const results = await benchStdio(folder, server, { ...size, ...calls, progress });
    console.log(`server ${name}`);
    printTable(absoluteRows(results));
    console.log();
    rows.push(...stdioRows(name, results));
  }
  console.log(`Frames lost by tapedeck in these runs: ${lossOf(folder)}\n`);
  rows.push(...(await benchMemory(folder, { ...size, progress })));
  rows.push(...benchStore(folder, { ...size, progress }));
  printTable(rows);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
