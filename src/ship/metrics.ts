/**
 * The metrics `ship_…` of a recorder whose store is shipped. The shipper is a process of its own, and may be another recorder's: so
 * they are read from the store, where it notes what it has done. What they say is of the store, not of this process.
 */

import { Worker } from 'node:worker_threads';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { ShipFigures } from './figures.ts';

export type ShipMetrics = {
  /** Declares them; what it returns sets them to what these stores say, together. Waits for so many milliseconds at most. */
  declare(registry: Registry): (stores: ReadonlySet<string>, maxMs: number) => Promise<void>;
  /** What is not shipped yet may take so many bytes in a store; null: it has no limit. */
  setLimit(bytes: number | null): void;
};

const PREFIX = 'tapedeck_ship_';

export function createShipMetrics(): ShipMetrics {
  let limit: number | null = null;
  return {
    declare(registry) {
      const declared = declareAll(registry);
      const read = createReader();
      return async (stores, maxMs) => fill(declared, await read([...stores], maxMs), limit);
    },
    setLimit(bytes) {
      limit = bytes;
    },
  };
}

function declareAll(registry: Registry) {
  const of = <L extends string>(name: string, help: string, ...labelNames: L[]) => ({
    ...{ name: PREFIX + name, help, labelNames, registers: [registry] },
  });
  return {
    connected: new Gauge(of('connected', '1 while the store is shipped and nothing is in the way, else 0')),
    frames: new Counter(
      of('frames_total', 'Frames that the engine has taken; what is shipped anew counts again'),
    ),
    bytes: new Counter(of('bytes_total', 'Bytes of those frames, as they passed')),
    transactions: new Counter(
      of('transactions_total', 'Transactions by their end: committed, refused or failed', 'result'),
    ),
    committedAt: new Gauge(
      of('last_commit_timestamp_seconds', 'When the engine last took something; 0: it never did'),
    ),
    lag: new Gauge(of('lag_seconds', 'How long the oldest frame that is not in the engine has been waiting')),
    sessions: new Gauge(of('backlog_sessions', 'Sessions with frames that are not in the engine')),
    backlogFrames: new Gauge(of('backlog_frames', 'Frames that are not in the engine')),
    backlogBytes: new Gauge(of('backlog_bytes', 'Bytes of those frames, as they passed')),
    limit: new Gauge(
      of('backlog_limit_bytes', 'What is not shipped may take so much of the store; +Inf: no limit'),
    ),
    undecided: new Gauge(
      of('undecided_sessions', 'Sessions of which it is not decided yet whether they are shipped'),
    ),
    sampledOut: new Gauge(
      of('sampled_out_sessions', 'Sessions in the store that are not of the sample that is shipped'),
    ),
    refused: new Gauge(of('refused_sessions', 'Sessions that the engine does not take')),
    lost: new Counter(
      of('lost_frames_total', 'Frames that had to go before they were shipped, or that the engine has lost'),
    ),
  };
}

/** Counters are set to what the stores say, which never falls. What of a store is not known yet says nothing. */
function fill(
  declared: ReturnType<typeof declareAll>,
  known: readonly (ShipFigures | null)[],
  limit: number | null,
): void {
  for (const metric of Object.values(declared)) metric.reset();
  const { connected, frames, bytes, transactions, committedAt, lag, refused, lost } = declared;
  const figures = known.filter((one) => one !== null);
  connected.set(Number(known.length > 0 && known.every((one) => one?.isConnected === true)));
  declared.limit.set(limit ?? Number.POSITIVE_INFINITY);
  committedAt.set(Math.max(0, ...figures.map((one) => one.committedAt ?? 0)));
  lag.set(Math.max(0, ...figures.map((one) => one.lag)));
  for (const result of RESULTS) transactions.inc({ result }, 0);
  for (const one of figures) {
    frames.inc(one.frames);
    bytes.inc(one.bytes);
    for (const result of RESULTS) transactions.inc({ result }, one.transactions[result]);
    declared.sessions.inc(one.backlog.sessions);
    declared.backlogFrames.inc(one.backlog.frames);
    declared.backlogBytes.inc(one.backlog.bytes);
    declared.undecided.inc(one.undecidedSessions);
    declared.sampledOut.inc(one.sampledOutSessions);
    refused.inc(one.refusedSessions);
    lost.inc(one.lostFrames);
  }
}

const RESULTS = ['committed', 'refused', 'failed'] as const;

type Answer = readonly (readonly [file: string, figures: ShipFigures | null | undefined])[];

/** Asks a thread, which begins with the first question. Of a store that it cannot read, or not in time, what it said last counts. */
function createReader(): (files: string[], maxMs: number) => Promise<(ShipFigures | null)[]> {
  const last = new Map<string, ShipFigures | null>();
  let thread: Worker | null = null;
  let answered = () => {};

  function begin(): Worker {
    const worker = new Worker(new URL('./ship-figures.js', import.meta.url));
    worker.unref();
    worker.on('message', (answer: Answer) => {
      for (const [file, figures] of answer) if (figures !== undefined) last.set(file, figures);
      answered();
    });
    // The next question begins another one.
    worker.on('error', () => {});
    worker.on('exit', () => {
      thread = null;
      answered();
    });
    return worker;
  }

  /** One question at a time: whoever asks meanwhile gets its answer too. */
  function ask(files: string[], maxMs: number): Promise<void> {
    thread ??= begin();
    thread.postMessage(files);
    return new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, maxMs);
      answered = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  let asking: Promise<void> | null = null;
  return async (files, maxMs) => {
    asking ??= ask(files, maxMs).finally(() => {
      asking = null;
    });
    await asking;
    return files.map((file) => last.get(file) ?? null);
  };
}
