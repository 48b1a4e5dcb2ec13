// The rows of replay: how fast recorded answers are given, against the server that gave them, in turn and in one run.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { callEcho, startClient } from './client.js';
import { format, median, percentile, ratioRow } from './figures.js';
import { isInstalled, startProgram, UPSTREAM } from './http-contestants.js';
import { load, textOf } from './load.js';
import { makeRecording } from './long-recording.js';
import { before, IN_FLIGHT, SERVERS } from './stdio.js';

const TAPEDECK = [process.execPath, join(import.meta.dirname, '../../bin/tapedeck.js')];
const WARM_UP_CALLS = 2000;
const WARM_UP_PARALLEL_CALLS = 20_000;
const HTTP_CALLS = 6000;
const FIXTURE_CALLS = 6000;
const CONNECTIONS = 32;

/** Takes part where it is installed. */
const RIVAL = 'mcp-cassette';

export async function benchReplay(folder, size) {
  const stdio = await benchStdio(folder, size);
  const fixture = await benchFixture(folder, size);
  const http = await benchHttp(folder, size);
  return {
    absolute: absoluteRows(stdio, http),
    rows: [
      ...stdioRows('replay', stdio),
      ...stdioRows('replay of a fixture, cold', fixture),
      othersRow('replay of a fixture, cold: spawn to first answer', fixture, 'start', {}, 'ms'),
      ...httpRows(http),
    ],
  };
}

/** All calls differ, and each has its own counterpart in the recording. */
async function benchStdio(folder, { rounds, sequentialCalls, parallelCalls, progress }) {
  const db = join(folder, 'replay.db');
  const calls = WARM_UP_CALLS + sequentialCalls + WARM_UP_PARALLEL_CALLS + parallelCalls;
  progress(`a recording of ${calls} calls`);
  // The numbers of a recording's calls begin with 1.
  makeRecording(db, { name: 'bench', calls, textOf: (i) => textOf(i - 1, calls) });
  const commands = await commandsFor(db, calls);
  return await inTurn(commands, rounds, progress, 'replay by stdio', async (command) => {
    const client = await startClient(command);
    let said = 0;
    const say = (count, inFlight) => {
      const from = said;
      said += count;
      return callEcho(client, count, inFlight, (i) => textOf(from + i, calls));
    };
    await say(WARM_UP_CALLS, 1);
    const times = await say(sequentialCalls, 1);
    await say(WARM_UP_PARALLEL_CALLS, IN_FLIGHT);
    const began = performance.now();
    await say(parallelCalls, IN_FLIGHT);
    const rate = (parallelCalls / (performance.now() - began)) * 1000;
    await client.close();
    const [p50, p99] = [0.5, 0.99].map((p) => percentile(times, p) * 1000);
    return { p50, p99, rate, failed: client.errors() };
  });
}

/** An older version cannot read what this one has stored: it plays what it has recorded itself. */
async function commandsFor(db, calls) {
  const replay = [...TAPEDECK, 'replay', 'bench', '--db', db];
  if (before === undefined) return { server: SERVERS.echo, replay };
  const own = `${db}.before`;
  await record([...before, 'record', '--db', own, '--', ...SERVERS.echo], calls);
  completeIndex(before, own);
  return { server: SERVERS.echo, before: [...before, 'replay', 'latest', '--db', own], replay };
}

async function record(command, calls) {
  const client = await startClient(command);
  await callEcho(client, calls, IN_FLIGHT, (i) => textOf(i, calls));
  await client.close();
}

/** A recording of as many calls as a test has, from the first call of a process on. */
async function benchFixture(folder, { fixtureRounds, progress }) {
  const db = join(folder, 'replay-fixture.db');
  makeRecording(db, { name: 'bench', calls: FIXTURE_CALLS, textOf: (i) => textOf(i - 1, FIXTURE_CALLS) });
  const commands = await commandsFor(db, FIXTURE_CALLS);
  if (isInstalled(RIVAL, '--version')) {
    const tape = join(folder, 'rival.cassette.jsonl');
    await record([RIVAL, 'record', '-o', tape, '--', ...SERVERS.echo], FIXTURE_CALLS);
    commands[RIVAL] = [RIVAL, 'replay', tape];
  }
  return await inTurn(commands, fixtureRounds, progress, 'replay of a fixture', async (command) => {
    const say = (client, inFlight) =>
      callEcho(client, FIXTURE_CALLS, inFlight, (i) => textOf(i, FIXTURE_CALLS));
    const first = await startClient(command);
    const times = await say(first, 1);
    await first.close();
    const second = await startClient(command);
    const began = performance.now();
    await say(second, IN_FLIGHT);
    const rate = (FIXTURE_CALLS / (performance.now() - began)) * 1000;
    await second.close();
    const [p50, p99] = [0.5, 0.99].map((p) => percentile(times, p) * 1000);
    return { p50, p99, rate, start: first.startMs, failed: first.errors() + second.errors() };
  });
}

