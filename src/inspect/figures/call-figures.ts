/** Figures of calls and notifications: how many, how they ended, how long they took, how many bytes they had. */

import { addCosts, type Costs, type CostsRow, costsRow, noCosts, readCosts } from './costs.ts';

/** A call: a request with its answer, if it has one. Or a notification. */
export type CallRecord = {
  kind: 'request' | 'notification';
  askedBy: 'client' | 'server';
  method: string;
  /** The tool or prompt; null for other methods. */
  target: string | null;
  outcome: CallStatus | null;
  /** Microseconds. */
  latency: number | null;
  bytes: number;
  /** Those of the answer alone. */
  answerBytes: number;
  /** The frames of its request, and of its answer or cancellation. */
  from: number;
  until: number | null;
};

const OUTCOMES = ['ok', 'tool-error', 'error', 'cancelled', 'input-required', 'unanswered', 'fault'] as const;

export type CallStatus = (typeof OUTCOMES)[number];

/** The key by which figures are grouped. */
export type Topic = Pick<CallRecord, 'kind' | 'askedBy' | 'method' | 'target'>;

export type Figures = Topic & {
  count: number;
  outcomes: Map<CallStatus, number>;
  bytes: number;
  answerBytes: number;
  /** The largest number of calls of one session that waited for their answers at the same time. */
  atOnce: number;
  latencies: Latencies;
};

export function noFigures({ kind, askedBy, method, target }: Topic): Figures {
  const topic = { kind, askedBy, method, target };
  return {
    ...topic,
    count: 0,
    outcomes: new Map(),
    bytes: 0,
    answerBytes: 0,
    atOnce: 0,
    latencies: noLatencies(),
  };
}

/** The length keeps a method and a target apart, whatever is in them. */
export function topicKey({ kind, askedBy, method, target }: Topic): string {
  return `${kind} ${askedBy} ${method.length} ${method}${target === null ? '' : ` ${target}`}`;
}

/** The figures of one session. */
export type SessionFigures = {
  topics: Figures[];
  /** `atOnce` of whole methods, and of all calls; see `methodKey`. It does not follow from that of the topics. */
  atOnce: Record<string, number>;
  costs: Costs;
};

export function methodKey({ askedBy, method }: Topic): string {
  return `${askedBy} ${method}`;
}

/** The key of all calls together. */
export const ALL_METHODS = '';

/** The figures of calls that come in the order of their requests. */
export function figuresOf(calls: Iterable<CallRecord>): SessionFigures {
  const topics = new Map<string, { figures: Figures; peak: Peak }>();
  const peaks = new Map<string, Peak>();
  for (const call of calls) {
    const key = topicKey(call);
    const topic = topics.get(key) ?? { figures: noFigures(call), peak: noPeak() };
    topics.set(key, topic);
    addCall(topic.figures, call);
    if (call.kind === 'notification') continue;
    topic.figures.atOnce = addToPeak(topic.peak, call);
    for (const wider of [methodKey(call), ALL_METHODS]) {
      const peak = peaks.get(wider) ?? noPeak();
      peaks.set(wider, peak);
      addToPeak(peak, call);
    }
  }
  return {
    topics: [...topics.values()].map(({ figures }) => figures),
    atOnce: Object.fromEntries([...peaks].map(([key, { most }]) => [key, most])),
    costs: noCosts(),
  };
}

function addCall(figures: Figures, { kind, bytes, answerBytes, outcome, latency }: CallRecord): void {
  // What was put in on purpose says nothing of a server: it is counted, and counts for nothing else.
  if (outcome === 'fault') {
    addOutcome(figures, outcome, 1);
    return;
  }
  figures.count += 1;
  figures.bytes += bytes;
  figures.answerBytes += answerBytes;
  if (kind === 'request') addOutcome(figures, outcome ?? 'unanswered', 1);
  if (latency !== null) addLatency(figures.latencies, latency);
}

/** The frames where open calls end, how many never end, and the most that were open at once. */
type Peak = { untils: number[]; forEver: number; most: number };

function noPeak(): Peak {
  return { untils: [], forEver: 0, most: 0 };
}

