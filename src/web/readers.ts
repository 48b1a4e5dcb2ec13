/**
 * The threads that read the store, as the thread that speaks HTTP sees them. One is fast: pages, frames, slices of an outline;
 * nothing on it takes long. The slow ones search and count, one request each; who is asked for nothing any more, or for too
 * long, is ended.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import type { Change } from './api.ts';
import type { Form, FromReader, Head, Params, ReaderStart, RequestFailure, ToReader } from './work.ts';

/** Takes an answer as it comes. `piece` calls back once the bytes have gone out. */
export type Sink = {
  head(head: Head): void;
  piece(bytes: Uint8Array, isLast: boolean, onGone: () => void): void;
  fail(failure: RequestFailure): void;
};

type Question = { work: string; params: Params; form: Form };

export type Readers = {
  /** Returns what to call when the client has left. */
  ask(thread: 'fast' | 'slow', question: Question, sink: Sink): () => void;
  /** Whether changes of the store are to be told. */
  watch(isOn: boolean): void;
  close(): Promise<void>;
};

type ReadersOptions = {
  file: string;
  onChanges: (changes: readonly Change[]) => void;
  /** Changes may have been missed. */
  onRestart: () => void;
  /** So long a slow request may take, in milliseconds. */
  slowMs?: number;
};

/** Each has a core's worth of work. */
const MOST_SLOW = 3;

const SLOW_MS = 10 * 60_000;

/** So long a work may take to find out that its client has left. */
const LEAVE_MS = 300;

/** So long a thread may take to end by itself. */
const TURN_MS = 300;

type ReaderJob = { question: Question; sink: Sink; left: Int32Array<SharedArrayBuffer> };

export function createReaders({ file, onChanges, onRestart, slowMs = SLOW_MS }: ReadersOptions): Readers {
  const slow = createSlowReaders(
    () => new Worker(new URL('./slow-reader.js', import.meta.url), optionsFor(file)),
    slowMs,
  );
  let fast: Thread | undefined;
  let isWatching = false;
  let isClosed = false;

  /** It is started again where it has died, and goes on watching. */
  function fastThread(): Thread {
    const worker = () => new Worker(new URL('./fast-reader.js', import.meta.url), optionsFor(file));
    fast ??= superviseThread(worker(), onChanges, () => {
      fast = undefined;
      if (isClosed) return;
      onRestart();
      if (isWatching) fastThread().tell({ type: 'watch', isOn: true });
    });
    return fast;
  }

  fastThread();
  return {
    ask(thread, question, sink) {
      if (isClosed) {
        sink.fail(DIED);
        return () => {};
      }
      const job = { question, sink, left: new Int32Array(new SharedArrayBuffer(4)) };
      return thread === 'slow' ? slow.take(job) : fastThread().begin(job, () => {});
    },
    watch(isOn) {
      // The last follower leaves when all is closed: a thread that was begun for that would never end.
      if (isClosed || isOn === isWatching) return;
      isWatching = isOn;
      fastThread().tell({ type: 'watch', isOn });
    },
    async close() {
      isClosed = true;
      await Promise.all([fast?.end(), slow.close()]);
    },
  };
}

export function optionsFor(file: string): { workerData: ReaderStart } {
  return { workerData: { file } };
}

export type SlowReaders = { take(job: ReaderJob): () => void; close(): Promise<unknown> };

