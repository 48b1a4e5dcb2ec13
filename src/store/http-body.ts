/** One HTTP body on its way into a frame: kept up to a bound, hashed where it outgrows it. */
import { createHash, type Hash } from 'node:crypto';
import { decodeBody, isIdentity } from './decode.ts';

/** A smaller piece is copied: as a view it would keep its whole batch alive for as long as its body lasts. */
const COPIED_BELOW_BYTES = 4096;

export type CollectedBody = {
  /** Without its content coding, if that could be undone. */
  payload: Buffer;
  size: number;
  truncated: boolean;
  sha256: string | null;
  isDecoded: boolean;
  /** What the sender had sent, where an edit made a difference. */
  original: Buffer | null;
};

/** A class, because there is one for every body, and closures cost more. */
export class BodyCollector {
  readonly #maxBytes: number;
  readonly #pieces: Buffer[] = [];
  /** The body as its sender sent it, once an edit has made a difference. */
  #originals: Uint8Array[] | null = null;
  #keptBytes = 0;
  #size = 0;
  #hasLost = false;
  #hash: Hash | null = null;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes that passed. */
  get size(): number {
    return this.#size;
  }

  /** What is kept so far, in pieces. */
  get held(): readonly Buffer[] {
    return this.#pieces;
  }

  /** Gives how many of the bytes are lost, because others before them are. */
  feed(bytes: Buffer, original?: Uint8Array): number {
    if (original !== undefined) this.#originals ??= [...this.#pieces];
    this.#originals?.push(original ?? bytes);
    this.#size += bytes.length;
    const room = this.#hasLost ? 0 : this.#maxBytes - this.#keptBytes;
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    if (kept.length > 0) this.#pieces.push(kept.length < COPIED_BELOW_BYTES ? Buffer.from(kept) : kept);
    this.#keptBytes += kept.length;
    if (this.#hasLost) return bytes.length;
    if (kept.length < bytes.length) this.#hashBeyond(bytes.subarray(kept.length));
    return 0;
  }

  /** Says that the next bytes were lost. True: they are the first. */
  lose(bytes: number): boolean {
    const isFirst = !this.#hasLost;
    this.#size += bytes;
    this.#hasLost = true;
    return isFirst;
  }

  /** Undoes the content coding, if it is there to undo. */
  collect(coding: string): CollectedBody {
    const [first] = this.#pieces;
    const isOne = first !== undefined && this.#pieces.length === 1;
    const bytes = isOne ? first : Buffer.concat(this.#pieces, this.#keptBytes);
    const truncated = this.#keptBytes < this.#size;
    const decoded = truncated ? null : decodeBody(bytes, coding, this.#maxBytes);
    const payload = decoded ?? bytes;
    return {
      payload,
      size: truncated ? this.#size : payload.length,
      truncated,
      sha256: this.#hash === null || this.#hasLost ? null : this.#hash.digest('hex'),
      isDecoded: decoded !== null || isIdentity(coding),
      original: this.#original(coding),
    };
  }

  #hashBeyond(rest: Buffer): void {
    if (this.#hash === null) {
      this.#hash = createHash('sha256');
      for (const piece of this.#pieces) this.#hash.update(piece);
    }
    this.#hash.update(rest);
  }

  #original(coding: string): Buffer | null {
    if (this.#originals === null) return null;
    const bytes = Buffer.concat(this.#originals);
    return decodeBody(bytes, coding, this.#maxBytes) ?? bytes;
  }
}
