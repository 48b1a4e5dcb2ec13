/** Runs of clients for people (`list --by run`, `show --run`), and for programs. */

import { TapedeckError } from '../../errors.ts';
import { escapeText, formatIsoTime } from '../../protocol/text.ts';
import type { RunRow } from '../../store/read/runs.ts';
import { stateOf } from '../../store/read/sessions.ts';
import { type Column, tableLines } from '../view/table.ts';
import { clip, formatCount, formatDuration, formatTime, type TerminalStyle } from '../view/text.ts';
import type { RunCall, RunSummary } from './run.ts';
import { isFailure, type RunTimeline, type Stretch } from './timeline.ts';

/** `list --by run`. */

const COLUMNS: readonly Column<RunRow>[] = [
  { title: 'RUN', cell: ({ id }) => id, color: (c) => c.bold },
  { title: 'NAME', cell: ({ name }) => name ?? '', isFor: ({ name }) => name !== null, least: 8 },
  { title: 'STARTED', cell: ({ sessions }) => formatTime(sessions[0]?.startedAt ?? 0), expendable: 2 },
  { title: 'LASTED', cell: lastedOf, isNumber: true, expendable: 3 },
  { title: 'CLIENT', cell: clientOf, least: 8, expendable: 4 },
  { title: 'SESSIONS', cell: ({ sessions }) => String(sessions.length), isNumber: true },
  { title: 'SERVERS', cell: serversOf, least: 12 },
  { title: 'EXCHANGES', cell: (run) => String(sum(run, 'exchanges')), isNumber: true, expendable: 1 },
  {
    title: 'ERRORS',
    cell: (run) => String(sum(run, 'errors')),
    isNumber: true,
    color: (c, run) => (sum(run, 'errors') > 0 ? c.red : undefined),
  },
  { title: 'BY', cell: ({ evidence }) => evidence.join(', '), expendable: 5 },
];

export function runTable(runs: readonly RunRow[], style: TerminalStyle): Generator<string> {
  return tableLines(COLUMNS, runs, style);
}

function sum({ sessions }: RunRow, figure: 'exchanges' | 'errors'): number {
  return sessions.reduce((all, one) => all + one[figure], 0);
}

/** Null while one of them goes on, or where nobody knows how it ended. */
function endOf({ sessions }: RunRow): number | null {
  return sessions.reduce<number | null>(
    (last, { endedAt }) => (last === null || endedAt === null ? null : Math.max(last, endedAt)),
    0,
  );
}

function lastedOf(run: RunRow): string {
  const end = endOf(run);
  if (end !== null) return formatDuration((end - (run.sessions[0]?.startedAt ?? end)) / 1000);
  return run.sessions.some((one) => stateOf(one) === 'open') ? 'open' : '?';
}

function clientOf({ sessions }: RunRow): string {
  const { clientName, clientVersion } = sessions.find((one) => one.clientName !== null) ?? {};
  const program = sessions.find((one) => one.clientProgram !== null)?.clientProgram;
  return clientName ? [clientName, clientVersion].filter(Boolean).join(' ') : (program ?? '');
}

function serversOf({ sessions }: RunRow): string {
  return [...new Set(sessions.map((one) => one.serverName ?? one.name ?? one.target))].join(', ');
}

/** As `list --by run --json` prints it, and the viewer has it. */
export function runSummary(run: RunRow): RunSummary {
  const end = endOf(run);
  return {
    run: run.id,
    ...{ evidence: run.evidence, name: run.name },
    client: clientOf(run) || null,
    sessions: run.sessions.map(({ id }) => id),
    servers: run.sessions.map((one) => one.serverName ?? one.name ?? one.target),
    startedAt: formatIsoTime(run.sessions[0]?.startedAt ?? 0),
    endedAt: end === null ? null : formatIsoTime(end),
    exchanges: sum(run, 'exchanges'),
    errors: sum(run, 'errors'),
  };
}

/** `show --run`. */

