import { setImmediate, setTimeout } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { createReaders, type Sink } from '../../src/web/readers.ts';
import { inFull, scale } from '../support/scale.ts';
import { SLOW, slowStore } from '../support/slow-store.ts';
import { until } from '../support/tapedeck.ts';
import { startUi } from '../support/ui.ts';

type Answer = { sink: Sink; outcome(): string; done: Promise<void> };

function createSink(): Answer {
  let outcome = 'waiting';
  let resolve = () => {};
  const done = new Promise<void>((settled) => {
    resolve = settled;
  });
  const end = (how: string) => {
    outcome = how;
    resolve();
  };
  const sink: Sink = {
    head() {},
    piece(_bytes, isLast) {
      if (isLast) end('answered');
    },
    fail: ({ message }) => end(message),
  };
  return { sink, outcome: () => outcome, done };
}

function openReaders(file: string, slowMs?: number) {
  const options = slowMs === undefined ? {} : { slowMs };
  const readers = createReaders({ file, onChanges() {}, onRestart() {}, ...options });
  onTestFinished(() => readers.close());
  const ask = (filter: string) => {
    const answer = createSink();
    const question = { work: 'sessions', params: { filter }, form: 'json' as const };
    return { ...answer, leave: readers.ask('slow', question, answer.sink) };
  };
  return { readers, ask };
}

inFull(
  'slow work whose clients have left is ended, in the middle of it, and others take its place',
  async () => {
    const { ask } = openReaders(await slowStore());
    const before = process.cpuUsage();
    const left = [ask(SLOW), ask(SLOW), ask(SLOW), ask(SLOW)];
    const last = ask('transport=stdio');
    // Starting takes each of them some tenths of a second first.
    await until('they are at work', () => process.cpuUsage(before).user > 3_000_000);
    for (const { leave } of left) leave();
    await last.done;
    expect(last.outcome()).toBe('answered');
    await Promise.all(left.slice(0, 3).map(({ done }) => done));
    for (const { outcome } of left.slice(0, 3)) expect(outcome()).toMatch(/has ended/);
    expect(left[3]?.outcome()).toBe('waiting');
  },
);

inFull('slow work that takes too long is ended, and says so', async () => {
  const { ask } = openReaders(await slowStore(), 200);
  const { done, outcome } = ask(SLOW);
  await done;
  expect(outcome()).toBe('Stopped: it took longer than 0.2 s.');
});

test('whoever asks for pages and frames does not wait for slow work', async () => {
  const ui = await startUi(await slowStore());
  const left = new AbortController();
  let isOver = false;
  const slow = fetch(`${ui.origin}/api/sessions?filter=${encodeURIComponent(SLOW)}`, {
    headers: ui.headers,
    signal: left.signal,
  }).then(
    () => {
      isOver = true;
    },
    () => {},
  );
  for (let i = 0; i < 20; i += 1) {
    expect((await ui.json('/api/sessions/latest/frames?limit=2')).frames).toHaveLength(2);
    expect((await ui.json('/api/sessions')).total).toBe(1);
  }
  expect(isOver).toBe(false);
  left.abort();
  await slow;
});

test('readers that are closed begin no thread, whoever waits, leaves or asks after that', async () => {
  const { readers, ask: askSlow } = openReaders(await slowStore());
  readers.watch(true);
  // Three are at work, and two wait for them.
  const slow = [1, 2, 3, 4, 5].map(() => askSlow(SLOW));
  // Threads tell a turn later that they have begun.
  await setImmediate();
  let begun = 0;
  const count = () => {
    begun += 1;
  };
  process.on('worker', count);
  onTestFinished(() => void process.off('worker', count));
  await readers.close();
  for (const { leave } of slow) leave();
  readers.watch(false);
  const { sink, outcome } = createSink();
  readers.ask('fast', { work: 'sessions', params: {}, form: 'json' }, sink);
  await setImmediate();
  expect([begun, outcome()]).toEqual([0, expect.stringMatching(/has ended/)]);
  for (const one of slow) expect(one.outcome()).toMatch(/has ended/);
});

test('threads that are closed at any moment of their start end nothing but themselves', async () => {
  const file = await slowStore();
  for (let ms = 0; ms < scale(120, 30); ms += 2) {
    const readers = createReaders({ file, onChanges() {}, onRestart() {} });
    const question = { work: 'sessions', params: { filter: 'transport=stdio' }, form: 'json' as const };
    for (let i = 0; i < 3; i += 1) readers.ask('slow', question, createSink().sink);
    await setTimeout(ms);
    await readers.close();
  }
});