function addToPeak(peak: Peak, { from, until }: CallRecord): number {
  peak.untils = peak.untils.filter((end) => end > from);
  if (until === null) peak.forEver += 1;
  else peak.untils.push(until);
  peak.most = Math.max(peak.most, peak.untils.length + peak.forEver);
  return peak.most;
}

function addOutcome({ outcomes }: Figures, outcome: CallStatus, count: number): void {
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
}

export function noSessionFigures(): SessionFigures {
  return { topics: [], atOnce: {}, costs: noCosts() };
}

/** Adds the figures of another session to these. */
export function addSessionFigures(to: SessionFigures, more: SessionFigures): void {
  const topics = new Map(to.topics.map((topic) => [topicKey(topic), topic]));
  for (const one of more.topics) {
    const key = topicKey(one);
    const topic = topics.get(key) ?? noFigures(one);
    topics.set(key, topic);
    addFigures(topic, one);
    topic.atOnce = Math.max(topic.atOnce, one.atOnce);
  }
  to.topics = [...topics.values()];
  for (const [key, most] of Object.entries(more.atOnce)) to.atOnce[key] = Math.max(to.atOnce[key] ?? 0, most);
  addCosts(to.costs, more.costs);
}

/** Adds the figures of another topic or session, but for `atOnce`. */
export function addFigures(to: Figures, more: Figures): void {
  to.count += more.count;
  to.bytes += more.bytes;
  to.answerBytes += more.answerBytes;
  for (const [outcome, count] of more.outcomes) addOutcome(to, outcome, count);
  addLatencies(to.latencies, more.latencies);
}

/** The text that is kept in the side file. It is short, because thousands may be read at once. */
export function figuresText({ topics, atOnce: peaks, costs }: SessionFigures): string {
  const written = topics.map(
    ({ kind, askedBy, method, target, count, bytes, answerBytes, atOnce, outcomes, latencies }) => {
      const { least, most, classes } = latencies;
      const topic = [kind === 'request' ? 1 : 0, askedBy === 'client' ? 1 : 0, method, target];
      const ended = OUTCOMES.map((outcome) => outcomes.get(outcome) ?? 0);
      return [...topic, count, bytes, answerBytes, atOnce, least, most, ended, [...classes].flat()];
    },
  );
  return JSON.stringify([peaks, written, costsRow(costs)]);
}

type TopicRow = [
  ...topic: [isRequest: number, isClient: number, method: string, target: string | null],
  ...figures: [
    count: number,
    bytes: number,
    answerBytes: number,
    atOnce: number,
    least: number,
    most: number,
  ],
  ended: number[],
  classes: number[],
];

/** What `figuresText` wrote. */
export function readFigures(text: string): SessionFigures {
  const [atOnce, topics, costs] = JSON.parse(text) as [Record<string, number>, TopicRow[], CostsRow];
  return { topics: topics.map(readTopic), atOnce, costs: readCosts(costs) };
}

function readTopic([isRequest, isClient, method, target, ...figures]: TopicRow): Figures {
  const [count, bytes, answerBytes, atOnce, least, most, ended, classes] = figures;
  const counts = new Map<number, number>();
  for (let i = 0; i < classes.length; i += 2) counts.set(classes[i] ?? 0, classes[i + 1] ?? 0);
  const answered = [...counts.values()].reduce((sum, some) => sum + some, 0);
  const outcomes = OUTCOMES.map((outcome, i): [CallStatus, number] => [outcome, ended[i] ?? 0]);
  return {
    kind: isRequest === 1 ? 'request' : 'notification',
    askedBy: isClient === 1 ? 'client' : 'server',
    method,
    target,
    count,
    outcomes: new Map(outcomes.filter(([, some]) => some > 0)),
    bytes,
    answerBytes,
    atOnce,
    latencies: { classes: counts, count: answered, least, most },
  };
}

/**
 * A histogram of latencies whose classes are 1 % wide. It takes little memory for any number of them, percentiles are exact
 * to half a per cent, and the histograms of several sessions can be added.
 */

type Latencies = {
  /** How many there are of each class. */
  classes: Map<number, number>;
  count: number;
  /** Microseconds; 0 where there are none. */
  least: number;
  most: number;
};

