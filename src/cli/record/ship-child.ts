/**
 * `record --ship`: a process of its own ships the store, beside the traffic and out of its way. One does for all recorders of a
 * store; whichever of them is there starts it again where it has died. A recorder that drains waits for it at the end.
 */

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { hasPassword, readAddress } from '../../engine/connect.ts';
import type { TapedeckError } from '../../errors.ts';
import { openForReading } from '../../store/file/open.ts';
import type { Log } from './log.ts';
import type { RecordShipping } from './options.ts';

/** The first calls have the processors to themselves. */
const BEGINS_AFTER_MS = 2000;

const BACK_OFF_FROM_MS = 1000;

const BACK_OFF_MOST_MS = 300_000;

/** With this it says that another one is at work already. */
export const ANOTHER_SHIPS = 75;

export type ShipChild = {
  /** The store is there. */
  begin(): void;
  /** The recorder ends: what it recorded is shipped all the same. */
  atEnd(): void;
};

/** `file`: the path of the store. Throws `TapedeckError` `usage` for an address that cannot be read. */
export function prepareShipping(
  file: string,
  { url, isInsecure, isUnredacted }: RecordShipping,
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
  let failures = 0;
  let isAtWork = false;
  let timer: NodeJS.Timeout | undefined;

  function start(): void {
    isAtWork = true;
    const [node, entry = ''] = [process.execPath, process.argv[1]];
    const options = [
      ...(isInsecure ? ['--insecure-engine'] : []),
      ...(isUnredacted ? ['--ship-unredacted'] : []),
    ];
    const child = spawn(node, [entry, 'ship', '--beside-recorders', '--db', file, ...options], {
      // Nothing of the wire's is open in it, and no list of processes shows the address.
      ...{ detached: true, stdio: 'ignore', env: { ...env, TAPEDECK_SHIP: url } },
    });
    child.on('error', () => again(null));
    child.on('exit', again);
    child.unref();
  }

  function again(code: number | null): void {
    isAtWork = false;
    failures = code === ANOTHER_SHIPS ? Number.POSITIVE_INFINITY : failures + 1;
    timer = setTimeout(start, Math.min(BACK_OFF_MOST_MS, BACK_OFF_FROM_MS * 2 ** failures)).unref();
  }

  return {
    begin() {
      timer = setTimeout(start, BEGINS_AFTER_MS).unref();
    },
    atEnd() {
      clearTimeout(timer);
      if (!isAtWork) start();
    },
  };
}

/** What is not in the engine yet. `trouble`: what is in the way; null: nothing is known of anything. */
export type Unshipped = { sessions: number; frames: number; bytes: number; trouble: string | null };

/** For a process that records into several stores: a shipper for each. */
export type Shipping = {
  begin(file: string): void;
  /** The recorders have ended: what they recorded is shipped all the same. */
  atEnd(): void;
  /** Waits until the engine has every frame of the stores, for `maxMs` at most or until `signal`. Never rejects. */
  drain(maxMs: number, signal: AbortSignal): Promise<Unshipped>;
};

/** Asking takes the store hardly any time. */
const ASK_EVERY_MS = 100;

/** Throws as `prepareShipping` does. */
export function createShipping(to: RecordShipping, env: NodeJS.ProcessEnv, log: Log): Shipping {
  const children = new Map<string, ShipChild>();
  return {
    begin(file) {
      if (children.has(file)) return;
      const child = prepareShipping(file, to, env, log);
      children.set(file, child);
      child.begin();
    },
    atEnd() {
      for (const child of children.values()) child.atEnd();
    },
    async drain(maxMs, signal) {
      const deadline = performance.now() + maxMs;
      const left = await Promise.all([...children.keys()].map((file) => leftOf(file, deadline, signal)));
      const sum = (what: 'sessions' | 'frames' | 'bytes') =>
        left.reduce((total, one) => total + one[what], 0);
      const trouble = left.find((one) => one.trouble !== null)?.trouble ?? null;
      return { sessions: sum('sessions'), frames: sum('frames'), bytes: sum('bytes'), trouble };
    },
  };
}

/** What of the store is not shipped once it is all shipped, or at the deadline. */
async function leftOf(file: string, deadline: number, signal: AbortSignal): Promise<Unshipped> {
  try {
    const { backlogOf, shipStatus } = await import('../../ship/report.ts');
    const store = openForReading(file);
    try {
      for (;;) {
        const status = shipStatus(store);
        const { sessions, frames, bytes } = status?.backlog ?? backlogOf(store, null);
        const isOver = performance.now() >= deadline || signal.aborted;
        if (sessions === 0 || isOver) return { sessions, frames, bytes, trouble: status?.trouble ?? null };
        await sleep(ASK_EVERY_MS, undefined, { signal }).catch(() => {});
      }
    } finally {
      store.close();
    }
  } catch (error) {
    return { sessions: 0, frames: 0, bytes: 0, trouble: (error as Error).message };
  }
}
