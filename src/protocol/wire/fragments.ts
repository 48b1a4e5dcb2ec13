/**
 * What has come so far of a line, body or event: joined once, when it is whole. However small the pieces are in which it came,
 * it takes little more memory than its bytes.
 */

/** A smaller piece is copied: as a view it would keep the whole buffer alive that it came in, for as long as it is kept. */
const COPIED_BELOW_BYTES = 4096;

/** Small pieces are put together into pieces of up to this. */
const PUT_TOGETHER_BYTES = 64 * 1024;

const LEAST_ROOM_BYTES = 256;

const EMPTY = Buffer.alloc(0);

/** A class, because there is one for every body, and closures cost more. */
export class Fragments {
  #pieces: Buffer[] = [];
  /** Small pieces, put together; what follows `#tailLength` is room for more. */
  #tail: Buffer = EMPTY;
  #tailLength = 0;
  #length = 0;

  /** In bytes. */
  get length(): number {
    return this.#length;
  }

  add(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#length += bytes.length;
    if (bytes.length >= COPIED_BELOW_BYTES) {
      this.#seal();
      this.#pieces.push(bytes);
      return;
    }
    const needed = this.#tailLength + bytes.length;
    if (needed > PUT_TOGETHER_BYTES) this.#seal();
    if (this.#tailLength === 0) {
      // Most have one small piece alone.
      this.#tail = Buffer.from(bytes);
    } else {
      if (needed > this.#tail.length) this.#grow(needed);
      bytes.copy(this.#tail, this.#tailLength);
    }
    this.#tailLength += bytes.length;
  }

  /** The pieces so far, the oldest first. Those that were given out once stay as they are; what comes then is another. */
  pieces(): readonly Buffer[] {
    this.#seal();
    return this.#pieces;
  }

  lastByte(): number | undefined {
    return this.#tailLength > 0 ? this.#tail[this.#tailLength - 1] : this.#pieces.at(-1)?.at(-1);
  }

  dropLastByte(): void {
    if (this.#length === 0) return;
    this.#length -= 1;
    if (this.#tailLength > 0) {
      this.#tailLength -= 1;
      return;
    }
    const last = this.#pieces.pop() as Buffer;
    if (last.length > 1) this.#pieces.push(last.subarray(0, -1));
  }

  joined(): Buffer {
    this.#seal();
    const [first] = this.#pieces;
    if (first === undefined) return EMPTY;
    return this.#pieces.length === 1 ? first : Buffer.concat(this.#pieces, this.#length);
  }

  #grow(needed: number): void {
    const room = Math.min(PUT_TOGETHER_BYTES, Math.max(LEAST_ROOM_BYTES, 2 * needed));
    const grown = Buffer.allocUnsafeSlow(room);
    this.#tail.copy(grown, 0, 0, this.#tailLength);
    this.#tail = grown;
  }

  #seal(): void {
    if (this.#tailLength > 0) this.#pieces.push(this.#tail.subarray(0, this.#tailLength));
    this.#tail = EMPTY;
    this.#tailLength = 0;
  }
}
