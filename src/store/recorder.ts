/**
 * The relay's side of the writer: takes chunks, hands them to the writer's thread in batches, and never makes the
 * traffic wait (unless it is told to). What is on its way is bounded in bytes; beyond that, chunks are dropped and
 * counted. This file is loaded before the first byte flows, so it imports next to nothing.
 */
import { Worker } from 'node:worker_threads';
import type { Channel, Chunk } from '../protocol/frame.ts';
import { createBatcher } from './batch.ts';
import type { Loss } from './ingest.ts';
import type { SessionEnd, SessionStart } from './session-writer.ts';

type Found = 'host' | 'processStarted' | 'clientPid' | 'clientProgram';

export type RecorderOptions = {
  /** The `--db` option; the writer's thread finds the default. */
  file: string | undefined;
  durable: boolean;
  /** Wait for the writer where the queue is full, instead of dropping. */
  isStrict: boolean;
  maxQueueBytes: number;
  maxFrameBytes: number;
  /** What the writer cannot find out by itself. `parentPid` is the process that started tapedeck. */
  session: Omit<SessionStart, Found> & { parentPid: number };
  /** Called once, at the first trouble, with the reason in words. */
  onTrouble: (text: string) => void;
};

export type WorkerStart = Pick<RecorderOptions, 'file' | 'durable' | 'maxFrameBytes' | 'session'>;

export type ToWorker =
  | { type: 'chunks'; batch: Uint8Array<ArrayBuffer> }
  | { type: 'gap'; channel: Channel; loss: Loss; endsInsideLine: boolean }
  | { type: 'server'; pid: number }
  | { type: 'end'; end: SessionEnd };

export type FromWorker =
  | { type: 'opened'; session: string; clientPid: number | null }
  | { type: 'stored'; bytes: number }
  | { type: 'trouble'; text: string }
  | { type: 'closed'; loss: Loss };

export type Recorder = {
  /** Keeps a copy of the chunk. In strict mode it may return a promise: wait for it before reading on. */
  append(chunk: Chunk): Promise<void> | undefined;
  serverStarted(pid: number): void;
  /** Whether the client has vanished, as far as it is known who it is. */
  isClientGone(): boolean;
  /** Whether the store could be opened. */
  opened: Promise<boolean>;
  /** Stores what is on its way, then the session's end. Resolves with everything that was lost. */
  close(end: SessionEnd): Promise<Loss>;
};

/** The writer reports at least every two seconds while it closes; if it stays silent longer, it is stuck. */
const CLOSE_TIMEOUT_MS = 15_000;
/** The writer's objects die young: a larger nursery would only make every recorder larger. */
const YOUNG_MB = 16;
const LF = 0x0a;

type Deferred<T> = { promise: Promise<T>; resolve: (value: T) => void };

export function openRecorder(options: RecorderOptions): Recorder {
  const { file, durable, maxFrameBytes, session, maxQueueBytes, isStrict } = options;
  const workerData: WorkerStart = { file, durable, maxFrameBytes, session };
  const worker = new Worker(new URL('./worker.js', import.meta.url), {
    workerData,
    resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB },
  });
  const dropped: Loss = { frames: 0, bytes: 0 };
  let queued = 0;
  let isDead = false;
  let clientPid: number | null = null;
  let room = createDeferred<void>();
  const opened = createDeferred<boolean>();
  const closed = createDeferred<Loss>();

  const batcher = createBatcher((batch) => {
    queued += batch.byteLength;
    if (!isDead) worker.postMessage({ type: 'chunks', batch } satisfies ToWorker, [batch.buffer]);
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
      case 'closed':
        closed.resolve(message.loss);
        break;
    }
  });
  worker.on('error', (error) => {
    isDead = true;
    options.onTrouble(`the writer stopped: ${error.message}`);
    opened.resolve(false);
    room.resolve();
    closed.resolve(dropped);
  });

  function append(chunk: Chunk): Promise<void> | undefined {
    const { length } = chunk.bytes;
    if (queued + length > maxQueueBytes && queued > 0 && !isStrict) {
      drop(chunk);
      return undefined;
    }
    batcher.append(chunk);
    return isStrict && queued > maxQueueBytes && !isDead ? room.promise : undefined;
  }

  function drop({ channel, bytes }: Chunk): void {
    batcher.flush();
    const endsInsideLine = bytes.at(-1) !== LF;
    const frames = bytes.reduce((count, byte) => count + (byte === LF ? 1 : 0), endsInsideLine ? 1 : 0);
    const loss = { frames, bytes: bytes.length };
    dropped.frames += loss.frames;
    dropped.bytes += loss.bytes;
    worker.postMessage({ type: 'gap', channel, loss, endsInsideLine } satisfies ToWorker);
  }

  return {
    append,
    serverStarted: (pid) => worker.postMessage({ type: 'server', pid } satisfies ToWorker),
    isClientGone: () => clientPid !== null && !exists(clientPid),
    opened: opened.promise,
    close(end) {
      batcher.flush();
      worker.postMessage({ type: 'end', end } satisfies ToWorker);
      const timer = setTimeout(closed.resolve, CLOSE_TIMEOUT_MS, dropped);
      return closed.promise.finally(() => clearTimeout(timer));
    },
  };
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function createDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
