// The SSE rows: how much later than without a proxy each event of a stream arrives. An event carries the time it was
// sent at; the clock is the machine's, the same in all processes. And whether a stream of very many small events is recorded
// whole, and in how much memory.
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { format, median, percentile, ratioRow } from './figures.js';
import {
  addLoss,
  contestants,
  createCount,
  filesIn,
  lossText,
  startContestant,
  startProgram,
  startTapedeck,
  UPSTREAM,
  withLoss,
} from './http-contestants.js';
import { removeStore } from './stdio.js';
import { inTurn } from './turns.js';

/** So many that each program is compiled before the clock counts, then few, each on its own. */
const WARM_UP = { events: 5000, everyMs: 1, atOnce: 10 };
const BLOCK = { events: 100, everyMs: 2, atOnce: 1 };

/** Some more than the 50,000 that are wanted. */
const FLOOD = { everyMs: 1, perSecond: 55_000 };

export async function benchSse(folder, { sseRounds, sseBlocks, floodEvents, progress }) {
  const rounds = [];
  const count = createCount();
  const upstream = await startProgram(UPSTREAM);
  try {
    for (let round = 0; round < sseRounds; round += 1) {
      progress(`SSE round ${round + 1} of ${sseRounds}`);
      rounds.push(await measureRound(upstream.url, filesIn(folder), sseBlocks, count));
    }
  } finally {
    await upstream.stop();
  }
  const rows = [sseRow(rounds, count), ...(await floodRows(folder, floodEvents, progress))];
  return { absolute: absoluteRows(rounds), loss: lossText(count), rows };
}

/**
 * All are started, and have short streams in turn: the speed of a machine changes within seconds, and depends on which processor a
 * program happens to run on, by more than a proxy adds. Gives the median delay of each stream by contestant.
 */
async function measureRound(upstream, files, blocks, count) {
  const names = contestants(['reader', 'unredacted']);
  const programs = new Map();
  const delays = Object.fromEntries(names.map((name) => [name, []]));
  const urlOf = (name) => programs.get(name)?.url ?? upstream;
  try {
    for (const name of names) {
      programs.set(name, await startContestant(name, upstream, files));
      await receive(urlOf(name), WARM_UP);
    }
    for (let block = 0; block < blocks; block += 1) {
      for (const name of inTurn(names, block))
        delays[name].push(percentile(await receive(urlOf(name), BLOCK), 0.5));
    }
  } finally {
    for (const program of programs.values()) await program?.stop();
  }
  // Of each stream also the request and its answer.
  const messages = WARM_UP.events + blocks * BLOCK.events + 2 * (1 + blocks);
  addLoss(count, files.store, 1 + blocks, { messages, brokenOff: 0 });
  for (const file of Object.values(files)) removeStore(file);
  return delays;
}

async function floodRows(folder, events, progress) {
  progress(`a stream of ${events} events`);
  const store = join(folder, 'flood.db');
  const upstream = await startProgram(UPSTREAM);
  const direct = await flood(upstream.url, events);
  const tapedeck = await startTapedeck(upstream.url, { store });
  const memory = [];
  const timer = setInterval(() => memory.push(tapedeck.memoryMb()), 200);
  const recorded = await flood(tapedeck.url, events);
  clearInterval(timer);
  await tapedeck.stop();
  await upstream.stop();
  const db = new Database(store, { readonly: true });
  const stored = db.prepare("SELECT count(*) FROM frame WHERE channel = 'sse'").pluck().get();
  db.close();
  // The answer is one more event.
  const lost = events + 1 - stored;
  const what = `SSE: one stream of ${format(events)} events, of which ${format(FLOOD.perSecond)} a second are due`;
  const rate = ratioRow(what, [recorded], [direct], { yardstick: 'no proxy' }, 'events/s');
  return [
    {
      ...rate,
      wanted: '≥ 50,000 a second, none lost',
      met: lost > 0 ? `LOST ${lost}` : recorded >= 50_000 ? 'yes' : 'NO',
    },
    growthRow(memory),
  ];
}

/** By medians: V8 lets garbage lie until it collects, so the most of a time says when that was, and not whether memory grows. */
function growthRow(memory) {
  const settled = memory.slice(Math.floor(memory.length / 5));
  const middle = Math.floor(settled.length / 2);
  const [early, late] = [settled.slice(0, middle), settled.slice(middle)].map(median);
  const what = `SSE: memory towards its end (${format(Math.max(...memory))} MB at most)`;
  return ratioRow(what, [late], [early], { atMost: 1.2, yardstick: 'before' }, 'MB');
}

/** Events a second. They are counted by their ends: parsing them here would take longer than passing them on. */
async function flood(url, events) {
  const began = performance.now();
  const answer = await ask(url, { ...FLOOD, events });
  let seen = 0;
  let isAfterLf = false;
  answer.on('data', (bytes) => {
    for (const byte of bytes) {
      if (byte === 0x0a && isAfterLf) seen += 1;
      isAfterLf = byte === 0x0a;
    }
  });
  await once(answer, 'end');
  if (seen !== events + 1) throw new Error(`${seen} of ${events + 1} events came`);
  return (events / (performance.now() - began)) * 1000;
}

async function ask(url, wanted) {
  const params = { name: 'stream', arguments: wanted };
  const asked = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  });
  asked.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  const [answer] = await once(asked, 'response');
  return answer;
}

/** The delay of each event in microseconds. Throws where one is missing. */
async function receive(url, wanted) {
  const answer = await ask(url, wanted);
  const delays = [];
  let rest = '';
  answer.setEncoding('utf8').on('data', (text) => {
    const now = Number(process.hrtime.bigint()) / 1000;
    const parts = (rest + text).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const { params } = JSON.parse(part.slice(part.indexOf('data: ') + 6));
      if (params !== undefined) delays.push(now - params.sentAt);
    }
  });
  await once(answer, 'end');
  if (delays.length !== wanted.events) throw new Error(`${delays.length} of ${wanted.events} events came`);
  return delays;
}

/** Ratio of what each proxy adds to the delay without one, by the medians of each round. */
function sseRow(rounds, count) {
  const added = (name) => rounds.map((delays) => median(delays[name]) - median(delays.direct));
  const [ours, theirs] = [added('tapedeck'), added('bare')];
  const others = {
    least: added('least'),
    limit: added('limit'),
    before: Object.hasOwn(rounds[0], 'before') ? added('before') : undefined,
  };
  const what = 'SSE: added delay per event, p50 less that of direct';
  const row = ratioRow(what, ours, theirs, { atMost: 1.2, yardstick: 'httpxy alone', others }, 'µs');
  // Where noise swallows what a proxy adds, their ratio says nothing.
  if (median(ours) <= 0 || median(theirs) <= 0) Object.assign(row, { ratio: 'none', met: 'UNCLEAR' });
  return withLoss(row, count);
}

function absoluteRows(rounds) {
  return Object.keys(rounds[0]).map((name) => {
    const delays = rounds.flatMap((round) => round[name]);
    return {
      variant: name,
      'delay of an event, µs: median of the streams': format(median(delays)),
      quarter: format(percentile(delays, 0.25)),
      'three quarters': format(percentile(delays, 0.75)),
    };
  });
}
