/** One HTTP body on its way into a frame: kept up to a bound, hashed where it outgrows it. */
import { createHash, type Hash } from 'node:crypto';
import { createStreamDecoder, decodeBody, isIdentity } from '../../protocol/http/codings.ts';
import { Fragments } from '../../protocol/wire/fragments.ts';
import { createSseSplitter, type SseBlock } from '../../protocol/wire/sse.ts';

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
  readonly #fragments = new Fragments();
  /** The body as its sender sent it, once an edit has made a difference. */
  #originals: Uint8Array[] | null = null;
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
    return this.#fragments.pieces();
  }

  /** Returns how many of the bytes are lost, because others before them are. */
  feed(bytes: Buffer, original?: Uint8Array): number {
    if (original !== undefined) this.#originals ??= [...this.#fragments.pieces()];
    this.#originals?.push(original ?? bytes);
    this.#size += bytes.length;
    const room = this.#hasLost ? 0 : this.#maxBytes - this.#fragments.length;
    const kept = bytes.length > room ? bytes.subarray(0, room) : bytes;
    this.#fragments.add(kept);
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
    const bytes = this.#fragments.joined();
    const truncated = bytes.length < this.#size;
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
      for (const piece of this.#fragments.pieces()) this.#hash.update(piece);
    }
    this.#hash.update(rest);
  }

  #original(coding: string): Buffer | null {
    if (this.#originals === null) return null;
    const bytes = Buffer.concat(this.#originals);
    return decodeBody(bytes, coding, this.#maxBytes) ?? bytes;
  }
}

/** An event stream on its way into frames: without its content coding, block by block, each with its own time. */

/** `original` where an edit made a difference; `isDecoded` false for a piece that is still in its content coding. */
export type StreamBlock = SseBlock & { original: Buffer | null; sha256: string | null; isDecoded: boolean };

export type EventCollector = {
  feed(bytes: Buffer, at: number, original?: Uint8Array): void;
  /** Says that the next bytes were lost. */
  lose(): void;
  /** The unfinished block so far, in pieces. */
  held(): readonly Buffer[];
  /** Calls `onBlock` with what is left; settles when that is done. Undefined: it is done. */
  end(): Promise<void> | undefined;
};

export function createEventCollector(options: {
  coding: string;
  maxBytes: number;
  onBlock: (block: StreamBlock) => void;
  /** Called with the number of bytes after lost ones that are not kept either, because their block cannot be made out. */
  onSkip: (bytes: number) => void;
}): EventCollector {
  const { coding, maxBytes, onBlock, onSkip } = options;
  let hash: Hash | undefined;
  let originals: SseBlock[] = [];

  const splitter = createSseSplitter({
    maxBytes,
    onSkip,
    onOversize(bytes) {
      hash ??= createHash('sha256');
      hash.update(bytes);
    },
    onBlock({ at, payload, size, truncated, isComplete }) {
      const before = originals.length === 0 ? undefined : originals.shift()?.payload;
      const original = before === undefined || before.equals(payload) ? null : before;
      const sha256 = hash?.digest('hex') ?? null;
      // Not spread: there may be tens of thousands of them a second.
      onBlock({ at, payload, size, truncated, isComplete, original, sha256, isDecoded: true });
      hash = undefined;
    },
  });

  function feed(bytes: Buffer, at: number, original?: Uint8Array): void {
    // Lines of the block that came before the edit are held, and were the same.
    if (original !== undefined) originals = blocksOf(Buffer.concat([...splitter.held(), original]), maxBytes);
    splitter.feed(bytes, at);
    originals = [];
  }

  function giveUndecoded(payload: Buffer, at: number): void {
    // A block that was being decoded comes before.
    splitter.end();
    const block = { at, payload, size: payload.length, truncated: false, isComplete: true };
    onBlock({ ...block, original: null, sha256: null, isDecoded: false });
  }

  if (isIdentity(coding)) {
    return {
      feed,
      lose: splitter.gap,
      held: splitter.held,
      end() {
        splitter.end();
        return undefined;
      },
    };
  }
  const decoder = createStreamDecoder(coding, feed, giveUndecoded);
  return {
    feed: decoder?.feed ?? giveUndecoded,
    lose: decoder?.lose ?? (() => {}),
    held: splitter.held,
    async end() {
      await decoder?.end();
      splitter.end();
    },
  };
}

/** An edit is made in a piece that ends its block. */
function blocksOf(bytes: Buffer, maxBytes: number): SseBlock[] {
  const blocks: SseBlock[] = [];
  const onBlock = (block: SseBlock) => void blocks.push(block);
  const splitter = createSseSplitter({ maxBytes, onBlock, onSkip: () => {}, onOversize: () => {} });
  splitter.feed(bytes, 0);
  return blocks;
}
