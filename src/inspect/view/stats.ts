/** `stats` for people, as a table with a histogram below, and for programs. */

import { escapeText } from '../../protocol/text.ts';
import { type Bar, type CallStatus, type Figures, histogram } from '../figures/call-figures.ts';
import { type Costs, definitionBytes } from '../figures/costs.ts';
import { type Group, type SampleNote, SHARES, type Stats } from '../figures/stats.ts';
import type { CallVerdict } from '../verdict/fate.ts';
import { type Column, tableLines } from './table.ts';
import {
  type Colors,
  clip,
  formatCount,
  formatDuration,
  formatNumber,
  formatSize,
  type TerminalStyle,
} from './text.ts';

const number = (title: string, cell: (figures: Figures) => string): Column<Group> => ({
  title,
  isNumber: true,
  cell: ({ figures }) => cell(figures),
});

const isCall = ({ figures }: Group) => figures.kind === 'request';

const outcome = (figures: Figures, name: CallStatus) => figures.outcomes.get(name) ?? 0;

const failed = (figures: Figures) => outcome(figures, 'error') + outcome(figures, 'tool-error');

/** A figure that only calls have. */
const ofCalls = (title: string, cell: (figures: Figures) => string): Column<Group> => ({
  ...number(title, (figures) => (figures.kind === 'request' ? cell(figures) : '')),
  isFor: isCall,
});

const warning = (color: 'red' | 'yellow', count: (figures: Figures) => number) => ({
  color: (colors: Colors, { figures }: Group) => (count(figures) > 0 ? colors[color] : undefined),
});

const latency = (title: string, share: (typeof SHARES)[number], expendable: number): Column<Group> => ({
  title,
  isNumber: true,
  isFor: isCall,
  cell: ({ took }) => timeText(took[SHARES.indexOf(share)] ?? null),
  expendable,
});

