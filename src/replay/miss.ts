/**
 * Why a request has no recorded answer. The reason is what is known for sure; the nearest recorded calls are a list with
 * scores, never a guess told as the truth. Compared are at most `MAX_COMPARED` calls, those that were not played yet
 * before all others, and fewer where there were very many misses; a miss says when there were more.
 */
import type { Place } from '../protocol/correlate.ts';
import { CANONICAL_PROBLEM, type CanonicalProblem } from './canonical.ts';
import { type Difference, diffOf } from './diff.ts';
import { ignoreOptions } from './ignore-option.ts';
import type { Asked, RequestKey } from './key.ts';
import type { Candidate, Client, NoHit } from './matcher.ts';
import type { Origin } from './recording.ts';
import { mayAlwaysRepeat } from './repeat.ts';

/** `unreadable`: the params have no canonical form, so they equal nothing. */
export type MissReason = NoHit['reason'] | 'unreadable';

export type NearCall = {
  place: Place;
  origin: Origin;
  target: string | null;
  isPlayed: boolean;
  /** From 0 to 1; 1 is equal. */
  similarity: number;
  /** From the recorded params to the live ones. */
  differences: readonly Difference[];
  /** How many differences are not listed. */
  more: number;
  /** The options that together would have made this call the answer; null where none would. */
  options: readonly string[] | null;
};

export type Miss = Asked & {
  reason: MissReason;
  /** Of what the sentence of the reason is about: how often it was recorded. */
  recorded: number;
  isMethodKnown: boolean;
  /** The canonical text of what counts of the live params. */
  params: Buffer;
  problem: CanonicalProblem | null;
  /** The methods of the recording, where it has not the one that was asked for. */
  methods: readonly string[];
  near: readonly NearCall[];
  compared: number;
  /** There were more candidates than were compared. */
  isCut: boolean;
  /** Each of these alone would change the outcome, whatever the nearest calls are. */
  options: readonly string[];
};

/** The key of the recorded call at a place, made anew from its payload; null where that cannot be read any more. */
export type KeyAt = (place: Place) => RequestKey | null;

/** The recording, as far as a miss has to look into it. */
export type Recorded = {
  methods: readonly string[];
  keyAt: KeyAt;
  originOf: (place: Place) => Origin;
  /** How many calls were compared for misses so far. */
  effort: { compared: number };
};

const MAX_COMPARED = 200;
/** After so many comparisons the next few calls have to do: nobody reads that many misses, and all wait for them. */
const ENOUGH_COMPARED = 20_000;
const FEW_COMPARED = 10;
const MAX_NEAR = 3;
const MAX_DIFFERENCES = 1000;
/** So much text is compared, of both sides together. */
const MAX_COMPARED_BYTES = 16 * 1024 * 1024;

const NOTHING_NEAR = { near: [], compared: 0, isCut: false };

/** Explains what `client.next(key)` just said; call it before the client asks for anything else. */
export function explainMiss(key: RequestKey, noHit: NoHit, client: Client, recorded: Recorded): Miss {
  const isMethodKnown = noHit.reason !== 'never-recorded' || noHit.isMethodKnown;
  return {
    method: key.method,
    target: key.target,
    reason: noHit.reason,
    recorded: noHit.recorded,
    isMethodKnown,
    params: key.params,
    problem: null,
    methods: isMethodKnown ? [] : recorded.methods,
    ...(isMethodKnown ? nearest(key, client, recorded) : NOTHING_NEAR),
    options: optionsFor(noHit.reason),
  };
}

/** The miss of a request that has no key. */
export function unreadableMiss(asked: Asked, problem: CanonicalProblem): Miss {
  return {
    ...asked,
    reason: 'unreadable',
    recorded: 0,
    isMethodKnown: true,
    params: Buffer.alloc(0),
    problem,
    methods: [],
    ...NOTHING_NEAR,
    options: [],
  };
}

const ASK_LIVE = '--mode new_episodes';

function optionsFor(reason: NoHit['reason']): string[] {
  return reason === 'used-up' ? ['--repeat last', '--repeat cycle', ASK_LIVE] : [ASK_LIVE];
}

function nearest(
  key: RequestKey,
  client: Client,
  { keyAt, originOf, effort }: Recorded,
): Pick<Miss, 'near' | 'compared' | 'isCut'> {
  const most = effort.compared < ENOUGH_COMPARED ? MAX_COMPARED : FEW_COMPARED;
  const { candidates, isCut } = client.candidates(key, most);
  let near: NearCall[] = [];
  let compared = 0;
  let bytes = 0;
  for (const candidate of candidates) {
    const recorded = keyAt(candidate.place);
    if (recorded === null) continue;
    bytes += recorded.params.length + key.params.length;
    if (bytes > MAX_COMPARED_BYTES) return { near, compared, isCut: true };
    compared += 1;
    effort.compared += 1;
    near = [...near, nearCall(key, recorded, candidate, originOf(candidate.place))]
      .toSorted(byNearness)
      .slice(0, MAX_NEAR);
  }
  return { near, compared, isCut };
}

function nearCall(
  key: RequestKey,
  recorded: RequestKey,
  { place, isPlayed, isSameTarget }: Candidate,
  origin: Origin,
): NearCall {
  const { differences, more, similarity } = diffOf(recorded.params, key.params, MAX_DIFFERENCES);
  const ignoring = more === 0 && isSameTarget ? ignoreOptions(key, differences) : null;
  const needsRepeat = isPlayed && !mayAlwaysRepeat(key.method);
  const options = ignoring !== null && needsRepeat ? [...ignoring, '--repeat last'] : ignoring;
  return { place, origin, target: recorded.target, isPlayed, similarity, differences, more, options };
}

/** Calls not yet played come first, and of these the more similar; where that is equal, in recorded order. */
function byNearness(a: NearCall, b: NearCall): number {
  return (
    Number(a.isPlayed) - Number(b.isPlayed) ||
    b.similarity - a.similarity ||
    a.place.seq - b.place.seq ||
    a.place.n - b.place.n
  );
}

/** The reason as a sentence. Names from the recording or the wire stand in quotes, as JSON has them. */
export function reasonText(miss: Miss): string {
  const call = callText(miss);
  switch (miss.reason) {
    case 'used-up':
      return `${call}: used up. It was recorded ${times(miss.recorded)}, and ${miss.recorded === 1 ? 'that one has' : 'all have'} been played`;
    case 'arguments-differ':
      return `${call}: the arguments differ. ${ofTarget(miss)} ${miss.recorded === 1 ? 'was' : 'were'} recorded, but none with these params`;
    case 'never-recorded':
      return miss.isMethodKnown
        ? `${call}: never recorded. The recording has other calls of ${name(miss.method)}, none of this target`
        : `${call}: never recorded. The recording has no call of ${name(miss.method)}`;
    case 'unreadable':
      return `${call}: cannot be matched: what it asks ${miss.problem === null ? 'is unknown' : CANONICAL_PROBLEM[miss.problem]}`;
  }
}

function callText({ method, target }: Asked): string {
  return target === null ? name(method) : `${name(method)} ${JSON.stringify(target)}`;
}

function ofTarget({ recorded, target, method }: Miss): string {
  const calls = recorded === 1 ? '1 call' : `${recorded} calls`;
  return `${calls} of ${target === null ? name(method) : JSON.stringify(target)}`;
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** Methods that look like methods stand as they are. */
function name(method: string): string {
  return /^[\w$/.-]+$/.test(method) ? method : JSON.stringify(method);
}
