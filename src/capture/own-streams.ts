/**
 * tapedeck's own standard streams as plain pipes. `process.stdout` is not used for them: Node makes it a stream that
 * cannot be closed, so a server that closes its stdout could not be shown to the client.
 */
import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';

export function openStdin(): Readable {
  return isPipe(0) ? new Socket({ fd: 0, readable: true, writable: false }) : process.stdin;
}

export function openStdout(): Writable {
  return isPipe(1) ? new Socket({ fd: 1, readable: false, writable: true }) : process.stdout;
}

export function openStderr(): Writable {
  return isPipe(2) ? new Socket({ fd: 2, readable: false, writable: true }) : process.stderr;
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
