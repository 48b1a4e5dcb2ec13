// `npm run bench`: every row of the design's speed table, as ratios within one run. `--quick` gives a first idea. `--only sse`
// measures one part, or several, as quickly: less than a minute each; with `--full` as the table does, in so many rounds as
// `BENCH_ROUNDS` says.
// `--only soak` takes an hour, or `SOAK_MINUTES`, at `SOAK_RATE` calls a second, and is no part of the whole. Of `library` and `soak`
// what is measured by then is printed where a signal ends it.
import { mkdtempSync, rmSync } from 'node:fs';
import { arch, cpus, platform, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchAsk } from './ask.js';
import { benchBusy } from './busy.js';
import { benchEngine } from './engine.js';
import { benchFault } from './fault.js';
import { histogram, printTable } from './figures.js';
import { benchForward } from './forward.js';
import { benchForwardTls, benchTunnel } from './forward-more.js';
import { benchHttp } from './http.js';
import { hasMitmdump } from './http-contestants.js';
import { benchLibrary } from './library.js';
import { generator } from './load.js';
import { benchMemory } from './memory.js';
import { benchOperate } from './operate.js';
import { benchPack } from './pack.js';
import { benchReplay } from './replay.js';
import { benchRetention } from './retention.js';
import { benchShip } from './ship.js';
import { benchSoak } from './soak.js';

import { benchSse } from './sse.js';
import { benchStart } from './start.js';
import { absoluteRows, benchStdio, lossOf, SERVERS, stdioRows } from './stdio.js';
import { benchStore } from './store.js';
import { benchStoring } from './storing.js';
import { benchViewer } from './viewer.js';

const PARTS = {
  start: benchStart,
  stdio,
  http,
  sse,
  forward,
  fault,
  operate,
  replay,
  library: benchLibrary,
  busy: benchBusy,
  memory: benchMemory,
  storing: benchStoring,
  store: benchStore,
  pack: benchPack,
  retention: benchRetention,
  viewer: benchViewer,
  ask: benchAsk,
  soak: benchSoak,
  ship: benchShip,
  engine: benchEngine,
};
const { isQuick, parts } = readArguments();
const givenRounds = Number(process.env.BENCH_ROUNDS) || undefined;
const size = isQuick
  ? {
      rounds: 2,
      without: ['direct', 'reader', 'limit', 'unredacted'],
      sequentialCalls: 3000,
      parallelCalls: 15_000,
      messages: 60_000,
      retentionMegabytes: 200,
      httpRounds: 2,
      httpSeconds: 1,
      httpWarmUp: 2,
      fixtureRounds: 2,
      sseRounds: 2,
      sseBlocks: 12,
      busyCalls: 100,
      floodEvents: 300_000,
      starts: 15,
      viewerRounds: 1,
      viewerCalls: 2500,
      libraryRounds: 1,
      libraryCalls: 400,
      storingRounds: 3,
      operateRounds: 1,
      engineRounds: 2,
    }
  : {
      rounds: givenRounds ?? 9,
      without: [],
      sequentialCalls: 20_000,
      parallelCalls: 150_000,
      messages: 1_000_000,
      retentionMegabytes: 1000,
      httpRounds: givenRounds ?? 7,
      httpSeconds: 2,
      httpWarmUp: 6,
      fixtureRounds: 3 * (givenRounds ?? 8),
      sseRounds: givenRounds ?? 5,
      sseBlocks: 25,
      busyCalls: 500,
      floodEvents: 2_000_000,
      starts: 51,
      viewerRounds: 7,
      viewerCalls: 15_000,
      libraryRounds: 5,
      libraryCalls: 400,
      storingRounds: givenRounds ?? 9,
      operateRounds: 9,
      engineRounds: 5,
    };
const progress = (text) => process.stderr.write(`${text}\n`);
const folder = mkdtempSync(join(tmpdir(), 'tapedeck-bench-'));