/** All calls of the recording differ. It is shorter than the load, so it is played again and again. */
async function benchHttp(folder, { httpRounds, httpSeconds, progress }) {
  const db = join(folder, 'replay-http.db');
  const upstream = await startProgram(UPSTREAM);
  try {
    const commands = { server: null };
    const versions = { before, replay: TAPEDECK };
    for (const [name, version] of Object.entries(versions)) {
      if (version === undefined) continue;
      const own = `${db}.${name}`;
      await recordHttp(version, upstream.url, own);
      const replay = [...version, 'replay', 'latest', '--db', own, '--listen', '127.0.0.1:0'];
      commands[name] = [...replay, '--repeat', 'cycle'];
    }
    return await inTurn(commands, httpRounds, progress, 'replay by HTTP', async (command) => {
      const program = command === null ? null : await startProgram(command);
      const figures = await measureHttp(program?.url ?? upstream.url, httpSeconds);
      await program?.stop();
      return figures;
    });
  } finally {
    await upstream.stop();
  }
}

async function recordHttp(tapedeck, url, db) {
  const recorder = await startProgram([...tapedeck, 'record', url, '--listen', '127.0.0.1:0', '--db', db]);
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const say = async (id) => {
    const params = { name: 'echo', arguments: { text: textOf(id, HTTP_CALLS) } };
    const body = JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params });
    await (await fetch(recorder.url, { method: 'POST', headers, body })).text();
  };
  const ids = Array.from({ length: HTTP_CALLS }, (_, i) => i + 1);
  while (ids.length > 0) await Promise.all(ids.splice(0, CONNECTIONS).map(say));
  await recorder.stop();
  completeIndex(tapedeck, db);
}

/** Whoever reads a session makes its index whole. */
function completeIndex([command, ...args], db) {
  const stdio = ['ignore', 'ignore', 'pipe'];
  const { status, stderr } = spawnSync(command, [...args, 'show', '--db', db], { stdio });
  if (status !== 0) throw new Error(String(stderr));
}

async function measureHttp(url, seconds) {
  const texts = HTTP_CALLS;
  const warm = await load(url, { connections: CONNECTIONS, seconds: 2, texts });
  const one = await load(url, { connections: 1, seconds, texts });
  const many = await load(url, { connections: CONNECTIONS, seconds, texts });
  return {
    p50: one.p50,
    oneRate: one.rate,
    manyRate: many.rate,
    failed: warm.failed + one.failed + many.failed,
  };
}

/** All figures of each command in each round, collected by command and figure. */
async function inTurn(commands, rounds, progress, what, measure) {
  const names = Object.keys(commands);
  const results = Object.fromEntries(names.map((name) => [name, {}]));
  for (let round = 0; round < rounds; round += 1) {
    progress(`${what} round ${round + 1} of ${rounds}`);
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      for (const [figure, value] of Object.entries(await measure(commands[name]))) {
        results[name][figure] ??= [];
        results[name][figure].push(value);
      }
    }
  }
  return results;
}

function stdioRows(what, results) {
  const rowOf = (how, ...more) => othersRow(`${what}: ${how}`, results, ...more);
  return [
    rowOf('one call at a time, p50', 'p50', { atMost: 1.5 }, 'µs'),
    rowOf('one call at a time, p99', 'p99', { atMost: 2 }, 'µs'),
    rowOf(`${IN_FLIGHT} calls in flight`, 'rate', { atLeast: 0.5 }, 'answers/s'),
  ];
}

/** With a column for whoever else took part. */
function othersRow(what, { server, replay, ...more }, figure, bound, unit) {
  const others = mapValues(more, (results) => results[figure]);
  const failed = Object.entries(more).filter(([, results]) => failuresOf(results) > 0);
  return {
    ...row(what, server[figure], replay, figure, { ...bound, others }, unit),
    ...mapValues(Object.fromEntries(failed), (results) => `FAILED ${failuresOf(results)}`),
  };
}

function mapValues(object, of) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, of(value)]));
}

function httpRows(results) {
  const rowOf = (how, ...more) => othersRow(`replay by HTTP: ${how}`, results, ...more);
  return [
    rowOf('1 connection, p50', 'p50', {}, 'µs'),
    rowOf('1 connection', 'oneRate', {}, 'answers/s'),
    rowOf(`${CONNECTIONS} connections`, 'manyRate', { atLeast: 0.5 }, 'answers/s'),
  ];
}

function row(what, theirs, replay, figure, bound, unit) {
  const yardstick = 'the server that was recorded';
  return withFailures(ratioRow(what, replay[figure], theirs, { ...bound, yardstick }, unit), replay);
}

/** A mock that refuses is fast for nothing. */
function withFailures(row, replay) {
  return failuresOf(replay) > 0 ? { ...row, met: `FAILED ${failuresOf(replay)}` } : row;
}

function failuresOf({ failed }) {
  return failed.reduce((sum, n) => sum + n, 0);
}

function absoluteRows(stdio, http) {
  return ['server', 'replay'].map((name) => ({
    variant: name,
    'stdio p50 µs': format(median(stdio[name].p50)),
    'stdio p99 µs': format(median(stdio[name].p99)),
    [`stdio answers/s, ${IN_FLIGHT} in flight`]: format(median(stdio[name].rate)),
    'HTTP p50 µs, 1 connection': format(median(http[name].p50)),
    'HTTP answers/s, 1 connection': format(median(http[name].oneRate)),
    [`HTTP answers/s, ${CONNECTIONS} connections`]: format(median(http[name].manyRate)),
  }));
}
