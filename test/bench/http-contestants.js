// Who takes part over HTTP: the server directly, a bare proxy, the plainest recorder, tapedeck, an older one where it is given
// (stdio.js), and mitmdump where it is installed. Each is a
// process of its own before the same server, in turn, several rounds; afterwards tapedeck's store is counted.
//   BENCH_HTTP_PROXY="node other-proxy.js" npm run bench -- --only http
// puts another program in tapedeck's place, started as `node other-proxy.js <url> --listen 127.0.0.1:0 --db <file>`.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { memoryOf, processorTime } from './processor.js';
import { before, removeStore } from './stdio.js';
import { inTurn } from './turns.js';

const here = import.meta.dirname;
const START_MS = 30_000;
const STOP_MS = 60_000;
const PATH = '/mcp';

const other = process.env.BENCH_HTTP_PROXY?.split(' ');
const tapedeck = other ?? [process.execPath, join(here, '../../bin/tapedeck.js'), 'record'];
export const UPSTREAM = [process.execPath, join(here, 'http-upstream.js')];

/** By name: the command that stands before `url`, given a place for what it records; null for nothing at all. */
const CONTESTANTS = {
  direct: () => null,
  bare: (url) => [process.execPath, join(here, 'http-relay.js'), url],
  least: (url, files) => [process.execPath, join(here, 'least-proxy.js'), url, files.least],
  reader: (url, files) => [process.execPath, join(here, 'least-proxy.js'), url, files.least, 'reads'],
  limit: (url, files) => [process.execPath, join(here, 'limit-proxy.js'), url, files.limit],
  before: (url, files) => [...before, 'record', url, '--listen', '127.0.0.1:0', '--db', files.before],
  tapedeck: (url, files) => [...tapedeck, url, '--listen', '127.0.0.1:0', '--db', files.store],
  unredacted: (url, files) => [
    ...tapedeck,
    url,
    '--no-redact',
    '--listen',
    '127.0.0.1:0',
    '--db',
    files.store,
  ],
  // By default it holds a stream back to its end. Before version 12 it then leaves such bodies out of its record.
  mitmdump: (url, files) => [
    ...['mitmdump', '--mode', `reverse:${new URL(url).origin}`, '--listen-host', '127.0.0.1'],
    ...['--listen-port', '0', '--set', 'flow_detail=0', '--set', 'stream_large_bodies=1'],
    ...['--set', 'store_streamed_bodies=true', '-w', files.flows],
  ],
};

export const startTapedeck = (url, files) => startProgram(CONTESTANTS.tapedeck(url, files));

/** What the store says: whole exchanges and messages that it has, and those that it knows to have missed. */
const RECORDED = `SELECT (SELECT count(ended_at) FROM http_exchange) AS exchanges,
  (SELECT count(*) FROM frame) AS messages, (SELECT coalesce(sum(dropped), 0) FROM session) AS dropped`;

export const hasMitmdump = isInstalled('mitmdump', '--version');

export function isInstalled(command, argument) {
  return spawnSync(command, [argument]).error === undefined;
}

/** The names of those that take part, but for some. */
export function contestants(without) {
  return Object.keys(CONTESTANTS).filter(
    (name) =>
      !without.includes(name) &&
      (name !== 'mitmdump' || hasMitmdump) &&
      (name !== 'before' || before !== undefined) &&
      (name !== 'unredacted' || other === undefined),
  );
}

/** What each of them records into. */
export function filesIn(folder) {
  return {
    store: join(folder, 'http.db'),
    before: join(folder, 'before-http.db'),
    least: join(folder, 'least-http.db'),
    limit: join(folder, 'limit-http.db'),
    flows: join(folder, 'http.flows'),
  };
}

/** Starts the one of that name before the server at `url`; null where nothing stands before it. */
export async function startContestant(name, url, files) {
  const command = CONTESTANTS[name](url, files);
  return command === null ? null : await startProgram(command);
}

/** What passed tapedeck, and what of it is not in its store. */
export const createCount = () => ({ arrived: 0, messages: 0, lost: 0, extra: 0, isChecked: true });

/**
 * `measure(url, processor)` gives the figures of one contestant in one round: all are collected by contestant and figure.
 * Contestants whose names are in `without` take no part. `warmUp(url)` comes first, with the server alone.
 * `processor()` is the processor time that it has taken so far, in microseconds; null if there is none. Three of
 * them are counts: `failed`, what was asked for and did not come; `messages`, those that passed, both ways; and
 * `brokenOff`, the most requests that the client may have left without waiting for an answer.
 */
