/**
 * The writer's thread. It takes batches from the relay's thread, hands them to the intake, whose framer makes frames of them,
 * and commits everything that has arrived in one transaction. A batch is acknowledged once it is committed (or given up), so the
 * other side always knows how much is on its way. Messages are indexed after that, from the stored frames, as far as time
 * allows.
 *
 * Passing trouble (a full disk, a lock) keeps the frames here and tries again; lasting trouble gives them up and counts
 * them. Either way the relay gets one message about it, and never waits.
 */

import { readFileSync, readlinkSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { Loss, SessionEnd } from '../file/columns.ts';
import { storePath } from '../file/path.ts';
import { findClient } from '../file/process.ts';
import { troubleOf } from '../file/trouble.ts';
import { createPace } from '../keep/pace.ts';
import type { UpkeepRules } from '../keep/retention.ts';
import { createUpkeepLoop, walBytesWithin } from '../keep/upkeep.ts';
import { createRecorderTally } from '../write/figures.ts';
import { eachItem, type Item } from './batch.ts';
import { createIntake } from './intake.ts';
import { createOutlet } from './outlet.ts';
import type { FromWorker, RecordingRules, ToWorker, WorkerStart } from './thread.ts';

const NICENESS = 10;

/** Batches of this size come where much passes, several MB a second. */
const HEAVY_BATCH_BYTES = 192 * 1024;

/** With more than so many threads at work for each processor a machine is busy with other things than ours. */
const CROWD_PER_PROCESSOR = 3;

/** What is not whole and has waited this long is stored as far as it has come. */
const UNFINISHED_AFTER_MS = 30;

const RETRY_AFTER_MS = 200;

/** Frames of few bytes take hundreds in memory, so that these, and those of one batch more, are stored before more are made. */
const FRAMES_AT_ONCE = 50_000;

/** So many may wait for a disk that is full. */
const MOST_WAITING_FRAMES = 1_000_000;

const TICK_MS = 10_000;

/** How long the end may be held up by the index. What is left is done by the next reader. */
const LAST_INDEXING_MS = 60;

/** And by pruning. What is left is done by the next recorder. */
const LAST_UPKEEP_MS = 150;

const { file, run, beats, durable, maxFrameBytes, retention, redaction, session, isWatched } =
  workerData as WorkerStart;

const path = storePath(file);

const tally = isWatched ? createRecorderTally((news) => tell({ type: 'session', news })) : null;

const intake = createIntake(
  session,
  maxFrameBytes,
  redaction,
  planCommit,
  (text) => tell({ type: 'notice', text }),
  beat,
  tally,
);

const { framer } = intake;

const pace = createPace();

let upkeep = upkeepWithin(retention);

const outlet = createOutlet({
  ...{ file: path, run, intake },
  isDurable: durable,
  walBytes: walBytesWithin(retention?.maxBytes ?? null),
  isRedacted: redaction !== null,
  onStore: (store) => upkeep?.open(store),
  onTrouble: tellTrouble,
  onNotice: (text) => tell({ type: 'notice', text }),
});

let isTroubleTold = false;

let hasGivenWay = false;

let isFinishing = false;

/** The last commit failed, and the next one comes in its time. */
let isStuck = false;

/** What is not whole has waited long enough, and goes along with the next commit. */
let isUnfinishedDue = false;

let unacknowledged = 0;

/** Items and gaps among them. */
const pieces: Loss = { frames: 0, bytes: 0 };

/** When the newest item passed, in microseconds since the Unix epoch. */
let newestAt = 0;

let commitPlanned: NodeJS.Timeout | undefined;

let unfinishedTimer: NodeJS.Timeout | undefined;

let indexTimer: NodeJS.Timeout | undefined;

let clientTimer: NodeJS.Timeout | undefined;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', receive);

function receive(message: ToWorker): void {
  switch (message.type) {
    case 'items':
      eachItem(message.batch, feed);
      unacknowledged += message.batch.byteLength;
      if (message.batch.byteLength >= HEAVY_BATCH_BYTES) giveWay();
      pace.onTraffic(performance.now());
      upkeep?.onTraffic(performance.timeOrigin + performance.now() - newestAt / 1000);
      if (intake.waiting() > (isStuck ? MOST_WAITING_FRAMES : FRAMES_AT_ONCE)) commit();
      else planCommit();
      break;
    case 'gap':
      framer.gap(message.gap);
      pieces.frames += message.gap.loss.frames;
      pieces.bytes += message.gap.loss.bytes;
      break;
    case 'server':
      intake.serverStarted(message.pid);
      break;
    case 'rules':
      setRules(message);
      break;
    case 'ask':
      answer();
      break;
    case 'end':
      void framer.finish().then(() => finish(message.end));
      break;
  }
}

open();

const ticker = setInterval(tick, TICK_MS);

/**
 * The relay and its two ends come before this thread wherever they want the same processor. Measured on two cores, with
 * 64 calls in flight: 169,000 instead of 141,000 calls/s, and still nothing older than 85 ms unsaved at a kill -9. But on a
 * crowded machine a thread that comes after all others hardly runs at all, and nobody can take that back: so it gives way
 * where there is much to record and little else to do.
 */
function giveWay(): void {
  // Linux alone can set the priority of one thread.
  if (hasGivenWay || process.platform !== 'linux') return;
  try {
    const [, atWork] = / (\d+)\//.exec(readFileSync('/proc/loadavg', 'utf8')) ?? [];
    if (Number(atWork) > CROWD_PER_PROCESSOR * availableParallelism()) return;
    hasGivenWay = true;
    const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1));
    setPriority(thread, NICENESS);
  } catch {
    // No /proc, or not allowed: then it stays as it is.
  }
}

