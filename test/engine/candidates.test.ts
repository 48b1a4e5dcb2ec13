/** What an engine takes for a candidate, and what a filter holds for. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { connectEngine, readAddress } from '../../src/engine/connect.ts';
import { candidatesFor } from '../../src/engine/read/candidates.ts';
import { createFinder } from '../../src/engine/read/find.ts';
import { parseFilter } from '../../src/inspect/filter/filter.ts';
import { eachSessionWith } from '../../src/inspect/filter/sql.ts';
import { openStore } from '../../src/store/file/open.ts';
import { newDatabase, withEngine } from '../support/engine.ts';
import { anyFilter, anySession, FILTERED_AT, recordingOf } from '../support/filters.ts';
import { scale } from '../support/scale.ts';
import { tapedeckInProcess, tempStore } from '../support/tapedeck.ts';
import { importText } from '../support/text-recording.ts';

withEngine('candidates', () => {
  test('a session with a frame for which a filter holds is a candidate, of random sessions and filters', async () => {
    const database = await newDatabase();
    await tapedeckInProcess(['engine', 'init', '--to', database.url]);
    const file = tempStore();
    const store = openStore(file);
    // Of an open one nothing is shipped before its first frame.
    const sessions = fc
      .sample(anySession, { numRuns: scale(60, 12), seed: 7 })
      .filter(({ lines }) => lines.length > 0);
    for (const [i, one] of sessions.entries()) await importText(store, recordingOf(one, i));
    const words = ['--once', '--imported', '--ship-unredacted', '--to', database.url, '--db', file];
    expect((await tapedeckInProcess(['ship', ...words])).stderr).toContain('shipped');
    const client = await connectEngine(readAddress(database.url, {}));
    const finder = createFinder(client);
    const all = await finder.newest(Number.POSITIVE_INFINITY);
    expect(all.length).toBe(sessions.length);
    let held = 0;
    let leftOut = 0;
    for (const text of fc.sample(anyFilter, { numRuns: scale(1500, 150), seed: 7 })) {
      const filter = parseFilter(text, FILTERED_AT);
      const holds = [...eachSessionWith(store, filter)].map(({ id }) => id);
      const candidates = await finder.newest(Number.POSITIVE_INFINITY, candidatesFor(filter));
      const found = candidates.map(({ id }) => id);
      expect(found, text).toEqual(expect.arrayContaining(holds));
      held += holds.length;
      leftOut += sessions.length - found.length;
    }
    // It is no use if everything is one.
    expect(leftOut).toBeGreaterThan(held / 4);
    await client.end();
    store.close();
  });
});
