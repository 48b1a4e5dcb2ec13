/**
 * Ships a store to an engine: again and again what is in the store and not there yet. What is in the way of all of it is waited
 * for, for as long as it takes; nothing is ever given up because time has passed.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { connectEngine, type EngineAddress } from '../engine/connect.ts';
import { assertWritable, readEngine } from '../engine/install.ts';
import { engineError, engineTroubleOf } from '../engine/trouble.ts';
import { openStore, type Store } from '../store/file/open.ts';
import { troubleOf } from '../store/file/trouble.ts';
import { NO_NOTICES, takeInSpools } from '../store/keep/catch-up.ts';
import { decideSample, noteSampling, type PrepareKept } from '../store/sample/ship-sample.ts';
import { reindexSession } from '../store/write/index.ts';
import { checkEngine, settleAccounts } from './accounts.ts';
import { type Policy, prepareBacklog } from './backlog.ts';
import {
  AT_THE_BEGINNING,
  createProgressBook,
  noteTarget,
  noteTrouble,
  type ProgressBook,
} from './progress.ts';
import { shipRound } from './round.ts';
import { createSink, type EngineSink } from './sink.ts';
import { prepareSlices } from './slice.ts';

export type ShipperOptions = Policy & {
  /** The path of the store. It must be there. */
  file: string;
  address: EngineAddress;
  /** What the sessions of this host are marked with; null: nothing. */
  tenant: string | null;
  prepareKept: PrepareKept;
  /** Ends when everything that is there has been shipped, or when that fails for `GIVE_UP_MS`. */
  isOnce: boolean;
  /** Asked at least once a second; false: it is to end, once all of what is there is shipped or cannot be. */
  goesOn: () => boolean;
  onNotice: (text: string) => void;
  onShipped: (frames: number, bytes: number) => void;
  signal: AbortSignal;
};

/** Whether all that was there has been shipped; else what was in the way. */
export type ShipEnd = { isDone: boolean; trouble: string | null };

const BACK_OFF_FROM_MS = 100;

const BACK_OFF_MOST_MS = 60_000;

/** So long `--once` waits for an engine that is away. */
const GIVE_UP_MS = 30_000;

/** Small slices of open sessions are put together for so long. */
const ROUND_EVERY_MS = 1000;

const POLL_MS = 100;

const POLL_IDLE_MS = 1000;

const IDLE_AFTER_MS = 5000;

/** Recorders die without a word, and leave spools. */
const LOOK_ROUND_EVERY_MS = 10_000;

/** A recorder indexes what it has ended; only what it leaves is done here. */
const INDEX_AFTER_MS = 3000;

const MAINTAIN_EVERY_MS = 3_600_000;

/** What there is while there is a connection. */
type Link = { sinks: EngineSink[]; target: string; book: ProgressBook };

