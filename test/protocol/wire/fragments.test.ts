import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Fragments } from '../../../src/protocol/wire/fragments.ts';

const anyStep = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => ({ add: Buffer.from(bytes) })),
  fc.constantFrom(4095, 4096, 70_000).map((length) => ({ add: Buffer.alloc(length, 'x') })),
  fc.constantFrom({ look: true } as const, { drop: true } as const),
);

test('fragments are the bytes that were added, in whatever pieces, and what was given out stays as it was', () => {
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 60 }), (steps) => {
      const fragments = new Fragments();
      let model = Buffer.alloc(0);
      const given: { piece: Buffer; copy: Buffer }[] = [];
      for (const step of steps) {
        if ('add' in step) {
          const chunk = Buffer.from(step.add);
          fragments.add(chunk);
          model = Buffer.concat([model, chunk]);
          // A small chunk is a view of a batch that is used again.
          if (chunk.length < 4096) chunk.fill(0xff);
        } else if ('look' in step) {
          for (const piece of fragments.pieces()) given.push({ piece, copy: Buffer.from(piece) });
        } else {
          fragments.dropLastByte();
          model = model.subarray(0, -1);
        }
        expect(fragments.length).toBe(model.length);
        expect(fragments.lastByte()).toBe(model.at(-1));
      }
      for (const { piece, copy } of given) expect(piece.equals(copy)).toBe(true);
      expect(Buffer.concat(fragments.pieces() as Buffer[]).equals(model)).toBe(true);
      expect(fragments.joined().equals(model)).toBe(true);
    }),
  );
});

test('three hundred thousand pieces of one byte take a few pieces', () => {
  const fragments = new Fragments();
  for (let i = 0; i < 300_000; i += 1) fragments.add(Buffer.from([i & 0xff]));
  expect(fragments.pieces().length).toBeLessThan(10);
  expect(fragments.pieces().reduce((sum, { buffer }) => sum + buffer.byteLength, 0)).toBeLessThan(700_000);
});
