/**
 * Finds the recorded call that answers a live one. Identical calls of a client get the identical recorded calls one after
 * the other; `repeat` says what comes after the last (repeat.ts). Every client counts for itself, so any number of clients
 * may come, at once or again. Calls are compared by the digests of their keys: there is the right answer or a miss, never
 * a nearest answer.
 */

import type { Place } from '../../protocol/message/correlate.ts';
import { createColumn, createDigestTable, createPositions, type Positions } from '../recording/columns.ts';
import type { Topics } from '../recording/topics.ts';
import type { RequestKey } from './key.ts';
import { mayAlwaysRepeat, type Repeat, repeatOf } from './repeat.ts';

/** `isRepeat`: the call has answered this client before. */
export type Hit = { kind: 'hit'; call: number; isRepeat: boolean };

/**
 * Why there is no answer. `recorded` counts recorded calls: for `used-up` this very call, for `arguments-differ` all calls
 * of the target (or of the method, where it has no targets). For `never-recorded`, `isMethodKnown` says whether other
 * targets of the method were recorded.
 */
export type NoHit =
  | { kind: 'miss'; reason: 'used-up' | 'arguments-differ'; recorded: number }
  | { kind: 'miss'; reason: 'never-recorded'; recorded: 0; isMethodKnown: boolean };

/** A recorded call that the client could have meant. `isSameTarget`: the same tool, prompt or resource. */
export type CallCandidate = { place: Place; isPlayed: boolean; isSameTarget: boolean };

type UnplayedCall = { call: number; method: string; mayRepeat: boolean };

export type CallCursor = {
  next(key: CallKey): Hit | NoHit;
  /** What answers a live call that is like this recorded one, without taking it. Null where nothing does, or this one was not read. */
  nextLike(call: number): Hit | null;
  /** Takes that. */
  takeLike(hit: Hit): void;
  /**
   * The first recorded call that this client has not asked for; -1 where it has asked for all. A live call like this one is certainly
   * answered by it, whichever of the recorded ones are alike: each before it has answered already, and need not be read for that.
   */
  nextInStep(): number;
  /** Takes that call. */
  takeInStep(): void;
  /**
   * At most `max` calls that could have been meant, those that were not played to this client first, and of these
   * those after its last hit first. Of other targets only where the key's own was never recorded.
   */
  candidates(key: CallKey, max: number): { candidates: CallCandidate[]; isCut: boolean };
  unplayed(): Generator<UnplayedCall>;
};

/** The calls that a client took in step, of which nothing but this tells until they are settled. */
type Steps = {
  /** Reads them, and counts them as all others. */
  settle(): void;
  isUnsettled(call: number): boolean;
};

type Matcher = {
  calls: number;
  /** In the order in which they first appear. */
  methods: readonly string[];
  /** Reads calls before anybody asks for them, in recorded order, as long as there is time. */
  readAhead(isTime: () => boolean): void;
  connect(): CallCursor;
  /** A client that counts for nobody: what it asks was not asked for. */
  tryOut(): Pick<CallCursor, 'next'>;
  /** What was played to no client, in recorded order. */
  unplayed(): Generator<UnplayedCall>;
  /** The calls beyond those that all clients together asked for: of five identical ones, asked for thrice, the last two. */
  unasked(): Generator<number>;
};

/** How many recorded calls are looked at for candidates. */
const MAX_LOOKED_AT = 10_000;

