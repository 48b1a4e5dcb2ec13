/**
 * The three forms of a miss: the JSON-RPC error for the client, one line for stderr, and the whole text for a report.
 * The first two clip values; the report has all of them. Recorded text is not made safe for a terminal here.
 */
import { type Difference, jsonPointer } from './diff.ts';
import { type Miss, type NearCall, reasonText } from './miss.ts';
import { frameText } from './recording.ts';

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
export type DifferenceData = {
  change: Difference['change'];
  pointer: string;
  recorded: string | null;
  live: string | null;
};

export type NearData = {
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

export type MissData = {
  reason: Miss['reason'];
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

export type MissError = { code: number; message: string; data: MissData };

/** The `error` member of the answer. */
export function missError(miss: Miss): MissError {
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
export function missLine(miss: Miss): string {
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
export function missReport(miss: Miss): string {
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
