/**
 * The relay's side of the writer's thread: hands it what was forwarded, in batches, and knows how much is on its way.
 * This file is loaded before the first byte flows, so it imports next to nothing.
 */

import { type MessagePort, Worker } from 'node:worker_threads';
import type { RedactionProfile } from '../../protocol/redact/profile.ts';
import type { Loss, SessionEnd, SessionStart, StdioGap } from '../file/columns.ts';
import type { UpkeepRules } from '../keep/limits.ts';
import type { FrameRule } from '../sample/meta-for.ts';
import type { SamplingRules } from '../sample/sampling.ts';
import { BEATS, createSilenceWatch, isRaised } from '../write/beats.ts';
import type { RecorderFigures, SessionNews } from '../write/figures.ts';
import { type Batcher, createBatcher, createFlushes, HEADER_BYTES } from './batch.ts';

type FoundByWriter =
  | 'sample'
  | 'host'
  | 'processStarted'
  | 'clientPid'
  | 'clientProgram'
  | 'clientStarted'
  | 'run'
  | 'redaction';

/** What the writer cannot find out by itself. `parentPid` is the client, or what the client started us by; null where nobody can tell yet. */
export type RecordingStart = Omit<SessionStart, FoundByWriter> & { parentPid: number | null };

export type RecorderOptions = {
  /** The `--db` option; the writer's thread finds the default. */
  file: string | undefined;
  durable: boolean;
  /** Wait for the writer where the queue is full, instead of dropping. */
  isStrict: boolean;
  maxQueueBytes: number;
  maxFrameBytes: number;
  /** By which old sessions are pruned in the background; null: none are. */
  retention: UpkeepRules | null;
  /** The rules by which secrets are replaced; null: they are stored. */
  redaction: RedactionProfile | null;
  /** Which sessions are kept, where not all are; null or missing: all. */
  sampling?: SamplingRules | null | undefined;
  /** Which frames are kept without their payloads; as `redaction.metaFor` says. Null or missing: none. */
  metaFor?: FrameRule | null | undefined;
  session: RecordingStart;
  /** Called once, at the first trouble, with the reason in words. */
  onTrouble: (text: string) => void;
  /** Called with what its user should know, though nothing is lost. */
  onNotice: (text: string) => void;
  /** Who watches the recorder. Undefined: nothing is counted. */
  watcher?: Watcher | undefined;
  /** In which the writer runs, beside others; missing: in a thread of its own. Then this process is somebody else's, too: no signal of it is heard, and nothing keeps it alive. */
  thread?: SharedThread;
};

export type Watcher = {
  /** So long a commit took, in milliseconds. */
  onCommit(ms: number): void;
  onSession(news: SessionNews): void;
};

/** What a recorder tells of itself to whom watches it. */
export type Watched = {
  /** Asks the writer what it has done. Null: it is gone, or has not answered within so many milliseconds. */
  figures(maxMs: number): Promise<RecorderFigures | null>;
  /** Bytes on their way to the writer; and what is lost because the writer is gone. */
  queue(): { bytes: number; lost: Loss };
};

/**
 * What of a recording may change while it runs. `redaction` null: it began without, and stays so. `sampling` counts for sessions
 * that begin from then on.
 */
export type RecordingRules = Pick<RecorderOptions, 'redaction' | 'retention' | 'sampling' | 'metaFor'>;

/** A thread of several writers, which ends with the process. */
export type SharedThread = {
  /** Begins a writer in it. `onDeath` is called if the thread ends. Throws where there is no thread to be had. */
  begin(start: WorkerStart, onMessage: (message: FromWorker) => void, onDeath: OnDeath): WriterLink;
};

/** What speaks to a writer. */
type WriterLink = {
  post(message: ToWorker, transfer?: ArrayBuffer[]): void;
  /** Ends the thread, with all writers in it. */
  terminate(): Promise<unknown>;
  /** Why the thread has ended, also before `onDeath` could be called; null: it has not. */
  whyGone(): string | null;
  /** Nothing more is heard or said. */
  close(): void;
};

