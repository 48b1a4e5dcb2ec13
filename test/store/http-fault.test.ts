import { expect, test } from 'vitest';
import { startRecording } from '../support/http-store.ts';

/** An item that no reader understands. */
const broken = (owner: number) => ({ kind: 0, owner, at: 2, bytes: Buffer.from('{') });

test('what cannot be taken in is counted, and costs its own exchange only', async () => {
  const recording = startRecording();
  expect(() => recording.intake.framer.feed(broken(1))).toThrow(SyntaxError);
  recording.intake.framer.abandon(broken(1));
  recording.save();
  expect(recording.all('SELECT dropped, dropped_bytes FROM session')).toEqual([
    { dropped: 1, dropped_bytes: 1 },
  ]);
  recording.feed({
    type: 'request',
    exchange: 2,
    at: 3,
    method: 'GET',
    path: '/mcp',
    httpVersion: '1.1',
    rawHeaders: [],
    edits: [],
    clientAddress: '127.0.0.1:1',
  });
  recording.intake.framer.abandon(broken(2));
  recording.save();
  const [{ dropped } = { dropped: 0 }] = recording.all<{ dropped: number }>(
    'SELECT sum(dropped) AS dropped FROM session',
  );
  expect(dropped).toBe(2);
  await recording.close();
});
