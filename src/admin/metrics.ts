/**
 * The metrics of a recording process, in Prometheus' text format. Counters are of this process; what is said of the store is
 * what it has on disk. No label takes a value that traffic could choose.
 */

import { stat } from 'node:fs/promises';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Watched } from '../store/record/thread.ts';
import type { RecorderFigures } from '../store/write/figures.ts';

export type Metrics = {
  /** The text that a scraper gets, and its media type. Waits for each writer for so many milliseconds at most. */
  scrape(maxMs: number): Promise<{ text: string; type: string }>;
  /** In milliseconds. */
  onCommit(ms: number): void;
  /** So long the head of a request stayed here before it was forwarded, in milliseconds. */
  onForwarded(ms: number): void;
  /** The status of an answer; null: its exchange ended without one. */
  onHttpAnswer(status: number | null): void;
};

/** One recorder of this process. */
export type WatchedRecorder = Watched & { transport: 'stdio' | 'http' };

/** Declares metrics of something beside the recorders. What it returns sets them at each scrape, within so many milliseconds. */
export type OtherMetrics = (
  registry: Registry,
) => (stores: ReadonlySet<string>, maxMs: number) => Promise<void>;

type Reading = { recorder: WatchedRecorder; figures: RecorderFigures | undefined };

const PREFIX = 'tapedeck_';

/** In seconds: from a commit into memory to one that waited for another writer. */
const COMMIT_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];

const OVERHEAD_BUCKETS = [0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05];

/** `recorders` is asked at each scrape: more may have been opened. */
export function createMetrics(
  recorders: () => readonly WatchedRecorder[],
  others: OtherMetrics | null,
): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const declared = declare(registry);
  const setOthers = others?.(registry);
  /** Of a writer that does not answer, what it said last. */
  const last = new Map<WatchedRecorder, RecorderFigures>();

  async function read(maxMs: number): Promise<Reading[]> {
    return Promise.all(
      recorders().map(async (recorder) => {
        const figures = await recorder.figures(maxMs);
        if (figures !== null) last.set(recorder, figures);
        return { recorder, figures: last.get(recorder) };
      }),
    );
  }

  return {
    async scrape(maxMs) {
      const readings = await read(maxMs);
      fill(declared, readings);
      const stores = new Set(readings.flatMap(({ figures }) => figures?.store ?? []));
      declared.storeBytes.set(await bytesOf(stores));
      await setOthers?.(stores, maxMs);
      return { text: await registry.metrics(), type: registry.contentType };
    },
    onCommit: (ms) => declared.commits.observe(ms / 1000),
    onForwarded: (ms) => declared.overhead.observe(ms / 1000),
    onHttpAnswer: (status) => declared.http.inc({ class: classOf(status) }),
  };
}

type Declared = ReturnType<typeof declare>;

function declare(registry: Registry) {
  const registers = [registry];
  const of = <L extends string>(name: string, help: string, ...labelNames: L[]) => ({
    ...{ name: PREFIX + name, help, labelNames, registers },
  });
  return {
    frames: new Counter(of('frames_recorded_total', 'Frames that are stored', 'transport', 'direction')),
    bytes: new Counter(
      of(
        'bytes_recorded_total',
        'Bytes of the frames that are stored, as they passed',
        'transport',
        'direction',
      ),
    ),
    lost: new Counter(of('frames_lost_total', 'Frames that passed and could not be recorded')),
    started: new Counter(
      of('sessions_started_total', 'Sessions that are stored, by what tells them apart', 'basis'),
    ),
    sampledOut: new Counter(
      of('sessions_sampled_out_total', 'Sessions that passed and were left out of the sample'),
    ),
    open: new Gauge(of('sessions_open', 'Sessions that have not ended')),
    queue: new Gauge(of('queue_bytes', 'Bytes that passed and wait to be stored')),
    storeBytes: new Gauge(of('store_bytes', 'What the store and its WAL take on disk')),
    commits: new Histogram({
      ...of('store_commit_seconds', 'How long a commit of frames took'),
      buckets: COMMIT_BUCKETS,
    }),
    trouble: new Gauge(of('store_trouble', '1 while what passes does not reach the store, else 0')),
    http: new Counter(of('http_requests_total', 'HTTP exchanges by the class of their answer', 'class')),
    overhead: new Histogram({
      ...of('forward_overhead_seconds', 'How long the head of an HTTP request was held before it went on'),
      buckets: OVERHEAD_BUCKETS,
    }),
  };
}

/** Counters count in the writers: here they are set to what those said, which never falls. */
function fill(declared: Declared, readings: readonly Reading[]): void {
  const { frames, bytes, lost, started, sampledOut, open, queue, trouble } = declared;
  for (const metric of [frames, bytes, lost, started, sampledOut, open, queue, trouble]) metric.reset();
  lost.inc(0);
  sampledOut.inc(0);
  open.set(0);
  queue.set(0);
  trouble.set(0);
  for (const { recorder, figures } of readings) {
    const { bytes: waiting, lost: lostByWriter } = recorder.queue();
    queue.inc(waiting);
    lost.inc(lostByWriter.frames);
    if (figures === undefined || figures.isStoreTroubled || lostByWriter.frames > 0) trouble.set(1);
    if (figures === undefined) continue;
    const { transport } = recorder;
    for (const [direction, passed] of Object.entries(figures.recorded)) {
      if (direction === 'stderr' && transport === 'http') continue;
      frames.inc({ transport, direction }, passed.frames);
      bytes.inc({ transport, direction }, passed.bytes);
    }
    for (const [basis, count] of Object.entries(figures.started)) started.inc({ basis }, count);
    lost.inc(figures.lost.frames);
    sampledOut.inc(figures.sampledOut);
    open.inc(figures.open);
  }
}

/** Servers may send any number. */
function classOf(status: number | null): string {
  if (status === null) return 'none';
  return status < 600 ? `${Math.floor(status / 100)}xx` : 'other';
}

/** Several recorders of a process may share a store. */
async function bytesOf(stores: ReadonlySet<string>): Promise<number> {
  const files = [...stores].flatMap((store) => [store, `${store}-wal`]);
  const sizes = files.map((file) =>
    stat(file).then(
      ({ size }) => size,
      () => 0,
    ),
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}
