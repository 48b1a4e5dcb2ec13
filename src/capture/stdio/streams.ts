/**
 * Opens tapedeck's own standard streams as plain pipes. `process.stdout` will not do: Node makes it a stream that cannot be
 * closed, so the client would not see that a server has closed its stdout.
 */

import { closeSync, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { devNull } from 'node:os';
import type { Readable, Writable } from 'node:stream';

/**
 * Settles once no thread is starting any more. Until then no descriptor is freed, because a thread's event loop might
 * be given its number, and Node aborts when it closes a loop of so low a number.
 */
type Quiet = Promise<unknown>;

export function openStdin(quiet: Quiet): Readable {
  return isPipe(0) ? openPipe(0, 'r', quiet) : process.stdin;
}

export function openStdout(quiet: Quiet): Writable {
  return isPipe(1) ? openPipe(1, 'w', quiet) : process.stdout;
}

export function openStderr(quiet: Quiet): Writable {
  return isPipe(2) ? openPipe(2, 'w', quiet) : process.stderr;
}

function openPipe(fd: number, mode: 'r' | 'w', quiet: Quiet): Socket {
  const socket = new Socket({ fd, readable: mode === 'r', writable: mode === 'w' });
  if (process.platform !== 'win32') socket.once('close', () => quiet.then(() => release(fd, mode)));
  return socket;
}

/** Node leaves the descriptors 0 to 2 open when their streams close: the other end of a pipe would never know. */
function release(fd: number, mode: 'r' | 'w'): void {
  closeSync(fd);
  // The next file that is opened would get the number otherwise.
  openSync(devNull, mode);
}

/** Files and terminals stay with Node's own streams: it reads and writes them synchronously, as they need. */
function isPipe(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    return stat.isFIFO() || stat.isSocket();
  } catch {
    return false;
  }
}
