/**
 * tapedeck's own standard streams as plain pipes. `process.stdout` is not used for them: Node makes it a stream that
 * cannot be closed, so a server that closes its stdout could not be shown to the client.
 */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { devNull } from 'node:os';
import type { Readable, Writable } from 'node:stream';

export function openStdin(): Readable {
  return isPipe(0) ? openPipe(0, { readable: true, writable: false }) : process.stdin;
}

export function openStdout(): Writable {
  return isPipe(1) ? openPipe(1, { readable: false, writable: true }) : process.stdout;
}

export function openStderr(): Writable {
  return isPipe(2) ? openPipe(2, { readable: false, writable: true }) : process.stderr;
}

function openPipe(fd: number, direction: { readable: boolean; writable: boolean }): Socket {
  const socket = new Socket({ fd, ...direction });
  if (process.platform !== 'win32') socket.once('close', () => release(fd, direction.readable ? 'r' : 'w'));
  return socket;
}

/** Node leaves the descriptors 0 to 2 open when their streams close: the other end of a pipe would never know. */
function release(fd: number, flags: string): void {
  closeSync(fd);
  // The next file that is opened would get the number otherwise.
  openSync(devNull, flags);
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
