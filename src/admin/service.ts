/**
 * What a recorder has of its service manager: the socket that it is handed, and the messages that say how it is
 * (sd_listen_fds(3), sd_notify(3)). Node opens no Unix datagram socket, and a compiled module for four words would be the
 * larger risk: so `systemd-notify` says them, which is there wherever systemd is. A unit needs `NotifyAccess=all` for that.
 */

import { execFile } from 'node:child_process';
import { TapedeckError } from '../errors.ts';
import type { Watched } from '../store/record/thread.ts';
import { findIllness } from './health.ts';

/** The first descriptor that is handed over. */
const FIRST_FD = 3;

const NOTIFY_MS = 5000;

/**
 * The descriptor of the socket that this process was handed; undefined: none was. Throws `TapedeckError` `usage` where there
 * are several.
 */
export function handedSocket(env: NodeJS.ProcessEnv, pid: number): number | undefined {
  const { LISTEN_PID: owner, LISTEN_FDS: count } = env;
  if (owner !== String(pid) || count === undefined || count === '0') return undefined;
  if (count === '1') return FIRST_FD;
  throw new TapedeckError('usage', `Expected one socket of the service manager (LISTEN_FDS), got ${count}.`);
}

export type Service = {
  /** It takes traffic. From now on the watchdog is fed, if the unit has one and all is well. */
  ready(status: string): Promise<void>;
  /** Rules are read anew; `ready` follows. */
  reloading(): Promise<void>;
  stopping(): Promise<void>;
};

type ServiceOptions = {
  env: NodeJS.ProcessEnv;
  pid: number;
  recorders: () => readonly Watched[];
  /** Called once where the manager cannot be told, with the reason in words. */
  onTrouble: (text: string) => void;
};

/** Only where `NOTIFY_SOCKET` is set. */
export function createService({ env, pid, recorders, onTrouble }: ServiceOptions): Service {
  const feedEveryMs = watchdogMs(env, pid);
  let isTroubleTold = false;
  let isFed = false;

  function notify(...assignments: string[]): Promise<void> {
    return new Promise((resolve) => {
      execFile('systemd-notify', assignments, { env, timeout: NOTIFY_MS }, (error) => {
        if (error !== null && !isTroubleTold) {
          isTroubleTold = true;
          onTrouble(`the service manager cannot be told how this process is: ${error.message.trim()}`);
        }
        resolve();
      });
    });
  }

  /** A process that is not well is left to the watchdog, which ends it. */
  async function feed(): Promise<void> {
    if ((await findIllness(recorders())) === null) await notify('WATCHDOG=1');
  }

  return {
    ready(status) {
      if (feedEveryMs !== null && !isFed) setInterval(feed, feedEveryMs).unref();
      isFed = true;
      return notify('READY=1', `STATUS=${status}`);
    },
    reloading() {
      const monotonic = process.hrtime.bigint() / 1000n;
      return notify('RELOADING=1', `MONOTONIC_USEC=${monotonic}`);
    },
    // The watchdog is fed on: streams may go on for a while.
    stopping: () => notify('STOPPING=1'),
  };
}

/** Twice as often as it is asked for. Null: there is no watchdog, or it is another process's. */
function watchdogMs(
  { WATCHDOG_USEC: limit, WATCHDOG_PID: owner }: NodeJS.ProcessEnv,
  pid: number,
): number | null {
  const usec = Number(limit);
  if (!(usec > 0) || (owner !== undefined && owner !== String(pid))) return null;
  return Math.max(1, usec / 2000);
}