/** Splits `ID/2` into the run and the number of a stretch; null: all of them. */
export function readRunReference(text: string): { run: string; stretch: number | null } {
  const [, run = text, number] = /^(.*)\/(\d+)$/.exec(text) ?? [];
  return { run, stretch: number === undefined ? null : Number(number) };
}

/** The stretches to show. Throws `TapedeckError` `not-found`. */
export function shownStretches({ run, stretches }: RunTimeline, number: number | null): Stretch[] {
  if (number === null) return stretches;
  const one = stretches[number - 1];
  if (one !== undefined) return [one];
  throw new TapedeckError(
    'not-found',
    `Expected a stretch of run ${run} from 1 to ${stretches.length}, got ${number}. See: tapedeck show --run ${run}`,
  );
}

/** Shorter pauses are nothing that anybody would look for. In microseconds. */
const TOLD_PAUSE = 1_000_000;

/** The lines of a run, without line ends. Recorded text is escaped. */
export function* runLines(
  timeline: RunTimeline,
  stretches: readonly Stretch[],
  style: TerminalStyle,
): Generator<string> {
  yield* headLines(timeline, style);
  for (const stretch of stretches) {
    yield '';
    yield* stretchLines(timeline, stretch, style);
  }
}

function* headLines(timeline: RunTimeline, { colors, width }: TerminalStyle): Generator<string> {
  const { run, name, evidence, client, process, lanes, clocks, perhaps } = timeline;
  const who = client === null ? 'unknown' : [client.name, client.version].filter(Boolean).join(' ');
  const lines: [string, string][] = [
    ['run', `${run}${name === null ? '' : `  ${name}`}  (by ${evidence.join(', ')})`],
    ['client', process === null ? who : `${who} (${process.program}, pid ${process.pid})`],
    ...lanes.map((lane, i): [string, string] => [i === 0 ? 'servers' : '', laneText(lane)]),
    ['started', formatTime(timeline.startedAt)],
    ['time', `${ms(timeline.waiting)} waiting for servers, ${ms(timeline.thinking)} thinking`],
    ...(clocks.length > 1
      ? ([
          ['clocks', `${clocks.length}: recorded on several machines, so their times may not fit together`],
        ] as [string, string][])
      : []),
    ...(perhaps.length === 0
      ? []
      : ([['perhaps', `${perhaps.join(', ')}: a client of the same name at the same time`]] as [
          string,
          string,
        ][])),
  ];
  for (const [title, text] of lines)
    yield `${colors.dim(title.padEnd(10))}${clip(escapeText(text), width - 10)}`;
}

function laneText({ session, server, name, target, calls, errors }: RunTimeline['lanes'][number]): string {
  return `${session}  ${server?.name ?? name ?? target}  ${formatCount(calls, 'call')}, ${formatCount(errors, 'error')}`;
}

function* stretchLines(timeline: RunTimeline, stretch: Stretch, style: TerminalStyle): Generator<string> {
  const { run, calls, stretches } = timeline;
  const { number, from, to, first } = stretch;
  const said = `${formatTime(from)}, ${ms(to - from)}: ${formatCount(stretch.calls, 'call')}, ${formatCount(stretch.errors, 'error')}, ${ms(stretch.waiting)} waiting, ${ms(stretch.thinking)} thinking`;
  yield style.colors.bold(stretches.length > 1 ? `${run}/${number}  ${said}` : said);
  const shown = calls.slice(first, first + stretch.calls);
  const rows: Row[] = [];
  let busyUntil = from;
  for (const call of shown) {
    if (call.at - busyUntil >= TOLD_PAUSE) rows.push({ pause: call.at - busyUntil });
    rows.push({ call, at: call.at - from, next: nextText(timeline, call) });
    busyUntil = Math.max(busyUntil, call.at + (call.lasted ?? 0));
  }
  yield* tableLines(callColumns(timeline), rows, style);
}

type Row = { pause: number } | { call: RunCall; at: number; next: string };

