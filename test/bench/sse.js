// The SSE row: how much later than without a proxy each event of a stream arrives. An event carries the time it was
// sent at; the clock is the machine's, the same in all processes.
import { once } from 'node:events';
import { request } from 'node:http';
import { format, median, percentile, ratioRow } from './figures.js';
import { lossText, measureInTurn, withLoss } from './http-contestants.js';

/** So many that each program is compiled before the clock counts, then few, each on its own. */
const WARM_UP = { events: 5000, everyMs: 1, atOnce: 10 };
const RATE = { everyMs: 2, atOnce: 1 };

export async function benchSse(folder, { httpRounds, events, progress }) {
  const { results, count } = await measureInTurn(folder, {
    rounds: httpRounds,
    progress,
    what: 'SSE',
    measure: (url) => measure(url, events),
  });
  return { absolute: absoluteRows(results), loss: lossText(count), rows: [sseRow(results, count)] };
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

/** The delay of each event in microseconds. */
async function receive(url, wanted) {
  const params = { name: 'stream', arguments: wanted };
  const asked = request(url, {
    method: 'POST',
    agent: false,
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
  });
  asked.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }));
  const [answer] = await once(asked, 'response');
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
function sseRow({ direct, bare, tapedeck }, count) {
  const without = median(direct.p50);
  const [ours, theirs] = [tapedeck, bare].map(({ p50 }) => p50.map((delay) => delay - without));
  const what = 'SSE: added delay per event, p50 less that of direct';
  const row = ratioRow(what, ours, theirs, { atMost: 1.2, yardstick: 'httpxy alone' }, 'µs');
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
