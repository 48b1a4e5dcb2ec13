// The SSE rows: how much later than without a proxy each event of a stream arrives. An event carries the time it was
// sent at; the clock is the machine's, the same in all processes. And whether a stream of very many small events is recorded
// whole, and in how much memory.
import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { format, median, percentile, ratioRow } from './figures.js';
import {
  lossText,
  measureInTurn,
  startProgram,
  startTapedeck,
  UPSTREAM,
  withLoss,
} from './http-contestants.js';

/** So many that each program is compiled before the clock counts, then few, each on its own. */
const WARM_UP = { events: 5000, everyMs: 1, atOnce: 10 };
const RATE = { everyMs: 2, atOnce: 1 };

/** Some more than the 50,000 that are wanted. */
const FLOOD = { everyMs: 1, perSecond: 55_000 };

export async function benchSse(folder, { httpRounds, events, floodEvents, progress }) {
  const { results, count } = await measureInTurn(folder, {
    rounds: httpRounds,
    progress,
    what: 'SSE',
    without: ['reader'],
    measure: (url) => measure(url, events),
  });
  const rows = [sseRow(results, count), ...(await floodRows(folder, floodEvents, progress))];
  return { absolute: absoluteRows(results), loss: lossText(count), rows };
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
  const fifth = memory[Math.floor(memory.length / 5)];
  const growth = Math.max(...memory) / fifth;
  return [
    {
      ...rate,
      wanted: '≥ 50,000 a second, none lost',
      met: lost > 0 ? `LOST ${lost}` : recorded >= 50_000 ? 'yes' : 'NO',
    },
    {
      what: 'SSE: the most memory in that time',
      tapedeck: `${format(Math.max(...memory))} MB`,
      against: `${format(fifth)} MB after a fifth`,
      ratio: `${growth.toFixed(2)}×`,
      wanted: '≤ 1.5×',
      met: growth <= 1.5 ? 'yes' : 'NO',
    },
  ];
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

async function measure(url, events) {
  const warm = await receive(url, WARM_UP);
  const delays = await receive(url, { ...RATE, events });
  return {
    p50: percentile(delays, 0.5),
    p99: percentile(delays, 0.99),
    failed: WARM_UP.events - warm.length + events - delays.length,
    // Of each stream also the request and its answer.
    messages: warm.length + delays.length + 4,
    brokenOff: 0,
  };
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

/** The delay of each event in microseconds. */
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
  return delays;
}

/** Ratio of what each proxy adds to the delay without one, of which the median over all rounds is taken. */
function sseRow({ direct, bare, least, tapedeck }, count) {
  const without = median(direct.p50);
  const [ours, theirs, leasts] = [tapedeck, bare, least].map(({ p50 }) =>
    p50.map((delay) => delay - without),
  );
  const what = 'SSE: added delay per event, p50 less that of direct';
  const row = ratioRow(what, ours, theirs, { atMost: 1.2, yardstick: 'httpxy alone', least: leasts }, 'µs');
  // Where noise swallows what a proxy adds, their ratio says nothing.
  if (median(ours) <= 0 || median(theirs) <= 0) Object.assign(row, { ratio: 'none', met: 'UNCLEAR' });
  return withLoss(row, count, tapedeck);
}

function absoluteRows(results) {
  return Object.entries(results).map(([name, { p50, p99, failed }]) => ({
    variant: name,
    'delay of an event, p50 µs': format(median(p50)),
    'p99 µs': format(median(p99)),
    failed: failed.reduce((sum, n) => sum + n, 0),
  }));
}