export function createMatcher(calls: CallTable, repeat: Repeat = 'error'): Matcher {
  const index = indexCalls(calls);
  /** How far the furthest client has come. All begin at the first of identical calls, so it says what was played at all. */
  const furthest = createPositions();
  /** How often each key was asked for. */
  const asks = createColumn(Uint32Array);
  /** Those of the one client that may have some to settle. */
  let ahead: Steps | null = null;

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

  function* unasked(): Generator<number> {
    // A call that was taken in step has answered the one who asked for it: neither is counted, and it need not be read.
    const isApart = (call: number) => ahead?.isUnsettled(call) === true;
    const apart = createColumn(Uint32Array);
    for (let call = 0; call < calls.size; call += 1) {
      const key = isApart(call) ? index.keyOf(call) : -1;
      if (key >= 0) apart.set(key, apart.at(key) + 1);
    }
    for (let key = 0; key < index.keys(); key += 1) {
      // Identical calls that no client came to have not been read.
      if (asks.at(key) > index.countOf(key) - apart.at(key)) index.readAll(calls.topicOf(index.firstOf(key)));
    }
    const seen = createColumn(Uint32Array);
    for (let call = 0; call < calls.size; call += 1) {
      if (isApart(call)) continue;
      const key = index.keyOf(call);
      if (key >= 0) seen.set(key, seen.at(key) + 1);
      if (key < 0 || seen.at(key) > asks.at(key)) yield call;
    }
  }

  function connect(counts = true): CallCursor {
    const positions = createPositions();
    let lastHit = -1;
    /** The first call that this client has not asked for, and the first that may have to be settled. */
    let asked = 0;
    let settled = 0;
    const steps: Steps = {
      settle() {
        for (; settled < asked; settled += 1) {
          if (index.keyOf(settled) < 0) index.readOne(calls.topicOf(settled));
          const key = index.keyOf(settled);
          if (key >= 0 && !positions.hasReached(key, settled)) reach(key, settled, false);
        }
      },
      isUnsettled: (call) => call >= settled && call < asked && !isPlayed(positions, call),
    };

    function next(key: CallKey): Hit | NoHit {
      steps.settle();
      const number = index.keyNumber(key);
      if (number < 0) return whyUnknown(calls, index, key);
      const hit = nextOf(index, number, positions, repeatOf(key.method, repeat));
      if (hit === null) return { kind: 'miss', reason: 'used-up', recorded: index.countOf(number) };
      take(number, hit.call, hit.isRepeat);
      return hit;
    }

    function take(key: number, call: number, isRepeat: boolean): void {
      reach(key, call, isRepeat);
      lastHit = call;
      passAsked();
    }

    function takeInStep(): void {
      if (ahead !== steps) ahead?.settle();
      ahead = steps;
      lastHit = asked;
      asked += 1;
      passAsked();
    }

    function passAsked(): void {
      while (isPlayed(positions, asked)) asked += 1;
    }

    function reach(key: number, call: number, isRepeat: boolean): void {
      positions.reach(key, call, isRepeat);
      if (!counts) return;
      asks.set(key, asks.at(key) + 1);
      if (isRepeat || !furthest.hasReached(key, call)) furthest.reach(key, call, isRepeat);
    }

    function nextLike(call: number): Hit | null {
      const key = index.keyOf(call);
      if (key < 0) return null;
      // Those after the first may have answered in step.
      if (positions.reached(key) >= 0 || steps.isUnsettled(index.firstOf(key))) steps.settle();
      const method = calls.topics.methodOf(calls.topicOf(call));
      return nextOf(index, key, positions, repeatOf(method, repeat));
    }

    function candidates(key: CallKey, max: number): { candidates: CallCandidate[]; isCut: boolean } {
      steps.settle();
      const topic = calls.topics.find(key);
      const isSameTarget = topic >= 0 && index.sizeOf(topic) > 0;
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

    return {
      next,
      nextLike,
      takeLike: ({ call, isRepeat }) => take(index.keyOf(call), call, isRepeat),
      nextInStep: () => (asked < calls.size ? asked : -1),
      takeInStep,
      candidates,
      unplayed() {
        steps.settle();
        return unplayedOf(positions);
      },
    };
  }

  return {
    readAhead(isTime) {
      for (let call = 0; call < calls.size && isTime(); call += 1) index.readOne(calls.topicOf(call));
    },
    calls: calls.size,
    methods: calls.topics.methods,
    connect: () => connect(),
    tryOut: () => connect(false),
    unplayed() {
      ahead?.settle();
      return unplayedOf(furthest);
    },
    unasked,
  };
}

/** The identical call after the one that was reached; null where there is none, and none may be repeated. */
function nextOf(index: CallIndex, key: number, positions: Positions, repeat: Repeat): Hit | null {
  const reached = positions.reached(key);
  if (reached < 0) return { kind: 'hit', call: index.firstOf(key), isRepeat: false };
  const next = index.nextSame(reached);
  if (next >= 0) return { kind: 'hit', call: next, isRepeat: positions.isAround(key) };
  if (repeat === 'error') return null;
  return { kind: 'hit', call: repeat === 'last' ? reached : index.firstOf(key), isRepeat: true };
}

function whyUnknown({ topics }: CallTable, index: CallIndex, key: CallKey): NoHit {
  const topic = topics.find(key);
  const recorded = topic < 0 ? 0 : index.sizeOf(topic);
  if (recorded > 0) return { kind: 'miss', reason: 'arguments-differ', recorded };
  const isMethodKnown = topics.methods.includes(key.method);
  return { kind: 'miss', reason: 'never-recorded', recorded: 0, isMethodKnown };
}

/** The calls after `last`, then those before it. */
function* onwards(size: number, last: number): Generator<number> {
  for (let call = last + 1; call < size; call += 1) yield call;
  for (let call = 0; call <= last; call += 1) yield call;
}

/** What a request is found by. */
type CallKey = Pick<RequestKey, 'method' | 'target' | 'digest'>;

/** The calls of a recording, numbered from 0 in recorded order. */
export type CallTable = {
  size: number;
  topics: Topics;
  topicOf(call: number): number;
  placeOf(call: number): Place;
  /** Null where the call cannot be read: it equals no request. */
  digestOf(call: number): string | null;
};

/** Keys are numbered from 0; -1 stands for none, also of calls. */
type CallIndex = {
  /** Reads the first call of a topic that was not read yet. */
  readOne(topic: number): void;
  /** How many keys were read so far. */
  keys(): number;
  /** Reads all calls of a topic. */
  readAll(topic: number): void;
  keyNumber(key: CallKey): number;
  /** The key of a call that was read; -1 for one that was not read, and so has answered nobody. */
  keyOf(call: number): number;
  firstOf(key: number): number;
  /** The identical call that comes next, from any call that was read. */
  nextSame(call: number): number;
  /** How many identical calls there are, of those that were read. */
  countOf(key: number): number;
  /** How many calls have a topic. */
  sizeOf(topic: number): number;
};

/**
 * Indexes identical recorded calls. A call is read, to make its digest, only when a live call has its topic and no call read
 * so far is the answer. Calls are read in recorded order, so the order of identical calls is certain however many were not
 * read yet. No payload and no text is kept.
 */
function indexCalls(calls: CallTable): CallIndex {
  const { size, topics, topicOf } = calls;
  const keys = createDigestTable();
  /** By call, plus one: its key, and the next call with its topic. 0 for none. */
  const keyOfCall = new Uint32Array(size);
  const nextOfTopic = new Uint32Array(size);
  /** By call: the next one with its key; after the last comes the first. */
  const nextOfKey = new Uint32Array(size);
  /** By topic: the first call that was not read yet, plus one, and how many calls there are. */
  const unread = createColumn(Uint32Array);
  const topicSize = createColumn(Uint32Array);
  /** By key: the last call that was read. */
  const last = createColumn(Uint32Array);

  for (let call = size - 1; call >= 0; call -= 1) {
    const topic = topicOf(call);
    nextOfTopic[call] = unread.at(topic);
    unread.set(topic, call + 1);
    topicSize.set(topic, topicSize.at(topic) + 1);
  }

  /** Reads one more call of the topic. Returns its digest; null where it cannot be read, undefined where all were read. */
  function readOne(topic: number): string | null | undefined {
    const call = unread.at(topic) - 1;
    if (call < 0) return undefined;
    const digest = calls.digestOf(call);
    unread.set(topic, nextOfTopic[call] ?? 0);
    if (digest === null) return null;
    const known = keys.size();
    const key = keys.add(digest);
    keyOfCall[call] = key + 1;
    nextOfKey[call] = key === known ? call : firstOf(key);
    if (key !== known) nextOfKey[last.at(key)] = call;
    last.set(key, call);
    return digest;
  }

  function firstOf(key: number): number {
    return nextOfKey[last.at(key)] ?? 0;
  }

  const keyOf = (call: number) => (keyOfCall[call] ?? 0) - 1;

  return {
    readOne,
    keys: keys.size,
    readAll(topic) {
      while (readOne(topic) !== undefined);
    },
    keyNumber(key) {
      const known = keys.find(key.digest);
      if (known >= 0) return known;
      const topic = topics.find(key);
      if (topic < 0) return -1;
      let digest = readOne(topic);
      while (digest !== undefined && digest !== key.digest) digest = readOne(topic);
      return digest === undefined ? -1 : keys.size() - 1;
    },
    keyOf,
    firstOf,
    nextSame(call) {
      const [key, topic] = [keyOf(call), topicOf(call)];
      while (last.at(key) === call && readOne(topic) !== undefined);
      return last.at(key) === call ? -1 : (nextOfKey[call] ?? 0);
    },
    countOf(key) {
      let count = 1;
      for (let call = firstOf(key); call !== last.at(key); call = nextOfKey[call] ?? 0) count += 1;
      return count;
    },
    sizeOf: topicSize.at,
  };
}
