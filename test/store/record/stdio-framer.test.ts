import { expect, test } from 'vitest';
import { CHANNELS, type StdioChannel } from '../../../src/protocol/wire/frame.ts';
import { createStdioFramer } from '../../../src/store/record/stdio-framer.ts';
import { createPendingSession } from '../../../src/store/write/pending.ts';

function createProbe(maxFrameBytes = 1024) {
  const session = createPendingSession({ basis: 'stdio-process', transport: 'stdio' });
  const framer = createStdioFramer(session, maxFrameBytes, null, 'stdio-process');
  const feed = (text: string, channel: StdioChannel = 'stdout', at = 0) =>
    framer.feed({ kind: CHANNELS.indexOf(channel), owner: 0, at, bytes: Buffer.from(text) });
  const texts = () => session.frames().map(({ channel, payload }) => `${channel}: ${payload}`);
  return { framer, session, feed, texts };
}

test('channels are split apart, and frames stand in the order in which they became whole', () => {
  const { session, feed, texts } = createProbe();
  feed('half of ');
  feed('a question\n', 'stdin');
  feed('an answer\n');
  feed('log\n', 'stderr');
  expect(texts()).toEqual(['stdin: a question', 'stdout: half of an answer', 'stderr: log']);
  expect(session.firstSeq()).toBe(1);
  session.confirm();
  feed('next\n');
  expect([texts(), session.firstSeq()]).toEqual([['stdout: next'], 4]);
});

test('the bytes of an unfinished line are given out until they are confirmed, and then only new ones', () => {
  const { framer, feed } = createProbe();
  const held = () => framer.unfinished().map(({ channel, part, bytes }) => `${channel} ${part} ${bytes}`);
  feed('one');
  feed('two');
  expect(held()).toEqual(['stdout 0 onetwo']);
  for (const { frame, part } of framer.unfinished()) frame.confirm(part);
  expect(held()).toEqual([]);
  feed('three');
  expect(held()).toEqual(['stdout 1 three']);
  feed('\nfour');
  expect(held()).toEqual(['stdout 0 four']);
});

test('every line is counted once, as a frame or as lost, wherever the gap lies', () => {
  const lines = 'a1\nb22\nc333\nd4444\ne55555\n';
  for (let from = 0; from < lines.length; from += 1) {
    for (let to = from + 1; to <= lines.length; to += 1) {
      for (let again = to; again <= lines.length; again += 3) {
        const { framer, session, feed } = createProbe();
        const lose = (text: string) => {
          if (text === '') return;
          const endsInsideLine = !text.endsWith('\n');
          const frames = text.split('\n').length - (endsInsideLine ? 0 : 1);
          framer.gap({ channel: 'stdout', loss: { frames, bytes: text.length }, endsInsideLine });
        };
        feed(lines.slice(0, from));
        // Two gaps in a row, as when two chunks are dropped, and then one that is not.
        lose(lines.slice(from, to));
        lose(lines.slice(to, again));
        feed(lines.slice(again));
        void framer.finish();
        const { frames, bytes } = session.loss;
        const stored = session.frames();
        const what = `${from} ${to} ${again}`;
        expect(stored.length + frames, what).toBe(5);
        const kept = stored.reduce((sum, { size, lineEnd }) => sum + size + lineEnd.length, 0);
        expect(kept + bytes, what).toBe(lines.length);
      }
    }
  }
});
