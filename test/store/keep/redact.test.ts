import { expect, test } from 'vitest';
import { PLAIN_PROFILE } from '../../../src/protocol/redact/profile.ts';
import { createRedactor } from '../../../src/protocol/redact/redactor.ts';
import { openStore, type Store } from '../../../src/store/file/open.ts';
import { createDigest } from '../../../src/store/file/secret.ts';
import { frameChanges } from '../../../src/store/keep/redact.ts';
import { FAKE_KEY, FAKE_SECRETS } from '../../support/secrets.ts';
import { record, tempStore } from '../../support/tapedeck.ts';

/** A session whose lines have secrets among them, and a private key over several lines, with others between them. */
async function storeWithKey(): Promise<Store> {
  const db = tempStore();
  const run = record(db, ['cat.js'], ['--no-redact']);
  const key = FAKE_KEY.split('\n').flatMap((line, i) => [line, `{"id":${i},"result":{}}`]);
  run.child.stdin.end([...key, ...FAKE_SECRETS.slice(1).map(({ text }) => text), 'done'].join('\n'));
  await run.ended;
  return openStore(db);
}

type Masked = Map<number, string>;

/** Masks from a place on, and tells the places at which it could be interrupted. */
function mask(store: Store, start: { upTo: number; keyLines: Map<string, number> }) {
  const redactor = createRedactor(PLAIN_PROFILE, createDigest(store));
  const masked: Masked = new Map();
  const places: { upTo: number; keyLines: Map<string, number> }[] = [];
  for (const { changes, upTo } of frameChanges(store, 1, redactor, start, 1)) {
    for (const { before, after } of changes) masked.set(before.seq, after.payload.toString());
    places.push({ upTo, keyLines: new Map(start.keyLines) });
  }
  return { masked, places };
}

test('masking goes on from wherever it was interrupted, in the midst of a private key too', async () => {
  const store = await storeWithKey();
  const { masked, places } = mask(store, { upTo: 0, keyLines: new Map() });
  expect(places.some(({ keyLines }) => [...keyLines.values()].some((left) => left > 0))).toBe(true);
  expect(masked.size).toBeGreaterThan(FAKE_SECRETS.length);
  for (const { upTo, keyLines } of places) {
    const rest = mask(store, { upTo, keyLines }).masked;
    expect([...rest]).toEqual([...masked].filter(([seq]) => seq > upTo));
  }
  store.close();
});
