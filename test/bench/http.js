// The HTTP rows: calls answered with JSON, over one connection and over many at once.
import { format, median, ratioRow } from './figures.js';
import { lossText, measureInTurn, withLoss } from './http-contestants.js';
import { load } from './load.js';

const MANY = 32;

export async function benchHttp(folder, { httpRounds, httpSeconds, progress }) {
  const { results, count } = await measureInTurn(folder, {
    rounds: httpRounds,
    progress,
    what: 'HTTP',
    measure: (url) => measure(url, httpSeconds),
  });
  return { absolute: absoluteRows(results), loss: lossText(count), rows: httpRows(results, count) };
}

async function measure(url, seconds) {
  const warm = await load(url, { connections: MANY, seconds: 1 });
  const one = await load(url, { connections: 1, seconds });
  const many = await load(url, { connections: MANY, seconds });
  return {
    oneRate: one.rate,
    oneP99: one.p99,
    manyRate: many.rate,
    manyP99: many.p99,
    failed: warm.failed + one.failed + many.failed,
    messages: 2 * (warm.requests + one.requests + many.requests),
    // The end of a run leaves at most one request open on each connection.
    brokenOff: MANY + 1 + MANY,
  };
}

function httpRows({ bare, tapedeck, unredacted }, count) {
  const row = (what, figure, bound, unit) =>
    withLoss(ratioRow(what, tapedeck[figure], bare[figure], bound, unit), count, tapedeck);
  return [
    row('HTTP JSON, 1 connection: requests/s', 'oneRate', { atLeast: 0.9 }, 'req/s'),
    row('HTTP JSON, 1 connection: p99', 'oneP99', { atMost: 1.25 }, 'µs'),
    row(`HTTP JSON, ${MANY} connections: requests/s`, 'manyRate', { atLeast: 0.9 }, 'req/s'),
    row(`HTTP JSON, ${MANY} connections: p99`, 'manyP99', { atMost: 1.25 }, 'µs'),
    ...(unredacted === undefined ? [] : redactionRows(tapedeck, unredacted)),
  ];
}

function redactionRows(tapedeck, unredacted) {
  const what = (connections) => `HTTP JSON, ${connections}: requests/s, with redaction against without`;
  return [
    ratioRow(what('1 connection'), tapedeck.oneRate, unredacted.oneRate, { atLeast: 0.9 }, 'req/s'),
    ratioRow(what(`${MANY} connections`), tapedeck.manyRate, unredacted.manyRate, { atLeast: 0.9 }, 'req/s'),
  ];
}

function absoluteRows(results) {
  return Object.entries(results).map(([name, { oneRate, oneP99, manyRate, manyP99, failed }]) => ({
    variant: name,
    'requests/s, 1 connection': format(median(oneRate)),
    'p99 µs, 1 connection': format(median(oneP99)),
    [`requests/s, ${MANY} connections`]: format(median(manyRate)),
    [`p99 µs, ${MANY} connections`]: format(median(manyP99)),
    failed: failed.reduce((sum, n) => sum + n, 0),
  }));
}