/** A thread for each request at work, some of them at most; the others wait. One that is through takes the next. */
export function createSlowReaders(
  startWorker: () => Worker,
  slowMs: number,
  most: number = MOST_SLOW,
): SlowReaders {
  const idle = new Set<Thread>();
  const busy = new Set<Thread>();
  const waiting: ReaderJob[] = [];
  const leaveOf = new WeakMap<ReaderJob, () => void>();
  let isClosed = false;

  function startThread(): Thread {
    const thread = superviseThread(
      startWorker(),
      () => {},
      () => forget(thread),
    );
    return thread;
  }

  function forget(thread: Thread): void {
    idle.delete(thread);
    busy.delete(thread);
    beginWaiting();
  }

  function beginWaiting(): void {
    // A thread that was begun once all is closed would keep the process alive.
    while (!isClosed && waiting.length > 0 && busy.size < most) {
      const [thread = startThread()] = idle;
      idle.delete(thread);
      busy.add(thread);
      begin(waiting.shift() as ReaderJob, thread);
    }
  }

  function begin(job: ReaderJob, thread: Thread): void {
    const timers = new Set<NodeJS.Timeout>();
    const leaveThread = thread.begin(job, () => {
      for (const timer of timers) clearTimeout(timer);
      if (!busy.delete(thread)) return;
      idle.add(thread);
      beginWaiting();
    });
    const leave = () => {
      leaveThread();
      // The thread may be in the middle of something that does not ask: then another one takes its place.
      timers.add(setTimeout(() => void thread.end(), LEAVE_MS).unref());
    };
    const stop = () => {
      job.sink.fail({
        status: 503,
        code: 'stopped',
        message: `Stopped: it took longer than ${slowMs / 1000} s.`,
      });
      leave();
    };
    timers.add(setTimeout(stop, slowMs).unref());
    leaveOf.set(job, leave);
  }

  return {
    take(job) {
      waiting.push(job);
      beginWaiting();
      return () => {
        const at = waiting.indexOf(job);
        if (at >= 0) waiting.splice(at, 1);
        else leaveOf.get(job)?.();
      };
    },
    close() {
      isClosed = true;
      for (const { sink } of waiting.splice(0)) sink.fail(DIED);
      return Promise.all([...idle, ...busy].map((thread) => thread.end()));
    },
  };
}

/** A thread, and what it was asked. */
type Thread = {
  /** Returns what to call when the client has left. `onDone` is called once, when the thread has done with the job. */
  begin(job: ReaderJob, onDone: () => void): () => void;
  tell(message: ToReader): void;
  /** Settles when it has ended, which may take as long as SQLite does. */
  end(): Promise<unknown>;
};

const DIED: RequestFailure = {
  status: 500,
  code: 'io',
  message: 'The thread that reads the store has ended. Try again.',
};

/** `onDeath` is called once, as soon as the thread takes nothing more. */
function superviseThread(
  worker: Worker,
  onChanges: (changes: readonly Change[]) => void,
  onDeath: () => void,
): Thread {
  const jobs = new Map<number, ReaderJob & { onDone: () => void }>();
  let jobsSoFar = 0;
  let isDead = false;
  let death = DIED;
  let onLoaded = () => {};
  const loaded = new Promise<void>((resolve) => {
    onLoaded = resolve;
  });

  function die(): void {
    if (isDead) return;
    isDead = true;
    // First of all, so that nobody gives it more.
    onDeath();
    for (const id of [...jobs.keys()]) finish(id)?.sink.fail(death);
  }

  function finish(id: number): ReaderJob | undefined {
    const job = jobs.get(id);
    jobs.delete(id);
    job?.onDone();
    return job;
  }

  worker.on('message', (message: FromReader) => {
    if (message.type === 'changes') return onChanges(message.changes);
    if (message.type === 'loaded') return onLoaded();
    const { job: id } = message;
    const job = jobs.get(id);
    if (job === undefined) return;
    if (message.type === 'head') job.sink.head(message.head);
    else if (message.type === 'failure') finish(id)?.sink.fail(message.failure);
    else {
      const { bytes, isLast } = message;
      const onGone = () =>
        worker.postMessage({ type: 'more', job: id, bytes: bytes.byteLength } satisfies ToReader);
      if (isLast) finish(id);
      job.sink.piece(bytes, isLast, onGone);
    }
  });
  worker.on('error', (error) => {
    death = { ...DIED, message: `${DIED.message} It said: ${error.message}` };
    die();
  });
  worker.on('exit', die);
  const exited = new Promise<void>((resolve) => {
    worker.once('exit', () => resolve());
  });

  /** One that comes to no turn of its own is stopped, but never while it loads SQLite: that would end the whole process. */
  async function stop(): Promise<void> {
    await Promise.race([exited, loaded.then(() => sleep(TURN_MS, undefined, { ref: false }))]);
    await worker.terminate();
  }

  return {
    begin(job, onDone) {
      jobsSoFar += 1;
      const id = jobsSoFar;
      jobs.set(id, { ...job, onDone });
      worker.postMessage({
        type: 'order',
        order: { job: id, ...job.question, left: job.left },
      } satisfies ToReader);
      return () => {
        Atomics.store(job.left, 0, 1);
        // Wakes a work that waits for its reader.
        worker.postMessage({ type: 'more', job: id, bytes: 0 } satisfies ToReader);
      };
    },
    tell: (message) => worker.postMessage(message),
    end() {
      for (const { left } of jobs.values()) Atomics.store(left, 0, 1);
      worker.postMessage({ type: 'end' } satisfies ToReader);
      die();
      return stop();
    },
  };
}
