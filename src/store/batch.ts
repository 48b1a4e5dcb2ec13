/**
 * Chunks on their way between the threads. The relay's thread copies each chunk into a batch, and hands a full or
 * ripe batch over as one buffer. Each hand-over disturbs the calls that pass at that moment, so they are rare: with 10 ms
 * and 64 KiB instead of the figures below, the p99 of quick calls measured twice as high.
 *
 * A record in a batch: length (u32), channel (u8), three bytes unused, time (f64), then the bytes.
 */
import { CHANNELS, type Chunk } from '../protocol/frame.ts';

const HEADER_BYTES = 16;
const BATCH_BYTES = 256 * 1024;
/** How long a chunk may wait for others. It bounds what a kill -9 can lose, together with the writer's own time. */
const RIPE_AFTER_MS = 30;

export type Batcher = {
  append(chunk: Chunk): void;
  flush(): void;
};

/** `onBatch` gets each batch whole and owns its buffer from then on. */
export function createBatcher(onBatch: (batch: Uint8Array<ArrayBuffer>) => void): Batcher {
  let buffer = new Uint8Array(0);
  let view = new DataView(buffer.buffer);
  let used = 0;
  let timer: NodeJS.Timeout | undefined;

  function append({ channel, at, bytes }: Chunk): void {
    const needed = HEADER_BYTES + bytes.length;
    if (used + needed > buffer.length) {
      if (used > 0) flush();
      if (needed > buffer.length) grow(needed);
    }
    view.setUint32(used, bytes.length);
    view.setUint8(used + 4, CHANNELS.indexOf(channel));
    view.setFloat64(used + 8, at);
    buffer.set(bytes, used + HEADER_BYTES);
    used += needed;
    timer ??= setTimeout(flush, RIPE_AFTER_MS);
  }

  function grow(needed: number): void {
    buffer = new Uint8Array(Math.max(BATCH_BYTES, needed));
    view = new DataView(buffer.buffer);
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (used === 0) return;
    // A batch may wait long in a writer that has trouble: it must not hold more memory than it has bytes.
    const batch = buffer.slice(0, used);
    used = 0;
    onBatch(batch);
  }

  return { append, flush };
}

/** Gives out the chunks of a batch, in order. Their bytes are views of the batch, not copies. */
export function eachChunk(batch: Uint8Array<ArrayBuffer>, visit: (chunk: Chunk) => void): void {
  const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  for (let at = 0; at < bytes.length; ) {
    const end = at + HEADER_BYTES + bytes.readUInt32BE(at);
    const channel = CHANNELS[bytes.readUInt8(at + 4)] ?? 'stderr';
    visit({ channel, at: bytes.readDoubleBE(at + 8), bytes: bytes.subarray(at + HEADER_BYTES, end) });
    at = end;
  }
}
