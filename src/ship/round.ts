/**
 * One round: everything that is in the backlog at its beginning goes to the engine, over one connection or several. What the engine
 * refuses of one session is that session's trouble alone; what is in the way of all of them ends the round.
 */

import { performance } from 'node:perf_hooks';
import { engineTroubleOf, sqlStateOf } from '../engine/trouble.ts';
import type { Store } from '../store/file/open.ts';
import { versionMark } from './backlog.ts';
import { NO_DIGEST } from './digest.ts';
import type { Budget } from './frames.ts';
import type { ProgressBook, SessionProgress } from './progress.ts';
import { type EngineSink, type EngineState, SealError } from './sink.ts';
import { isEmpty, type SessionToShip, type Slice } from './slice.ts';

type RoundOptions = {
  store: Store;
  book: ProgressBook;
  read: (session: SessionToShip, budget: Budget) => Slice | null;
  /** The first is there; more are made where the engine is what is waited for. */
  sinks: EngineSink[];
  connect: () => Promise<EngineSink>;
  version: string;
  /** Asked between two transactions. */
  isStopped: () => boolean;
  onShipped: (frames: number, bytes: number) => void;
};

const MOST_SINKS = 8;

/** Of sessions that are shipped together. */
const SESSIONS_AT_ONCE = 200;

const SMALL_BYTES = 256 * 1024;

const FRAMES_AT_ONCE = 5000;

const BYTES_AT_ONCE = 4 * 1024 * 1024;

/** With several connections, so that all of them together take no more memory. */
const BYTES_BESIDE_OTHERS = 1024 * 1024;

/** Above that the processor is what is waited for. */
const BUSY_FROM = 0.7;

/** How many frames a slice may have of a session that the engine does not take. */
type Suspects = Map<SessionProgress, number>;

/** Ships all of them. Throws what is in the way of all; what was shipped by then is noted. */
export async function shipRound(options: RoundOptions, due: readonly SessionToShip[]): Promise<void> {
  const { book, read, sinks, isStopped, onShipped } = options;
  const queue = [...due];
  const suspects: Suspects = new Map();
  let waiting: { session: SessionToShip; slice: Slice } | null = null;
  let failure: { error: unknown } | null = null;
  let utilization = performance.eventLoopUtilization();

  function budgetFor({ progress }: SessionToShip): Budget {
    const bytes = sinks.length > 1 ? BYTES_BESIDE_OTHERS : BYTES_AT_ONCE;
    return { frames: suspects.get(progress) ?? FRAMES_AT_ONCE, bytes };
  }

  function next(): { session: SessionToShip; slice: Slice } | null {
    if (waiting !== null) {
      const one = waiting;
      waiting = null;
      return one;
    }
    for (let session = queue.shift(); session !== undefined; session = queue.shift()) {
      const slice = read(session, budgetFor(session));
      if (slice !== null && !isEmpty(slice)) return { session, slice };
    }
    return null;
  }

  /** A slice; of small sessions that are over as many as fit. */
  function nextBatch(takesMany: boolean): { session: SessionToShip; slice: Slice }[] {
    const batch: { session: SessionToShip; slice: Slice }[] = [];
    let weight = 0;
    for (let one = next(); one !== null; one = next()) {
      const isAlone = !(takesMany && isSmall(one.slice) && !suspects.has(one.session.progress));
      if (batch.length > 0 && (isAlone || weight + one.slice.weight > BYTES_AT_ONCE)) {
        waiting = one;
        break;
      }
      batch.push(one);
      weight += one.slice.weight;
      if (isAlone || batch.length === SESSIONS_AT_ONCE) break;
    }
    return batch;
  }

  async function shipBatch(
    sink: EngineSink,
    batch: { session: SessionToShip; slice: Slice }[],
  ): Promise<void> {
    try {
      const elsewhere = await sink.ship(batch.map(({ slice }) => slice));
      if (elsewhere.length > 0) {
        for (const state of elsewhere) goTo(options, batch, state);
        queue.unshift(...batch.map(({ session }) => session));
        return;
      }
    } catch (error) {
      const isOfData = error instanceof SealError || engineTroubleOf(error) === 'data';
      book.count(isOfData ? 'refused' : 'failed');
      if (!isOfData) throw error;
      const again = afterRefusal(options, batch, suspects, error);
      queue.unshift(...again);
      return;
    }
    book.count('committed');
    for (const { session, slice } of batch) {
      onShipped(slice.after.frames - slice.progress.frames, slice.after.bytes - slice.progress.bytes);
      book.change(slice.progress, { ...slice.after, reason: null });
      if (slice.hasMore) queue.unshift(session);
    }
  }

  async function work(sink: EngineSink): Promise<void> {
    while (failure === null && !isStopped()) {
      const batch = nextBatch(sink.takesMany);
      if (batch.length === 0) return;
      try {
        await shipBatch(sink, batch);
      } catch (error) {
        failure ??= { error };
        return;
      }
    }
  }

  /** Another connection, where there is enough to do for one and the processor has time for it. */
  async function addWorker(): Promise<void> {
    const since = performance.eventLoopUtilization(utilization);
    utilization = performance.eventLoopUtilization();
    if (sinks.length === MOST_SINKS || queue.length <= 2 * sinks.length || since.utilization > BUSY_FROM)
      return;
    // Where there are too many connections already, those that we have are enough.
    const sink = await options.connect().catch(() => null);
    if (sink === null) return;
    sinks.push(sink);
    workers.push(work(sink));
  }

  const workers = sinks.map(work);
  let adding = Promise.resolve();
  const timer = setInterval(() => {
    adding = adding.then(addWorker);
  }, ADD_AFTER_MS);
  for (let done = 0; done < workers.length; done += 1) {
    await workers[done];
    if (done === workers.length - 1) {
      clearInterval(timer);
      await adding;
    }
  }
  if (failure !== null) throw (failure as { error: unknown }).error;
}

