import { expect, test } from 'vitest';
import { scale } from '../support/scale.ts';
import { BIN, start, tempStore } from '../support/tapedeck.ts';

/** The fewer calls, the longer their texts: it is the bytes that no heap could hold. */
const CALLS = scale(30_000);
const PADDING = 'x'.repeat(60_000_000 / CALLS);
const textOf = (i: number): string => `call ${i} ${PADDING}`;
/**
 * Twice what the process needs without any recording, for how much garbage it lets lie depends on the machine's load, and
 * less than the text of the answers alone (60 MB).
 */
const MAX_HEAP_MB = 48;

test('a long recording is replayed to its end in a heap that could not hold it', {
  timeout: 120_000,
}, async () => {
  const { makeRecording } = await import('../bench/long-recording.js');
  const db = tempStore();
  makeRecording(db, { name: 'long', calls: CALLS, textOf });
  const { child, ended } = start(process.execPath, [
    `--max-old-space-size=${MAX_HEAP_MB}`,
    ...[BIN, 'replay', 'long', '--db', db, '--fail-on-miss'],
  ]);
  for (let i = 1; i <= CALLS; i += 1) {
    const text = textOf(i);
    const params = { name: 'echo', arguments: { text, message: text } };
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: i, method: 'tools/call', params })}\n`);
  }
  child.stdin.end();
  const { code, stdout, stderr } = await ended;
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: `tapedeck: 1 of ${CALLS + 1} recorded calls were never asked for\n`,
  });
  const texts = stdout.toString().split('\n').slice(0, -1);
  expect(texts).toHaveLength(CALLS);
  for (const i of [1, CALLS / 2, CALLS]) {
    expect(JSON.parse(texts[i - 1] ?? '')).toMatchObject({
      id: i,
      result: { content: [{ text: textOf(i) }] },
    });
  }
});
