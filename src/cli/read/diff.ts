import { definitionBytes } from '../../inspect/figures/costs.ts';
import { prepareFigures } from '../../inspect/figures/session-figures.ts';
import { type Column, tableLines } from '../../inspect/view/table.ts';
import {
  clip,
  clipMiddle,
  formatDuration,
  formatSize,
  pad,
  type TerminalStyle,
  terminalStyle,
  widthOf,
} from '../../inspect/view/text.ts';
import { escapeText } from '../../protocol/text.ts';
import { readResultRules } from '../../replay/match/compare.ts';
import { readIgnoreRules } from '../../replay/match/ignore.ts';
import { diffJson, diffSummary, isEqual, median, p95 } from '../../replay/verify/diff-report.ts';
import type { ListChange } from '../../replay/verify/offers.ts';
import {
  diffSessions,
  type PairedCall,
  type SessionDiff,
  type Timing,
} from '../../replay/verify/sessions.ts';
import type { Source } from '../../sources/source.ts';
import type { Command } from '../io.ts';
import { JSON_OPTION, READ_OPTIONS } from '../options.ts';
import { withLineEnds, writeOutput } from '../output.ts';
import { RECORDING, sayMetaOnly, withSources } from '../play/source.ts';
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

/** What does not count where calls and answers are compared. */
export const IGNORE_OPTIONS = {
  ignore: { ...PATHS, describe: 'A JSON path in params to leave out; may be repeated' },
  'ignore-tool': {
    ...PATHS,
    describe: 'The same in the arguments of one tool, as name:$.path; may be repeated',
  },
  'ignore-result': {
    ...PATHS,
    describe: 'A JSON path in results to leave out, or for one tool: name:$.path; may be repeated',
  },
} as const;

export const diffCommand: Command<Options> = {
  command: 'diff <a> <b>',
  describe: 'Compare two sessions: what the servers offer, the calls, the answers, and their times',
  builder: (args) =>
    args
      .positional('a', RECORDING)
      .positional('b', RECORDING)
      .options({
        ...READ_OPTIONS,
        json: JSON_OPTION,
        ...IGNORE_OPTIONS,
      })
      .example('$0 diff before.ndjson latest', 'A text recording and the newest session')
      .example(
        "$0 diff monday tuesday --ignore-tool 'search:$.now'",
        'Two sessions by name, except for a time in them',
      ),
  async run(options, io) {
    const ignore = readIgnoreRules(options.ignore, options['ignore-tool']);
    const results = readResultRules(options['ignore-result']);
    const { diff, weights } = await withSources(io, [options.a, options.b], options.db, async (sources) => {
      const [a, b] = sources as [Source, Source];
      for (const source of sources) sayMetaOnly(io, source);
      return {
        diff: await diffSessions(a, b, ignore, results),
        weights: { a: weightOf(a), b: weightOf(b) },
      };
    });
    const style = terminalStyle(io.stdout, io.env);
    await writeOutput(
      io,
      withLineEnds(options.json ? jsonLines(diff, weights) : diffLines(diff, weights, style)),
    );
    if (!isEqual(diff)) io.exitCode = 1;
  },
};

/** Differences between two sessions, for people and for programs. Recorded text is escaped. */

const SIDES = { from: 'a', to: 'b' };

const MAX_TIMINGS = 20;

/** Columns of a name that stay whatever stands behind it. */
const LEAST_NAME = 24;

function* diffLines(diff: SessionDiff, weights: Weights, style: TerminalStyle): Generator<string> {
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
  for (const line of weightLines(weights)) yield clip(line, width);
  yield diffSummary(diff);
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

function* jsonLines(diff: SessionDiff, { a, b }: Weights): Generator<string> {
  yield JSON.stringify({ type: 'bytes', a: weightJson(a), b: weightJson(b) });
  for (const line of diffJson(diff)) yield JSON.stringify(line);
}

/** What the tools of a session weigh, in bytes: their definitions, and the answers to their calls. */
type Weight = { tools: ReadonlyMap<string, number>; answers: number };

type Weights = { a: Weight; b: Weight };

function weightOf({ store, session }: Source): Weight {
  const { topics, costs } = prepareFigures(store)(session);
  const answers = topics
    .filter(({ askedBy, method }) => askedBy === 'client' && method === 'tools/call')
    .reduce((sum, { answerBytes }) => sum + answerBytes, 0);
  return { tools: costs.tools, answers };
}

/** Nothing where a session has no list: what is not known cannot be compared. */
function* weightLines({ a, b }: Weights): Generator<string> {
  if (a.tools.size === 0 || b.tools.size === 0) return;
  const sizes = (before: number, after: number) =>
    before === after ? `${formatSize(before)} each` : `${formatSize(before)} in a, ${formatSize(after)} in b`;
  const [before, after] = [a, b].map(({ tools }) => definitionBytes(tools.values()));
  yield `tools defined in ${sizes(before ?? 0, after ?? 0)}; answers to their calls ${sizes(a.answers, b.answers)}`;
  for (const [tool, bytes] of b.tools) {
    const old = a.tools.get(tool);
    if (old !== undefined && old !== bytes) yield `  ${escapeText(tool)} ${sizes(old, bytes)}`;
  }
  yield '';
}

function weightJson({ tools, answers }: Weight) {
  const definitions = [...tools].map(([tool, bytes]) => ({ tool, bytes }));
  return { definitionBytes: definitionBytes(tools.values()), answerBytes: answers, tools: definitions };
}