const ADD_AFTER_MS = 250;

function isSmall({ progress, after, weight, parts }: Slice): boolean {
  return progress.seq === 0 && after.state === 'sealed' && weight <= SMALL_BYTES && parts.length === 0;
}

type Batch = readonly { session: SessionToShip; slice: Slice }[];

/** The engine is elsewhere with a session than we thought: what it says counts. */
function goTo({ store, book }: RoundOptions, batch: Batch, state: EngineState): void {
  const progress = batch.find(({ slice }) => slice.progress.key === state.key)?.slice.progress;
  if (progress === undefined) return;
  const { cursor: seq, revision, digest, indexed } = state;
  const last = store
    .prepare<[number], number>('SELECT ifnull(max(seq), 0) FROM frame WHERE session = ?')
    .pluck()
    .get(progress.number);
  if (revision > progress.revision || seq > Number(last)) {
    const reason = 'the engine has more of it, or a later revision, from another copy of this store';
    book.change(progress, { state: 'skipped', reason });
    return;
  }
  const sums = store
    .prepare<[number, number], { frames: number; bytes: number }>(
      'SELECT count(*) AS frames, ifnull(sum(size), 0) AS bytes FROM frame WHERE session = ? AND seq <= ?',
    )
    .get(progress.number, revision < progress.revision ? 0 : seq);
  const there = revision < progress.revision ? { seq: 0, indexed: 0, digest: NO_DIGEST } : { seq, indexed };
  book.change(progress, {
    ...{ digest: digest ?? NO_DIGEST, ...there, ...sums },
    ...{ part: 0, exchanges: null, unfinished: null },
  });
}

const UNIQUE_VIOLATION = '23505';

/** What does not go in is looked for by halves, so that all the rest does. Returns what is to be tried again. */
function afterRefusal(
  { book, version }: RoundOptions,
  batch: Batch,
  suspects: Suspects,
  error: unknown,
): SessionToShip[] {
  const sessions = batch.map(({ session }) => session);
  const known = sessions.filter(({ progress }) => progress.exchanges !== null);
  if (sqlStateOf(error) === UNIQUE_VIOLATION && known.length > 0) {
    // Another shipper of this store has brought HTTP exchanges without a frame: that moves no cursor.
    for (const { progress } of known) book.change(progress, { exchanges: null });
    return sessions;
  }
  if (batch.length > 1) {
    // Each by itself from now on.
    for (const { progress } of sessions) suspects.set(progress, FRAMES_AT_ONCE);
    return sessions;
  }
  const [one] = batch;
  if (one === undefined) return [];
  const { progress, after, rows } = one.slice;
  const frames = rows.get('frame')?.rows ?? 0;
  if (frames > 1 && !(error instanceof SealError)) {
    suspects.set(progress, Math.ceil(frames / 2));
    return sessions;
  }
  const where = frames === 1 ? `frame ${after.seq}: ` : '';
  const code = sqlStateOf(error);
  const what = `${code === null ? '' : `${code} `}${(error as Error).message}`;
  book.change(progress, { state: 'refused', reason: `${where}${what} ${versionMark(version)}` });
  return [];
}
