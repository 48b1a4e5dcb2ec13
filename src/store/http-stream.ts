/** An event stream on its way into frames: without its content coding, block by block, each with its own time. */
import { createHash, type Hash } from 'node:crypto';
import { createSseSplitter, type SseBlock } from '../protocol/sse.ts';
import { createStreamDecoder, isIdentity } from './decode.ts';

/** `original` where an edit made a difference; `isDecoded` false for a piece that is still in its content coding. */
export type StreamBlock = SseBlock & { original: Buffer | null; sha256: string | null; isDecoded: boolean };

export type EventStream = {
  feed(bytes: Buffer, at: number, original?: Uint8Array): void;
  /** Says that the next bytes were lost. */
  lose(): void;
  /** The unfinished block so far, in pieces. */
  held(): readonly Buffer[];
  /** Gives out what is left; settles when that is done. Undefined: it is done. */
  end(): Promise<void> | undefined;
};

export function createEventStream(options: {
  coding: string;
  maxBytes: number;
  onBlock: (block: StreamBlock) => void;
  /** Told of bytes after lost ones that are not kept either: they belong to no block that could be told. */
  onSkip: (bytes: number) => void;
}): EventStream {
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
    onBlock(block) {
      const before = originals.shift()?.payload;
      const original = before === undefined || before.equals(block.payload) ? null : before;
      onBlock({ ...block, original, sha256: hash?.digest('hex') ?? null, isDecoded: true });
      hash = undefined;
    },
  });

  function feed(bytes: Buffer, at: number, original?: Uint8Array): void {
    if (original !== undefined) originals = blocksOf(Buffer.from(original), maxBytes);
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

/** An edit is made at the beginning of a block, and in a piece that holds whole blocks. */
function blocksOf(bytes: Buffer, maxBytes: number): SseBlock[] {
  const blocks: SseBlock[] = [];
  const onBlock = (block: SseBlock) => void blocks.push(block);
  const splitter = createSseSplitter({ maxBytes, onBlock, onSkip: () => {}, onOversize: () => {} });
  splitter.feed(bytes, 0);
  return blocks;
}
