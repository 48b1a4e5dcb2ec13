import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BoundedLists, BoundedMap, memoize } from '../../src/protocol/bounded.ts';

test('things wait under their key in the order in which they came', () => {
  const waiting = new BoundedLists<number>(10);
  waiting.add('a', 1);
  waiting.add('b', 2);
  waiting.add('a', 3);
  expect(waiting.of('a')).toEqual([1, 3]);
  expect(waiting.of('b')).toEqual([2]);
  expect(waiting.of('c')).toEqual([]);
});

test('what is removed waits no longer, and the rest stays', () => {
  const waiting = new BoundedLists<number>(10);
  for (const value of [1, 2, 3]) waiting.add('a', value);
  waiting.remove('a', 2);
  waiting.remove('a', 9);
  waiting.remove('b', 1);
  expect(waiting.of('a')).toEqual([1, 3]);
  waiting.remove('a', 3);
  waiting.remove('a', 1);
  expect(waiting.of('a')).toEqual([]);
});

test('beyond the bound the oldest under the key that was used longest ago is forgotten', () => {
  const waiting = new BoundedLists<number>(3);
  waiting.add('a', 1);
  waiting.add('b', 2);
  waiting.add('a', 3);
  waiting.add('c', 4);
  expect([waiting.of('a'), waiting.of('b'), waiting.of('c')]).toEqual([[1, 3], [], [4]]);
  waiting.add('c', 5);
  expect([waiting.of('a'), waiting.of('c')]).toEqual([[3], [4, 5]]);
});

test('the bound counts what waits, not what came', () => {
  const waiting = new BoundedLists<number>(2);
  for (let value = 0; value < 100; value += 1) {
    waiting.add('a', value);
    waiting.remove('a', value);
  }
  waiting.add('b', 1);
  waiting.add('c', 2);
  expect([waiting.of('b'), waiting.of('c')]).toEqual([[1], [2]]);
  waiting.add('d', 3);
  expect([waiting.of('b'), waiting.of('c'), waiting.of('d')]).toEqual([[], [2], [3]]);
});

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];

const step = fc.record({
  action: fc.constantFrom('set', 'set', 'set', 'use', 'delete', 'clear'),
  key: fc.constantFrom(...KEYS),
  value: fc.nat(9),
});

test('a bounded map does as a plain list of entries, whatever is done to it', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
      const forgotten: unknown[] = [];
      const map = new BoundedMap<string, number>(max, (value, key) => forgotten.push([key, value]));
      const model: [key: string, value: number][] = [];
      const pushedOut: unknown[] = [];
      for (const { action, key, value } of steps) {
        const at = model.findIndex(([known]) => known === key);
        const entry = model[at];
        if (action === 'set') {
          map.set(key, value);
          if (entry === undefined) model.push([key, value]);
          else entry[1] = value;
          if (model.length > max) pushedOut.push(model.shift());
        } else if (action === 'use') {
          expect(map.use(key)).toBe(entry?.[1]);
          if (entry !== undefined) model.push(...model.splice(at, 1));
        } else if (action === 'delete') {
          map.delete(key);
          if (entry !== undefined) model.splice(at, 1);
        } else if (value === 0) {
          map.clear();
          model.length = 0;
        }
        expect(map.values()).toEqual(model.map(([, known]) => known));
        expect(map.oldestKey()).toBe(model[0]?.[0]);
        expect(map.size).toBe(model.length);
        for (const known of KEYS) {
          expect(map.get(known)).toBe(model.find(([other]) => other === known)?.[1]);
          expect(map.has(known)).toBe(model.some(([other]) => other === known));
        }
      }
      expect(forgotten).toEqual(pushedOut);
    }),
  );
});

