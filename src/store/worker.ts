/**
 * The writer's thread. It takes batches of chunks from the relay's thread, splits them into frames, and commits whatever
 * has arrived in one transaction. A batch is acknowledged once it is committed (or given up), so the other side always
 * knows how much is on its way. Messages are indexed after that, from the stored frames, as far as time allows.
 *
 * Passing trouble (a full disk, a lock) keeps the frames here and tries again; lasting trouble gives them up and counts
 * them. Either way the relay is told once, in words, and never waits.
 */
import { readlinkSync, statSync } from 'node:fs';
import { hostname, setPriority } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { TapedeckError } from '../errors.ts';
import { eachChunk } from './batch.ts';
import { createIndexer, type Indexer } from './indexer.ts';
import { createIngest } from './ingest.ts';
import { storePath } from './location.ts';
import { openStore, type Store } from './open.ts';
import { createPace } from './pace.ts';
import { findClient, processStarted } from './process.ts';
import type { FromWorker, ToWorker, WorkerStart } from './recorder.ts';
import { createSessionWriter, type SessionEnd, type SessionWriter } from './session-writer.ts';
import { troubleOf } from './trouble.ts';

const NICENESS = 10;
/** An unfinished line that has waited this long is stored as far as it has come. */
const HELD_AFTER_MS = 30;
const RETRY_AFTER_MS = 200;
/** How long the last frames may wait for a store in passing trouble before they are given up. */
const LAST_RETRIES_MS = 2000;
/** How long the end of a session may be held up by its index. What is left is done by the next reader. */
const LAST_INDEXING_MS = 1000;

const { file, durable, maxFrameBytes, session } = workerData as WorkerStart;
const path = storePath(file);
const ingest = createIngest(maxFrameBytes);
const pace = createPace();
let store: Store | undefined;
let writer: SessionWriter | undefined;
let indexer: Indexer | undefined;
let isHopeless = false;
let isTroubleTold = false;
/** Tells the file that we opened from another one of the same name. */
let inode: bigint | undefined;
let unacknowledged = 0;
let serverPid: number | undefined;
let commitPlanned: NodeJS.Timeout | undefined;
let heldTimer: NodeJS.Timeout | undefined;
let indexTimer: NodeJS.Timeout | undefined;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'chunks':
      eachChunk(message.batch, ingest.feed);
      unacknowledged += message.batch.byteLength;
      pace.onTraffic(performance.now());
      planCommit();
      break;
    case 'gap':
      ingest.gap(message.channel, message.loss, message.endsInsideLine);
      planCommit();
      break;
    case 'server':
      serverPid = message.pid;
      planCommit();
      break;
    case 'end':
      ingest.end();
      finish(message.end, performance.now() + LAST_RETRIES_MS);
      break;
  }
});

giveWay();
open();

/**
 * The relay and its two ends come before this thread wherever they want the same processor. Measured on two cores, with
 * 64 calls in flight: 169,000 instead of 141,000 calls/s, and still nothing older than 85 ms unsaved at a kill -9.
 */
function giveWay(): void {
  // Linux alone can set the priority of one thread.
  if (process.platform !== 'linux') return;
  try {
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, NICENESS);
  } catch {
    // No /proc, or not allowed: then it stays as it is.
  }
}

function open(): void {
  try {
    store = openStore(path, { durable });
    inode = inodeOf(path);
    const client = findClient(session.parentPid);
    const { parentPid: _, ...start } = session;
    writer = createSessionWriter(store, {
      ...start,
      host: hostname(),
      processStarted: processStarted(session.pid),
      clientPid: client?.pid ?? null,
      clientProgram: client?.program ?? null,
    });
    indexer = createIndexer(store, writer.number);
    tell({ type: 'opened', session: writer.id, clientPid: client?.pid ?? null });
  } catch (error) {
    store?.close();
    store = undefined;
    onTrouble(error);
  }
}

/** Everything that is there in the same turn goes into one transaction: a commit costs as much as hundreds of frames. */
function planCommit(): void {
  commitPlanned ??= setTimeout(commit, 0);
}

