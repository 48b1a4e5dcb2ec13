import fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { createBatcher, eachItem, type Item } from '../../../src/store/record/batch.ts';

const item: fc.Arbitrary<Item> = fc.record({
  kind: fc.integer({ min: 0, max: 255 }),
  owner: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  at: fc.integer({ min: 0, max: 2 ** 52 }),
  bytes: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
});

function itemsOf(batches: readonly Uint8Array<ArrayBuffer>[]): Item[] {
  const items: Item[] = [];
  for (const batch of batches) eachItem(batch, (next) => items.push(next));
  return items;
}

test('any items come out of their batches as they went in', () => {
  fc.assert(
    fc.property(fc.array(item, { maxLength: 40 }), fc.func(fc.boolean()), (items, flushAfter) => {
      const batches: Uint8Array<ArrayBuffer>[] = [];
      const batcher = createBatcher((batch) => batches.push(batch));
      for (const { kind, owner, at, bytes } of items) {
        batcher.append(kind, owner, at, bytes);
        if (flushAfter(at)) batcher.flush();
      }
      batcher.flush();
      expect(itemsOf(batches)).toEqual(items);
    }),
  );
});

test('an item larger than a batch travels alone, and later changes to its bytes do not show', () => {
  const batches: Uint8Array<ArrayBuffer>[] = [];
  const batcher = createBatcher((batch) => batches.push(batch));
  const bytes = Buffer.alloc(3 * 1024 * 1024, 'a');
  batcher.append(0, 0, 1, Buffer.from('first'));
  batcher.append(1, 0, 2, bytes);
  bytes.fill('b');
  batcher.append(2, 0, 3, Buffer.from('last'));
  batcher.flush();
  expect(batches.length).toBeGreaterThan(1);
  expect(itemsOf(batches).map(({ kind, bytes: { length } }) => [kind, length])).toEqual([
    [0, 5],
    [1, bytes.length],
    [2, 4],
  ]);
  expect(itemsOf(batches)[1]?.bytes.every((byte) => byte === 0x61)).toBe(true);
});

test('a batch that nobody fills is handed over all the same, exactly as large as its content', async () => {
  const batches: Uint8Array<ArrayBuffer>[] = [];
  const batcher = createBatcher((batch) => batches.push(batch));
  batcher.append(0, 0, 1, Buffer.from('alone'));
  await vi.waitFor(() => expect(batches).toHaveLength(1));
  expect(batches[0]?.buffer.byteLength).toBeLessThan(64);
});