/** Runs until it is done, or `signal` ends it after the transaction at hand. Throws SQLite's errors for a store that cannot be used. */
export async function runShipper(given: ShipperOptions): Promise<ShipEnd> {
  const { file, signal, onNotice, isOnce, goesOn } = given;
  const options: ShipperOptions = {
    ...given,
    onShipped(frames, bytes) {
      // An engine that takes something between two faults is not away: it need not be waited for ever longer.
      failures = 0;
      given.onShipped(frames, bytes);
    },
  };
  await takeInSpools(file, NO_NOTICES);
  const store = openStore(file, { isPatient: true });
  const identity = String(store.prepare('SELECT id FROM identity').pluck().get());
  let link: Link | null = null;
  let failures = 0;
  let failedSince = 0;
  let told: string | null = null;

  function unlink(): void {
    for (const sink of link?.sinks ?? []) sink.end();
    link = null;
  }

  function tell(text: string): void {
    if (text === told) return;
    told = text;
    noteTrouble(store, text);
    onNotice(text);
  }

  function succeeded(): void {
    failures = 0;
    if (told === null) return;
    told = null;
    noteTrouble(store, null);
    onNotice(`${options.address.text} takes what is shipped again`);
  }

  /** Returns why this is the end; null: it goes on after a while. */
  async function afterTrouble(error: unknown): Promise<ShipEnd | null> {
    if (isOfStore(error) && !troubleOf(error).isPassing) throw error;
    unlink();
    if (failures === 0) failedSince = performance.now();
    failures += 1;
    const text = engineError(error, options.address.text).message;
    tell(text);
    const trouble = engineTroubleOf((error as Error).cause ?? error);
    const isHopeless = trouble !== 'away' && trouble !== 'full' && !isOfStore(error);
    const leftMs = failedSince + GIVE_UP_MS - performance.now();
    const isEnough = isHopeless || leftMs <= 0;
    if ((isOnce && isEnough) || (!isOnce && !goesOn())) return { isDone: false, trouble: text };
    const ms = Math.min(BACK_OFF_MOST_MS, BACK_OFF_FROM_MS * 2 ** Math.min(failures, 20));
    const pauseMs = ms * (0.5 + Math.random() / 2);
    await sleep(isOnce ? Math.min(pauseMs, leftMs) : pauseMs, undefined, { signal }).catch(() => {});
    return null;
  }

  try {
    const watch = createWatch(store);
    let maintainedAt = Number.NEGATIVE_INFINITY;
    while (!signal.aborted) {
      let lookAfterMs = LOOK_ROUND_EVERY_MS;
      try {
        noteSampling(store, options.sampling());
        link ??= await connect(options, store, identity);
        const isDone = await work(options, store, identity, link);
        succeeded();
        // Its recorder has had its time to index what it ended; nobody writes when that is over.
        if (!isDone) lookAfterMs = INDEX_AFTER_MS;
        if ((isOnce || !goesOn()) && isDone) return { isDone, trouble: null };
        if (!isOnce && performance.now() - maintainedAt > MAINTAIN_EVERY_MS) {
          maintainedAt = performance.now();
          await maintain(options);
        }
      } catch (error) {
        const end = await afterTrouble(error);
        if (end !== null) return end;
        continue;
      }
      await watch.change(signal, goesOn, lookAfterMs);
    }
    return { isDone: false, trouble: null };
  } finally {
    try {
      (link as Link | null)?.book.save();
    } finally {
      unlink();
      store.close();
    }
  }
}

function isOfStore(error: unknown): boolean {
  return String((error as { code?: unknown }).code).startsWith('SQLITE');
}

/** Waits for the next round: until something was written, by anybody, or it is time to look round. */
function createWatch(store: Store): {
  change(signal: AbortSignal, goesOn: () => boolean, lookAfterMs: number): Promise<void>;
} {
  const select = store.prepare<[], number>('PRAGMA data_version').pluck();
  const version = () => Number(select.get());
  let seen = version();
  let changedAt = performance.now();
  return {
    async change(signal, goesOn, lookAfterMs) {
      const began = performance.now();
      for (;;) {
        const now = performance.now();
        const isChanged = version() !== seen;
        if (isChanged) changedAt = now;
        if (isChanged && now - began >= ROUND_EVERY_MS) break;
        const isIdle = now - changedAt >= IDLE_AFTER_MS;
        if (now - began >= lookAfterMs) break;
        if (!goesOn()) break;
        // It may have written that we are at work still. What another process writes in the same moment waits for its next word.
        if (!isChanged) seen = version();
        const ms = isIdle ? POLL_IDLE_MS : POLL_MS;
        await sleep(ms, undefined, { signal }).catch(() => {});
        if (signal.aborted) break;
      }
      seen = version();
    },
  };
}

async function connect(options: ShipperOptions, store: Store, identity: string): Promise<Link> {
  const { client, meta } = await openClient(options);
  const sink = await createSink(client, identity);
  noteTarget(store, meta.id, options);
  const book = createProgressBook(store, meta.id);
  const lost = await checkEngine(store, sink, meta.id, book, meta.keptFrom);
  if (lost > 0) options.onNotice(lossNotice(lost));
  return { sinks: [sink], target: meta.id, book };
}