function commit(): void {
  commitPlanned = undefined;
  if (!isHopeless && writer === undefined) open();
  if (tryCommit([])) {
    acknowledge();
    planIndexing();
  } else if (isHopeless) giveUp();
  else commitPlanned = setTimeout(commit, RETRY_AFTER_MS);
  if (writer !== undefined && ingest.held().length > 0) heldTimer ??= setTimeout(saveHeld, HELD_AFTER_MS);
}

function saveHeld(): void {
  heldTimer = undefined;
  const held = ingest.held();
  if (commitPlanned === undefined && tryCommit(held)) ingest.confirmHeld(held);
}

function tryCommit(held: ReturnType<typeof ingest.held>): boolean {
  if (writer === undefined) return false;
  try {
    if (serverPid !== undefined) writer.serverStarted(serverPid);
    serverPid = undefined;
    writer.write(ingest.frames(), ingest.firstSeq(), held, ingest.loss());
    assertInPlace();
  } catch (error) {
    onTrouble(error);
    return false;
  }
  indexer?.remember(ingest.frames(), ingest.firstSeq());
  ingest.confirm();
  return true;
}

/** SQLite would go on writing to a file that has lost its name, and nobody could ever read it. */
function assertInPlace(): void {
  if (inodeOf(path) === inode) return;
  writer = undefined;
  throw new TapedeckError(
    'not-found',
    `${path} was removed or replaced while a session was recorded into it`,
  );
}

function inodeOf(file: string): bigint | undefined {
  return statSync(file, { bigint: true, throwIfNoEntry: false })?.ino;
}

function acknowledge(): void {
  if (unacknowledged > 0) tell({ type: 'stored', bytes: unacknowledged });
  unacknowledged = 0;
}

/** Counts what waits as lost. */
function giveUp(): void {
  const loss = ingest.loss();
  for (const { size } of ingest.frames()) {
    loss.frames += 1;
    loss.bytes += size;
  }
  ingest.confirm();
  acknowledge();
}

function planIndexing(): void {
  indexTimer ??= setTimeout(index, pace.waitMs(performance.now()));
}

/** Trouble here costs no data: the frames are stored, and the next attempt begins where the last one did. */
function index(): void {
  indexTimer = undefined;
  const began = performance.now();
  try {
    const isDone = indexer?.advance(pace.sliceMs(began)) ?? true;
    if (!isDone) planIndexing();
  } catch (error) {
    onIndexTrouble(error);
  }
  pace.onWorked(began, performance.now());
}

/** The next reader does what is left: nobody has to know, and no server has to end. */
function onIndexTrouble(error: unknown): void {
  if (!troubleOf(error).isPassing) indexer = undefined;
}

function onTrouble(error: unknown): void {
  const { text, isPassing } = troubleOf(error);
  if (!isPassing) isHopeless = true;
  // Our own errors name the file themselves.
  const place = error instanceof TapedeckError ? '' : `${path}: `;
  if (!isTroubleTold) tell({ type: 'trouble', text: place + text.replace(/\.$/, '') });
  isTroubleTold = true;
}

function finish(end: SessionEnd, deadline: number): void {
  clearTimeout(commitPlanned);
  clearTimeout(heldTimer);
  clearTimeout(indexTimer);
  if (!isHopeless && writer === undefined) open();
  const isDone = tryCommit([]);
  if (!isDone && !isHopeless && performance.now() < deadline) {
    setTimeout(finish, RETRY_AFTER_MS, end, deadline);
    return;
  }
  if (!isDone) giveUp();
  closeSession(end);
  tell({ type: 'closed', loss: ingest.loss() });
  parentPort?.close();
}

/** A row that only changes needs hardly any room, so this often succeeds on a disk too full for new frames. */
function closeSession(end: SessionEnd): void {
  try {
    writer?.end(end, ingest.loss());
  } catch (error) {
    onTrouble(error);
  }
  try {
    indexer?.advance(LAST_INDEXING_MS);
  } catch (error) {
    onIndexTrouble(error);
  }
  store?.close();
}