type OnDeath = (why: string) => void;

/** What begins a writer in a thread that several share. */
export type WriterCall = { port: MessagePort; start: WorkerStart };

/** What such a thread says at its end: the reason, and then that it is gone, for whoever waits for that. */
export type SharedStart = { isGone: Int32Array<SharedArrayBuffer>; why: MessagePort };

export type WorkerStart = Pick<
  RecorderOptions,
  | 'file'
  | 'durable'
  | 'isStrict'
  | 'maxFrameBytes'
  | 'retention'
  | 'redaction'
  | 'sampling'
  | 'metaFor'
  | 'session'
> & {
  /** Tells this recorder from all others. */
  run: string;
  /** By `BEATS`. */
  beats: Int32Array<SharedArrayBuffer>;
  /** Somebody may `ask`. */
  isWatched: boolean;
};

export type ToWorker =
  | { type: 'items'; batch: Uint8Array<ArrayBuffer> }
  | { type: 'gap'; gap: StdioGap }
  | { type: 'server'; pid: number }
  | { type: 'ask' }
  | ({ type: 'rules' } & RecordingRules)
  | { type: 'end'; end: SessionEnd };

export type FromWorker =
  /** `session`: the id of the one by stdio. */
  | { type: 'opened'; clientPid: number | null; session: string | null }
  /** So many bytes of batches are done with; `pieces` is what was in them and in gaps. */
  | { type: 'stored'; bytes: number; pieces: Loss; commitMs: number | undefined }
  | { type: 'figures'; figures: RecorderFigures }
  | { type: 'session'; news: SessionNews }
  | { type: 'trouble'; text: string }
  | { type: 'notice'; text: string }
  | { type: 'closed' };

type WriterThread = Watched & {
  append: Batcher['append'];
  /** Whether so many bytes more would be too many. */
  isFull(bytes: number): boolean;
  /** In strict mode, what to wait for before reading on. */
  room(): Promise<void> | undefined;
  /** Says something that comes after everything appended so far. */
  send(message: ToWorker): void;
  /** What is appended from now on, and what waits, is recorded by these rules. */
  setRules(rules: RecordingRules): void;
  /** The process that started us, once it is known. */
  clientPid(): number | null;
  /** Whether the store could be opened. */
  opened: Promise<boolean>;
  /** Settles once everything appended so far is stored, or given up. */
  flush(): Promise<void>;
  /** Stores what is on its way, then the end. */
  close(end: SessionEnd): Promise<void>;
  /**
   * The same where the process ends in this turn: waits until the thread has begun, which it must not be ended before, and then
   * for `waitMs` at most. Returns why something is lost, or null.
   */
  closeAtExit(end: SessionEnd, waitMs: number): string | null;
};

/** At the end of a process that cannot wait, but must not be ended while SQLite is loaded either. */
const LOADING_MS = 10_000;

const WATCH_EVERY_MS = 1000;

/** So long a thread may take to stop that is in the middle of something. */
const STOP_MS = 500;

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

type LastWords = typeof import('../write/last-words.ts');

type Deferred<T> = { promise: Promise<T>; resolve: (value: T) => void };

