/**
 * What of a line, body or event may be stored before it is whole: everything before the first sign of a secret. From there
 * on it is held back, because where a secret ends, or whether it is one, cannot be told yet.
 */

/** As much as a sign and the name around it may take. */
const CARRIED_BYTES = 160;

const EMPTY = Buffer.alloc(0);

/** Gives where in the bytes a secret could begin; null: nowhere. `isForeign`: outside of MCP, where more may be one. */
export type FirstSign = (bytes: Buffer, isForeign: boolean) => number | null;

export class HeldBack {
  readonly #firstSign: FirstSign;
  readonly #isForeign: boolean;
  readonly #released: Buffer[] = [];
  #seen = 0;
  #carried: Buffer = EMPTY;
  #isStopped = false;

  constructor(firstSign: FirstSign, isForeign: boolean) {
    this.#firstSign = firstSign;
    this.#isForeign = isForeign;
  }

  /** Takes all fragments so far, and gives those that may be stored; no byte is searched twice. */
  released(fragments: readonly Buffer[]): readonly Buffer[] {
    for (; this.#seen < fragments.length && !this.#isStopped; this.#seen += 1) {
      const fragment = fragments[this.#seen] as Buffer;
      const searched = Buffer.concat([this.#carried, fragment]);
      const sign = this.#firstSign(searched, this.#isForeign);
      this.#isStopped = sign !== null;
      const kept = sign === null ? fragment : fragment.subarray(0, Math.max(0, sign - this.#carried.length));
      if (kept.length > 0) this.#released.push(kept);
      this.#carried = Buffer.from(searched.subarray(Math.max(0, searched.length - CARRIED_BYTES)));
    }
    return this.#released;
  }
}
