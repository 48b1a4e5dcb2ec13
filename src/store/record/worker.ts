/**
 * The writer's thread. It takes batches from the relay's thread, hands them to the intake, whose framer makes frames of them,
 * and commits everything that has arrived in one transaction. A batch is acknowledged once it is committed (or given up), so the
 * other side always knows how much is on its way. Messages are indexed after that, from the stored frames, as far as time
 * allows.
 *
 * Passing trouble (a full disk, a lock) keeps the frames here and tries again; lasting trouble gives them up and counts
 * them. Either way the relay gets one message about it, and never waits.
 */

import { readlinkSync, statSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { TapedeckError } from '../../errors.ts';
import type { SessionEnd } from '../file/columns.ts';
import { openStore, type Store } from '../file/open.ts';
import { storePath } from '../file/path.ts';
import { findClient } from '../file/process.ts';
import { troubleOf } from '../file/trouble.ts';
import { createPace } from '../keep/pace.ts';
import { createUpkeepLoop, walBytesWithin } from '../keep/upkeep.ts';
import { eachItem, type Item } from './batch.ts';
import { createIntake } from './intake.ts';
import type { FromWorker, ToWorker, WorkerStart } from './thread.ts';

const NICENESS = 10;

/** What is not whole and has waited this long is stored as far as it has come. */
const UNFINISHED_AFTER_MS = 30;

const RETRY_AFTER_MS = 200;

const TICK_MS = 10_000;

/** How long the last frames may wait for a store in passing trouble before they are given up. */
const LAST_RETRIES_MS = 2000;

/** How long the end may be held up by the index. What is left is done by the next reader. */
const LAST_INDEXING_MS = 1000;

/** And by pruning. What is left is done by the next recorder. */
const LAST_UPKEEP_MS = 1000;

const { file, durable, maxFrameBytes, retention, redaction, session } = workerData as WorkerStart;

const path = storePath(file);

const intake = createIntake(session, maxFrameBytes, redaction, planCommit, (text) =>
  tell({ type: 'notice', text }),
);

const { framer } = intake;

const pace = createPace();

const upkeep = retention && createUpkeepLoop(retention, (text) => tell({ type: 'notice', text }));

let store: Store | undefined;

let isHopeless = false;

let isTroubleReported = false;

let isFinishing = false;

/** What is not whole has waited long enough, and goes along with the next commit. */
let isUnfinishedDue = false;

/** Tells the file that we opened from another one of the same name. */
let inode: bigint | undefined;

let unacknowledged = 0;

/** When the newest item passed, in microseconds since the Unix epoch. */
let newestAt = 0;

let commitPlanned: NodeJS.Timeout | undefined;

let unfinishedTimer: NodeJS.Timeout | undefined;

let indexTimer: NodeJS.Timeout | undefined;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', receive);

function receive(message: ToWorker): void {
  switch (message.type) {
    case 'items':
      eachItem(message.batch, feed);
      unacknowledged += message.batch.byteLength;
      pace.onTraffic(performance.now());
      upkeep?.onTraffic(performance.timeOrigin + performance.now() - newestAt / 1000);
      planCommit();
      break;
    case 'gap':
      framer.gap(message.gap);
      break;
    case 'server':
      intake.serverStarted(message.pid);
      break;
    case 'end':
      void framer.finish().then(() => finish(message.end, performance.now() + LAST_RETRIES_MS));
      break;
  }
}

giveWay();

open();

const ticker = setInterval(tick, TICK_MS);

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

/** A fault of ours costs what it happened at, not the rest of the recording. */
function feed(item: Item): void {
  newestAt = item.at;
  try {
    framer.feed(item);
  } catch (error) {
    framer.abandon(item);
    tellTrouble(
      `a piece of traffic could not be taken in, by a fault of tapedeck: ${(error as Error).message}`,
    );
  }
}

function open(): void {
  try {
    store = openStore(path, { durable, walBytes: walBytesWithin(retention?.maxBytes ?? null) });
    inode = inodeOf(path);
    const client = findClient(session.parentPid);
    takeWaiting();
    intake.open(store, client);
    saveFirst();
    upkeep?.open(store);
    tell({ type: 'opened', clientPid: client?.pid ?? null });
  } catch (error) {
    store?.close();
    store = undefined;
    onTrouble(error);
  }
}

/** What has passed while the store was being opened. */
function takeWaiting(): void {
  if (parentPort === null) return;
  for (let next = receiveMessageOnPort(parentPort); next; next = receiveMessageOnPort(parentPort)) {
    receive(next.message as ToWorker);
  }
}

/** One commit: once the session is there, so is what passed before it. */
function saveFirst(): void {
  try {
    intake.save(false);
  } catch {
    // There may be room, or time, for the session alone. What waits is tried again.
    intake.saveStart();
    return;
  }
  intake.confirm();
}

function tick(): void {
  framer.tick(Date.now() * 1000);
  upkeep?.poke();
}

/** Everything that is there in the same turn goes into one transaction: a commit costs as much as hundreds of frames. */
function planCommit(): void {
  if (!isFinishing) commitPlanned ??= setTimeout(commit, 0);
}

function commit(): void {
  commitPlanned = undefined;
  if (!isHopeless && store === undefined) open();
  if (trySave(isUnfinishedDue)) {
    isUnfinishedDue = false;
    acknowledge();
    planIndexing();
    upkeep?.poke();
  } else if (isHopeless) giveUp();
  else {
    clearTimeout(commitPlanned);
    commitPlanned = setTimeout(commit, RETRY_AFTER_MS);
  }
  if (store !== undefined && framer.hasUnfinished())
    unfinishedTimer ??= setTimeout(saveUnfinished, UNFINISHED_AFTER_MS);
}

function saveUnfinished(): void {
  unfinishedTimer = undefined;
  isUnfinishedDue = true;
  planCommit();
}

function trySave(withUnfinished: boolean): boolean {
  if (store === undefined) return false;
  try {
    intake.save(withUnfinished);
    assertInPlace();
  } catch (error) {
    onTrouble(error);
    return false;
  }
  intake.confirm();
  return true;
}

/** SQLite would go on writing to a file that has lost its name, and nobody could ever read it. */
function assertInPlace(): void {
  if (inodeOf(path) === inode) return;
  upkeep?.open(undefined);
  store?.close();
  store = undefined;
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

function giveUp(): void {
  intake.giveUp();
  acknowledge();
}

function planIndexing(): void {
  indexTimer ??= setTimeout(index, pace.waitMs(performance.now()));
}

/** Trouble here costs no data: the frames are stored, and the next attempt begins where the last one did. */
function index(): void {
  indexTimer = undefined;
  const began = performance.now();
  if (!tryIndex(pace.sliceMs(began))) planIndexing();
  pace.onWorked(began, performance.now());
}

/** True: nothing is left to do here. After lasting trouble the next reader does it: nobody has to know. */
function tryIndex(maxMs: number): boolean {
  if (store === undefined) return true;
  try {
    return intake.index(maxMs);
  } catch (error) {
    if (!troubleOf(error).isPassing) intake.stopIndexing();
    return true;
  }
}

function onTrouble(error: unknown): void {
  const { text, isPassing } = troubleOf(error);
  if (!isPassing) isHopeless = true;
  // Our own errors name the file themselves.
  const place = error instanceof TapedeckError ? '' : `${path}: `;
  tellTrouble(place + text.replace(/\.$/, ''));
}

function tellTrouble(text: string): void {
  if (!isTroubleReported) tell({ type: 'trouble', text });
  isTroubleReported = true;
}

function finish(end: SessionEnd, deadline: number): void {
  isFinishing = true;
  clearInterval(ticker);
  clearTimeout(commitPlanned);
  clearTimeout(unfinishedTimer);
  clearTimeout(indexTimer);
  if (!isHopeless && store === undefined) open();
  const isDone = trySave(false);
  if (!isDone && !isHopeless && performance.now() < deadline) {
    setTimeout(finish, RETRY_AFTER_MS, end, deadline);
    return;
  }
  if (!isDone) giveUp();
  close(end);
  tell({ type: 'closed' });
  parentPort?.close();
}

/** A row that only changes needs hardly any room, so this often succeeds on a disk too full for new frames. */
function close(end: SessionEnd): void {
  if (store === undefined) return;
  try {
    intake.end(end);
  } catch (error) {
    onTrouble(error);
  }
  tryIndex(LAST_INDEXING_MS);
  upkeep?.finish(LAST_UPKEEP_MS);
  store.close();
}
