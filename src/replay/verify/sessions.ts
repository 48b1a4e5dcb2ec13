/**
 * Compares two sessions: what their servers offered, and every call with its answer. Calls are paired as replay pairs them:
 * identical calls one after the other. A call without a pair is paired with the most similar call of the same method and
 * target, so that changed arguments show as such.
 */

import { type Difference, diffOf } from '../../protocol/json/diff.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import { parseMessages } from '../../protocol/message/message.ts';
import { messageText } from '../../protocol/message/payload.ts';
import type { Store } from '../../store/file/open.ts';
import { type CallRow, eachCall } from '../../store/read/exchanges.ts';
import { prepareFramesAfter } from '../../store/read/frames.ts';
import type { SessionRow } from '../../store/read/sessions.ts';
import { type Answer, compareAnswers, ignoredInAll, type ResultRules } from '../match/compare.ts';
import type { IgnoreRules } from '../match/ignore.ts';
import { findParams, type RequestKey, requestKey } from '../match/key.ts';
import { collectOffer, compareOffers, isList, type ListChange, type ListKind, type Offer } from './offers.ts';

type DiffSide = { store: Store; session: SessionRow };

export type PairedCall = {
  verdict: 'equal' | 'differs' | 'other arguments' | 'only in a' | 'only in b';
  askedBy: 'client' | 'server';
  method: string;
  target: string | null;
  /** Numbers of the frames that asked. */
  a: number | null;
  b: number | null;
  why: string | null;
  /** Of the answers; where the arguments are others, of the params. */
  differences: Difference[];
  more: number;
};

/** Latencies in microseconds, of the calls that were answered. */
export type Timing = { method: string; target: string | null; a: number[]; b: number[] };

export type SessionDiff = {
  lists: ListChange[];
  /** Lists that only one of the sessions asked for. */
  unknownLists: ListKind[];
  calls: PairedCall[];
  timings: Timing[];
};

type Call = CallRow & { key: RequestKey };

const MAX_DIFFERENCES = 100;

/** How many calls a call is compared with to find the most similar. */
const MAX_COMPARED = 32;

/** Less similar calls are not the same call with other arguments. */
const MIN_SIMILARITY = 0.3;

