/**
 * What names a session in an engine, and how its frames are held against the local ones: the key, which is the same however often
 * and from whichever copy of the store it is shipped, and the digest, a chain over all frames.
 */

import { createHash, type Hash, hash } from 'node:crypto';

/** What of a session never changes. `startedAt` in microseconds since the Unix epoch. */
type Origin = { id: string; startedAt: number; host: string; pid: number; processStarted: string | null };

/** A UUID of version 8 (RFC 9562): a hash of what tells the session from all others. `identity` is that of its store. */
export function sessionKey(identity: string, { id, startedAt, host, pid, processStarted }: Origin): string {
  const bytes = createHash('sha256')
    .update(JSON.stringify([identity, id, startedAt, host, pid, processStarted]))
    .digest();
  bytes.writeUInt8(0x80 | (bytes.readUInt8(6) & 0x0f), 6);
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8);
  const hex = bytes.toString('hex', 0, 16);
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

/** The columns of a frame that the digest is about, but for its payload. */
export type DigestedFrame = {
  seq: number;
  at: number;
  channel: string;
  size: number;
  flags: string | null;
  http: number | null;
  sha256: string | null;
  rules: string | null;
};

/** Of no frames. */
export const NO_DIGEST: Buffer = Buffer.alloc(32);

/** The digest up to this frame, given the one before it. `payload`: its bytes, in as many pieces as they come. */
export function digestWith(before: Buffer, frame: DigestedFrame, payload: Iterable<Buffer>): Buffer {
  const hash = beginDigest(before, frame);
  for (const piece of payload) hash.update(piece);
  return hash.digest();
}

/** The same, for a payload whose pieces come one after another. */
export function beginDigest(before: Buffer, frame: DigestedFrame): Hash {
  const { seq, at, channel, size, flags, http, sha256, rules } = frame;
  const head = JSON.stringify([seq, at, channel, size, flags, http, sha256, rules]);
  return createHash('sha256').update(before).update(`${head}\n`);
}

/** Its memory is used again and again. */
const whole = Buffer.allocUnsafe(64 * 1024);

/** The same, for a payload that is there at once: `columns` are those of `DigestedFrame`, in its order. */
export function digestWithWhole(before: Buffer, columns: readonly unknown[], payload: Buffer): Buffer {
  const head = JSON.stringify(columns);
  const most = before.length + 3 * head.length + 1 + payload.length;
  if (most > whole.length)
    return createHash('sha256').update(before).update(`${head}\n`).update(payload).digest();
  // One call instead of five: they take longer than the hash.
  before.copy(whole);
  let used = before.length + whole.write(head, before.length);
  used = whole.writeUInt8(LINE_END, used);
  used += payload.copy(whole, used);
  return hash('sha256', whole.subarray(0, used), 'buffer');
}

const LINE_END = 0x0a;
