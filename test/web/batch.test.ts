import { expect, test, vi } from 'vitest';
import { parseMessages } from '../../src/protocol/message/message.ts';
import { openForReading } from '../../src/store/file/open.ts';
import type { Outline } from '../../src/web/api.ts';
import { outlineWork } from '../../src/web/fast/outline.ts';
import { record, tapedeckInProcess, tempStore } from '../support/tapedeck.ts';

vi.mock('../../src/protocol/message/message.ts', { spy: true });

/** A session with a batch of so many messages that are none. The index does not tell what is wrong with each. */
async function recordBatch(count: number): Promise<string> {
  const db = tempStore();
  const { child, ended } = record(db, ['echo.js']);
  child.stdin.end(`[${Array(count).fill('1').join(',')}]\n`);
  await ended;
  // The first reader completes the index.
  await tapedeckInProcess(['show', '--db', db]);
  return db;
}

async function parsesOf(read: () => Promise<unknown>): Promise<number> {
  vi.mocked(parseMessages).mockClear();
  await read();
  return vi.mocked(parseMessages).mock.calls.length;
}

async function outlineOf(db: string): Promise<string> {
  const store = openForReading(db);
  const pieces: string[] = [];
  await outlineWork(
    store,
    { session: 'latest' },
    async (piece) => void (typeof piece === 'string' && pieces.push(piece)),
    () => false,
  );
  store.close();
  return pieces.join('');
}

test.each([1, 300])('a frame of %i messages is parsed once, by show and for an outline', async (count) => {
  const db = await recordBatch(count);
  expect(await parsesOf(() => tapedeckInProcess(['show', '--db', db]))).toBe(1);
  expect(await parsesOf(() => outlineOf(db))).toBe(1);
  const { channel, kind, strings }: Outline = JSON.parse(await outlineOf(db));
  const said = channel.filter(
    (place, i) => strings[place] === 'stdin' && strings[kind[i] ?? 0] === 'invalid',
  );
  expect(said).toHaveLength(count);
});
