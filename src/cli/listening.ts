/** What commands that listen have in common. */

import { TapedeckError } from '../errors.ts';
import type { Listen } from '../net/listen.ts';
import { isLoopback } from '../protocol/http/origin.ts';
import { type Io, say } from './io.ts';

/** `host:port`, `[::1]:port`, or a port alone. */
export function readListen(text: string, option = '--listen'): Listen {
  const [, host = '127.0.0.1', digits] = /^(?:(\[[0-9a-f:.]+\]|[^:[\]\s]+):)?(\d{1,5})$/i.exec(text) ?? [];
  const port = Number(digits ?? Number.NaN);
  if (Number.isInteger(port) && port < 65_536) return { host, port };
  throw new TapedeckError(
    'usage',
    `Expected host:port after \`${option}\`, got \`${text}\`. Examples: 127.0.0.1:8808, [::1]:8808, 8808`,
  );
}

/** Why a port could not be opened, and what to do. */
export function cannotListen(
  { host, port }: Listen,
  error: NodeJS.ErrnoException,
  option = '--listen',
): TapedeckError {
  const isTaken = error.code === 'EADDRINUSE';
  const help = isTaken
    ? `something else listens there. Choose another port, or 0 for a free one: ${option} 127.0.0.1:0`
    : error.message;
  return new TapedeckError(isTaken ? 'busy' : 'io', `Cannot listen on ${host}:${port}: ${help}`, {
    cause: error,
  });
}

/** `warn` is called with the words, if there is something to warn of. */
export function warnBeyondLoopback(
  io: Io,
  { host }: Listen,
  what: string,
  warn = (text: string) => say(io, text),
): void {
  if (!isLoopback(host)) warn(`WARNING: listening beyond this machine: whoever reaches ${host} can ${what}`);
}