function callColumns({ lanes }: RunTimeline): readonly Column<Row>[] {
  const of = (cell: (row: Exclude<Row, { pause: number }>) => string) => (row: Row) =>
    'pause' in row ? '' : cell(row);
  return [
    { title: 'TIME', cell: of(({ at }) => `+${(at / 1_000_000).toFixed(3)}`), isNumber: true },
    {
      title: 'SERVER',
      cell: of(({ call }) => serverOf(lanes[call.lane])),
      least: 8,
    },
    {
      title: 'CALL',
      cell: (row) => ('pause' in row ? `· ${ms(row.pause)} thinking` : callText(row.call)),
      least: 16,
      color: (c, row) => ('pause' in row ? c.dim : undefined),
    },
    {
      title: 'TOOK',
      cell: of(({ call }) => (call.lasted === null ? '' : ms(call.lasted))),
      isNumber: true,
    },
    {
      title: 'OUTCOME',
      cell: of(({ call }) => call.outcome),
      color: (c, row) => ('call' in row && isFailure(row.call) ? c.red : undefined),
    },
    {
      title: 'THEN',
      cell: of(({ next }) => next),
      isFor: (row) => 'call' in row && row.next !== '',
      least: 12,
    },
  ];
}

function serverOf(lane: RunTimeline['lanes'][number] | undefined): string {
  return lane === undefined ? '' : (lane.server?.name ?? lane.name ?? lane.target);
}

function callText({ askedBy, method, target }: RunCall): string {
  const what = target === null ? method : `${method} ${target}`;
  return askedBy === 'client' ? what : `← ${what}`;
}

/** What came after a failure. */
function nextText({ calls, lanes }: RunTimeline, call: RunCall): string {
  if (!isFailure(call) || call.askedBy !== 'client') return '';
  const next = call.next === null ? undefined : calls[call.next.call];
  if (next === undefined || call.next === null) return 'nothing more';
  const what = call.next.isSame
    ? 'again'
    : `${next.target ?? next.method}${next.lane === call.lane ? '' : ` of ${serverOf(lanes[next.lane])}`}`;
  return `${what} after ${ms(call.next.after)}`;
}

function ms(us: number): string {
  return formatDuration(us / 1000);
}

/** A run as one object of JSON: times as `show --json` writes them, durations in milliseconds. */
export function runJson(timeline: RunTimeline, shown: readonly Stretch[]): string {
  const { calls, stretches } = timeline;
  const isShown = (i: number) => shown.some(({ first, calls: count }) => i >= first && i < first + count);
  const inMs = (us: number | null) => (us === null ? null : us / 1000);
  return JSON.stringify({
    ...timeline,
    startedAt: formatIsoTime(timeline.startedAt),
    endedAt: timeline.endedAt === null ? null : formatIsoTime(timeline.endedAt),
    ...{ waiting: undefined, thinking: undefined },
    waitingMs: inMs(timeline.waiting),
    thinkingMs: inMs(timeline.thinking),
    lanes: timeline.lanes.map(({ startedAt, endedAt, ...lane }) => ({
      ...lane,
      startedAt: formatIsoTime(startedAt),
      endedAt: endedAt === null ? null : formatIsoTime(endedAt),
    })),
    stretches: stretches.map(({ from, to, waiting, thinking, first: _, ...one }) => ({
      ...one,
      from: formatIsoTime(from),
      to: formatIsoTime(to),
      waitingMs: inMs(waiting),
      thinkingMs: inMs(thinking),
    })),
    calls: calls.flatMap((call, i) => (isShown(i) ? [callJson(timeline, call)] : [])),
  });
}

function callJson({ calls, lanes }: RunTimeline, { lane, at, lasted, next, ...call }: RunCall) {
  const placeOf = (one: RunCall | undefined) =>
    one === undefined ? null : { session: lanes[one.lane]?.session, seq: one.seq };
  return {
    session: lanes[lane]?.session,
    ...call,
    at: formatIsoTime(at),
    lastedMs: lasted === null ? null : lasted / 1000,
    next:
      next === null
        ? null
        : { ...placeOf(calls[next.call]), isSame: next.isSame, afterMs: next.after / 1000 },
  };
}
