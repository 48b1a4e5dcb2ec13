import { expect, test } from 'vitest';
import type { StdioChannel } from '../../../src/protocol/wire/frame.ts';
import { createIngest } from '../../../src/store/record/stdio-intake.ts';

function createProbe(maxFrameBytes = 1024) {
  const ingest = createIngest(maxFrameBytes);
  const feed = (text: string, channel: StdioChannel = 'stdout', at = 0) =>
    ingest.feed({ channel, at, bytes: Buffer.from(text) });
  const texts = () => ingest.frames().map(({ channel, payload }) => `${channel}: ${payload}`);
  return { ingest, feed, texts };
}

test('channels are split apart, and frames stand in the order in which they became whole', () => {
  const { ingest, feed, texts } = createProbe();
  feed('half of ');
  feed('a question\n', 'stdin');
  feed('an answer\n');
  feed('log\n', 'stderr');
  expect(texts()).toEqual(['stdin: a question', 'stdout: half of an answer', 'stderr: log']);
  expect(ingest.firstSeq()).toBe(1);
  ingest.confirm();
  feed('next\n');
  expect([texts(), ingest.firstSeq()]).toEqual([['stdout: next'], 4]);
});

test('the bytes of an unfinished line are given out until they are confirmed, and then only new ones', () => {
  const { ingest, feed } = createProbe();
  const held = () => ingest.held().map(({ channel, part, bytes }) => `${channel} ${part} ${bytes}`);
  feed('one');
  feed('two');
  expect(held()).toEqual(['stdout 0 one', 'stdout 1 two']);
  ingest.confirmHeld(ingest.held());
  expect(held()).toEqual([]);
  feed('three');
  expect(held()).toEqual(['stdout 2 three']);
  feed('\nfour');
  expect(held()).toEqual(['stdout 0 four']);
});

test('every line is counted once, as a frame or as lost, wherever the gap lies', () => {
  const lines = 'a1\nb22\nc333\nd4444\ne55555\n';
  for (let from = 0; from < lines.length; from += 1) {
    for (let to = from + 1; to <= lines.length; to += 1) {
      for (let again = to; again <= lines.length; again += 3) {
        const { ingest, feed } = createProbe();
        const lose = (text: string) => {
          if (text === '') return;
          const endsInsideLine = !text.endsWith('\n');
          const frames = text.split('\n').length - (endsInsideLine ? 0 : 1);
          ingest.gap({ channel: 'stdout', loss: { frames, bytes: text.length }, endsInsideLine });
        };
        feed(lines.slice(0, from));
        // Two gaps in a row, as when two chunks are dropped, and then one that is not.
        lose(lines.slice(from, to));
        lose(lines.slice(to, again));
        feed(lines.slice(again));
        ingest.end();
        const { frames, bytes } = ingest.loss();
        const stored = ingest.frames();
        const what = `${from} ${to} ${again}`;
        expect(stored.length + frames, what).toBe(5);
        const kept = stored.reduce((sum, { size, lineEnd }) => sum + size + lineEnd.length, 0);
        expect(kept + bytes, what).toBe(lines.length);
      }
    }
  }
});
