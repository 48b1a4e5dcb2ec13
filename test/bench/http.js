// The HTTP rows: calls answered with JSON, over one connection and over many at once.
import { setTimeout as sleep } from 'node:timers/promises';
import { format, histogram, median, ratioRow } from './figures.js';
import { lossText, measureInTurn, withLoss } from './http-contestants.js';
import { load } from './load.js';
import { machineTime } from './processor.js';

const MANY = 32;

export async function benchHttp(folder, { httpRounds, httpSeconds, httpWarmUp, without, progress }) {
  const { results, count } = await measureInTurn(folder, {
    rounds: httpRounds,
    progress,
    what: 'HTTP',
    without,
    warmUp: (url) => load(url, { connections: MANY, seconds: FIRST_SECONDS }),
    measure: (url, processor) => measure(url, processor, httpWarmUp, httpSeconds),
  });
  return {
    absolute: absoluteRows(results),
    first: firstRows(results),
    histograms: histogramsOf(results),
    loss: lossText(count),
    rows: httpRows(results, count),
  };
}

/** The first seconds of a program are figures of their own: V8 compiles what is to run, on the same two cores. */
const FIRST_SECONDS = 3;

/** Between them and the other figures lie `warmUp` seconds: until little is left to compile, in the bare library as in ours. */
async function measure(url, processor, warmUp, seconds) {
  const first = await loadOf(url, processor, { connections: MANY, seconds: FIRST_SECONDS });
  const warm = await load(url, { connections: MANY, seconds: warmUp });
  const left = await settle(processor);
  const one = await loadOf(url, processor, { connections: 1, seconds });
  await settle(processor);
  const many = await loadOf(url, processor, { connections: MANY, seconds });
  return {
    firstRate: first.rate,
    firstP99: first.p99,
    firstProcessor: first.processor,
    firstMachine: first.machine,
    firstIdle: first.idle,
    left: left / (first.requests + warm.requests),
    oneRate: one.rate,
    oneP99: one.p99,
    oneClasses: one.classes,
    oneProcessor: one.processor,
    manyRate: many.rate,
    manyP99: many.p99,
    manyClasses: many.classes,
    manyProcessor: many.processor,
    failed: first.failed + warm.failed + one.failed + many.failed,
    messages: 2 * (first.requests + warm.requests + one.requests + many.requests),
    // The end of a run leaves at most one request open on each connection.
    brokenOff: MANY + MANY + 1 + MANY,
  };
}

/** A program that takes no more than a twentieth of a processor has nothing left to do but to wait. */
const LOOK_EVERY_MS = 200;
const WAITING_US = 10_000;

/**
 * Until a program has done what it left for a pause: a recorder makes its index of the messages of a flood then, which is not the
 * cost of the next requests. Resolves with the processor time that it took, in µs.
 */
async function settle(processor) {
  const began = processor();
  for (let last = began; ; ) {
    await sleep(LOOK_EVERY_MS);
    const now = processor();
    if (now - last < WAITING_US) return now - began;
    last = now;
  }
}

/**
 * Of the time in which there are requests: `processor`, microseconds a request of the one that is measured; `machine`, those of
 * all programs, with the server and who asks; `idle`, the share of the processors' time in which they have nothing to do.
 */
async function loadOf(url, processor, how) {
  const times = () => ({ own: processor(), ...machineTime() });
  const before = times();
  let after;
  const onEnded = () => {
    after = times();
  };
  const figures = await load(url, { ...how, onEnded });
  const [own, busy, idle] = ['own', 'busy', 'idle'].map((what) => after[what] - before[what]);
  const { requests } = figures;
  return { ...figures, processor: own / requests, machine: busy / requests, idle: idle / (busy + idle) };
}

function histogramsOf(results) {
  const of = (figure) =>
    histogram(Object.fromEntries(Object.entries(results).map(([n, r]) => [n, r[figure]])));
  return { '1 connection': of('oneClasses'), [`${MANY} connections`]: of('manyClasses') };
}

function httpRows({ bare, least, reader, limit, before, tapedeck, unredacted }, count) {
  const row = (what, figure, bound, unit) => {
    const yardstick = 'httpxy alone';
    return withLoss(
      ratioRow(
        `HTTP JSON, ${what}`,
        tapedeck[figure],
        bare[figure],
        {
          ...bound,
          yardstick,
          others: {
            least: least[figure],
            reader: reader?.[figure],
            limit: limit?.[figure],
            before: before?.[figure],
          },
        },
        unit,
      ),
      count,
      tapedeck,
    );
  };
  const rows = (what, name) => [
    row(`${what}: requests/s`, `${name}Rate`, { atLeast: 0.75 }, 'req/s'),
    row(`${what}: p99`, `${name}P99`, { atMost: 2 }, 'µs'),
    ...(tapedeck[`${name}Processor`][0] > 0
      ? [row(`${what}: processor time a request`, `${name}Processor`, { atMost: 1.5 }, 'µs')]
      : []),
  ];
  return [
    ...rows('1 connection', 'one'),
    ...rows(`${MANY} connections`, 'many'),
    ...rows(`${MANY} connections, the first ${FIRST_SECONDS} seconds`, 'first'),
    ...(unredacted === undefined ? [] : redactionRows(tapedeck, unredacted)),
  ];
}

function redactionRows(tapedeck, unredacted) {
  const what = (connections) => `HTTP JSON, ${connections}: requests/s, with redaction against without`;
  const bound = { atLeast: 0.9, yardstick: 'no redaction' };
  return [
    ratioRow(what('1 connection'), tapedeck.oneRate, unredacted.oneRate, bound, 'req/s'),
    ratioRow(what(`${MANY} connections`), tapedeck.manyRate, unredacted.manyRate, bound, 'req/s'),
  ];
}

/** In how far requests and processor time are one figure: where the processors have no more to give, who takes more of them answers less. */
function firstRows(results) {
  return Object.entries(results).map(
    ([name, { firstRate, firstProcessor, firstMachine, firstIdle, left }]) => ({
      variant: name,
      'requests/s': format(median(firstRate)),
      'its processor µs a request': name === 'direct' ? '' : format(median(firstProcessor)),
      'µs a request of all programs': format(median(firstMachine)),
      'processors idle': `${Math.round(100 * median(firstIdle))} %`,
      'its µs a request, in the pause after': name === 'direct' ? '' : format(median(left)),
    }),
  );
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
