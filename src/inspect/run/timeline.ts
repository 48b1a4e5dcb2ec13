/**
 * The servers of one client run on one clock: every call in the order in which it began, what the client did after each
 * failure, and the stretches that a long run falls into. Times are microseconds since the Unix epoch.
 */

import type { Store } from '../../store/file/open.ts';
import { eachExchange } from '../../store/read/exchanges.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { perhapsOf, prepareClock, type RunRow } from '../../store/read/runs.ts';
import { type SessionRow, stateOf } from '../../store/read/sessions.ts';
import type { RunCall, RunHead, RunLane, RunStretch } from './run.ts';

/** `first`: the place of its first call. */
export type Stretch = RunStretch & { first: number };

export type RunTimeline = RunHead & { calls: RunCall[]; stretches: Stretch[] };

export type TimelineOptions = {
  /** A longer time without any call cuts a run, in microseconds. */
  gap: number;
  /** What is added to all times of a clock, by its place, in microseconds. */
  offsets?: ReadonlyMap<number, number>;
  /** Only calls whose request or answer is among these frames. */
  only?: FrameSelection | undefined;
};

export function readTimeline(
  store: Store,
  run: RunRow,
  { gap, offsets, only }: TimelineOptions,
): RunTimeline {
  const clockOf = prepareClock(store);
  const clocks = [...new Set(run.sessions.map(clockOf))];
  const clockBy = (session: SessionRow) => clocks.indexOf(clockOf(session));
  const shiftOf = (session: SessionRow) => offsets?.get(clockBy(session)) ?? 0;
  const calls = run.sessions
    .flatMap((session, lane) => callsOf(store, session, lane, shiftOf(session), only))
    .sort((one, other) => one.at - other.at || one.lane - other.lane || one.seq - other.seq);
  const stretches = stretchesOf(calls, gap);
  linkFailures(calls, stretches);
  const lanes = run.sessions.map((session) => laneOf(session, clockBy(session), shiftOf(session)));
  for (const call of calls) {
    const lane = lanes[call.lane] as RunLane;
    lane.calls += 1;
    if (isFailure(call)) lane.errors += 1;
  }
  const sum = (key: 'waiting' | 'thinking') => stretches.reduce((all, one) => all + one[key], 0);
  return {
    run: run.id,
    ...{ evidence: run.evidence, name: run.name },
    ...clientOf(run.sessions),
    startedAt: Math.min(...lanes.map(({ startedAt }) => startedAt)),
    endedAt: lanes.some(({ endedAt }) => endedAt === null)
      ? null
      : Math.max(...lanes.map(({ endedAt }) => endedAt ?? 0)),
    ...{ clocks, lanes, calls, stretches, waiting: sum('waiting'), thinking: sum('thinking') },
    perhaps: perhapsOf(store, run).map(({ id }) => id),
  };
}

function clientOf(sessions: readonly SessionRow[]): Pick<RunTimeline, 'client' | 'process'> {
  const named = sessions.find(({ clientName }) => clientName !== null);
  const known = sessions.find(({ clientPid }) => clientPid !== null);
  return {
    client: named === undefined ? null : { name: named.clientName ?? '', version: named.clientVersion },
    process: known === undefined ? null : { program: known.clientProgram ?? '', pid: known.clientPid ?? 0 },
  };
}

function laneOf(session: SessionRow, clock: number, shift: number): RunLane {
  const { serverName, serverVersion, endedAt } = session;
  return {
    session: session.id,
    name: session.name,
    target: session.target,
    transport: session.transport,
    server: serverName === null ? null : { name: serverName, version: serverVersion },
    clock,
    startedAt: session.startedAt + shift,
    endedAt: endedAt === null ? null : endedAt + shift,
    state: stateOf(session),
    calls: 0,
    errors: 0,
  };
}

/** Streams that stay open are nothing that anybody waits for (specification 2026-07-28, basic/utilities/subscriptions). */
const SUBSCRIPTION = 'subscriptions/listen';

function callsOf(
  store: Store,
  session: SessionRow,
  lane: number,
  shift: number,
  only: FrameSelection | undefined,
): RunCall[] {
  const calls: RunCall[] = [];
  for (const row of eachExchange(store, session, only)) {
    if (row.method === SUBSCRIPTION) continue;
    const { requestSeq: seq, answerSeq, askedBy, method, target, at, latency: lasted, outcome } = row;
    calls.push({
      lane,
      seq,
      answerSeq,
      askedBy,
      method,
      target,
      at: at + shift,
      lasted,
      outcome,
      next: null,
    });
  }
  return calls;
}

export function isFailure({ outcome }: Pick<RunCall, 'outcome'>): boolean {
  return outcome === 'error' || outcome === 'tool-error';
}

/** `calls` in the order in which they began. */
function stretchesOf(calls: readonly RunCall[], gap: number): Stretch[] {
  const stretches: Stretch[] = [];
  let last: Stretch | undefined;
  for (const [i, call] of calls.entries()) {
    const end = call.at + (call.lasted ?? 0);
    if (last === undefined || call.at - last.to > gap) {
      const number = stretches.length + 1;
      last = { number, from: call.at, to: call.at, first: i, calls: 0, errors: 0, waiting: 0, thinking: 0 };
      stretches.push(last);
    }
    last.to = Math.max(last.to, end);
    last.calls += 1;
    if (isFailure(call)) last.errors += 1;
  }
  for (const stretch of stretches) {
    stretch.waiting = waitingIn(calls.slice(stretch.first, stretch.first + stretch.calls));
    stretch.thinking = stretch.to - stretch.from - stretch.waiting;
  }
  return stretches;
}

/** How long at least one of them was open. A call without an answer may have ended at any time: it counts as none. */
function waitingIn(calls: readonly RunCall[]): number {
  let waiting = 0;
  let upTo = Number.NEGATIVE_INFINITY;
  for (const { at, lasted, askedBy } of calls) {
    if (askedBy !== 'client' || lasted === null) continue;
    const end = at + lasted;
    if (end > upTo) waiting += end - Math.max(at, upTo);
    upTo = Math.max(upTo, end);
  }
  return waiting;
}

/** A client that goes on after a long gap does something new. */
function linkFailures(calls: readonly RunCall[], stretches: readonly Stretch[]): void {
  for (const { first, calls: count } of stretches) {
    for (let i = first; i < first + count; i += 1) {
      const failed = calls[i];
      if (failed === undefined || !isFailure(failed) || failed.askedBy !== 'client') continue;
      const end = failed.at + (failed.lasted ?? 0);
      for (let call = i + 1; call < first + count; call += 1) {
        const next = calls[call];
        if (next === undefined || next.askedBy !== 'client' || next.at < end) continue;
        const isSame =
          next.lane === failed.lane && next.method === failed.method && next.target === failed.target;
        failed.next = { call, isSame, after: next.at - end };
        break;
      }
    }
  }
}
