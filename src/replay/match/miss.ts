/**
 * Explains why a request has no recorded answer. The reason is certain. The nearest recorded calls are a list with scores,
 * never a guess presented as the truth, and each names the options that would make it match.
 *
 * At most `MAX_COMPARED` calls are compared, those not yet played first, and fewer after very many misses. A miss says
 * when there were more.
 */

import type { CanonicalProblem } from '../../protocol/json/canonical.ts';
import { type Difference, diffOf } from '../../protocol/json/diff.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { targetParam } from '../../protocol/message/methods.ts';
import { nearest as nearestName } from '../../protocol/nearest.ts';
import type { Origin } from '../recording/recording.ts';
import type { CallTopic } from '../recording/topics.ts';
import { type HintWords, ignoreHint, type Path } from './hints.ts';
import type { RequestKey } from './key.ts';
import type { CallCandidate, CallCursor, NoHit } from './matcher.ts';
import { mayAlwaysRepeat } from './repeat.ts';

/** `unreadable`: the params have no canonical form, so they equal nothing. */
type MissReason = NoHit['reason'] | 'unreadable';

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

export type MissExplanation = CallTopic & {
  reason: MissReason;
  /** How often the subject of the reason was recorded. */
  recorded: number;
  isMethodKnown: boolean;
  /** The canonical text of what counts of the live params. */
  params: Buffer;
  problem: CanonicalProblem | null;
  /** The methods of the recording, where it has not the one that was asked for. */
  methods: readonly string[];
  /** The targets that could have been meant, where it has not the one that was asked for; the likeliest, if there is one. */
  known: KnownTargets | null;
  meant: string | null;
  near: readonly NearCall[];
  compared: number;
  /** There were more candidates than were compared. */
  isCut: boolean;
  /** Each of these alone would change the outcome, whatever the nearest calls are. */
  options: readonly string[];
  /** What else its reader should know, as sentences. */
  remarks: readonly string[];
  words: HintWords;
};

/** `isListed`: as the recorded server listed its tools; else those that were asked for. */
type KnownTargets = { names: readonly string[]; isListed: boolean };

/** The key of the recorded call at a place, made anew from its payload; null where that cannot be read any more. */
type KeyAt = (place: Place) => RequestKey | null;

/** The parts of a recording that explain a miss. */
export type MissContext = {
  methods: readonly string[];
  keyAt: KeyAt;
  originOf: (place: Place) => Origin;
  knownTargets: (method: string) => KnownTargets;
  remarks: (asked: CallTopic) => readonly string[];
  words: HintWords;
  /** How many calls were compared for misses so far. */
  effort: { compared: number };
};

const MAX_COMPARED = 200;

/** After so many comparisons a few calls per miss have to do: nobody reads that many misses, and every client waits. */
const ENOUGH_COMPARED = 20_000;

const FEW_COMPARED = 10;

const MAX_NEAR = 3;

const MAX_DIFFERENCES = 1000;

/** How much text is compared, of both sides together. */
const MAX_COMPARED_BYTES = 16 * 1024 * 1024;

const NOTHING_NEAR = { near: [], compared: 0, isCut: false };

/** Explains what `client.next(key)` just said; call it before the client asks for anything else. */
export function explainMiss(
  key: RequestKey,
  noHit: NoHit,
  client: Pick<CallCursor, 'candidates'>,
  recorded: MissContext,
): MissExplanation {
  const { method, target } = key;
  const { words } = recorded;
  const isMethodKnown = noHit.reason !== 'never-recorded' || noHit.isMethodKnown;
  const isOther = noHit.reason === 'never-recorded' && target !== null;
  const known = isOther ? recorded.knownTargets(method) : null;
  return {
    ...{ method, target, words, known },
    meant:
      known === null || known.names.includes(target ?? '') ? null : nearestName(target ?? '', known.names),
    remarks: noHit.reason === 'arguments-differ' ? recorded.remarks(key) : [],
    reason: noHit.reason,
    recorded: noHit.recorded,
    isMethodKnown,
    params: key.params,
    problem: null,
    methods: isMethodKnown ? [] : recorded.methods,
    ...(isMethodKnown ? nearest(key, client, recorded) : NOTHING_NEAR),
    options: optionsFor(noHit.reason, words),
  };
}

/** The miss of a request that has no key. */
export function unreadableMiss(
  asked: CallTopic,
  problem: CanonicalProblem,
  words: HintWords,
): MissExplanation {
  return {
    ...asked,
    reason: 'unreadable',
    recorded: 0,
    isMethodKnown: true,
    params: Buffer.alloc(0),
    problem,
    methods: [],
    ...NOTHING_NEAR,
    ...{ known: null, meant: null, options: [], remarks: [], words },
  };
}

function optionsFor(reason: NoHit['reason'], { repeat, askLive }: HintWords): string[] {
  return reason === 'used-up' ? [repeat('last'), repeat('cycle'), askLive] : [askLive];
}

function nearest(
  key: RequestKey,
  client: Pick<CallCursor, 'candidates'>,
  { keyAt, originOf, effort, words }: MissContext,
): Pick<MissExplanation, 'near' | 'compared' | 'isCut'> {
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
    near = [...near, nearCall(key, recorded, candidate, originOf(candidate.place), words)]
      .toSorted(byNearness)
      .slice(0, MAX_NEAR);
  }
  return { near, compared, isCut };
}

function nearCall(
  key: RequestKey,
  recorded: RequestKey,
  { place, isPlayed, isSameTarget }: CallCandidate,
  origin: Origin,
  words: HintWords,
): NearCall {
  const { differences, more, similarity } = diffOf(recorded.params, key.params, MAX_DIFFERENCES);
  const ignoring = more === 0 && isSameTarget ? ignoreOptions(key, differences, words) : null;
  const needsRepeat = isPlayed && !mayAlwaysRepeat(key.method);
  const options = ignoring !== null && needsRepeat ? [...ignoring, words.repeat('last')] : ignoring;
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

/** One path to ignore per difference; null where the target differs, which always counts. */
function ignoreOptions(
  asked: CallTopic,
  differences: readonly Difference[],
  words: HintWords,
): string[] | null {
  const paths = withoutInner(differences.map(pathToIgnore));
  return paths.some(([first]) => first === undefined || first === targetParam(asked.method))
    ? null
    : paths.map((path) => ignoreHint(asked, path, words));
}

/** The path to ignore for a difference: the whole array where it has grown or shrunk. */
export function pathToIgnore({ change, path }: Difference): Path {
  return change !== 'changed' && typeof path.at(-1) === 'number' ? path.slice(0, -1) : path;
}

/** Each path once, without those inside another path. */
function withoutInner(paths: readonly Path[]): Path[] {
  const kept: Path[] = [];
  for (const path of paths.toSorted((a, b) => a.length - b.length)) {
    const isInner = kept.some((outer) => outer.every((step, i) => step === path[i]));
    if (!isInner) kept.push(path);
  }
  return kept;
}
