/**
 * A line, body or event while it is coming. It is stored piece by piece, so that a kill costs little; but only what stands
 * before the first sign of a secret, because where a secret ends, or whether it is one, cannot be told yet.
 */

import type { PendingSession, UnfinishedPiece } from '../write/pending.ts';

/** As much as a sign and the name around it may take. */
const CARRIED_BYTES = 160;

const EMPTY = Buffer.alloc(0);

/** Returns where in the bytes a secret could begin; null: nowhere. `isForeign`: outside of MCP, where more may be one. */
export type FirstSign = (bytes: Buffer, isForeign: boolean) => number | null;

/** A piece of an unfinished frame of a session. */
export type PendingPiece = UnfinishedPiece & { session: PendingSession; frame: UnfinishedFrame };

/** A class, because there are some for every HTTP exchange, and closures cost more. */
export class UnfinishedFrame {
  readonly #firstSign: FirstSign | null;
  readonly #isForeign: boolean;
  /** Pieces that may be stored. */
  #released: Buffer[] = [];
  /** So many of them are. */
  #stored = 0;
  #searched = 0;
  #carried: Buffer = EMPTY;
  #hasSign = false;

  /** `firstSign` null: everything may be stored. */
  constructor(firstSign: FirstSign | null, isForeign: boolean) {
    this.#firstSign = firstSign;
    this.#isForeign = isForeign;
  }

  /** Takes all fragments so far, and returns what may be stored and is not yet. No byte is searched twice. */
  pieces(
    fragments: readonly Buffer[],
    place: Pick<PendingPiece, 'session' | 'channel' | 'exchange' | 'at'>,
  ): PendingPiece[] {
    const released = this.#firstSign === null ? fragments : this.#release(fragments, this.#firstSign);
    return released
      .slice(this.#stored)
      .map((bytes, i) => ({ ...place, frame: this, part: this.#stored + i, bytes }));
  }

  #release(fragments: readonly Buffer[], firstSign: FirstSign): readonly Buffer[] {
    for (; this.#searched < fragments.length && !this.#hasSign; this.#searched += 1) {
      const fragment = fragments[this.#searched] as Buffer;
      const searched = Buffer.concat([this.#carried, fragment]);
      const sign = firstSign(searched, this.#isForeign);
      this.#hasSign = sign !== null;
      const end = sign === null ? fragment.length : Math.max(0, sign - this.#carried.length);
      if (end > 0) this.#released.push(fragment.subarray(0, end));
      this.#carried = Buffer.from(searched.subarray(Math.max(0, searched.length - CARRIED_BYTES)));
    }
    return this.#released;
  }

  /** Says that the pieces up to this part are stored. */
  confirm(part: number): void {
    this.#stored = part + 1;
  }

  /** The frame is whole; another one may begin. Returns whether pieces of it are stored. */
  finish(): boolean {
    const isBegun = this.#stored > 0;
    if (isBegun) this.#stored = 0;
    if (this.#searched > 0) {
      this.#released = [];
      this.#searched = 0;
      this.#carried = EMPTY;
      this.#hasSign = false;
    }
    return isBegun;
  }
}
