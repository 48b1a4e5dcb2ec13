import { expect, test } from 'vitest';
import { createWaiting } from '../../src/protocol/bounded.ts';

test('things wait under their key in the order in which they came', () => {
  const waiting = createWaiting<number>(10);
  waiting.add('a', 1);
  waiting.add('b', 2);
  waiting.add('a', 3);
  expect(waiting.under('a')).toEqual([1, 3]);
  expect(waiting.under('b')).toEqual([2]);
  expect(waiting.under('c')).toEqual([]);
});

test('what is removed waits no longer, and the rest stays', () => {
  const waiting = createWaiting<number>(10);
  for (const value of [1, 2, 3]) waiting.add('a', value);
  waiting.remove('a', 2);
  waiting.remove('a', 9);
  waiting.remove('b', 1);
  expect(waiting.under('a')).toEqual([1, 3]);
  waiting.remove('a', 3);
  waiting.remove('a', 1);
  expect(waiting.under('a')).toEqual([]);
});

test('beyond the bound the oldest under the key that was used longest ago is forgotten', () => {
  const waiting = createWaiting<number>(3);
  waiting.add('a', 1);
  waiting.add('b', 2);
  waiting.add('a', 3);
  waiting.add('c', 4);
  expect([waiting.under('a'), waiting.under('b'), waiting.under('c')]).toEqual([[1, 3], [], [4]]);
  waiting.add('c', 5);
  expect([waiting.under('a'), waiting.under('c')]).toEqual([[3], [4, 5]]);
});

test('the bound counts what waits, not what came', () => {
  const waiting = createWaiting<number>(2);
  for (let value = 0; value < 100; value += 1) {
    waiting.add('a', value);
    waiting.remove('a', value);
  }
  waiting.add('b', 1);
  waiting.add('c', 2);
  expect([waiting.under('b'), waiting.under('c')]).toEqual([[1], [2]]);
  waiting.add('d', 3);
  expect([waiting.under('b'), waiting.under('c'), waiting.under('d')]).toEqual([[], [2], [3]]);
});