export async function measureInTurn(folder, { rounds, progress, what, warmUp, measure, without }) {
  const names = contestants(without);
  const results = Object.fromEntries(names.map((name) => [name, {}]));
  const count = createCount();
  const upstream = await startProgram(UPSTREAM);
  try {
    progress(`${what} warm-up`);
    await warmUp(upstream.url);
    for (let round = 0; round < rounds; round += 1) {
      progress(`${what} round ${round + 1} of ${rounds}`);
      for (const name of inTurn(names, round)) {
        const files = filesIn(folder);
        const arrivedBefore = await arrivedAt(upstream);
        const figures = await measureOne(name, upstream.url, files, measure);
        for (const [figure, value] of Object.entries(figures)) {
          results[name][figure] ??= [];
          results[name][figure].push(value);
        }
        if (name === 'tapedeck') {
          addLoss(count, files.store, (await arrivedAt(upstream)) - arrivedBefore, figures);
        }
        for (const file of Object.values(files)) removeStore(file);
      }
    }
  } finally {
    await upstream.stop();
  }
  return { results, count };
}

async function measureOne(name, upstreamUrl, files, measure) {
  const program = await startContestant(name, upstreamUrl, files);
  if (program === null) return await measure(upstreamUrl, () => null);
  try {
    return await measure(program.url, program.processor);
  } finally {
    await program.stop();
  }
}

async function arrivedAt({ url }) {
  return Number(await (await fetch(url)).text());
}

/**
 * Every request that reached the server must be in the store, and every message that reached its end. Those broken off
 * may be there or not.
 */
export function addLoss(count, store, arrived, { messages, brokenOff }) {
  count.arrived += arrived;
  count.messages += messages;
  if (other !== undefined && !existsSync(store)) {
    count.isChecked = false;
    return;
  }
  const db = new Database(store, { readonly: true });
  const recorded = db.prepare(RECORDED).get();
  db.close();
  const lostExchanges = Math.max(arrived - recorded.exchanges, 0);
  count.lost += lostExchanges + Math.max(messages - recorded.messages, recorded.dropped, 0);
  count.extra += Math.max(recorded.exchanges - arrived - brokenOff, 0);
}

export function lossText({ arrived, messages, lost, extra, isChecked }) {
  if (!isChecked) return 'Lost: not checked, for this is not tapedeck';
  const passed = `${arrived.toLocaleString('en-US')} requests and ${messages.toLocaleString('en-US')} messages`;
  return `Lost by tapedeck in these runs: ${lost} of ${passed}${extra > 0 ? `; ${extra} requests too many` : ''}`;
}

/** A fast proxy that loses or refuses requests proves nothing, so that stands in place of the verdict. */
export function withLoss(row, { lost, extra }, { failed } = { failed: [] }) {
  const failures = failed.reduce((sum, n) => sum + n, 0);
  if (lost > 0) return { ...row, met: `LOST ${lost}` };
  if (extra > 0) return { ...row, met: `EXTRA ${extra}` };
  if (failures > 0) return { ...row, met: `FAILED ${failures}` };
  return row;
}

/** Settles once the program has said where it listens. `more`: what its environment has beside ours. */
export async function startProgram([command, ...args], more = {}) {
  const env = { ...process.env, PYTHONUNBUFFERED: '1', ...more };
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  const killIt = () => child.kill('SIGKILL');
  process.on('exit', killIt);
  const exited = once(child, 'exit').finally(() => process.off('exit', killIt));
  const port = await listeningPort(child, [command, ...args].join(' ')).catch((error) => {
    killIt();
    throw error;
  });
  return {
    url: `http://127.0.0.1:${port}${PATH}`,
    processor: () => processorTime(child.pid),
    memoryMb: () => memoryOf(child.pid),
    async stop() {
      const timer = setTimeout(killIt, STOP_MS);
      child.kill('SIGTERM');
      await exited;
      clearTimeout(timer);
    },
  };
}

function listeningPort(child, command) {
  return new Promise((resolve, reject) => {
    let said = '';
    const fail = (what) => reject(new Error(`\`${command}\` ${what}:\n${said}`));
    const timer = setTimeout(() => fail('did not say in time where it listens'), START_MS);
    const onText = (text) => {
      said += text;
      const port = /listen\w* (?:on|at) (?:http:\/\/)?127\.0\.0\.1:(\d+)\b/.exec(said)?.[1];
      if (port === undefined) return;
      clearTimeout(timer);
      for (const output of [child.stdout, child.stderr]) output.off('data', onText).resume();
      resolve(port);
    };
    for (const output of [child.stdout, child.stderr]) output.setEncoding('utf8').on('data', onText);
    child.once('error', reject);
    child.once('exit', (code) => {
      clearTimeout(timer);
      fail(`ended with ${code} before it listened`);
    });
  });
}
