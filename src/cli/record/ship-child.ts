/**
 * `record --ship`: a process of its own ships the store, beside the traffic and out of its way. One does for all recorders of a
 * store; whichever of them is there starts it again where it has died. A recorder that drains waits for it at the end.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasPassword, readAddress } from '../../engine/connect.ts';
import type { TapedeckError } from '../../errors.ts';
import { openForReading } from '../../store/file/open.ts';
import type { ShipSampling } from '../../store/sample/ship-sample.ts';
import { shipSamplingWords } from '../ship-sampling.ts';
import type { Log } from './log.ts';
import type { RecordShipping } from './options.ts';

/** The first calls have the processors to themselves. */
const BEGINS_AFTER_MS = 2000;

const BACK_OFF_FROM_MS = 1000;

const BACK_OFF_MOST_MS = 300_000;

/** One that has lived so long was well: what ended it says nothing of the next one. */
const WELL_AFTER_MS = 10_000;

/** Whether another recorder's shipper is still there: that costs a call of the system. */
const LOOK_EVERY_MS = 2000;

/** When it has gone, one of all recorders starts the next one: the others, some time later, see that it is there. */
const TAKE_OVER_WITHIN_MS = 5000;

/** With this it says that another one is at work already. */
export const ANOTHER_SHIPS = 75;

/** The process that has started it. */
export const RECORDER_VARIABLE = 'TAPEDECK_RECORDER';

export type ShipChild = {
  /** The store is there. */
  begin(): void;
  /** From now on these sessions are shipped. Where another recorder's shipper is at work, that one's rules count. */
  setSampling(sampling: ShipSampling | null): void;
  /** The recorder ends: what it recorded is shipped all the same. */
  atEnd(): void;
};

/** `file`: the path of the store. Throws `TapedeckError` `usage` for an address that cannot be read. */
export function prepareShipping(
  file: string,
  { url, isInsecure, isUnredacted, sampling: first }: RecordShipping,
  env: NodeJS.ProcessEnv,
  log: Log,
): ShipChild {
  try {
    readAddress(url, env, { isInsecure });
  } catch (error) {
    if ((error as TapedeckError).code === 'usage') throw error;
    // It says so itself, again and again: that is no reason to record nothing.
    log.error('not-shipped', (error as Error).message);
  }
  if (hasPassword(url) && process.argv.some((word) => word.includes(url)))
    log.warn(
      'password',
      'a password on a command line can be read by every user of this machine. PGPASSFILE keeps it in a file',
    );
  const backOff = createBackOff();
  let sampling = first;
  let shipper: ChildProcess | null = null;
  let isRestarted = false;
  let startedAt = 0;
  let timer: NodeJS.Timeout | undefined;

  function plan(next: () => void, ms: number): void {
    timer = setTimeout(next, ms).unref();
  }

  function start(): void {
    startedAt = performance.now();
    const [node, entry = ''] = [process.execPath, process.argv[1]];
    const options = [
      ...(isInsecure ? ['--insecure-engine'] : []),
      ...(isUnredacted ? ['--ship-unredacted'] : []),
      ...shipSamplingWords(sampling),
      // What stands in a file stands in our options.
      '--no-config',
    ];
    // Where we end first, it would take whoever adopts it for its recorder.
    const own = { TAPEDECK_SHIP: url, [RECORDER_VARIABLE]: String(process.pid) };
    const child = spawn(node, [entry, 'ship', '--beside-recorders', '--db', file, ...options], {
      // Nothing of the wire's is open in it, and no list of processes shows the address.
      ...{ detached: true, stdio: 'ignore', env: { ...env, ...own } },
    });
    shipper = child;
    child.on('error', () => again(null));
    child.on('exit', again);
    child.unref();
  }

  function again(code: number | null): void {
    shipper = null;
    const isAtOnce = isRestarted;
    isRestarted = false;
    if (isAtOnce) start();
    else if (code === ANOTHER_SHIPS) follow();
    else plan(start, backOff(performance.now() - startedAt));
  }

  /** Until the shipper of another recorder has gone, whoever has killed it. */
  function follow(): void {
    const other = shipperOf(file);
    const until = performance.now() + BACK_OFF_MOST_MS;
    const isElsewhere = other !== null && other.host !== hostname();
    const look = () => {
      if (performance.now() >= until) start();
      else if (isElsewhere || (other !== null && isThere(other.pid))) plan(look, LOOK_EVERY_MS);
      else plan(start, Math.random() * TAKE_OVER_WITHIN_MS);
    };
    look();
  }

  return {
    begin() {
      plan(start, BEGINS_AFTER_MS);
    },
    setSampling(next) {
      const isSame = JSON.stringify(next) === JSON.stringify(sampling);
      sampling = next;
      if (isSame || shipper === null) return;
      // It ends after the transaction at hand.
      isRestarted = shipper.kill('SIGTERM');
    },
    atEnd() {
      clearTimeout(timer);
      if (shipper === null) start();
    },
  };
}

