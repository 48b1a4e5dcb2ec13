import { expect, test, vi } from 'vitest';
import { openForReading } from '../../src/store/file/open.ts';
import type { Outline } from '../../src/web/api.ts';
import { outlineWork } from '../../src/web/fast/outline.ts';
import { record, tapedeckInProcess, tempStore } from '../support/tapedeck.ts';

/** No message has it: whoever parses one asks for it once. */
const MEMBER = 'a member of this test';

/** A session with a batch of so many messages that are none. The index does not tell what is wrong with each. */
async function recordBatch(count: number): Promise<string> {
  const db = tempStore();
  const { child, ended } = record(db, ['echo.js']);
  child.stdin.end(`${JSON.stringify(Array(count).fill({ [MEMBER]: 1 }))}\n`);
  await ended;
  // The first reader completes the index.
  await tapedeckInProcess(['show', '--db', db]);
  return db;
}

/** How many messages are parsed. */
async function parsedBy(read: () => Promise<unknown>): Promise<number> {
  const asked = vi.spyOn(Object, 'hasOwn');
  await read();
  const { length } = asked.mock.calls.filter(([, member]) => member === MEMBER);
  asked.mockRestore();
  return length;
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

test.each([1, 300])(
  'each of the %i messages of a frame is parsed once, by show and for an outline',
  async (count) => {
    const db = await recordBatch(count);
    expect(await parsedBy(() => tapedeckInProcess(['show', '--db', db]))).toBe(count);
    expect(await parsedBy(() => outlineOf(db))).toBe(count);
    const { channel, kind, strings }: Outline = JSON.parse(await outlineOf(db));
    const said = channel.filter(
      (place, i) => strings[place] === 'stdin' && strings[kind[i] ?? 0] === 'invalid',
    );
    expect(said).toHaveLength(count);
  },
);
