import { type Column, tableLines } from '../../inspect/view/table.ts';
import {
  clip,
  clipMiddle,
  formatDuration,
  pad,
  type TerminalStyle,
  terminalStyle,
  widthOf,
} from '../../inspect/view/text.ts';
import { type Difference, jsonPointer } from '../../protocol/json/diff.ts';
import { escapeText } from '../../protocol/text.ts';
import { readResultRules } from '../../replay/match/compare.ts';
import { readIgnoreRules } from '../../replay/match/ignore.ts';
import type { ListChange } from '../../replay/verify/offers.ts';
import {
  diffSessions,
  type PairedCall,
  type SessionDiff,
  type Timing,
} from '../../replay/verify/sessions.ts';
import type { Source } from '../../sources/source.ts';
import type { Command } from '../io.ts';
import { DB_OPTION, JSON_OPTION } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { RECORDING, withSources } from '../play/source.ts';
import { differenceLines } from '../play/verify-report.ts';

type Options = {
  a: string;
  b: string;
  db: string | undefined;
  json: boolean;
  ignore: string[];
  'ignore-tool': string[];
  'ignore-result': string[];
};

const PATHS = { type: 'string', array: true, default: [] as string[], requiresArg: true } as const;

export const diffCommand: Command<Options> = {
  command: 'diff <a> <b>',
  describe: 'Compare two sessions: what the servers offer, the calls, the answers, and their times',
  builder: (args) =>
    args
      .positional('a', RECORDING)
      .positional('b', RECORDING)
      .options({
        db: DB_OPTION,
        json: JSON_OPTION,
        ignore: { ...PATHS, describe: 'A JSON path in params to leave out; may be repeated' },
        'ignore-tool': {
          ...PATHS,
          describe: 'The same in the arguments of one tool, as name:$.path; may be repeated',
        },
        'ignore-result': {
          ...PATHS,
          describe: 'A JSON path in results to leave out, or for one tool: name:$.path; may be repeated',
        },
      })
      .example('$0 diff before.ndjson latest', 'A text recording and the newest session')
      .example(
        "$0 diff monday tuesday --ignore-tool 'search:$.now'",
        'Two sessions by name, except for a time in them',
      ),
  async run(options, io) {
    const ignore = readIgnoreRules(options.ignore, options['ignore-tool']);
    const results = readResultRules(options['ignore-result']);
    const diff = await withSources(io, [options.a, options.b], options.db, ([a, b]) =>
      diffSessions(a as Source, b as Source, ignore, results),
    );
    const style = terminalStyle(io.stdout, io.env);
    await writeOutput(io, withLineEnds(options.json ? diffJson(diff) : diffLines(diff, style)));
    if (!isEqual(diff)) io.exitCode = 1;
  },
};

/** Differences between two sessions, for people and for programs. Recorded text is escaped. */

const SIDES = { from: 'a', to: 'b' };

const MAX_TIMINGS = 20;

/** Columns of a name that stay whatever stands behind it. */
const LEAST_NAME = 24;

export function isEqual({ lists, calls }: SessionDiff): boolean {
  return lists.length === 0 && calls.every(({ verdict }) => verdict === 'equal');
}

function* diffLines(diff: SessionDiff, style: TerminalStyle): Generator<string> {
  const { colors, width } = style;
  for (const kind of diff.unknownLists)
    yield colors.dim(clip(`the ${kind}s are not compared: only one of the sessions asked for them`, width));
  for (const change of diff.lists) for (const line of listLines(change)) yield clip(line, width);
  for (const call of diff.calls) {
    if (call.verdict === 'equal') continue;
    const [head = '', ...rest] = callLines(call, width);
    yield colors.yellow(clip(head, width));
    for (const line of rest) yield clip(line, width);
  }
  if (diff.lists.length > 0 || diff.calls.some(({ verdict }) => verdict !== 'equal')) yield '';
  yield* timingLines(diff.timings, style);
  yield summaryLine(diff);
}

function listLines({ kind, name, change, breaking, differences }: ListChange): string[] {
  return [
    `${kind} ${escapeText(name)} ${change}, ${breaking.length > 0 ? 'breaking' : 'not breaking'}`,
    ...breaking.map((why) => `           ${escapeText(why)}`),
    ...differenceLines(differences, 0, SIDES),
  ];
}