/** How many milliseconds to wait before the next shipper is started, after one that lived for so many: longer each time it dies soon. */
export function createBackOff(): (livedMs: number) => number {
  let failures = 0;
  return (livedMs) => {
    failures = livedMs >= WELL_AFTER_MS ? 1 : failures + 1;
    return Math.min(BACK_OFF_MOST_MS, BACK_OFF_FROM_MS * 2 ** failures);
  };
}

/** Who says that it ships the store; null: nobody, or the store cannot be read at this moment. */
function shipperOf(file: string): { host: string; pid: number } | null {
  try {
    const store = openForReading(file);
    try {
      const select = 'SELECT host, pid FROM shipper WHERE pid IS NOT NULL';
      return store.prepare<[], { host: string; pid: number }>(select).get() ?? null;
    } finally {
      store.close();
    }
  } catch {
    return null;
  }
}

/** Another user's process is there, too. */
function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** What is not in the engine yet. `trouble`: what is in the way; null: nothing is known of anything. */
export type Unshipped = {
  sessions: number;
  frames: number;
  bytes: number;
  /** Sessions that are not of the sample that is shipped. */
  leftOut: number;
  trouble: string | null;
};

/** For a process that records into several stores: a shipper for each. */
export type Shipping = {
  begin(file: string): void;
  setSampling(sampling: ShipSampling | null): void;
  /** The recorders have ended: what they recorded is shipped all the same. */
  atEnd(): void;
  /** Waits until the engine has every frame of the stores, for `maxMs` at most or until `signal`. Never rejects. */
  drain(maxMs: number, signal: AbortSignal): Promise<Unshipped>;
};

/** Asking takes the store hardly any time. */
const ASK_EVERY_MS = 100;

/** Throws as `prepareShipping` does. */
export function createShipping(first: RecordShipping, env: NodeJS.ProcessEnv, log: Log): Shipping {
  let to = first;
  const children = new Map<string, ShipChild>();
  return {
    begin(file) {
      if (children.has(file)) return;
      const child = prepareShipping(file, to, env, log);
      children.set(file, child);
      child.begin();
    },
    setSampling(sampling) {
      to = { ...to, sampling };
      for (const child of children.values()) child.setSampling(sampling);
    },
    atEnd() {
      for (const child of children.values()) child.atEnd();
    },
    async drain(maxMs, signal) {
      const deadline = performance.now() + maxMs;
      const left = await Promise.all([...children.keys()].map((file) => leftOf(file, deadline, signal)));
      const sum = (what: 'sessions' | 'frames' | 'bytes' | 'leftOut') =>
        left.reduce((total, one) => total + one[what], 0);
      const trouble = left.find((one) => one.trouble !== null)?.trouble ?? null;
      return {
        sessions: sum('sessions'),
        frames: sum('frames'),
        bytes: sum('bytes'),
        leftOut: sum('leftOut'),
        trouble,
      };
    },
  };
}

const NOTHING = { sessions: 0, frames: 0, bytes: 0 };

/** What of the store is not shipped once it is all shipped, or at the deadline. */
async function leftOf(file: string, deadline: number, signal: AbortSignal): Promise<Unshipped> {
  try {
    const { backlogOf, shipStatus } = await import('../../ship/report.ts');
    const store = openForReading(file);
    try {
      for (;;) {
        const status = shipStatus(store);
        const { undecided, sampledOut } = status ?? { undecided: NOTHING, sampledOut: NOTHING };
        const backlog = status?.backlog ?? backlogOf(store, null);
        const sessions = backlog.sessions + undecided.sessions;
        const isOver = performance.now() >= deadline || signal.aborted;
        if (sessions === 0 || isOver)
          return {
            ...{
              sessions,
              frames: backlog.frames + undecided.frames,
              bytes: backlog.bytes + undecided.bytes,
            },
            ...{ leftOut: sampledOut.sessions, trouble: status?.trouble ?? null },
          };
        await sleep(ASK_EVERY_MS, undefined, { signal }).catch(() => {});
      }
    } finally {
      store.close();
    }
  } catch (error) {
    return { ...NOTHING, leftOut: 0, trouble: (error as Error).message };
  }
}
