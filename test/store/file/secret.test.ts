import { expect, test } from 'vitest';
import { openStore } from '../../../src/store/file/open.ts';
import { createDigest } from '../../../src/store/file/secret.ts';
import { tempStore } from '../../support/tapedeck.ts';

function placeholdersIn(db: string, secrets: readonly string[]): string[] {
  const store = openStore(db);
  const placeholder = createDigest(store);
  const made = secrets.map(placeholder);
  store.close();
  return made;
}

test('a secret has the same placeholder in one store, also after it was opened again', () => {
  const db = tempStore();
  const [one, two, again] = placeholdersIn(db, ['a', 'b', 'a']);
  expect(one).toMatch(/^[0-9a-f]{12}$/);
  expect(again).toBe(one);
  expect(two).not.toBe(one);
  expect(placeholdersIn(db, ['a', 'b'])).toEqual([one, two]);
});

test('another store has another placeholder for the same secret', () => {
  expect(placeholdersIn(tempStore(), ['a'])).not.toEqual(placeholdersIn(tempStore(), ['a']));
});

test('so many secrets that some are forgotten keep their placeholders', () => {
  const store = openStore(tempStore());
  const placeholder = createDigest(store);
  const first = placeholder('first');
  for (let i = 0; i < 2500; i += 1) placeholder(`secret ${i}`);
  expect(placeholder('first')).toBe(first);
  store.close();
});
