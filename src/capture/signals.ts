/** Signals on their way through tapedeck: what arrives here is meant for the wrapped server. */
import { readFileSync } from 'node:fs';

const FORWARDED: readonly NodeJS.Signals[] =
  process.platform === 'win32'
    ? ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGBREAK']
    : ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/** The keyboard sends these to every process in the terminal's foreground group, the server included. */
const FROM_KEYBOARD = new Set<NodeJS.Signals>(['SIGINT', 'SIGQUIT']);

/**
 * Calls `forward` for each signal that should reach the server: as it is, but a second SIGINT as SIGKILL, and none
 * that the terminal has already delivered to it. Returns a function that stops listening.
 */
export function forwardSignals(forward: (signal: NodeJS.Signals) => void): () => void {
  let interrupts = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    if (signal === 'SIGINT') interrupts += 1;
    if (interrupts > 1 && signal === 'SIGINT') forward('SIGKILL');
    else if (!(FROM_KEYBOARD.has(signal) && isForeground())) forward(signal);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  return () => {
    for (const signal of FORWARDED) process.off(signal, onSignal);
  };
}

/** Whether our process group is the one that the keyboard talks to. */
function isForeground(): boolean {
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
