/** Who reads by other ways than a command that prints sees of a packed store what they saw before it was packed. */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';
import { openForReading } from '../../../src/store/file/open.ts';
import {
  RECORDINGS,
  seenInDeck,
  toldToAgent,
  VIEWER_PATHS,
  wholeAnswer,
} from '../../support/other-readers.ts';
import { inFull } from '../../support/scale.ts';
import { tapedeckInProcess, tempFolder, until } from '../../support/tapedeck.ts';
import { startUi, storeOf } from '../../support/ui.ts';

async function pack(db: string): Promise<void> {
  const { stdout } = await tapedeckInProcess(['pack', '--json', '--db', db]);
  expect(JSON.parse(stdout.toString())).toMatchObject({ sessions: RECORDINGS.length, remains: [] });
  const store = openForReading(db);
  const packed = store.prepare('SELECT count(*) FROM frame WHERE codec IS NOT NULL').pluck().get();
  store.close();
  expect(packed).toBeGreaterThan(10);
}

inFull('the viewer answers what it answered before', async () => {
  const plain = await storeOf(...RECORDINGS);
  const packed = join(tempFolder(), 'packed.db');
  copyFileSync(plain, packed);
  await pack(packed);
  const viewers = await Promise.all([plain, packed].map((db) => startUi(db)));
  for (const path of VIEWER_PATHS) {
    const answers = () => Promise.all(viewers.map(async (ui) => wholeAnswer(ui, path)));
    let [before, after] = await answers();
    // A completion has what was found in its time.
    if (path.startsWith('/api/complete?'))
      await until(`the same values of ${path}`, async () => {
        [before, after] = await answers();
        return isDeepStrictEqual(before, after);
      });
    expect(after).toEqual(before);
  }
});

inFull('a test finds in a deck what it found before', async () => {
  const db = await storeOf(...RECORDINGS);
  const before = await seenInDeck('everything-stdio', db);
  await pack(db);
  expect(await seenInDeck('everything-stdio', db)).toEqual(before);
});

inFull('an agent is told what it was told before', async () => {
  const db = await storeOf(...RECORDINGS);
  const before = await toldToAgent(db);
  await pack(db);
  expect(await toldToAgent(db)).toEqual(before);
});