function callLines(call: PairedCall, width: number): string[] {
  const { verdict, askedBy, method, target, why, a, b } = call;
  const who = askedBy === 'client' ? '' : 'asked by the server: ';
  const places = [a === null ? [] : [`a #${a}`], b === null ? [] : [`b #${b}`]].flat().join(', ');
  const start = `${pad(verdict, 15)}  ${who}`;
  const end = ` (${places})${why === null ? '' : `: ${escapeText(why)}`}`;
  const room = Math.max(LEAST_NAME, width - start.length - widthOf(end));
  return [
    start + clipMiddle(escapeText(target === null ? method : `${method} ${target}`), room) + end,
    ...differenceLines(call.differences, call.more, SIDES),
  ];
}

type TimingRow = Timing & { most: number };

const figure = (title: string, expendable: number, cell: (row: TimingRow) => string): Column<TimingRow> => ({
  title,
  isNumber: true,
  cell,
  ...(expendable === 0 ? {} : { expendable }),
});

/** Where there is little room, the medians stay. */
const TIMING_COLUMNS: readonly Column<TimingRow>[] = [
  {
    title: 'CALL',
    least: 12,
    cell: ({ method, target }) => (target === null ? method : `${method} ${target}`),
  },
  figure('CALLS A', 2, ({ a }) => String(a.length)),
  figure('CALLS B', 2, ({ b }) => String(b.length)),
  figure('P50 A', 0, ({ a }) => time(median(a))),
  figure('P50 B', 0, ({ b }) => time(median(b))),
  figure('P95 A', 1, ({ a }) => time(p95(a))),
  figure('P95 B', 1, ({ b }) => time(p95(b))),
];

/** The slowest calls, with the median and the 95th percentile of both sides. */
function* timingLines(timings: readonly Timing[], style: TerminalStyle): Generator<string> {
  const rows = timings
    .map((timing) => ({ ...timing, most: Math.max(p95(timing.a) ?? 0, p95(timing.b) ?? 0) }))
    .sort((x, y) => y.most - x.most)
    .slice(0, MAX_TIMINGS);
  if (rows.length === 0) return;
  yield* tableLines(TIMING_COLUMNS, rows, style);
  yield '';
}

function time(microseconds: number | null): string {
  return microseconds === null ? '-' : formatDuration(microseconds / 1000);
}

function median(values: readonly number[]): number | null {
  return quantile(values, 0.5);
}

function p95(values: readonly number[]): number | null {
  return quantile(values, 0.95);
}

/** The smallest value that this share of the values does not exceed. */
function quantile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((x, y) => x - y);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? null;
}

function summaryLine({ lists, calls }: SessionDiff): string {
  const count = (verdict: PairedCall['verdict']) => calls.filter((call) => call.verdict === verdict).length;
  const breaking = lists.filter((change) => change.breaking.length > 0).length;
  const parts = [`${count('equal')} calls equal`];
  for (const verdict of ['differs', 'other arguments', 'only in a', 'only in b'] as const)
    if (count(verdict) > 0) parts.push(`${count(verdict)} ${verdict}`);
  if (lists.length > 0)
    parts.push(`${lists.length} of what the servers offer changed (${breaking} breaking)`);
  return parts.join(', ');
}

function* diffJson(diff: SessionDiff): Generator<string> {
  for (const { breaking, differences, ...rest } of diff.lists)
    yield JSON.stringify({
      type: 'list',
      ...rest,
      breaking: breaking.length > 0,
      reasons: breaking,
      differences: differences.map(data),
    });
  for (const { differences, more, ...rest } of diff.calls)
    yield JSON.stringify({
      type: 'call',
      ...rest,
      differences: differences.map(data),
      moreDifferences: more,
    });
  for (const { method, target, a, b } of diff.timings)
    yield JSON.stringify({ type: 'timing', method, target, a: figures(a), b: figures(b) });
  yield JSON.stringify({ type: 'summary', isEqual: isEqual(diff), notCompared: diff.unknownLists });
}

function figures(values: readonly number[]): { count: number; p50Ms: number | null; p95Ms: number | null } {
  const ms = (microseconds: number | null) => (microseconds === null ? null : microseconds / 1000);
  return { count: values.length, p50Ms: ms(median(values)), p95Ms: ms(p95(values)) };
}

/** Values as JSON text, so that no number loses digits; null where there is none. */
function data({ change, path, from, to }: Difference) {
  return { change, pointer: jsonPointer(path), a: from?.toString() ?? null, b: to?.toString() ?? null };
}
