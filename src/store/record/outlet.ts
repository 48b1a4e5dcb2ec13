/**
 * Where a recorder writes: into the store; and what cannot be committed there within a fraction of a second, because another
 * process keeps it locked, or because it is not open yet, into the recorder's own spool beside it. From then on everything
 * goes there, until all of it is taken into the store, by this recorder or by whoever opens the store after it.
 */

import { existsSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { TapedeckError } from '../../errors.ts';
import type { SessionEnd } from '../file/columns.ts';
import { closeAtOnce, limitWal, openStore, type Store } from '../file/open.ts';
import { adoptKey, placeholderKey } from '../file/secret.ts';
import { makeSpool, openLeftSpool, removeSpool, spoolsOf } from '../file/spool.ts';
import { type Trouble, troubleOf } from '../file/trouble.ts';
import type { SessionKey } from '../write/pending.ts';
import { createTakeIn, type TakeIn } from '../write/take-in.ts';
import type { Intake } from './intake.ts';

export type Outlet = {
  /** Opens the store. True: it is open. */
  open(): boolean;
  /** Stores what waits. False: it waits still, or is past hope. */
  save(withUnfinished: boolean): boolean;
  /** The WAL is to be carried over when it has grown to this. */
  setWalBytes(bytes: number): void;
  /** Nothing can be stored any more. */
  isHopeless(): boolean;
  /** What passes can be stored, in the store or in the spool. */
  isStoring(): boolean;
  /** The store, while it is what is written to. */
  store(): Store | undefined;
  /** Stores the end of all sessions, in the time that an end may take. */
  end(end: SessionEnd): void;
  /** What is in a spool by then stays there. */
  close(): void;
};

type OutletOptions = {
  file: string;
  /** Tells this recorder's spool from others. */
  run: string;
  isDurable: boolean;
  walBytes: number;
  isRedacted: boolean;
  intake: Intake;
  /** The store is written to from now on; undefined: not any more. */
  onStore: (store: Store | undefined) => void;
  /** Called once, with the reason in words, when something cannot be stored. */
  onTrouble: (text: string) => void;
  onNotice: (text: string) => void;
};

/** So long a commit waits for other writers. */
const BUSY_MS = 100;

/** And taking in, which can be tried again: frames come meanwhile. */
const TAKE_IN_BUSY_MS = 40;

/**
 * A spool is taken in about so often, for so long at once, and never while frames wait. A crowd that begins together soon has
 * room for all: so it is tried soon, and less often the longer that fails.
 */
const TAKE_IN_EVERY_MS = { least: 50, most: 1000 };

const TAKE_IN_SLICE_MS = 30;

/** At the end, for all that is in it. What is left stays. */
const LAST_TAKE_IN_MS = 60;

/** The first calls of a session have the processors to themselves; and of a crowd, each sees to its own spool first. */
const LEFT_SPOOLS_AFTER_MS = 2000;

/** Somebody should know that the store is not to be had. */
const NOTICE_AFTER_MS = 10_000;

type Spool = { store: Store; takeIn: TakeIn; since: number };

export function createOutlet(options: OutletOptions): Outlet {
  const { file, run, isDurable, isRedacted, intake, onStore } = options;
  let { walBytes } = options;
  let store: Store | undefined;
  let spool: Spool | undefined;
  /** One that another recorder left behind, while it is taken in. */
  let left: Spool | undefined;
  let leftFiles: string[] | undefined;
  /** What this run's placeholders are made with, once it is known. */
  let key: Buffer | undefined;
  /** Tells the file that we opened from another one of the same name. */
  let inode: bigint | undefined;
  /** Why the last commit into the store failed. */
  let trouble: Trouble | undefined;
  let isHopeless = false;
  let isTroubleTold = false;
  let isNoticeTold = false;
  let timer: NodeJS.Timeout | undefined;

  function openNow(): void {
    try {
      store = openStore(file, {
        durable: isDurable,
        walBytes,
        busyMs: spool === undefined ? BUSY_MS : TAKE_IN_BUSY_MS,
      });
      inode = inodeOf(file);
      if (spool !== undefined) return;
      if (key !== undefined) adoptKey(store, key);
      intake.open(store);
      if (isRedacted) key ??= placeholderKey(store);
      intake.saveStart();
      onStore(store);
      plan(LEFT_SPOOLS_AFTER_MS);
    } catch (error) {
      if (spool === undefined) store?.close();
      if (spool === undefined) store = undefined;
      onStoreTrouble(error);
    }
  }

  function saveInStore(withUnfinished: boolean): boolean {
    if (store === undefined && !isHopeless) openNow();
    if (store === undefined) return false;
    try {
      intake.save(withUnfinished);
    } catch (error) {
      onStoreTrouble(error);
      return false;
    }
    if (!isInPlace()) return false;
    intake.confirm();
    return true;
  }

  /**
   * SQLite would go on writing to a file that has lost its name, and nobody could ever read it. So the store is left, as if it
   * were locked, until there is one of that name again: the next attempt makes it.
   */
  function isInPlace(): boolean {
    if (inodeOf(file) === inode) return true;
    onStore(undefined);
    tryTo(() => store?.close());
    store = undefined;
    const text = `${file} was removed or replaced while a session was recorded into it. What passes from now on goes into a new one`;
    trouble = { text, isPassing: true, hasRoom: true };
    tellTrouble();
    return false;
  }

  function onStoreTrouble(error: unknown): void {
    // Our own errors name the file themselves.
    const place = error instanceof TapedeckError ? '' : `${file}: `;
    const { text, isPassing, hasRoom } = troubleOf(error);
    trouble = { text: place + text.replace(/\.$/, ''), isPassing, hasRoom };
    if (!isPassing) isHopeless = true;
    if (!isPassing || !hasRoom) tellTrouble();
  }

  function tellTrouble(): void {
    if (!isTroubleTold && trouble !== undefined) options.onTrouble(trouble.text);
    isTroubleTold = true;
  }

  /** Runs `write` with everything going into the spool. False: there is no spool to be had. */
  function inSpool(write: () => readonly SessionKey[]): boolean {
    if (spool === undefined && (trouble === undefined || !trouble.isPassing || !trouble.hasRoom))
      return false;
    try {
      spool ??= beginSpool();
      for (const { number } of write()) spool.takeIn.add(number);
      return true;
    } catch (error) {
      const { text } = troubleOf(error);
      // Where there is no spool, it is told why the store itself could not take it.
      if (spool !== undefined)
        trouble = { isPassing: true, hasRoom: true, text: `${spool.store.name}: ${text}` };
      tellTrouble();
      return false;
    }
  }

  function beginSpool(): Spool {
    const own = makeSpool(file, run, isDurable);
    try {
      if (isRedacted) key ??= keyIn(file);
      if (key !== undefined) adoptKey(own, key);
      intake.openSpool(own);
      if (isRedacted) key ??= placeholderKey(own);
    } catch (error) {
      own.close();
      throw error;
    }
    onStore(undefined);
    store?.pragma(`busy_timeout = ${TAKE_IN_BUSY_MS}`);
    plan(TAKE_IN_EVERY_MS.least);
    return { store: own, takeIn: lazyTakeIn(own), since: performance.now() };
  }

  /** The store may not be open yet, or become another one. */
  function lazyTakeIn(own: Store): TakeIn {
    let takeIn: TakeIn | undefined;
    let into: Store | undefined;
    return {
      // It begins with all that is there.
      add: (session) => takeIn?.add(session),
      advance(maxMs) {
        if (takeIn === undefined || into !== store) takeIn = createTakeIn(store as Store, own);
        into = store;
        return takeIn.advance(maxMs);
      },
    };
  }

  /** In place of what was planned: what a recorder itself has in a spool comes before what others left. */
  function plan(ms: number): void {
    clearTimeout(timer);
    timer = setTimeout(work, ms);
  }

  function work(): void {
    timer = undefined;
    if (spool !== undefined) {
      const isAll = takeInOwn(TAKE_IN_SLICE_MS);
      if (spool === undefined) plan(LEFT_SPOOLS_AFTER_MS);
      else plan(isAll === null ? untilNextTry(spool) : 0);
      tellIfLong();
    } else if (takeInLeft()) plan(TAKE_IN_SLICE_MS);
  }

  function untilNextTry({ since }: Spool): number {
    const { least, most } = TAKE_IN_EVERY_MS;
    const age = performance.now() - since;
    return Math.min(Math.max(age / 4, least), most) * (0.75 + Math.random() / 2);
  }

  /** True: everything of the spool is in the store, which is written to again. Null: not now. */
  function takeInOwn(maxMs: number): boolean | null {
    if (store === undefined && !isHopeless) openNow();
    if (store === undefined || spool === undefined) return null;
    if (!isInPlace()) return null;
    try {
      if (!spool.takeIn.advance(maxMs)) return false;
      intake.open(store);
    } catch (error) {
      onStoreTrouble(error);
      return null;
    }
    const done = spool.store;
    spool = undefined;
    trouble = undefined;
    store.pragma(`busy_timeout = ${BUSY_MS}`);
    tryTo(() => removeSpool(done));
    onStore(store);
    return true;
  }

  /** False: nothing is left that others left behind. Whatever is wrong with it is told by the next reader. */
  function takeInLeft(): boolean {
    if (store === undefined) return false;
    try {
      left ??= nextLeft(store);
      if (left === undefined) return false;
      if (!left.takeIn.advance(TAKE_IN_SLICE_MS)) return true;
      removeSpool(left.store);
    } catch {
      left?.store.close();
    }
    left = undefined;
    return true;
  }

  function nextLeft(into: Store): Spool | undefined {
    leftFiles ??= spoolsOf(file);
    for (let next = leftFiles.shift(); next !== undefined; next = leftFiles.shift()) {
      const found = openLeftSpool(next);
      if (found !== null) return { store: found, takeIn: createTakeIn(into, found), since: 0 };
    }
    return undefined;
  }

  function tellIfLong(): void {
    if (spool === undefined || isNoticeTold || trouble === undefined) return;
    if (performance.now() - spool.since < NOTICE_AFTER_MS) return;
    isNoticeTold = true;
    options.onNotice(`${trouble.text}. Until it is free, what passes is kept in ${spool.store.name}`);
  }

  return {
    open() {
      openNow();
      return store !== undefined || inSpool(() => []);
    },
    save(withUnfinished) {
      if (spool === undefined && saveInStore(withUnfinished)) return true;
      return inSpool(() => {
        intake.save(withUnfinished);
        return intake.confirm();
      });
    },
    setWalBytes(bytes) {
      walBytes = bytes;
      if (store !== undefined) limitWal(store, bytes);
    },
    isHopeless: () => isHopeless && spool === undefined,
    isStoring: () => spool !== undefined || (store !== undefined && !isHopeless),
    store: () => (spool === undefined ? store : undefined),
    end(end) {
      clearTimeout(timer);
      if (spool === undefined && store !== undefined) {
        try {
          intake.end(end);
        } catch (error) {
          onStoreTrouble(error);
          inSpool(() => intake.end(end));
        }
      } else inSpool(() => intake.end(end));
      // A store that could not be had a moment ago is not asked again.
      if (spool !== undefined && performance.now() - spool.since > TAKE_IN_EVERY_MS.most / 2)
        takeInOwn(LAST_TAKE_IN_MS);
    },
    close() {
      clearTimeout(timer);
      left?.store.close();
      spool?.store.close();
      if (store !== undefined) tryTo(() => closeAtOnce(store as Store));
    },
  };
}

/** The key of a store that others may keep locked: reading it needs no lock. Undefined: nobody can tell. */
function keyIn(file: string): Buffer | undefined {
  if (!existsSync(file)) return undefined;
  try {
    const store = new Database(file, { readonly: true, timeout: 0 });
    try {
      return placeholderKey(store);
    } finally {
      store.close();
    }
  } catch {
    return undefined;
  }
}

/** A file that is in the way does no harm: nothing comes in twice. */
function tryTo(work: () => void): void {
  try {
    work();
  } catch {
    // The next one that finds it removes it.
  }
}

function inodeOf(file: string): bigint | undefined {
  try {
    return statSync(file, { bigint: true }).ino;
  } catch {
    return undefined;
  }
}
