import { type ChildProcess, spawn as nodeSpawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { clearInterval, clearTimeout, setInterval, setTimeout } from 'node:timers';

/**
 * On Windows `npx` and its like are scripts that only a shell can start: cross-spawn knows how. Elsewhere it is not even
 * loaded. By `require`, because a module that awaits at its top could not be required itself.
 */
export const spawn: typeof nodeSpawn =
  process.platform === 'win32' ? createRequire(import.meta.url)('cross-spawn') : nodeSpawn;

/** `command` with Node's error, in words for its user. */
export function whyNotStarted(command: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT')
    return `cannot start \`${command}\`: no such command. Is it installed, and on the PATH?`;
  if (code === 'EACCES')
    return `cannot start \`${command}\`: it is not an executable file, or access is denied.`;
  return `cannot start \`${command}\`: ${message}`;
}

/** Ending a server that nobody talks to any more, step by step. */

type Step = { afterMs: number; signal: NodeJS.Signals };

/** The order that the specification gives to clients (basic/transports/stdio): its stdin is closed already. */
const STEPS: readonly Step[] = [
  { afterMs: 2000, signal: 'SIGTERM' },
  { afterMs: 2000, signal: 'SIGKILL' },
];

/** Clients wait two seconds after SIGTERM. Their SIGKILL would end us, and leave the server behind. */
const BEFORE_CLIENT_KILLS: readonly Step[] = [{ afterMs: 1800, signal: 'SIGKILL' }];

const CLIENT_CHECK_MS = 250;

type Terminator = {
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

/** Signals on their way through tapedeck: what arrives here is meant for the wrapped server. */

const FORWARDED: readonly NodeJS.Signals[] =
  process.platform === 'win32'
    ? ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK']
    : ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/** The keyboard sends these to every process in the terminal's foreground group, the server included. */
const FROM_KEYBOARD = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

/**
 * Calls `forward` for each signal that should reach the server, as often as it comes: all but those that the terminal has
 * already delivered to it. What a second one means is for the server to say, and the kill is the client's. `onHangUp`: SIGHUP is
 * for us, and calls this. Returns a function that stops listening.
 */
export function forwardSignals(
  forward: (signal: NodeJS.Signals) => void,
  onHangUp?: (() => void) | undefined,
): () => void {
  const onSignal = (signal: NodeJS.Signals) => {
    if (signal === 'SIGHUP' && onHangUp !== undefined) onHangUp();
    else if (!(FROM_KEYBOARD.has(signal) && isForeground())) forward(signal);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  return () => {
    for (const signal of FORWARDED) process.off(signal, onSignal);
  };
}

/** Whether our process group is the one that the keyboard talks to. On Windows the server has a hidden console of its own. */
function isForeground(): boolean {
  if (process.platform === 'win32') return false;
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    const [, , group, , , foregroundGroup] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === foregroundGroup;
  } catch {
    // No /proc: the next best sign of being started by hand.
    return process.stderr.isTTY;
  }
}

/** Ends this process the way the server ended, so that our parent sees the same. */
export function dieBy(signal: NodeJS.Signals): void {
  // Node ignores SIGPIPE and SIGXFSZ until a listener was there and has gone. SIGKILL can have none, and needs none.
  if (signal !== 'SIGKILL') process.on(signal, () => {});
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // Not reached by a signal that ends a process; for any other, the shells' convention.
  setTimeout(() => process.exit(1), 1000);
}