/** Says that this thread is at work. */
function beat(): void {
  Atomics.add(beats, 0, 1);
}

/** A fault of ours costs what it happened at, not the rest of the recording. */
function feed(item: Item): void {
  newestAt = item.at;
  pieces.frames += 1;
  pieces.bytes += item.bytes.length;
  beat();
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
  const client = findClient(session.parentPid);
  intake.setClient(client);
  const isOpen = outlet.open();
  takeWaiting();
  commit();
  if (isOpen) tell({ type: 'opened', clientPid: client?.pid ?? null, session: intake.sessionId() });
}

/** What has passed while the store was being opened. */
function takeWaiting(): void {
  if (parentPort === null) return;
  for (let next = receiveMessageOnPort(parentPort); next; next = receiveMessageOnPort(parentPort)) {
    receive(next.message as ToWorker);
  }
}

function upkeepWithin(limits: UpkeepRules | null) {
  return limits && createUpkeepLoop(limits, (text) => tell({ type: 'notice', text }));
}

/** What passes from now on, in sessions under way too, is redacted and kept by these rules. */
function setRules({ redaction: profile, retention: limits }: RecordingRules): void {
  if (profile !== null) intake.setRedaction(profile);
  upkeep?.finish(0);
  upkeep = upkeepWithin(limits);
  outlet.setWalBytes(walBytesWithin(limits?.maxBytes ?? null));
  upkeep?.open(outlet.store());
}

/** What this recorder has done so far; and that this thread is at work. */
function answer(): void {
  if (tally === null) return;
  const figures = {
    ...tally.figures(),
    open: intake.openSessions(),
    isStoreTroubled: isStuck || outlet.store() === undefined,
    isStoring: outlet.isStoring(),
    store: path,
  };
  tell({ type: 'figures', figures });
}

function tick(): void {
  framer.tick(Date.now() * 1000);
  upkeep?.poke();
  findClients();
}

/** Everything that is there in the same turn goes into one transaction: a commit costs as much as hundreds of frames. */
function planCommit(): void {
  if (!isFinishing) commitPlanned ??= setTimeout(commit, 0);
}

function commit(): void {
  beat();
  clearTimeout(commitPlanned);
  commitPlanned = undefined;
  const began = isWatched ? performance.now() : 0;
  isStuck = !outlet.save(isUnfinishedDue);
  if (!isStuck) {
    isUnfinishedDue = false;
    acknowledge(isWatched ? performance.now() - began : undefined);
    planIndexing();
    upkeep?.poke();
  } else if (outlet.isHopeless() || intake.waiting() > MOST_WAITING_FRAMES) giveUp();
  else commitPlanned = setTimeout(commit, RETRY_AFTER_MS);
  if (!outlet.isHopeless() && framer.hasUnfinished())
    unfinishedTimer ??= setTimeout(saveUnfinished, UNFINISHED_AFTER_MS);
}

function saveUnfinished(): void {
  unfinishedTimer = undefined;
  isUnfinishedDue = true;
  planCommit();
}

/** `commitMs`: how long the commit took, where somebody watches. */
function acknowledge(commitMs?: number): void {
  if (pieces.frames > 0) tell({ type: 'stored', bytes: unacknowledged, pieces: { ...pieces }, commitMs });
  unacknowledged = 0;
  pieces.frames = 0;
  pieces.bytes = 0;
}

function giveUp(): void {
  isStuck = false;
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
  findClients();
}

function findClients(): void {
  clearTimeout(clientTimer);
  void intake.findClients().then((restMs) => {
    clearTimeout(clientTimer);
    if (restMs !== null && !isFinishing) clientTimer = setTimeout(findClients, restMs);
  });
}

/** True: nothing is left to do here. After lasting trouble the next reader does it: nobody has to know. */
function tryIndex(maxMs: number): boolean {
  if (outlet.store() === undefined) return true;
  try {
    return intake.index(maxMs);
  } catch (error) {
    if (!troubleOf(error).isPassing) intake.stopIndexing();
    return true;
  }
}

function tellTrouble(text: string): void {
  if (!isTroubleTold) tell({ type: 'trouble', text });
  isTroubleTold = true;
}

/** Whatever the store does: what is not in it by now goes into the spool. */
function finish(end: SessionEnd): void {
  isFinishing = true;
  beat();
  clearInterval(ticker);
  clearTimeout(commitPlanned);
  clearTimeout(unfinishedTimer);
  clearTimeout(indexTimer);
  clearTimeout(clientTimer);
  if (!outlet.save(false)) giveUp();
  outlet.end(end);
  tryIndex(LAST_INDEXING_MS);
  upkeep?.finish(LAST_UPKEEP_MS);
  outlet.close();
  tell({ type: 'closed' });
  parentPort?.close();
}
