/**
 * What is told of a run of a client, to people and to programs, the viewer's page among them: types alone. Times are microseconds
 * since the Unix epoch, durations microseconds.
 */

/** What ties the sessions of a run together, the strongest first: `process`, `label`, `trace`, `peer`. */
type Evidence = 'process' | 'label' | 'trace' | 'peer';

/** A run of `list --by run --json`. */
export type RunSummary = {
  run: string;
  evidence: Evidence[];
  name: string | null;
  client: string | null;
  sessions: string[];
  servers: string[];
  startedAt: string;
  endedAt: string | null;
  exchanges: number;
  errors: number;
};

/** All servers of a run on one clock, without their calls. */
export type RunHead = {
  run: string;
  evidence: Evidence[];
  name: string | null;
  client: { name: string; version: string | null } | null;
  /** The client's process, where that is known. */
  process: { program: string; pid: number } | null;
  startedAt: number;
  endedAt: number | null;
  /** Hosts, or what stands for one. More than one: their times cannot be compared without more. */
  clocks: string[];
  lanes: RunLane[];
  /** Of all stretches together. */
  waiting: number;
  thinking: number;
  /** Ids of sessions that may belong to it too: a guess. */
  perhaps: string[];
};

/** One server of the run. */
export type RunLane = {
  session: string;
  name: string | null;
  target: string;
  transport: string;
  server: { name: string; version: string | null } | null;
  /** Its place among the clocks of the run. */
  clock: number;
  startedAt: number;
  endedAt: number | null;
  state: string;
  calls: number;
  errors: number;
};

/** A part of the run without a long gap. A client may run for days. */
export type RunStretch = {
  /** 1 the first: `ID/2` names the second. */
  number: number;
  from: number;
  to: number;
  calls: number;
  errors: number;
  /** Time in which at least one call of the client was open. */
  waiting: number;
  /** Time in which none was. */
  thinking: number;
};

export type RunCall = {
  /** Its place among the lanes. */
  lane: number;
  seq: number;
  answerSeq: number | null;
  askedBy: 'client' | 'server';
  method: string;
  target: string | null;
  at: number;
  /** Null where it has no answer. */
  lasted: number | null;
  outcome: 'ok' | 'tool-error' | 'error' | 'cancelled' | 'input-required' | 'unanswered' | 'fault';
  /** Of a failure: what the client asked next, of any server, by its place among the calls; null: nothing. */
  next: { call: number; isSame: boolean; after: number } | null;
};
