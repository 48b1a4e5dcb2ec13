/**
 * Which recorded call answers a live one. The k-th identical call of a client gets the k-th recorded one; what comes
 * after the last says `repeat` (repeat.ts). Every client has its own count, so any number of them may come at once and
 * again. Calls are compared by the digests of their keys: there is no nearest answer, only the right one or a miss.
 */
import type { Place } from '../protocol/correlate.ts';
import { type CallIndex, type CallKey, indexCalls, type RecordedCalls } from './call-index.ts';
import { createPositions, type Positions } from './positions.ts';
import { mayAlwaysRepeat, type Repeat, repeatOf } from './repeat.ts';

export type { CallKey, RecordedCalls } from './call-index.ts';

/** `isRepeat`: this client was given this call before. */
export type Hit = { kind: 'hit'; call: number; isRepeat: boolean };

/**
 * Why there is no answer. `recorded` says how often: for `used-up` this very call, for `arguments-differ` calls of the
 * same target (or, where the method has none, of the method). Of `never-recorded`, `isMethodKnown` says whether other
 * targets of the method were recorded.
 */
export type NoHit =
  | { kind: 'miss'; reason: 'used-up' | 'arguments-differ'; recorded: number }
  | { kind: 'miss'; reason: 'never-recorded'; recorded: 0; isMethodKnown: boolean };

/** A recorded call that could have been meant. `isSameTarget`: the same tool, prompt or resource. */
export type Candidate = { place: Place; isPlayed: boolean; isSameTarget: boolean };

export type UnplayedCall = { call: number; method: string; mayRepeat: boolean };

export type Client = {
  next(key: CallKey): Hit | NoHit;
  /**
   * At most `max` calls that could have been meant, those that were not played to this client first, and of these
   * those after its last hit first. Of other targets only where the key's own was never recorded.
   */
  candidates(key: CallKey, max: number): { candidates: Candidate[]; isCut: boolean };
  unplayed(): Generator<UnplayedCall>;
};

export type Matcher = {
  calls: number;
  /** In the order in which they first appear. */
  methods: readonly string[];
  connect(): Client;
  /** What was played to no client, in recorded order. */
  unplayed(): Generator<UnplayedCall>;
};

/** So many recorded calls are looked at for candidates. */
const MAX_LOOKED_AT = 10_000;

export function createMatcher(calls: RecordedCalls, repeat: Repeat = 'error'): Matcher {
  const index = indexCalls(calls);
  /** How far some client has come. As all begin at the first of identical calls, the furthest says it for all. */
  const furthest = createPositions();

  function isPlayed(positions: Positions, call: number): boolean {
    const key = index.keyOf(call);
    return key >= 0 && positions.hasReached(key, call);
  }

  function* unplayedOf(positions: Positions): Generator<UnplayedCall> {
    for (let call = 0; call < calls.size; call += 1) {
      if (isPlayed(positions, call)) continue;
      const method = calls.topics.methodOf(calls.topicOf(call));
      yield { call, method, mayRepeat: mayAlwaysRepeat(method) };
    }
  }

  function connect(): Client {
    const positions = createPositions();
    let lastHit = -1;

    function next(key: CallKey): Hit | NoHit {
      const number = index.keyNumber(key);
      if (number < 0) return whyUnknown(calls, index, key);
      const hit = nextOf(index, number, positions, repeatOf(key.method, repeat));
      if (hit === null) return { kind: 'miss', reason: 'used-up', recorded: index.countOf(number) };
      positions.reach(number, hit.call, hit.isRepeat);
      if (hit.isRepeat || !furthest.hasReached(number, hit.call))
        furthest.reach(number, hit.call, hit.isRepeat);
      lastHit = hit.call;
      return { kind: 'hit', ...hit };
    }

    function candidates(key: CallKey, max: number): { candidates: Candidate[]; isCut: boolean } {
      const topic = calls.topics.find(key);
      const isSameTarget = topic >= 0;
      const unplayed: number[] = [];
      const played: number[] = [];
      let lookedAt = 0;
      let isCut = false;
      for (const call of onwards(calls.size, lastHit)) {
        if (isSameTarget && calls.topicOf(call) !== topic) continue;
        isCut = lookedAt === MAX_LOOKED_AT || unplayed.length === max;
        if (isCut) break;
        lookedAt += 1;
        if (!isSameTarget && calls.topics.methodOf(calls.topicOf(call)) !== key.method) continue;
        if (!isPlayed(positions, call)) unplayed.push(call);
        else if (played.length < max) played.push(call);
        else isCut = true;
      }
      const chosen = [...unplayed, ...played];
      return {
        candidates: chosen.slice(0, max).map((call) => ({
          place: calls.placeOf(call),
          isPlayed: isPlayed(positions, call),
          isSameTarget,
        })),
        isCut: isCut || chosen.length > max,
      };
    }

    return { next, candidates, unplayed: () => unplayedOf(positions) };
  }

  return {
    calls: calls.size,
    methods: calls.topics.methods,
    connect,
    unplayed: () => unplayedOf(furthest),
  };
}

/** The identical call after the one that was reached; null where there is none, and none may be repeated. */
function nextOf(
  index: CallIndex,
  key: number,
  positions: Positions,
  repeat: Repeat,
): Omit<Hit, 'kind'> | null {
  const reached = positions.reached(key);
  if (reached < 0) return { call: index.firstOf(key), isRepeat: false };
  const next = index.nextSame(reached);
  if (next >= 0) return { call: next, isRepeat: positions.isAround(key) };
  if (repeat === 'error') return null;
  return { call: repeat === 'last' ? reached : index.firstOf(key), isRepeat: true };
}

function whyUnknown({ topics }: RecordedCalls, index: CallIndex, key: CallKey): NoHit {
  const topic = topics.find(key);
  if (topic >= 0) return { kind: 'miss', reason: 'arguments-differ', recorded: index.sizeOf(topic) };
  const isMethodKnown = topics.methods.includes(key.method);
  return { kind: 'miss', reason: 'never-recorded', recorded: 0, isMethodKnown };
}

/** The calls after `last`, then those before it. */
function* onwards(size: number, last: number): Generator<number> {
  for (let call = last + 1; call < size; call += 1) yield call;
  for (let call = 0; call <= last; call += 1) yield call;
}