/** Makes the rows that the part under way has so far. */
let rowsSoFar = () => [];
const onRows = (make) => {
  rowsSoFar = make;
};
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
])
  process.once(signal, () => {
    const rows = rowsSoFar();
    if (rows.length > 0) printTable(rows);
    rmSync(folder, { recursive: true, force: true });
    process.exit(128 + number);
  });

try {
  const [cpu] = cpus();
  console.log(
    `${cpus().length} × ${cpu?.model}, ${Math.round(totalmem() / 1e9)} GB, ${platform()} ${arch()}, Node ${process.version}\n`,
  );
  // Part by part, so that what fails takes nothing with it that was measured before.
  for (const part of parts) {
    printTable(await PARTS[part](folder, { ...size, progress, onRows }));
    onRows(() => []);
    console.log();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function readArguments() {
  const flag = { type: 'boolean' };
  const { values } = parseArgs({ options: { quick: flag, full: flag, only: { type: 'string' } } });
  const parts = values.only?.split(',') ?? Object.keys(PARTS).filter((part) => part !== 'soak');
  const unknown = parts.find((part) => !Object.hasOwn(PARTS, part));
  if (unknown !== undefined) {
    console.error(`Expected \`--only\` with some of ${Object.keys(PARTS).join(', ')}, got \`${unknown}\`.`);
    process.exit(2);
  }
  return { isQuick: values.quick ?? (values.only !== undefined && !values.full), parts };
}

async function stdio(folder, size) {
  const rows = [];
  for (const [name, server] of Object.entries(SERVERS)) {
    // The official server takes some fifty times longer for a call.
    const scale = name === 'echo' ? 1 : 0.1;
    const calls = {
      sequentialCalls: size.sequentialCalls * scale,
      parallelCalls: size.parallelCalls * scale,
    };
    const results = await benchStdio(folder, server, { ...size, ...calls });
    printAbsolute(`server ${name}`, absoluteRows(results));
    const classes = Object.entries(results).map(([variant, figures]) => [variant, figures.classes]);
    printAbsolute(`server ${name}, one call at a time`, histogram(Object.fromEntries(classes)));
    rows.push(...stdioRows(name, results));
  }
  console.log(`Frames lost by tapedeck in these runs: ${lossOf(folder)}\n`);
  return rows;
}

async function http(folder, size) {
  const { absolute, first, histograms, loss, rows } = await benchHttp(folder, size);
  printAbsolute(
    `HTTP, requests by ${generator}${hasMitmdump ? '' : ' (without mitmdump: not installed)'}`,
    absolute,
  );
  printAbsolute('HTTP, the first seconds', first);
  for (const [name, table] of Object.entries(histograms)) printAbsolute(`HTTP, ${name}`, table);
  console.log(`${loss}\n`);
  return rows;
}

async function sse(folder, size) {
  const { absolute, loss, rows } = await benchSse(folder, size);
  printAbsolute('SSE, one stream', absolute);
  console.log(`${loss}\n`);
  return rows;
}

async function forward(folder, size) {
  const plain = await benchForward(folder, size);
  const tls = await benchForwardTls(folder, size);
  const tunnel = await benchTunnel(folder, size);
  console.log(`${plain.loss}\n${tls.loss}\n`);
  return [...plain.rows, ...tls.rows, ...tunnel];
}

async function operate(folder, size) {
  const { absolute, rows } = await benchOperate(folder, size);
  printTable(absolute);
  console.log();
  return rows;
}

async function fault(folder, size) {
  const { loss, rows } = await benchFault(folder, size);
  console.log(`${loss}\n`);
  return rows;
}

async function replay(folder, size) {
  const { absolute, rows } = await benchReplay(folder, size);
  printAbsolute(`replay, requests by ${generator}`, absolute);
  return rows;
}

function printAbsolute(heading, rows) {
  console.log(heading);
  printTable(rows);
  console.log();
}
