/**
 * Stores numbers by index, of which most recordings have very many and few that are not 0. Small typed arrays hold them,
 * each made when its first number other than 0 is set: growing copies nothing, and an empty column takes no memory.
 */

import { hash } from 'node:crypto';

type Piece = Uint8Array | Uint32Array | Float64Array;

type NumberColumn = {
  set(i: number, value: number): void;
  /** 0 where nothing was set. */
  at(i: number): number;
};

const PIECE_BITS = 10;

const PIECE_SIZE = 1 << PIECE_BITS;

const INSIDE_PIECE = PIECE_SIZE - 1;

export function createColumn(Type: new (length: number) => Piece): NumberColumn {
  const pieces: (Piece | undefined)[] = [];

  function makePiece(number: number): Piece {
    // Without holes, which would make the array a slow one.
    while (pieces.length <= number) pieces.push(undefined);
    const piece = new Type(PIECE_SIZE);
    pieces[number] = piece;
    return piece;
  }

  return {
    set(i, value) {
      const number = i >>> PIECE_BITS;
      const piece = pieces[number] ?? (value === 0 ? undefined : makePiece(number));
      if (piece !== undefined) piece[i & INSIDE_PIECE] = value;
    },
    at: (i) => pieces[i >>> PIECE_BITS]?.[i & INSIDE_PIECE] ?? 0,
  };
}

/**
 * Numbers distinct digests 0, 1, 2 … A Map of strings would do, at ten times the memory; here a digest takes 24 to 32
 * bytes. Open addressing with linear probing: the first bits of a digest say where to look, because those of a
 * cryptographic hash are evenly spread.
 */

/** The first 128 bits of SHA-256 are kept: different things never share them, not even on purpose. */
const DIGEST_BYTES = 16;

const WORDS = DIGEST_BYTES / 4;

/** A character stands for each byte (`binary`): such a text costs a third of a Buffer. */
export function digestText(data: string | Buffer): string {
  return hash('sha256', data, 'binary').slice(0, DIGEST_BYTES);
}

type DigestTable = {
  /** The digest's number, a new one for a new digest. */
  add(digest: string): number;
  /** The digest's number, or -1. */
  find(digest: string): number;
  /** The digest of a number. */
  at(number: number): string;
  size(): number;
};

export function createDigestTable(): DigestTable {
  let size = 0;
  const words = createColumn(Uint32Array);
  /** A number plus one, or 0 for an empty slot. At most half of the slots are taken, and one more for a moment. */
  let slots = new Uint32Array(32);

  function add(digest: string): number {
    const slot = slotOf(digest);
    const known = slots[slot] ?? 0;
    if (known > 0) return known - 1;
    for (let k = 0; k < WORDS; k += 1) words.set(size * WORDS + k, wordOf(digest, k));
    size += 1;
    slots[slot] = size;
    if (size * 2 > slots.length) grow();
    return size - 1;
  }

  /** The slot that holds the digest, or the empty one that would. */
  function slotOf(digest: string): number {
    let slot = wordOf(digest, 0) & (slots.length - 1);
    for (;;) {
      const known = slots[slot] ?? 0;
      if (known === 0 || isAt(known - 1, digest)) return slot;
      slot = (slot + 1) & (slots.length - 1);
    }
  }

  function isAt(number: number, digest: string): boolean {
    for (let k = 0; k < WORDS; k += 1) {
      if (words.at(number * WORDS + k) !== wordOf(digest, k)) return false;
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

  function at(number: number): string {
    let digest = '';
    for (let k = 0; k < WORDS; k += 1) digest += textOfWord(words.at(number * WORDS + k));
    return digest;
  }

  return { add, find: (digest) => (slots[slotOf(digest)] ?? 0) - 1, at, size: () => size };
}

/** Four bytes of a digest, as a number from 0 on. */
function wordOf(digest: string, k: number): number {
  const at = k * 4;
  const high = (digest.charCodeAt(at + 3) << 8) | digest.charCodeAt(at + 2);
  return ((high << 16) | (digest.charCodeAt(at + 1) << 8) | digest.charCodeAt(at)) >>> 0;
}

function textOfWord(word: number): string {
  return String.fromCharCode(word & 0xff, (word >>> 8) & 0xff, (word >>> 16) & 0xff, word >>> 24);
}

/** Remembers how far a client has come among the identical calls of each key. Only keys that it asked for take memory. */

export type Positions = {
  /** `isRepeat`: all calls of the key were reached before. */
  reach(key: number, call: number, isRepeat: boolean): void;
  /** The call that answered last; -1 for none. */
  reached(key: number): number;
  /** Whether a call has answered at any time. */
  hasReached(key: number, call: number): boolean;
  /** Whether all calls of the key have answered. */
  isAround(key: number): boolean;
};

export function createPositions(): Positions {
  /** The call plus one, doubled, and one more where all calls of the key have answered. */
  const positions = createColumn(Uint32Array);
  const isAround = (key: number) => positions.at(key) % 2 === 1;
  const reached = (key: number) => (positions.at(key) >>> 1) - 1;
  return {
    reach(key, call, isRepeat) {
      positions.set(key, 2 * (call + 1) + Number(isRepeat || isAround(key)));
    },
    reached,
    hasReached: (key, call) => isAround(key) || call <= reached(key),
    isAround,
  };
}