export function diffSessions(...sides: Parameters<typeof diffingSessions>): SessionDiff {
  const steps = diffingSessions(...sides);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The same step by step, a call each, for who may want to stop in between. */
export function* diffingSessions(
  a: DiffSide,
  b: DiffSide,
  ignore: IgnoreRules,
  results: ResultRules,
): Generator<undefined, SessionDiff> {
  const first = yield* readSide(a, ignore, results);
  const second = yield* readSide(b, ignore, results);
  const { changes, unknown } = compareOffers(first.offer, second.offer);
  const waiting = byKey(first.calls);
  const calls: PairedCall[] = [];
  const onlyB: Call[] = [];
  for (const call of second.calls) {
    const other = waiting.get(keyName(call))?.shift();
    if (other === undefined) onlyB.push(call);
    else calls.push(comparePair(first, other, second, call, results));
    yield;
  }
  const onlyA = [...waiting.values()].flat().sort((x, y) => x.seq - y.seq || x.n - y.n);
  calls.push(...(yield* pairByLikeness(onlyA, onlyB)));
  calls.sort((x, y) => placeOf(x) - placeOf(y));
  return { lists: changes, unknownLists: unknown, calls, timings: timingsOf(first.calls, second.calls) };
}

/** Pairs stand in the order of the second session; calls that only the first has, where they stood in it. */
function placeOf({ a, b }: PairedCall): number {
  return b ?? a ?? 0;
}

type ReadSide = { calls: Call[]; offer: Offer; answerOf: (call: CallRow) => Answer | null };

function* readSide(
  { store, session }: DiffSide,
  ignore: IgnoreRules,
  results: ResultRules,
): Generator<undefined, ReadSide> {
  const ignored = ignoredInAll(results);
  const frameAfter = prepareFramesAfter(store, session.number, 1);
  const textAt = (seq: number, n: number): Buffer | null => {
    const [frame] = frameAfter(seq - 1);
    return frame === undefined || frame.truncated ? null : messageText(jsonOf(frame), n);
  };
  const answerOf = ({ answerSeq, answerN }: CallRow): Answer | null => {
    const json = answerSeq === null ? null : textAt(answerSeq, answerN ?? 0);
    const message = json === null ? undefined : parseMessages(json)[0];
    return json === null || message === undefined ? null : { json, message };
  };
  const calls: Call[] = [];
  const offer: Offer = new Map();
  // At once: whoever stops in between must not hold up the store.
  for (const row of [...eachCall(store, session.number)]) {
    const json = textAt(row.seq, row.n);
    const key = json === null ? 'unreadable' : requestKey(row, json, findParams(json, 0), ignore);
    if (typeof key !== 'string') calls.push({ ...row, key });
    const answer = isList(row.method) ? answerOf(row) : null;
    if (answer !== null && ignored !== null && isList(row.method))
      collectOffer(offer, row.method, answer.json, ignored);
    yield;
  }
  return { calls, offer, answerOf };
}

function byKey(calls: readonly Call[]): Map<string, Call[]> {
  const map = new Map<string, Call[]>();
  for (const call of calls) {
    const name = keyName(call);
    const same = map.get(name);
    if (same === undefined) map.set(name, [call]);
    else same.push(call);
  }
  return map;
}

function keyName({ askedBy, key }: Call): string {
  return `${askedBy} ${key.digest}`;
}

function comparePair(first: ReadSide, a: Call, second: ReadSide, b: Call, results: ResultRules): PairedCall {
  const pair = { ...aboutOf(b), a: a.seq, b: b.seq, why: null, differences: [], more: 0 };
  // Lists are compared by their entries, whatever the order and the pages.
  if (isList(b.method)) return { ...pair, verdict: 'equal' };
  const [before, after] = [first.answerOf(a), second.answerOf(b)];
  if (before === null && after === null) return { ...pair, verdict: 'equal' };
  if (before === null || after === null)
    return { ...pair, verdict: 'differs', why: `no answer in ${before === null ? 'a' : 'b'}` };
  const { isEqual, recorded, live, differences, more, problem } = compareAnswers(b, before, after, results);
  if (isEqual) return { ...pair, verdict: 'equal' };
  const places = differences.length + more;
  const why =
    problem ??
    (recorded === live
      ? `the ${live} differs in ${places} place${places === 1 ? '' : 's'}`
      : `${recorded} in a, ${live} in b`);
  return { ...pair, verdict: 'differs', why, differences, more };
}

function aboutOf({ askedBy, method, target }: Call): Pick<PairedCall, 'askedBy' | 'method' | 'target'> {
  return { askedBy, method, target };
}

function* pairByLikeness(onlyA: readonly Call[], onlyB: readonly Call[]): Generator<undefined, PairedCall[]> {
  const left = new Map<string, Call[]>();
  for (const call of onlyB) {
    const same = left.get(topicOf(call));
    if (same === undefined) left.set(topicOf(call), [call]);
    else same.push(call);
  }
  const pairs: PairedCall[] = [];
  for (const a of onlyA) {
    yield;
    const others = left.get(topicOf(a)) ?? [];
    const compared = others
      .slice(0, MAX_COMPARED)
      .map((b) => diffOf(a.key.params, b.key.params, MAX_DIFFERENCES));
    const best = Math.max(...compared.map(({ similarity }) => similarity));
    const at = compared.findIndex(({ similarity }) => similarity === best);
    const [diff, b] = [compared[at], others[at]];
    if (diff === undefined || b === undefined || diff.similarity < MIN_SIMILARITY) {
      pairs.push({
        ...aboutOf(a),
        verdict: 'only in a',
        a: a.seq,
        b: null,
        why: null,
        differences: [],
        more: 0,
      });
      continue;
    }
    others.splice(at, 1);
    const { differences, more } = diff;
    pairs.push({
      ...aboutOf(a),
      verdict: 'other arguments',
      a: a.seq,
      b: b.seq,
      why: null,
      differences,
      more,
    });
  }
  for (const b of [...left.values()].flat())
    pairs.push({
      ...aboutOf(b),
      verdict: 'only in b',
      a: null,
      b: b.seq,
      why: null,
      differences: [],
      more: 0,
    });
  return pairs;
}

function topicOf({ askedBy, method, target }: Pick<Call, 'askedBy' | 'method' | 'target'>): string {
  return JSON.stringify([askedBy, method, target]);
}

function timingsOf(a: readonly Call[], b: readonly Call[]): Timing[] {
  const timings = new Map<string, Timing>();
  const add = (call: Call, side: 'a' | 'b') => {
    if (call.latency === null || call.askedBy !== 'client') return;
    const { method, target } = call;
    const timing = timings.get(topicOf(call)) ?? { method, target, a: [], b: [] };
    timing[side].push(call.latency);
    timings.set(topicOf(call), timing);
  };
  for (const call of a) add(call, 'a');
  for (const call of b) add(call, 'b');
  return [...timings.values()];
}
