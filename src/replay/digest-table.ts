/**
 * Numbers for digests: each distinct one gets the next, 0, 1, 2 … A Map of strings would do, at ten times the memory;
 * here a digest takes 24 to 32 bytes, whatever it stands for. Open addressing with linear probing; a digest's own
 * first bits say where to look, as those of a cryptographic hash are as good as any.
 */
import { createColumn } from './column.ts';

/** The first 128 bits of SHA-256: different things do not share them, not even on purpose. */
export const DIGEST_BYTES = 16;

const WORDS = DIGEST_BYTES / 4;

export type DigestTable = {
  /** The digest's number, a new one for a new digest. */
  add(digest: Buffer): number;
  /** The digest's number, or -1. */
  find(digest: Buffer): number;
  size(): number;
};

export function createDigestTable(): DigestTable {
  let size = 0;
  const words = createColumn(Uint32Array);
  /** A number plus one, or 0 for an empty slot. At most half of the slots are taken, and one more for a moment. */
  let slots = new Uint32Array(32);

  function add(digest: Buffer): number {
    const slot = slotOf(digest);
    const known = slots[slot] ?? 0;
    if (known > 0) return known - 1;
    for (let k = 0; k < WORDS; k += 1) words.set(size * WORDS + k, digest.readUInt32LE(k * 4));
    size += 1;
    slots[slot] = size;
    if (size * 2 > slots.length) grow();
    return size - 1;
  }

  /** The slot that holds the digest, or the empty one that would. */
  function slotOf(digest: Buffer): number {
    const first = digest.readUInt32LE(0);
    let slot = first & (slots.length - 1);
    for (;;) {
      const known = slots[slot] ?? 0;
      if (known === 0 || isAt(known - 1, digest)) return slot;
      slot = (slot + 1) & (slots.length - 1);
    }
  }

  function isAt(number: number, digest: Buffer): boolean {
    for (let k = 0; k < WORDS; k += 1) {
      if (words.at(number * WORDS + k) !== digest.readUInt32LE(k * 4)) return false;
    }
    return true;
  }

  function grow(): void {
    slots = new Uint32Array(slots.length * 2);
    for (let number = 0; number < size; number += 1) {
      let slot = words.at(number * WORDS) & (slots.length - 1);
      while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
      slots[slot] = number + 1;
    }
  }

  return { add, find: (digest) => (slots[slotOf(digest)] ?? 0) - 1, size: () => size };
}