const NAMES: readonly Column<Group>[] = [
  { title: '', cell: ({ figures }) => (figures.askedBy === 'client' ? '→' : '←'), isFor: ofSessions(false) },
  {
    title: 'METHOD',
    cell: ({ figures }) => figures.method,
    least: 12,
    wanted: 16,
    shorten: (method) => method.replace(/^notifications\//, '…'),
    isFor: ofSessions(false),
  },
  {
    title: 'TOOL',
    cell: ({ figures }) => figures.target ?? '',
    least: 8,
    wanted: 24,
    isFor: ({ figures }) => figures.target !== null,
  },
  { title: 'SESSION', cell: ({ session }) => session?.id ?? '', isFor: ofSessions(true) },
  {
    title: 'NAME',
    cell: ({ session }) => session?.name ?? session?.target ?? '',
    least: 8,
    wanted: 16,
    isFor: ofSessions(true),
  },
];

const FIGURES: readonly Column<Group>[] = [
  number('COUNT', ({ count }) => String(count)),
  { ...ofCalls('ERRORS', (figures) => String(failed(figures))), ...warning('red', failed) },
  {
    ...ofCalls('OPEN', (figures) => String(outcome(figures, 'unanswered'))),
    ...warning('yellow', (figures) => outcome(figures, 'unanswered')),
    // The first line says how many there are.
    expendable: 2,
  },
  {
    ...ofCalls('CANCELLED', (figures) => String(outcome(figures, 'cancelled'))),
    isFor: ({ figures }) => outcome(figures, 'cancelled') > 0,
    expendable: 2,
  },
  {
    ...ofCalls('FAULTS', (figures) => String(outcome(figures, 'fault'))),
    isFor: ({ figures }) => outcome(figures, 'fault') > 0,
    expendable: 2,
  },
  latency('P50', 0.5, 1),
  latency('P95', 0.95, 1),
  latency('P99', 0.99, 3),
  latency('MAX', 1, 4),
  { ...ofCalls('AT ONCE', ({ atOnce }) => String(atOnce)), expendable: 5 },
  { ...number('SIZE', ({ bytes }) => formatSize(bytes)), expendable: 6 },
  { ...ofCalls('ANSWERS', ({ answerBytes }) => formatSize(answerBytes)), expendable: 8 },
  {
    title: 'DEFINED',
    isNumber: true,
    cell: ({ definitionBytes }) => (definitionBytes === null ? '' : formatSize(definitionBytes)),
    isFor: ({ definitionBytes }) => definitionBytes !== null,
    expendable: 7,
  },
];

const COLUMNS: readonly Column<Group>[] = [...NAMES, ...FIGURES];

function ofSessions(isIt: boolean): (group: Group) => boolean {
  return ({ session }) => (session !== null) === isIt;
}

function timeText(microseconds: number | null): string {
  return microseconds === null ? '' : formatDuration(microseconds / 1000);
}

/** `isPlain`: bars of ordinary characters. `isWhole`: of all calls of their sessions, so that it has costs too. */
export function* statsLines(
  stats: Stats,
  style: TerminalStyle,
  { isPlain, isWhole }: { isPlain: boolean; isWhole: boolean },
): Generator<string> {
  const { groups, calls, sessions } = stats;
  const parts = [
    formatCount(sessions, 'session'),
    formatCount(calls.count, 'call'),
    formatCount(failed(calls), 'error'),
    `${formatNumber(outcome(calls, 'unanswered'))} unanswered`,
    // They count for nothing else.
    ...(outcome(calls, 'fault') > 0
      ? [`${formatCount(outcome(calls, 'fault'), 'call')} with a fault on purpose`]
      : []),
  ];
  yield style.colors.bold(parts.join(', '));
  if (stats.sample !== null) for (const line of sampleLines(stats)) yield clip(line, style.width);
  if (stats.lacking > 0) yield clip(lackingText(stats.lacking), style.width);
  if (isWhole) for (const line of costLines(stats)) yield clip(line, style.width);
  if (groups.length === 0) return;
  yield '';
  yield* tableLines(COLUMNS, groups, style);
  if (calls.latencies.count === 0) return;
  yield '';
  yield style.colors.dim(`latency of ${formatCount(calls.latencies.count, 'answered call')}`);
  yield* barLines(histogram(calls.latencies), style, isPlain);
}

/** What a reader has to know of figures that are of a sample. */
function* sampleLines({ sample, sessions }: Stats): Generator<string> {
  const { isScaled = false, recorded = 0, sampled = 0, leftOut = 0 } = sample ?? {};
  if (sampled > 0)
    yield isScaled
      ? `estimated: ${formatCount(recorded, 'recorded session')} for about ${formatNumber(sessions)}; counts, bytes and times are scaled by the rates`
      : `not scaled: ${formatNumber(sampled)} of ${formatCount(recorded, 'session')} stand for more than themselves`;
  if (leftOut > 0)
    yield isScaled
      ? `not counted: ${formatCount(leftOut, 'session')}, not in the sample`
      : `not in the sample: ${formatNumber(leftOut)} of them`;
}

/** What a reader has to know where payloads were not kept. */
function lackingText(sessions: number): string {
  return `not counted: calls without payload in ${formatCount(sessions, 'session')} (--meta-for, --capture meta)`;
}

const LOST: Record<CallVerdict, string> = {
  'never-came': 'never sent',
  'not-forwarded': 'never reached the server',
  'server-gone': 'came when the server had gone',
  'no-answer': 'never answered',
  'client-left': 'left by the client',
  cancelled: 'cancelled',
  refused: 'refused',
  mismatched: 'answered with the id as another type',
  dropped: 'dropped by the client',
  crossed: 'cancelled as the answer came',
  open: 'open',
  unknown: 'of unknown fate',
};

const LARGEST_UNCALLED = 3;

function* costLines({ costs, called }: Stats): Generator<string> {
  const { times, lists, tools, lost } = costs;
  const { server, person, client } = times;
  if (lost.size > 0)
    yield `lost: ${[...lost].map(([verdict, count]) => `${count} ${LOST[verdict]}`).join(', ')}`;
  if (server + person + client > 0) {
    const asked = person > 0 ? [`person ${timeText(person)}`] : [];
    yield `time: ${[`server ${timeText(server)}`, ...asked, `client ${timeText(client)}`].join(', ')}`;
  }
  if (tools.size === 0) return;
  const bytes = definitionBytes(tools.values());
  yield `tools: ${tools.size} defined, ${formatSize(bytes)}, ${formatCount(lists, 'answer')} to tools/list`;
  const uncalled = [...tools].filter(([name]) => !called.has(name)).sort(([, a], [, b]) => b - a);
  if (uncalled.length === 0) return;
  const largest = uncalled
    .slice(0, LARGEST_UNCALLED)
    .map(([name, size]) => `${escapeText(name)} ${formatSize(size)}`);
  const all = formatSize(definitionBytes(uncalled.map(([, size]) => size)));
  const more = uncalled.length > largest.length ? ', …' : '';
  yield `never called: ${formatCount(uncalled.length, 'tool')}, ${all}: ${largest.join(', ')}${more}`;
}

/** Columns before a bar, and behind it. */
const BEFORE_BAR = 21;

const BEHIND_BAR = 12;

const WIDEST_BAR = 60;

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

function* barLines(
  bars: readonly Bar[],
  { colors, width }: TerminalStyle,
  isPlain: boolean,
): Generator<string> {
  const most = Math.max(...bars.map(({ count }) => count));
  const columns = Math.max(8, Math.min(WIDEST_BAR, width - BEFORE_BAR - BEHIND_BAR));
  for (const { from, to, count } of bars) {
    const range = `${stepText(from).padStart(7)} – ${stepText(to).padStart(7)}`;
    const bar = barText((count / most) * columns, isPlain);
    yield `${colors.dim(range)}  ${colors.cyan(bar)}${bar === '' ? '' : ' '}${count === 0 ? '' : formatNumber(count)}`.trimEnd();
  }
}

/** A bar that is not empty has at least one character. */
function barText(columns: number, isPlain: boolean): string {
  if (columns === 0) return '';
  if (isPlain) return '#'.repeat(Math.max(1, Math.round(columns)));
  const eighths = Math.max(1, Math.round(columns * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

/** A step of the histogram: one digit and a unit. */
function stepText(microseconds: number): string {
  if (microseconds < 1000) return `${microseconds} µs`;
  if (microseconds < 1_000_000) return `${microseconds / 1000} ms`;
  return `${microseconds / 1_000_000} s`;
}

/** One group of `stats --json`. */
export function groupJson({ figures, took, session, costs, definitionBytes: defined, isScaled }: Group) {
  const { kind, askedBy, method, target, count, bytes, answerBytes, atOnce, latencies } = figures;
  const what = {
    ...(session === null ? { kind, askedBy, method, target } : { session: session.id, name: session.name }),
    ...(isScaled ? { scaled: true } : {}),
  };
  if (kind === 'notification') return { ...what, count, bytes };
  return {
    ...what,
    count,
    ok: outcome(figures, 'ok'),
    toolErrors: outcome(figures, 'tool-error'),
    errors: outcome(figures, 'error'),
    cancelled: outcome(figures, 'cancelled'),
    inputRequired: outcome(figures, 'input-required'),
    unanswered: outcome(figures, 'unanswered'),
    ...(outcome(figures, 'fault') > 0 ? { faults: outcome(figures, 'fault') } : {}),
    atOnce,
    bytes,
    answerBytes,
    ...(defined === null ? {} : { definitionBytes: defined }),
    ...(costs === null ? {} : costsJson(costs)),
    minMs: milliseconds(latencies.count === 0 ? null : latencies.least),
    p50Ms: milliseconds(took[0]),
    p95Ms: milliseconds(took[1]),
    p99Ms: milliseconds(took[2]),
    maxMs: milliseconds(took[3]),
    histogram: histogram(latencies).map(({ from, to, count }) => ({
      fromMs: from / 1000,
      toMs: to / 1000,
      count,
    })),
  };
}

/** What a session, or all of them together, cost. */
function costsJson({ times, lists, listBytes, tools, lost }: Costs) {
  return {
    serverMs: times.server / 1000,
    personMs: times.person / 1000,
    clientMs: times.client / 1000,
    toolLists: lists,
    toolListBytes: listBytes,
    definitionBytes: definitionBytes(tools.values()),
    lost: Object.fromEntries(lost),
  };
}

/** Behind the groups of `stats --json`: everything together. */
export function totalJson({ calls, costs, sessions, sample, lacking }: Stats) {
  const { tools } = costs;
  const definitions = [...tools].map(([tool, bytes]) => ({ tool, bytes }));
  return {
    ...{ kind: 'total', sessions },
    ...(sample === null ? {} : sampleJson(sample)),
    ...(lacking === 0 ? {} : { sessionsLackingPayloads: lacking }),
    ...{ count: calls.count, ...costsJson(costs), tools: definitions },
  };
}

/** Of figures that are of a sample. */
function sampleJson({ isScaled, recorded, sampled, leftOut }: SampleNote) {
  return { scaled: isScaled && sampled > 0, recordedSessions: recorded, sampledSessions: sampled, leftOut };
}

/** To the microsecond. */
function milliseconds(microseconds: number | null | undefined): number | null {
  return microseconds == null ? null : Math.round(microseconds) / 1000;
}