export function startWriter(options: RecorderOptions): WriterThread {
  const { session, maxQueueBytes, isStrict } = options;
  const run = newRun();
  const isGuest = options.thread !== undefined;
  const beats = new Int32Array(new SharedArrayBuffer(12));
  const watch = createSilenceWatch(beats, isGuest, () =>
    isDead || waiting.frames === 0 ? null : waiting.bytes,
  );
  let queued = 0;
  /** What is on its way to the writer, or with it: lost, if it does not answer. */
  const waiting: Loss = { frames: 0, bytes: 0 };
  let { redaction } = options;
  let isDead = false;
  let isEnding = false;
  let clientPid: number | null = null;
  let id: string | null = null;
  let room = createDeferred<void>();
  /** Who waits for figures. */
  const asking: ((figures: RecorderFigures | null) => void)[] = [];
  let lastWords: LastWords | undefined;
  /** That the writer has stopped. */
  let told: Promise<void> | undefined;
  const setLastWords = (loaded: LastWords) => {
    lastWords = loaded;
  };
  const opened = createDeferred<boolean>();
  const closed = createDeferred<void>();

  const flushes = createFlushes();

  const batcher = createBatcher((batch, items) => {
    queued += batch.byteLength;
    wait({ frames: items, bytes: batch.byteLength - items * HEADER_BYTES });
    if (!isDead) link?.post({ type: 'items', batch }, [batch.buffer]);
  }, isGuest);

  function wait({ frames, bytes }: Loss): void {
    if (waiting.frames === 0) watch.heard();
    waiting.frames += frames;
    waiting.bytes += bytes;
    flushes.sent(frames);
  }

  function onMessage(message: FromWorker): void {
    watch.heard();
    switch (message.type) {
      case 'opened':
        clientPid = message.clientPid;
        id = message.session;
        opened.resolve(true);
        break;
      case 'stored':
        queued -= message.bytes;
        waiting.frames -= message.pieces.frames;
        waiting.bytes -= message.pieces.bytes;
        flushes.stored(message.pieces.frames);
        room.resolve();
        room = createDeferred<void>();
        if (message.commitMs !== undefined) options.watcher?.onCommit(message.commitMs);
        break;
      case 'figures':
        for (const answer of asking.splice(0)) answer(message.figures);
        break;
      case 'session':
        options.watcher?.onSession(message.news);
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
  }

  function onDeath(why: string): void {
    if (isDead) return;
    isDead = true;
    whyDead = why;
    const tell = () => options.onTrouble(`the writer stopped: ${why}`);
    // Its host may end in one turn, in which nothing can be loaded.
    if (isGuest) told = import('../write/last-words.ts').then(setLastWords, () => {}).then(tell);
    else tell();
    opened.resolve(false);
    room.resolve();
    closed.resolve();
    flushes.end();
  }

  const { link, whyNot } = startThread(options, { run, beats }, onMessage, onDeath);
  let whyDead = whyNot;

  const timer = setInterval(() => {
    if (!watch.isSilent()) return;
    clearInterval(timer);
    const text = `the writer has not answered for seconds, and ${waiting.bytes} bytes wait for it`;
    if (isStrict) options.onTrouble(text);
    else options.onNotice(`${text}. Traffic goes on; what cannot be recorded is counted at the end.`);
  }, WATCH_EVERY_MS).unref();

  function send(message: ToWorker): void {
    batcher.flush();
    if (message.type === 'gap') wait(message.gap.loss);
    if (!isDead) link?.post(message);
  }

  async function giveUp(end: SessionEnd): Promise<void> {
    const why = isDead ? 'is gone' : 'does not answer';
    isDead = true;
    batcher.flush();
    await Promise.race([link?.terminate(), new Promise((resolve) => setTimeout(resolve, STOP_MS).unref())]);
    const text = `the writer ${why}: ${waiting.bytes} bytes of traffic are lost`;
    await told;
    try {
      countLost(await import('../write/last-words.ts'), end);
      options.onTrouble(text);
    } catch (error) {
      options.onTrouble(`${text}, and that could not be counted: ${(error as Error).message}`);
    }
  }

  /** What waits, in the store, as the end of the session. */
  function countLost({ writeLastWords }: LastWords, end: SessionEnd): void {
    const { file } = options;
    const { parentPid: _, ...own } = session;
    const loss = { frames: Math.max(1, waiting.frames), bytes: waiting.bytes };
    writeLastWords({ file, run, redaction, session: own, id, loss, end });
  }

  function figures(maxMs: number): Promise<RecorderFigures | null> {
    return new Promise((resolve) => {
      if (isDead || link === null) return resolve(null);
      const timer = setTimeout(() => asking.splice(asking.indexOf(done), 1)[0]?.(null), maxMs).unref();
      const done = (answer: RecorderFigures | null) => {
        clearTimeout(timer);
        resolve(answer);
      };
      asking.push(done);
      link.post({ type: 'ask' });
    });
  }

  return {
    figures,
    queue: () => ({ bytes: queued, lost: isDead ? { ...waiting } : { frames: 0, bytes: 0 } }),
    append: batcher.append,
    isFull: (bytes) => queued + bytes > maxQueueBytes && queued > 0,
    room: () => (isStrict && queued > maxQueueBytes && !isDead ? room.promise : undefined),
    send,
    setRules(rules) {
      redaction = rules.redaction;
      const { retention, sampling, metaFor } = rules;
      send({ type: 'rules', redaction, retention, sampling, metaFor });
    },
    clientPid: () => clientPid,
    opened: opened.promise,
    flush() {
      batcher.flush();
      return isDead ? Promise.resolve() : flushes.settled();
    },
    closeAtExit(end, waitMs) {
      clearInterval(timer);
      if (isDead || link === null) {
        batcher.flush();
        if (waiting.frames > 0 && !isEnding && lastWords !== undefined) countLost(lastWords, end);
        return waiting.frames === 0 ? null : `the writer stopped: ${whyDead}`;
      }
      if (!isEnding) send({ type: 'end', end });
      const isThere = () => link.whyGone() === null;
      // A thread that is ended while it loads SQLite takes the process with it.
      isRaised(beats, BEATS.isLoaded, waitMs > 0 ? LOADING_MS : 0, isThere);
      if (isRaised(beats, BEATS.isClosed, waitMs, isThere) || waiting.frames === 0) return null;
      const why = link.whyGone();
      return why === null
        ? 'the process ended before all that had passed was stored'
        : `the writer stopped: ${why}`;
    },
    async close(end) {
      clearInterval(timer);
      let isClosed = false;
      isEnding = true;
      if (!isDead) {
        send({ type: 'end', end });
        isClosed = await Promise.race([
          closed.promise.then(() => !isDead),
          watch.silence().then(() => false),
        ]);
      }
      if (!isClosed) await giveUp(end);
      watch.end();
      flushes.end();
      link?.close();
    },
  };
}

/** `link` null where there is no thread to be had, and why: the traffic goes on without. */
function startThread(
  { watcher, thread, ...options }: RecorderOptions,
  own: Pick<WorkerStart, 'run' | 'beats'>,
  onMessage: (message: FromWorker) => void,
  onDeath: OnDeath,
): { link: WriterLink; whyNot: null } | { link: null; whyNot: string } {
  const { file, durable, isStrict, maxFrameBytes, retention, redaction, sampling, metaFor, session } =
    options;
  const isWatched = watcher !== undefined;
  const start = { file, durable, isStrict, maxFrameBytes, retention, redaction, sampling, metaFor, session };
  const workerData: WorkerStart = { ...start, isWatched, ...own };
  try {
    if (thread !== undefined) return { link: thread.begin(workerData, onMessage, onDeath), whyNot: null };
    const worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData,
      resourceLimits: {
        maxYoungGenerationSizeMb: YOUNG_MB[session.transport === 'stdio' ? 'stdio' : 'http'],
      },
    });
    worker.on('message', onMessage);
    worker.on('error', (error) => onDeath(error.message));
    const link: WriterLink = {
      post: (message, transfer = []) => worker.postMessage(message, transfer),
      terminate: () => worker.terminate(),
      whyGone: () => null,
      close() {},
    };
    return { link, whyNot: null };
  } catch (error) {
    const whyNot = (error as Error).message;
    // Its caller is not ready to be told yet.
    setImmediate(() => onDeath(whyNot));
    return { link: null, whyNot };
  }
}

function createDeferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
