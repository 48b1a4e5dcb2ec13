/**
 * The writer's thread. It takes batches of chunks from the relay's thread, splits, parses and correlates them, and
 * commits whatever has arrived in one transaction. A batch is acknowledged once it is committed (or given up), so the
 * other side always knows how much is on its way.
 *
 * Passing trouble (a full disk, a lock) keeps the entries here and tries again; lasting trouble gives them up and
 * counts them. Either way the relay is told once, in words, and never waits.
 */
import { hostname } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { eachChunk } from './batch.ts';
import { createIngest } from './ingest.ts';
import { storePath } from './location.ts';
import { openStore, type Store } from './open.ts';
import { findClient, processStarted } from './process.ts';
import type { FromWorker, ToWorker, WorkerStart } from './recorder.ts';
import { createSessionWriter, type SessionEnd, type SessionWriter } from './session-writer.ts';
import { troubleOf } from './trouble.ts';

/** An unfinished line that has waited this long is stored as far as it has come. */
const HELD_AFTER_MS = 30;
const RETRY_AFTER_MS = 200;
/** How long the last entries may wait for a store in passing trouble before they are given up. */
const LAST_RETRIES_MS = 2000;

const { file, durable, maxFrameBytes, session } = workerData as WorkerStart;
const path = storePath(file);
const ingest = createIngest(maxFrameBytes);
let store: Store | undefined;
let writer: SessionWriter | undefined;
let isHopeless = false;
let isTroubleTold = false;
let unacknowledged = 0;
let serverPid: number | undefined;
let commitPlanned: NodeJS.Immediate | NodeJS.Timeout | undefined;
let heldTimer: NodeJS.Timeout | undefined;

function tell(message: FromWorker): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', (message: ToWorker) => {
  switch (message.type) {
    case 'chunks':
      eachChunk(message.batch, ingest.feed);
      unacknowledged += message.batch.byteLength;
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

open();

function open(): void {
  try {
    store = openStore(path, { durable });
    const client = findClient(session.parentPid);
    writer = createSessionWriter(store, {
      ...session,
      host: hostname(),
      processStarted: processStarted(session.pid),
      clientPid: client?.pid ?? null,
      clientProgram: client?.program ?? null,
    });
    tell({ type: 'opened', session: writer.id, clientPid: client?.pid ?? null });
  } catch (error) {
    store?.close();
    store = undefined;
    onTrouble(error);
  }
}

/** Everything that arrives in the same turn goes into one transaction. */
function planCommit(): void {
  commitPlanned ??= setImmediate(commit);
}

function commit(): void {
  commitPlanned = undefined;
  if (!isHopeless && writer === undefined) open();
  if (tryCommit(false)) acknowledge();
  else if (isHopeless) giveUp();
  else commitPlanned = setTimeout(commit, RETRY_AFTER_MS);
  if (writer !== undefined && ingest.held().length > 0) heldTimer ??= setTimeout(saveHeld, HELD_AFTER_MS);
}

function saveHeld(): void {
  heldTimer = undefined;
  if (commitPlanned === undefined) tryCommit(true);
}

function tryCommit(withHeld: boolean): boolean {
  if (writer === undefined) return false;
  const entries = ingest.entries();
  const held = withHeld ? ingest.held() : [];
  try {
    if (serverPid !== undefined) writer.serverStarted(serverPid);
    serverPid = undefined;
    writer.write(entries, held, ingest.facts(), ingest.loss());
  } catch (error) {
    onTrouble(error);
    return false;
  }
  ingest.confirm(entries.length);
  ingest.confirmHeld(held);
  return true;
}

function acknowledge(): void {
  if (unacknowledged > 0) tell({ type: 'stored', bytes: unacknowledged });
  unacknowledged = 0;
}

/** Counts what waits as lost. */
function giveUp(): void {
  const entries = ingest.entries();
  const loss = ingest.loss();
  loss.frames += entries.length;
  for (const { frame } of entries) loss.bytes += frame.size;
  ingest.confirm(entries.length);
  acknowledge();
}

function onTrouble(error: unknown): void {
  const { text, isPassing } = troubleOf(error);
  if (!isPassing) isHopeless = true;
  if (!isTroubleTold) tell({ type: 'trouble', text: `${path}: ${text}` });
  isTroubleTold = true;
}

function finish(end: SessionEnd, deadline: number): void {
  clearTimeout(heldTimer);
  if (!isHopeless && writer === undefined) open();
  const isDone = tryCommit(false);
  if (!isDone && !isHopeless && performance.now() < deadline) {
    setTimeout(finish, RETRY_AFTER_MS, end, deadline);
    return;
  }
  if (!isDone) giveUp();
  closeSession(end);
  tell({ type: 'closed', loss: ingest.loss() });
  clearTimeout(commitPlanned as NodeJS.Timeout);
  clearImmediate(commitPlanned as NodeJS.Immediate);
  parentPort?.close();
}

/** A row that only changes needs hardly any room, so this often succeeds on a disk too full for new frames. */
function closeSession(end: SessionEnd): void {
  try {
    writer?.end(end, ingest.loss());
  } catch (error) {
    onTrouble(error);
  } finally {
    store?.close();
  }
}
