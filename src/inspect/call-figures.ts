/** Figures of calls and notifications: how many, how they ended, how long they took, how many bytes they had. */
import { addLatencies, addLatency, type Latencies, noLatencies } from './latencies.ts';

/** A call: a request with its answer, if it has one. Or a notification. */
export type Call = {
  kind: 'request' | 'notification';
  askedBy: 'client' | 'server';
  method: string;
  /** The tool or prompt; null for other methods. */
  target: string | null;
  outcome: CallOutcome | null;
  /** Microseconds. */
  latency: number | null;
  bytes: number;
  /** The frames of its request, and of its answer or cancellation. */
  from: number;
  until: number | null;
};

export const OUTCOMES = ['ok', 'tool-error', 'error', 'cancelled', 'input-required', 'unanswered'] as const;
export type CallOutcome = (typeof OUTCOMES)[number];

/** What figures are put together by. */
export type Topic = Pick<Call, 'kind' | 'askedBy' | 'method' | 'target'>;

export type Figures = Topic & {
  count: number;
  outcomes: Map<CallOutcome, number>;
  bytes: number;
  /** How many of one session were without their answer at the same time, at most. */
  atOnce: number;
  latencies: Latencies;
};

export function noFigures({ kind, askedBy, method, target }: Topic): Figures {
  const topic = { kind, askedBy, method, target };
  return { ...topic, count: 0, outcomes: new Map(), bytes: 0, atOnce: 0, latencies: noLatencies() };
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
};

export function methodKey({ askedBy, method }: Topic): string {
  return `${askedBy} ${method}`;
}

/** The key of all calls together. */
export const ALL_METHODS = '';

/** The figures of calls that come in the order of their requests. */
export function figuresOf(calls: Iterable<Call>): SessionFigures {
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
  };
}

function addCall(figures: Figures, { kind, bytes, outcome, latency }: Call): void {
  figures.count += 1;
  figures.bytes += bytes;
  if (kind === 'request') addOutcome(figures, outcome ?? 'unanswered', 1);
  if (latency !== null) addLatency(figures.latencies, latency);
}

/** The frames where calls end that are under way, how many never end, and how many were under way at most. */
type Peak = { untils: number[]; forEver: number; most: number };

function noPeak(): Peak {
  return { untils: [], forEver: 0, most: 0 };
}

function addToPeak(peak: Peak, { from, until }: Call): number {
  peak.untils = peak.untils.filter((end) => end > from);
  if (until === null) peak.forEver += 1;
  else peak.untils.push(until);
  peak.most = Math.max(peak.most, peak.untils.length + peak.forEver);
  return peak.most;
}

function addOutcome({ outcomes }: Figures, outcome: CallOutcome, count: number): void {
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
}

export function noSessionFigures(): SessionFigures {
  return { topics: [], atOnce: {} };
}

/** Puts the figures of another session to these. */
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
}

/** Adds the figures of another topic or session, but for `atOnce`. */
export function addFigures(to: Figures, more: Figures): void {
  to.count += more.count;
  to.bytes += more.bytes;
  for (const [outcome, count] of more.outcomes) addOutcome(to, outcome, count);
  addLatencies(to.latencies, more.latencies);
}

/** As text, to be kept: short, because there may be thousands to read at once. */
export function figuresText({ topics, atOnce: peaks }: SessionFigures): string {
  const written = topics.map(
    ({ kind, askedBy, method, target, count, bytes, atOnce, outcomes, latencies }) => {
      const { least, most, classes } = latencies;
      const topic = [kind === 'request' ? 1 : 0, askedBy === 'client' ? 1 : 0, method, target];
      const ended = OUTCOMES.map((outcome) => outcomes.get(outcome) ?? 0);
      return [...topic, count, bytes, atOnce, least, most, ended, [...classes].flat()];
    },
  );
  return JSON.stringify([peaks, written]);
}

type Written = [
  ...topic: [isRequest: number, isClient: number, method: string, target: string | null],
  ...figures: [count: number, bytes: number, atOnce: number, least: number, most: number],
  ended: number[],
  classes: number[],
];

/** What `figuresText` wrote. */
export function readFigures(text: string): SessionFigures {
  const [atOnce, topics] = JSON.parse(text) as [Record<string, number>, Written[]];
  return { topics: topics.map(readTopic), atOnce };
}

function readTopic([isRequest, isClient, method, target, ...figures]: Written): Figures {
  const [count, bytes, atOnce, least, most, ended, classes] = figures;
  const counts = new Map<number, number>();
  for (let i = 0; i < classes.length; i += 2) counts.set(classes[i] ?? 0, classes[i + 1] ?? 0);
  const answered = [...counts.values()].reduce((sum, some) => sum + some, 0);
  const outcomes = OUTCOMES.map((outcome, i): [CallOutcome, number] => [outcome, ended[i] ?? 0]);
  return {
    kind: isRequest === 1 ? 'request' : 'notification',
    askedBy: isClient === 1 ? 'client' : 'server',
    method,
    target,
    count,
    outcomes: new Map(outcomes.filter(([, some]) => some > 0)),
    bytes,
    atOnce,
    latencies: { classes: counts, count: answered, least, most },
  };
}
