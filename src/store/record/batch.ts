/**
 * What was forwarded, on its way between the threads. The relay's thread copies each piece into a batch, and hands a full
 * or ripe batch over as one buffer. Each hand-over disturbs the calls that pass at that moment, so they are rare: with 10 ms
 * and 64 KiB instead of the figures below, the p99 of quick calls measured twice as high.
 *
 * An item in a batch: length (u32), kind (u8), three bytes unused, owner (u32), time (f64), then the bytes. What kind and
 * owner mean is between the two ends: a channel, or a piece of an HTTP exchange and that exchange's number.
 */

import type { Channel, FrameFault, LineEnd } from '../../protocol/wire/frame.ts';

export type Item = { kind: number; owner: number; at: number; bytes: Buffer };

export const HEADER_BYTES = 20;

const BATCH_BYTES = 256 * 1024;

/** How long an item may wait for others. It bounds what a kill -9 can lose, together with the writer's own time. */
const RIPE_AFTER_MS = 30;

export type Batcher = {
  /** A text must be Latin-1. */
  append(kind: number, owner: number, at: number, bytes: Uint8Array | string): void;
  flush(): void;
};

/** `onBatch` gets each batch whole, of so many items, and owns its buffer from then on. `isGuest`: what waits keeps no process alive. */
export function createBatcher(
  onBatch: (batch: Uint8Array<ArrayBuffer>, items: number) => void,
  isGuest = false,
): Batcher {
  let buffer = Buffer.alloc(0);
  let used = 0;
  let items = 0;
  let timer: NodeJS.Timeout | undefined;

  function append(kind: number, owner: number, at: number, bytes: Uint8Array | string): void {
    const needed = HEADER_BYTES + bytes.length;
    if (used + needed > buffer.length) {
      if (used > 0) flush();
      if (needed > buffer.length) grow(needed);
    }
    buffer.writeUInt32BE(bytes.length, used);
    buffer[used + 4] = kind;
    buffer.writeUInt32BE(owner, used + 8);
    buffer.writeDoubleBE(at, used + 12);
    if (typeof bytes === 'string') buffer.write(bytes, used + HEADER_BYTES, 'latin1');
    else buffer.set(bytes, used + HEADER_BYTES);
    used += needed;
    items += 1;
    timer ??= plan();
  }

  function plan(): NodeJS.Timeout {
    const planned = setTimeout(flush, RIPE_AFTER_MS);
    return isGuest ? planned.unref() : planned;
  }

  function grow(needed: number): void {
    buffer = Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES, needed));
  }

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (used === 0) return;
    // A batch may wait long in a writer that has trouble: it must not hold more memory than it has bytes.
    const batch = new Uint8Array(buffer.subarray(0, used));
    used = 0;
    onBatch(batch, items);
    items = 0;
  }

  return { append, flush };
}

/** Who waits until what was sent is stored: both are counted in pieces, and come in the same order. */
export function createFlushes() {
  let sent = 0;
  let stored = 0;
  let waiters: { until: number; resolve: () => void }[] = [];
  function settle(isReady: (until: number) => boolean): void {
    const ready = waiters.filter(({ until }) => isReady(until));
    waiters = waiters.filter(({ until }) => !isReady(until));
    for (const { resolve } of ready) resolve();
  }
  return {
    sent(pieces: number): void {
      sent += pieces;
    },
    stored(pieces: number): void {
      stored += pieces;
      if (waiters.length > 0) settle((until) => until <= stored);
    },
    settled: () =>
      new Promise<void>((resolve) => {
        waiters.push({ until: sent, resolve });
        settle((until) => until <= stored);
      }),
    end: () => settle(() => true),
  };
}

const NOTHING = Buffer.alloc(0);

/** Visits the items of a batch, in order. Their bytes are views of the batch, not copies. */
export function eachItem(batch: Uint8Array<ArrayBuffer>, visit: (item: Item) => void): void {
  const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength);
  for (let start = 0; start < bytes.length; ) {
    const from = start + HEADER_BYTES;
    const end = from + bytes.readUInt32BE(start);
    visit({
      kind: bytes.readUInt8(start + 4),
      owner: bytes.readUInt32BE(start + 8),
      at: bytes.readDoubleBE(start + 12),
      bytes: from === end ? NOTHING : bytes.subarray(from, end),
    });
    start = end;
  }
}

/**
 * One line, body or event with a fault, and what was done to it: whole, not in chunks, because what its sender had sent is no
 * part of the stream that went on. `at`: microseconds since the Unix epoch, when it went on.
 */
export type FaultyFrame = {
  channel: Exclude<Channel, 'stderr'>;
  at: number;
  payload: Buffer;
  lineEnd: LineEnd;
  fault: FrameFault;
};

type Head = Pick<FaultyFrame, 'channel' | 'lineEnd'> &
  Omit<FrameFault, 'original'> & {
    /** How many bytes; null where they went on as they were. */
    originalBytes: number | null;
  };

const LENGTH_BYTES = 4;

/** The kind of such an item of stdio. All others are channels, which are few. */
export const FAULT_KIND = 9;

/** As bytes: the length of the head (u32), the head as JSON, what its sender had sent, what went on. */
export function faultItem({ channel, payload, lineEnd, fault }: FaultyFrame): Buffer {
  const { original, ...how } = fault;
  const head: Head = { channel, lineEnd, ...how, originalBytes: original?.length ?? null };
  const text = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32BE(text.length);
  return Buffer.concat([length, text, ...(original === null ? [] : [original]), payload]);
}

/** The bytes of the frame are views of those of the item. */
export function readFaultItem(bytes: Buffer, at: number): FaultyFrame {
  const end = LENGTH_BYTES + bytes.readUInt32BE(0);
  const { channel, lineEnd, originalBytes, ...how }: Head = JSON.parse(
    bytes.toString('utf8', LENGTH_BYTES, end),
  );
  const rest = end + (originalBytes ?? 0);
  const original = originalBytes === null ? null : bytes.subarray(end, rest);
  return { channel, at, lineEnd, payload: bytes.subarray(rest), fault: { ...how, original } };
}
