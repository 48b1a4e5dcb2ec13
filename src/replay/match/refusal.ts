/**
 * What a client gets in place of an answer, in three forms: the JSON-RPC error for the client, one line for stderr, and the
 * whole text for a report. The first two clip values; the report has all of them. Recorded text is not escaped here.
 */

import { CANONICAL_PROBLEM } from '../../protocol/json/canonical.ts';
import { type Difference, jsonPointer } from '../../protocol/json/diff.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import type { RequestMessage } from '../../protocol/message/message.ts';
import { frameText, type Recording } from '../recording/recording.ts';
import type { CallTopic } from '../recording/topics.ts';
import type { HintWords } from './hints.ts';
import type { MissExplanation, NearCall } from './miss.ts';

/** What a request gets that the recording cannot answer. */
export type ReplayRefusal = {
  /** The member `error` of the answer. */
  error: { code: number; message: string; data: unknown };
  /** What was asked, and why it has no answer. */
  explanation: string;
  /** For stderr: one line. */
  line: string;
  /** For the report: several lines, with every value whole. */
  text: string;
};

/**
 * The error code of a refusal: positive, because -32768 to -32000 are not an implementation's to use (specification
 * 2026-07-28, basic/index), and reminiscent of HTTP's 404.
 */
export const NO_RECORDED_ANSWER = 1404;

/** No recorded call equals the request. */
export function missRefusal(miss: MissExplanation): ReplayRefusal & { error: MissError } {
  return {
    error: missError(miss),
    explanation: reasonText(miss),
    line: missLine(miss),
    text: missReport(miss),
  };
}

/** Several recorded calls differ only in what was redacted. */
export function ambiguousRefusal(request: RequestMessage): ReplayRefusal {
  const why =
    'several recorded calls differ only in what was redacted, and the key of that redaction is in the store that they were exported from, so nobody can tell which of them this is; name that store (`db`), ignore the redacted argument, or record it again by a record mode, which numbers secrets';
  return refusal(request, 'redacted-alike', why, {});
}

/** The store has gone since the recording was opened, say. */
export function unreadableRefusal(request: RequestMessage, error: Error): ReplayRefusal {
  return refusal(request, 'recording-unreadable', `the recording cannot be read: ${error.message}`, {});
}

/** Several clients were recorded, and the live one is none of them. */
export function strangerRefusal(request: RequestMessage): ReplayRefusal {
  const why =
    'several clients were recorded, and this one is none of them: it calls itself otherwise, or is one more than there were';
  return refusal(request, 'unknown-client', why, {});
}

/** The call was recorded, but nobody answered it. */
export function unansweredRefusal(
  request: RequestMessage,
  { originOf }: Recording,
  place: Place,
): ReplayRefusal {
  const origin = originOf(place);
  const why = `it was recorded (${frameText(origin)}), but never answered`;
  return refusal(request, 'never-answered', why, origin);
}

/** The call was recorded, but which answer is its own is not certain. */
export function doubtfulRefusal(
  request: RequestMessage,
  { originOf }: Recording,
  place: Place,
): ReplayRefusal {
  const origin = originOf(place);
  const why = `it was recorded (${frameText(origin)}), but another call had the same id at the same time, so which answer is its own is unknown`;
  return refusal(request, 'answer-unknown', why, origin);
}

/** The recorded server asked its client for something that the live client has not declared. */
export function incapableRefusal(request: RequestMessage, capability: string): ReplayRefusal {
  const why = `the recorded server asked its client for ${capability}, which this client has not declared`;
  return refusal(request, 'client-incapable', why, { capability });
}

/** A live server did not answer. `missed`: why the recording has no answer either; null where nothing was played. */
export function liveRefusal(
  request: RequestMessage,
  why: string,
  missed: ReplayRefusal | null,
): ReplayRefusal {
  const { canonical: method, details } = request;
  const live = `no answer from the live server: ${why}`;
  const call = details.target === null ? method : `${method} ${JSON.stringify(details.target)}`;
  const explanation = missed === null ? `${call}: ${live}` : `${missed.explanation}; ${live}`;
  const known = missed === null ? { method, target: details.target } : (missed.error.data as object);
  const data = { reason: 'live-failed', ...known, explanation, live: why, options: [] };
  const message = `tapedeck: ${missed === null ? '' : 'no recorded answer to '}${explanation}`;
  const error = { code: NO_RECORDED_ANSWER, message, data };
  // Which options would change it has been tried: a server was asked.
  return { error, explanation, line: explanation, text: `${explanation}\n` };
}

