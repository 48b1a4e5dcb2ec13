/** What names a session in an engine: the same however often and from whichever copy of the store it is shipped. */

import { createHash } from 'node:crypto';

/** What of a session never changes. `startedAt` in microseconds since the Unix epoch. */
export type SessionOrigin = {
  id: string;
  startedAt: number;
  host: string;
  pid: number;
  processStarted: string | null;
};

/** A UUID of version 8 (RFC 9562): a hash of what tells the session from all others. `identity` is that of its store. */
export function sessionKey(
  identity: string,
  { id, startedAt, host, pid, processStarted }: SessionOrigin,
): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([identity, id, startedAt, host, pid, processStarted]))
    .digest();
  bytes.writeUInt8(0x80 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
