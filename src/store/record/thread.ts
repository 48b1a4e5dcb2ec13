/**
 * The relay's side of the writer's thread: hands it what was forwarded, in batches, and knows how much is on its way.
 * This file is loaded before the first byte flows, so it imports next to nothing.
 */

import { Worker } from 'node:worker_threads';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { SessionEnd, SessionStart, StdioGap } from '../file/columns.ts';
import type { RetentionLimits } from '../keep/retention.ts';
import { type Batcher, createBatcher } from './batch.ts';

type FoundByWriter = 'host' | 'processStarted' | 'clientPid' | 'clientProgram' | 'redaction';

/** What the writer cannot find out by itself. `parentPid` is the process that started tapedeck. */
export type RecordingStart = Omit<SessionStart, FoundByWriter> & { parentPid: number };

export type RecorderOptions = {
  /** The `--db` option; the writer's thread finds the default. */
  file: string | undefined;
  durable: boolean;
  /** Wait for the writer where the queue is full, instead of dropping. */
  isStrict: boolean;
  maxQueueBytes: number;
  maxFrameBytes: number;
  /** By which old sessions are pruned in the background; null: none are. */
  retention: RetentionLimits | null;
  /** The rules by which secrets are replaced; null: they are stored. */
  redaction: RedactionProfile | null;
  session: RecordingStart;
  /** Called once, at the first trouble, with the reason in words. */
  onTrouble: (text: string) => void;
  /** Called with what its user should know, though nothing is lost. */
  onNotice: (text: string) => void;
};

export type WorkerStart = Pick<
  RecorderOptions,
  'file' | 'durable' | 'maxFrameBytes' | 'retention' | 'redaction' | 'session'
> & {
  /** Tells this recorder from all others. */
  run: string;
};

export type ToWorker =
  | { type: 'items'; batch: Uint8Array<ArrayBuffer> }
  | { type: 'gap'; gap: StdioGap }
  | { type: 'server'; pid: number }
  | { type: 'end'; end: SessionEnd };

export type FromWorker =
  /** `session`: the id of the one by stdio. */
  | { type: 'opened'; clientPid: number | null; session: string | null }
  | { type: 'stored'; bytes: number }
  | { type: 'trouble'; text: string }
  | { type: 'notice'; text: string }
  | { type: 'closed' };

type WriterThread = {
  append: Batcher['append'];
  /** Whether so many bytes more would be too many. */
  isFull(bytes: number): boolean;
  /** In strict mode, what to wait for before reading on. */
  room(): Promise<void> | undefined;
  /** Says something that comes after everything appended so far. */
  send(message: ToWorker): void;
  /** The process that started us, once it is known. */
  clientPid(): number | null;
  /** Whether the store could be opened. */
  opened: Promise<boolean>;
  /** Stores what is on its way, then the end. */
  close(end: SessionEnd): Promise<void>;
};

/** The writer reports at least every two seconds while it closes; if it stays silent longer, it is stuck. */
const CLOSE_TIMEOUT_MS = 15_000;

/**
 * The writer's objects die young: for stdio, where a machine runs many recorders, a larger nursery would only make each of
 * them larger. HTTP has more objects a message, and one recorder for many clients.
 */
const YOUNG_MB = { stdio: 16, http: 32 };

/** Recorders of this process so far. */
let runs = 0;

function newRun(): string {
  runs += 1;
  return `${process.pid}-${Date.now().toString(36)}-${runs}`;
}

type Deferred<T> = { promise: Promise<T>; resolve: (value: T) => void };

export function startWriter(options: RecorderOptions): WriterThread {
  const { file, durable, maxFrameBytes, retention, redaction, session, maxQueueBytes, isStrict } = options;
  const run = newRun();
  const workerData: WorkerStart = { file, run, durable, maxFrameBytes, retention, redaction, session };
  const worker = new Worker(new URL('./worker.js', import.meta.url), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB[session.transport === 'stdio' ? 'stdio' : 'http'] },
  });
  let queued = 0;
  let isDead = false;
  let clientPid: number | null = null;
  let room = createDeferred<void>();
  const opened = createDeferred<boolean>();
  const closed = createDeferred<void>();

  const batcher = createBatcher((batch) => {
    queued += batch.byteLength;
    if (!isDead) worker.postMessage({ type: 'items', batch } satisfies ToWorker, [batch.buffer]);
  });

  worker.on('message', (message: FromWorker) => {
    switch (message.type) {
      case 'opened':
        clientPid = message.clientPid;
        opened.resolve(true);
        break;
      case 'stored':
        queued -= message.bytes;
        room.resolve();
        room = createDeferred<void>();
        break;
      case 'trouble':
        options.onTrouble(message.text);
        opened.resolve(false);
        break;
      case 'notice':
        options.onNotice(message.text);
        break;
      case 'closed':
        closed.resolve();
        break;
    }
  });
  worker.on('error', (error) => {
    isDead = true;
    options.onTrouble(`the writer stopped: ${error.message}`);
    opened.resolve(false);
    room.resolve();
    closed.resolve();
  });

  function send(message: ToWorker): void {
    batcher.flush();
    worker.postMessage(message);
  }

  return {
    append: batcher.append,
    isFull: (bytes) => queued + bytes > maxQueueBytes && queued > 0,
    room: () => (isStrict && queued > maxQueueBytes && !isDead ? room.promise : undefined),
    send,
    clientPid: () => clientPid,
    opened: opened.promise,
    close(end) {
      send({ type: 'end', end });
      const timer = setTimeout(closed.resolve, CLOSE_TIMEOUT_MS);
      return closed.promise.finally(() => clearTimeout(timer));
    },
  };
}

function createDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
