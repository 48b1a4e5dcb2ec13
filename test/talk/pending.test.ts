import { expect, test } from 'vitest';
import { createPendingCalls } from '../../src/talk/pending.ts';

const MINUTE = 60_000;

test('a call that was not answered in time is removed before it is reported', async () => {
  const late = await new Promise<{ call: string; id: string; left: number }>((resolve) => {
    const pending = createPendingCalls<string>(1, (call, id) => resolve({ call, id, left: pending.count() }));
    pending.add('7', 'tools/call');
  });
  expect(late).toEqual({ call: 'tools/call', id: '7', left: 0 });
});

test('a call is taken once, and one without a limit stays', async () => {
  const late: string[] = [];
  const pending = createPendingCalls<string>(1, (call) => late.push(call));
  pending.add('1', 'subscription', false);
  pending.restart('1');
  pending.restart('unknown');
  pending.add('2', 'answered');
  expect(pending.remove('2')).toBe('answered');
  expect(pending.remove('2')).toBeUndefined();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(late).toEqual([]);
  expect(pending.get('1')).toBe('subscription');
});

test('the oldest call comes first, and all of them can be taken at once', () => {
  const pending = createPendingCalls<number>(MINUTE, () => {});
  for (const n of [3, 1, 2]) pending.add(String(n), n);
  pending.restart('3');
  expect(pending.all()).toEqual([3, 1, 2]);
  expect(pending.removeAll()).toEqual([3, 1, 2]);
  expect(pending.count()).toBe(0);
});
