/** How the frames of a session in an engine are held against the local ones: by a chain over all of them. */

import { createHash, type Hash, hash } from 'node:crypto';

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