test('bounded lists do as one plain list, whatever is done to them', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 6 }), fc.array(step, { maxLength: 60 }), (max, steps) => {
      const lists = new BoundedLists<number>(max);
      /** Keys in the order of their latest use. */
      const model: { key: string; values: number[] }[] = [];
      for (const { action, key, value } of steps) {
        const at = model.findIndex((row) => row.key === key);
        const row = model[at];
        if (action === 'delete') {
          lists.remove(key, value);
          const last = row?.values.lastIndexOf(value) ?? -1;
          if (last >= 0) row?.values.splice(last, 1);
        } else if (!row?.values.includes(value)) {
          lists.add(key, value);
          if (row === undefined) model.push({ key, values: [value] });
          else {
            row.values.push(value);
            model.push(...model.splice(at, 1));
          }
          if (model.reduce((sum, { values }) => sum + values.length, 0) > max) model[0]?.values.shift();
        }
        const left = model.findIndex(({ values }) => values.length === 0);
        if (left >= 0) model.splice(left, 1);
        for (const known of KEYS) {
          const values = model.find((other) => other.key === known)?.values ?? [];
          expect(lists.of(known)).toEqual(values);
          expect(lists.newest(known)).toBe(values.at(-1));
          expect(lists.newest(known, (one) => one < 5)).toBe(values.findLast((one) => one < 5));
        }
      }
    }),
  );
});

/** A map that looks for its oldest key from the start takes minutes for this. */
test('two hundred thousand keys are added and forgotten in the order in which they came', () => {
  const MAX = 65_536;
  const COUNT = 200_000;
  const forgotten: number[] = [];
  const map = new BoundedMap<number, number>(MAX, (value) => forgotten.push(value));
  const kept: number[] = [];
  let from = 0;
  const pushedOut: number[] = [];
  for (let key = 0; key < COUNT; key += 1) {
    map.set(key, key);
    kept.push(key);
    if (kept.length - from > MAX) {
      pushedOut.push(kept[from] as number);
      from += 1;
    }
    // Answers come soon after their requests.
    if (key % 3 === 0) {
      map.delete(key);
      kept.pop();
    }
  }
  expect(map.values()).toEqual(kept.slice(from));
  expect(forgotten).toEqual(pushedOut);
});

test('two hundred thousand values are added and forgotten, under one key and under many', () => {
  const MAX = 65_536;
  const COUNT = 200_000;
  const lists = new BoundedLists<number>(MAX);
  let hasNewest = true;
  for (let value = 0; value < COUNT; value += 1) {
    lists.add('one', value);
    hasNewest &&= lists.newest('one') === value;
  }
  expect(hasNewest).toBe(true);
  expect(lists.of('one')).toEqual(Array.from({ length: MAX }, (_, i) => COUNT - MAX + i));
  for (let value = 0; value < COUNT; value += 1) {
    lists.add(`${value}`, value);
    if (value % 2 === 0) lists.remove(`${value}`, value);
  }
  expect(lists.of('one')).toEqual([]);
  expect([COUNT - 1, COUNT - 2].map((value) => lists.of(`${value}`))).toEqual([[COUNT - 1], []]);
});

test.each([
  ['first', (n: number) => n],
  ['last', (n: number, count: number) => count - 1 - n],
  ['anywhere', (n: number, count: number) => (n * 7919) % count],
] as const)(
  'of fifty thousand values under one key each is removed at once, wherever it stands: %s',
  (_, at) => {
    const COUNT = 50_000;
    const lists = new BoundedLists<object>(COUNT);
    const values = Array.from({ length: COUNT }, (_v, n) => ({ n }));
    for (const value of values) lists.add('one', value);
    for (let n = 0; n < COUNT; n += 1) lists.remove('one', values[at(n, COUNT)] as object);
    expect(lists.of('one')).toEqual([]);
  },
);

test('a memoized function computes short texts once, until it holds too many', () => {
  const computed: string[] = [];
  const length = memoize(
    (text) => {
      computed.push(text);
      return text.length;
    },
    { maxEntries: 2, maxLength: 3 },
  );
  for (const text of ['a', 'a', 'long', 'long', 'b', 'a', 'c', 'a']) expect(length(text)).toBe(text.length);
  expect(computed).toEqual(['a', 'long', 'long', 'b', 'c', 'a']);
});
