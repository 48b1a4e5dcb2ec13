/** Ending a server that nobody talks to any more, step by step. */
import type { ChildProcess } from 'node:child_process';
// Tests replace the globals by clocks of their own.
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'node:timers';

type Step = { afterMs: number; signal: NodeJS.Signals };

/** The order that the specification gives to clients (basic/transports/stdio): its stdin is closed already. */
const STEPS: readonly Step[] = [
  { afterMs: 2000, signal: 'SIGTERM' },
  { afterMs: 2000, signal: 'SIGKILL' },
];
/** Clients wait two seconds after SIGTERM. Their SIGKILL would end us, and leave the server behind. */
const BEFORE_CLIENT_KILLS: readonly Step[] = [{ afterMs: 1800, signal: 'SIGKILL' }];
const CLIENT_CHECK_MS = 250;

export type Terminator = {
  /** From now on looks whether the client is still there, and ends the server once it is not. */
  watch(isClientGone: () => boolean): void;
  /** Ends the server, beginning with SIGTERM now. */
  terminate(): void;
  /** A client that has closed the server's input has now asked it to end, and will not ask again. */
  followClient(): void;
  /** The server has gone: nothing is left to do. */
  cancel(): void;
};

export function createTerminator(child: ChildProcess): Terminator {
  let check: NodeJS.Timeout | undefined;
  let next: NodeJS.Timeout | undefined;

  function run([step, ...rest]: readonly Step[]): void {
    clearInterval(check);
    clearTimeout(next);
    if (step === undefined) return;
    next = setTimeout(() => {
      child.kill(step.signal);
      run(rest);
    }, step.afterMs);
  }

  return {
    watch(isClientGone) {
      check ??= setInterval(() => {
        if (isClientGone()) run(STEPS);
      }, CLIENT_CHECK_MS);
    },
    terminate() {
      child.kill('SIGTERM');
      run(STEPS.slice(1));
    },
    followClient: () => run(BEFORE_CLIENT_KILLS),
    cancel() {
      clearInterval(check);
      clearTimeout(next);
    },
  };
}