const WIDTH = Math.log(1.01);

export function noLatencies(): Latencies {
  return { classes: new Map(), count: 0, least: 0, most: 0 };
}

/** Adds one latency. */
export function addLatency(to: Latencies, microseconds: number): void {
  const latency = Math.max(0, microseconds);
  addCount(to, classOf(latency), 1);
  to.least = to.count === 0 ? latency : Math.min(to.least, latency);
  to.most = Math.max(to.most, latency);
  to.count += 1;
}

export function addLatencies(to: Latencies, more: Latencies): void {
  if (more.count === 0) return;
  for (const [number, count] of more.classes) addCount(to, number, count);
  to.least = to.count === 0 ? more.least : Math.min(to.least, more.least);
  to.most = Math.max(to.most, more.most);
  to.count += more.count;
}

function addCount({ classes }: Latencies, number: number, count: number): void {
  classes.set(number, (classes.get(number) ?? 0) + count);
}

/** Class 0 is below one microsecond. */
function classOf(microseconds: number): number {
  return microseconds < 1 ? 0 : 1 + Math.floor(Math.log(microseconds) / WIDTH);
}

function middleOf(number: number): number {
  return number === 0 ? 0 : Math.exp((number - 0.5) * WIDTH);
}

/** For each share, such as 0.95, the latency in microseconds that it does not exceed (the nearest rank); null for none. */
export function percentiles(latencies: Latencies, shares: readonly number[]): (number | null)[] {
  const sorted = [...latencies.classes].toSorted(([a], [b]) => a - b);
  return shares.map((share) => (latencies.count === 0 ? null : latencyAt(latencies, sorted, share)));
}

function latencyAt(
  { count, least, most }: Latencies,
  sorted: readonly [number: number, count: number][],
  share: number,
): number {
  let left = Math.max(1, Math.ceil(share * count));
  if (left === count) return most;
  for (const [number, some] of sorted) {
    left -= some;
    if (left <= 0) return Math.min(most, Math.max(least, middleOf(number)));
  }
  return most;
}

export type Bar = { from: number; to: number; count: number };

/** How many lie in each step of 1, 2, 5, 10, 20 … microseconds, from the least to the most. */
export function histogram({ classes, count, least, most }: Latencies): Bar[] {
  if (count === 0) return [];
  const bars = stepsAround(least, most);
  for (const [number, some] of classes) {
    const middle = Math.min(most, Math.max(least, middleOf(number)));
    const bar = bars.find(({ to }) => middle < to) ?? bars.at(-1);
    if (bar !== undefined) bar.count += some;
  }
  return bars;
}

/** Classes of a bar: ten bars are a decade, or so. */
const CLASSES_A_BAR = 23;

/**
 * The same in steps of equal factors, for a logarithmic axis. Their bounds are whole microseconds between classes, so that
 * counting the latencies themselves gives the same.
 */
export function logHistogram({ classes }: Latencies): Bar[] {
  if (classes.size === 0) return [];
  const counts = new Map<number, number>();
  for (const [number, some] of classes) {
    const bar = Math.floor(number / CLASSES_A_BAR);
    counts.set(bar, (counts.get(bar) ?? 0) + some);
  }
  const [first, last] = [Math.min(...counts.keys()), Math.max(...counts.keys())];
  return Array.from({ length: last - first + 1 }, (_, i) => ({
    from: leastOf((first + i) * CLASSES_A_BAR),
    to: leastOf((first + i + 1) * CLASSES_A_BAR),
    count: counts.get(first + i) ?? 0,
  }));
}

/** The least whole number of microseconds in a class or above it. */
function leastOf(number: number): number {
  return number === 0 ? 0 : Math.ceil(Math.exp((number - 1) * WIDTH));
}

function stepsAround(least: number, most: number): Bar[] {
  const bars: Bar[] = [];
  let from = 0;
  for (let power = 1; ; power *= 10) {
    for (const step of [1, 2, 5]) {
      const to = step * power;
      if (to > least) bars.push({ from, to, count: 0 });
      if (to > most) return bars;
      from = to;
    }
  }
}