function lossNotice(sessions: number): string {
  const which = sessions === 1 ? '1 session, which is' : `${sessions} sessions, which are`;
  return `the engine has lost ${which} not in this store any more, as one that was restored from a backup has; see: tapedeck ship status`;
}

async function openClient(options: ShipperOptions) {
  const client = await connectEngine(options.address, 'tapedeck ship');
  try {
    const meta = await readEngine(client);
    assertWritable(meta);
    return { client, meta };
  } catch (error) {
    await client.end().catch(() => {});
    throw error;
  }
}

/** Where our role may, the engine gets its weeks ahead. Where that fails, whoever runs `engine maintain` is told why. */
async function maintain(options: ShipperOptions): Promise<void> {
  const { client } = await openClient(options);
  try {
    const { rows } = await client.query<{ may: boolean }>(
      "SELECT pg_has_role(current_user, 'tapedeck_admin', 'MEMBER') AS may",
    );
    if (rows[0]?.may !== true) return;
    const { maintainEngine } = await import('../engine/maintain.ts');
    await maintainEngine(client, {}, async () => {}).catch(() => {});
  } finally {
    await client.end().catch(() => {});
  }
}

/** One round. True: everything that was there is in the engine, or never will be. */
async function work(options: ShipperOptions, store: Store, identity: string, link: Link): Promise<boolean> {
  const { file, signal, isOnce, tenant, version, onShipped } = options;
  const { sinks, target, book } = link;
  const [sink] = sinks;
  if (sink === undefined) return false;
  await takeInSpools(file, NO_NOTICES);
  await settleAccounts(store, sink, target);
  const sampling = options.sampling();
  const backlogOf = prepareBacklog(store, book, identity, target, options);
  let backlog = backlogOf();
  const isReady = indexLeft(store, backlog.unindexed, isOnce);
  const decided =
    sampling === null
      ? 0
      : await decideSample(store, sink.statesOf, target, sampling, backlog.undecided, options.prepareKept);
  await takeBack(sink, book, backlog.rewritten);
  if (backlog.rewritten.length > 0 || decided > 0) backlog = backlogOf();
  let savedAt = performance.now();
  try {
    const read = prepareSlices(store, { tenant, recorder: identity });
    await shipRound(
      {
        ...{ store, book, read, sinks, version },
        connect: async () => createSink((await openClient(options)).client, identity),
        isStopped: () => signal.aborted,
        onShipped(frames, bytes) {
          onShipped(frames, bytes);
          if (performance.now() - savedAt < ROUND_EVERY_MS) return;
          savedAt = performance.now();
          book.save();
        },
      },
      backlog.due,
    );
  } finally {
    book.save();
    for (const idle of sinks.splice(1)) idle.end();
  }
  return isReady && !signal.aborted;
}

/** When sessions were first seen that are over and not indexed. */
const seenUnindexed = new Map<string, number>();

/** False: some are left to their recorder for a moment. */
function indexLeft(store: Store, sessions: readonly number[], isAtOnce: boolean): boolean {
  let isReady = true;
  for (const session of sessions) {
    const place = `${store.name} ${session}`;
    const since = seenUnindexed.get(place) ?? performance.now();
    seenUnindexed.set(place, since);
    if (!isAtOnce && performance.now() - since < INDEX_AFTER_MS) {
      isReady = false;
      continue;
    }
    seenUnindexed.delete(place);
    reindexSession(store, session);
  }
  return isReady;
}

/** What was rewritten since it was shipped goes from the engine before anything else does. */
async function takeBack(
  sink: EngineSink,
  book: ProgressBook,
  rewritten: readonly { progress: Parameters<ProgressBook['change']>[0]; revision: number }[],
): Promise<void> {
  for (const { progress, revision } of rewritten) {
    await sink.remove([progress]);
    book.change(progress, { ...AT_THE_BEGINNING, revision, state: 'open', reason: null });
  }
  book.save();
}
