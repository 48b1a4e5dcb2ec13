/**
 * Why a request has no recorded answer. The reason is what is known for sure; the nearest recorded calls are a list with
 * scores, never a guess told as the truth. Compared are at most `MAX_COMPARED` calls, those that were not played yet
 * before all others, and fewer where there were very many misses; a miss says when there were more.
 */

import { CANONICAL_PROBLEM, type CanonicalProblem } from '../../protocol/json/canonical.ts';
import { type Difference, diffOf, jsonPointer } from '../../protocol/json/diff.ts';
import { jsonPathText } from '../../protocol/json/path.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { targetParam } from '../../protocol/message/methods.ts';
import { frameText, type Origin } from '../recording/recording.ts';
import type { CallTopic } from '../recording/topics.ts';
import type { RequestKey } from './key.ts';
import type { CallCandidate, CallCursor, NoHit } from './matcher.ts';
import { mayAlwaysRepeat } from './repeat.ts';

/** `unreadable`: the params have no canonical form, so they equal nothing. */
type MissReason = NoHit['reason'] | 'unreadable';

type NearCall = {
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
type KeyAt = (place: Place) => RequestKey | null;

/** The recording, as far as a miss has to look into it. */
export type MissContext = {
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
export function explainMiss(
  key: RequestKey,
  noHit: NoHit,
  client: CallCursor,
  recorded: MissContext,
): MissExplanation {
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
export function unreadableMiss(asked: CallTopic, problem: CanonicalProblem): MissExplanation {
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
  client: CallCursor,
  { keyAt, originOf, effort }: MissContext,
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
    near = [...near, nearCall(key, recorded, candidate, originOf(candidate.place))]
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
export function reasonText(miss: MissExplanation): string {
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

function callText({ method, target }: CallTopic): string {
  return target === null ? name(method) : `${name(method)} ${JSON.stringify(target)}`;
}

function ofTarget({ recorded, target, method }: MissExplanation): string {
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

/**
 * The three forms of a miss: the JSON-RPC error for the client, one line for stderr, and the whole text for a report.
 * The first two clip values; the report has all of them. Recorded text is not made safe for a terminal here.
 */

/**
 * The error code of a miss: positive, as -32768 to -32000 are not an implementation's to give away (specification
 * 2026-07-28, basic/index), and reminiscent of HTTP's 404.
 */
export const NO_RECORDED_ANSWER = 1404;

const MAX_VALUE_IN_LINE = 60;

const MAX_VALUE_IN_ERROR = 400;

const MAX_DIFFERENCES_IN_ERROR = 20;

const MAX_METHODS = 20;

/** Values stand as their JSON text, so that numbers stay exact. A null says that this side has none. */
type DifferenceData = {
  change: Difference['change'];
  pointer: string;
  recorded: string | null;
  live: string | null;
};

type NearData = {
  seq: number;
  n: number;
  /** Null where there is only one. */
  session: string | null;
  target: string | null;
  played: boolean;
  similarity: number;
  differences: DifferenceData[];
  moreDifferences: number;
  options: readonly string[] | null;
};

type MissData = {
  reason: MissExplanation['reason'];
  explanation: string;
  method: string;
  target: string | null;
  recorded: number;
  methods: readonly string[];
  nearest: NearData[];
  compared: number;
  moreCandidates: boolean;
  options: readonly string[];
};

type MissError = { code: number; message: string; data: MissData };

/** The `error` member of the answer. */
export function missError(miss: MissExplanation): MissError {
  return {
    code: NO_RECORDED_ANSWER,
    message: `tapedeck: no recorded answer to ${reasonText(miss)}`,
    data: {
      reason: miss.reason,
      explanation: reasonText(miss),
      method: miss.method,
      target: miss.target,
      recorded: miss.recorded,
      methods: miss.methods.slice(0, MAX_METHODS),
      nearest: miss.near.map(nearData),
      compared: miss.compared,
      moreCandidates: miss.isCut,
      options: miss.options,
    },
  };
}

function nearData({
  place,
  origin,
  target,
  isPlayed,
  similarity,
  differences,
  more,
  options,
}: NearCall): NearData {
  const listed = differences.slice(0, MAX_DIFFERENCES_IN_ERROR);
  return {
    seq: origin.seq,
    n: place.n,
    session: origin.session,
    target,
    played: isPlayed,
    similarity: rounded(similarity),
    differences: listed.map(({ change, path, from, to }) => ({
      change,
      pointer: jsonPointer(path),
      recorded: from === null ? null : valueText(from, MAX_VALUE_IN_ERROR),
      live: to === null ? null : valueText(to, MAX_VALUE_IN_ERROR),
    })),
    moreDifferences: more + differences.length - listed.length,
    options,
  };
}

/** One line, without its end. */
export function missLine(miss: MissExplanation): string {
  const [near] = miss.near;
  const options = [...(near?.options?.length ? [near.options.join(' ')] : []), ...miss.options];
  const parts = [reasonText(miss)];
  if (near !== undefined) parts.push(nearLine(near, miss.compared));
  if (options.length > 0) parts.push(`options: ${[...new Set(options)].join(', or ')}`);
  return parts.join('; ');
}

function nearLine({ origin, similarity, isPlayed, differences, more }: NearCall, compared: number): string {
  const [first] = differences;
  const others = differences.length - 1 + more;
  const which = `nearest of ${compared} compared: ${frameText(origin)}${isPlayed ? ', already played' : ''}`;
  const what = first === undefined ? 'equal' : differenceText(first, MAX_VALUE_IN_LINE);
  return `${which}, similarity ${rounded(similarity)}: ${what}${others > 0 ? `, and ${others} more` : ''}`;
}

/** Many lines, each with its end, and every value whole. */
export function missReport(miss: MissExplanation): string {
  const lines = [reasonText(miss), `  params that count: ${miss.params.toString()}`];
  if (miss.methods.length > 0)
    lines.push(`  recorded methods: ${miss.methods.map((m) => JSON.stringify(m)).join(', ')}`);
  for (const near of miss.near) lines.push(...nearReport(near));
  if (miss.isCut) lines.push(`  compared with ${miss.compared} recorded calls only: there are more`);
  for (const option of miss.options) lines.push(`  option: ${option}`);
  return `${lines.join('\n')}\n`;
}

function nearReport({
  place,
  origin,
  target,
  isPlayed,
  similarity,
  differences,
  more,
  options,
}: NearCall): string[] {
  const of = target === null ? '' : ` of ${JSON.stringify(target)}`;
  const state = isPlayed ? 'already played' : 'not played yet';
  const lines = [
    `  ${frameText(origin)}, message ${place.n}${of}: ${state}, similarity ${rounded(similarity)}`,
  ];
  for (const difference of differences) lines.push(`    ${differenceText(difference)}`);
  if (more > 0) lines.push(`    and ${more} more`);
  if (options !== null && options.length > 0) lines.push(`    would match with: ${options.join(' ')}`);
  return lines;
}

/** Values are clipped after `max` characters; `absent` is said where the live side has none. */
export function differenceText(
  { change, path, from, to }: Difference,
  max?: number,
  absent = 'not in the live call',
): string {
  const sides = [
    from === null ? 'not recorded' : `recorded ${valueText(from, max)}`,
    to === null ? absent : `live ${valueText(to, max)}`,
  ];
  return `${jsonPointer(path)} ${change}: ${sides.join(', ')}`;
}

/** A value's JSON text, cut after `max` characters with a note of its size. */
function valueText(value: Buffer, max = Number.POSITIVE_INFINITY): string {
  if (value.length <= max) return value.toString();
  // Four bytes are the most that a character takes.
  const characters = [...value.toString('utf8', 0, Math.min(value.length, max * 4))];
  if (characters.length <= max && value.length <= max * 4) return characters.join('');
  return `${characters.slice(0, max).join('')}… (${value.length} bytes)`;
}

function rounded(similarity: number): number {
  return Math.round(similarity * 1000) / 1000;
}

/** The options that make differences not count, as one would type them in a shell. */

/** Steps into params; null stands for every element of an array. */
export type Path = readonly (string | number | null)[];

/** One `--ignore` or `--ignore-tool` per difference; null where what differs is the target, which always counts. */
function ignoreOptions(asked: CallTopic, differences: readonly Difference[]): string[] | null {
  const paths = withoutInner(differences.map(pathToIgnore));
  return paths.some(([first]) => first === undefined || first === targetParam(asked.method))
    ? null
    : paths.map((path) => ignoreOption(asked, path));
}

/** What has to be ignored so that a difference does not count: where an array has grown or shrunk, the whole array. */
export function pathToIgnore({ change, path }: Difference): Path {
  return change !== 'changed' && typeof path.at(-1) === 'number' ? path.slice(0, -1) : path;
}

/** Each path once, and none that leads into what another one leaves out. */
function withoutInner(paths: readonly Path[]): Path[] {
  const kept: Path[] = [];
  for (const path of paths.toSorted((a, b) => a.length - b.length)) {
    const isInner = kept.some((outer) => outer.every((step, i) => step === path[i]));
    if (!isInner) kept.push(path);
  }
  return kept;
}

export function ignoreOption({ method, target }: CallTopic, path: Path): string {
  const isOfTool = method === 'tools/call' && path[0] === 'arguments';
  // A name with `:$` in it could not be told from the path.
  if (isOfTool && target !== null && target !== '' && !target.includes(':$'))
    return `--ignore-tool ${shellQuoted(`${target}:${jsonPathText(path.slice(1))}`)}`;
  return `--ignore ${shellQuoted(jsonPathText(path))}`;
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