function refusal(request: RequestMessage, reason: string, why: string, facts: object): ReplayRefusal {
  const { canonical: method, details } = request;
  const { target } = details;
  const explanation = `${target === null ? method : `${method} ${JSON.stringify(target)}`}: ${why}`;
  const data = { reason, explanation, method, target, ...facts };
  const message = `tapedeck: no recorded answer to ${explanation}`;
  const error = { code: NO_RECORDED_ANSWER, message, data };
  return { error, explanation, line: explanation, text: `${explanation}\n` };
}

const MAX_VALUE_IN_LINE = 60;

const MAX_VALUE_IN_ERROR = 400;

const MAX_DIFFERENCES_IN_ERROR = 20;

const MAX_METHODS = 20;

const MAX_TARGETS = 20;

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
  targets: readonly string[];
  meant: string | null;
  nearest: NearData[];
  compared: number;
  moreCandidates: boolean;
  options: readonly string[];
};

type MissError = { code: number; message: string; data: MissData };

/** The `error` member of the answer. */
function missError(miss: MissExplanation): MissError {
  return {
    code: NO_RECORDED_ANSWER,
    // Most clients show nothing else of an error.
    message: `tapedeck: no recorded answer to ${missLine(miss)}`,
    data: {
      reason: miss.reason,
      explanation: reasonText(miss),
      method: miss.method,
      target: miss.target,
      recorded: miss.recorded,
      methods: miss.methods.slice(0, MAX_METHODS),
      targets: miss.known?.names.slice(0, MAX_TARGETS) ?? [],
      meant: miss.meant,
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
function missLine(miss: MissExplanation): string {
  const [near] = miss.near;
  const together = near?.options?.length ? [near.options.join(miss.words.and)] : [];
  const options = [...together, ...miss.options];
  const parts = [reasonText(miss), ...miss.remarks];
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
function missReport(miss: MissExplanation): string {
  const lines = [reasonText(miss), `  params that count: ${miss.params.toString()}`];
  if (miss.methods.length > 0)
    lines.push(`  recorded methods: ${miss.methods.map((m) => JSON.stringify(m)).join(', ')}`);
  for (const remark of miss.remarks) lines.push(`  ${remark}`);
  for (const near of miss.near) lines.push(...nearReport(near, miss.words));
  if (miss.isCut) lines.push(`  compared with ${miss.compared} recorded calls only: there are more`);
  for (const option of miss.options) lines.push(`  option: ${option}`);
  return `${lines.join('\n')}\n`;
}

function nearReport(
  { place, origin, target, isPlayed, similarity, differences, more, options }: NearCall,
  { and }: HintWords,
): string[] {
  const of = target === null ? '' : ` of ${JSON.stringify(target)}`;
  const state = isPlayed ? 'already played' : 'not played yet';
  const lines = [
    `  ${frameText(origin)}, message ${place.n}${of}: ${state}, similarity ${rounded(similarity)}`,
  ];
  for (const difference of differences) lines.push(`    ${differenceText(difference)}`);
  if (more > 0) lines.push(`    and ${more} more`);
  if (options !== null && options.length > 0) lines.push(`    would match with: ${options.join(and)}`);
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

/** The reason as a sentence. Names from the recording or the wire stand in quotes, as JSON has them. */
function reasonText(miss: MissExplanation): string {
  const call = callText(miss);
  switch (miss.reason) {
    case 'used-up':
      return `${call}: used up. It was recorded ${times(miss.recorded)}, and ${miss.recorded === 1 ? 'that one has' : 'all have'} been played`;
    case 'arguments-differ':
      return `${call}: the arguments differ. ${ofTarget(miss)} ${miss.recorded === 1 ? 'was' : 'were'} recorded, but none with these params`;
    case 'never-recorded':
      return miss.isMethodKnown
        ? `${call}: never recorded. The recording has other calls of ${name(miss.method)}, none of this target${targetsText(miss)}`
        : `${call}: never recorded. The recording has no call of ${name(miss.method)}${targetsText(miss)}`;
    case 'unreadable':
      return `${call}: cannot be matched: what it asks ${miss.problem === null ? 'is unknown' : CANONICAL_PROBLEM[miss.problem]}`;
  }
}

/** What could have been asked for: as the server listed it, else as it was asked for. */
function targetsText({ known, meant, target }: MissExplanation): string {
  if (known === null || known.names.length === 0) return '';
  if (known.isListed && known.names.includes(target ?? '')) return ', though the server listed it';
  const guess = meant === null ? '' : `. Did you mean ${JSON.stringify(meant)}?`;
  const shown = known.names.slice(0, MAX_TARGETS).map((one) => JSON.stringify(one));
  const more = known.names.length - shown.length;
  const list = `${shown.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  const whose = known.isListed ? 'the server listed' : 'it has';
  return `${guess}${guess === '' ? '; ' : ' '}${guess === '' ? whose : `${whose[0]?.toUpperCase()}${whose.slice(1)}`} ${list}`;
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
