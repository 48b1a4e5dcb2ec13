import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { CHANNELS, type Chunk } from '../../src/protocol/frame.ts';
import { createBatcher, eachChunk } from '../../src/store/batch.ts';

const chunk: fc.Arbitrary<Chunk> = fc.record({
  channel: fc.constantFrom(...CHANNELS),
  at: fc.integer({ min: 0, max: 2 ** 52 }),
  bytes: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
});

function chunksOf(batches: readonly Uint8Array<ArrayBuffer>[]): Chunk[] {
  const chunks: Chunk[] = [];
  for (const batch of batches) eachChunk(batch, (next) => chunks.push(next));
  return chunks;
}

test('any chunks come out of their batches as they went in', () => {
  fc.assert(
    fc.property(fc.array(chunk, { maxLength: 40 }), fc.func(fc.boolean()), (chunks, flushAfter) => {
      const batches: Uint8Array<ArrayBuffer>[] = [];
      const batcher = createBatcher((batch) => batches.push(batch));
      for (const next of chunks) {
        batcher.append(next);
        if (flushAfter(next.at)) batcher.flush();
      }
      batcher.flush();
      expect(chunksOf(batches)).toEqual(chunks);
    }),
  );
});

test('a chunk larger than a batch travels alone, and later changes to its bytes do not show', () => {
  const batches: Uint8Array<ArrayBuffer>[] = [];
  const batcher = createBatcher((batch) => batches.push(batch));
  const bytes = Buffer.alloc(3 * 1024 * 1024, 'a');
  batcher.append({ channel: 'stdin', at: 1, bytes: Buffer.from('first') });
  batcher.append({ channel: 'stdout', at: 2, bytes });
  bytes.fill('b');
  batcher.append({ channel: 'stderr', at: 3, bytes: Buffer.from('last') });
  batcher.flush();
  expect(batches.length).toBeGreaterThan(1);
  expect(chunksOf(batches).map(({ channel, bytes: { length } }) => [channel, length])).toEqual([
    ['stdin', 5],
    ['stdout', bytes.length],
    ['stderr', 4],
  ]);
  expect(chunksOf(batches)[1]?.bytes.every((byte) => byte === 0x61)).toBe(true);
});

test('a batch that nobody fills is handed over all the same, exactly as large as its content', async () => {
  const batches: Uint8Array<ArrayBuffer>[] = [];
  const batcher = createBatcher((batch) => batches.push(batch));
  batcher.append({ channel: 'stdin', at: 1, bytes: Buffer.from('alone') });
  await vi.waitFor(() => expect(batches).toHaveLength(1));
  expect(batches[0]?.buffer.byteLength).toBeLessThan(64);
});
