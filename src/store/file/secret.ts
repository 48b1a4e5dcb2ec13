/** Placeholders for secrets: the same in one store for the same secret, and unlike those of any other store. */

import { createHmac, randomBytes } from 'node:crypto';
import { memoize } from '../../protocol/bounded.ts';
import type { Store } from './open.ts';

const KEY_BYTES = 32;

const DIGITS = 12;

/** Longer ones are rare, and a thousand of them would be much memory. */
const REMEMBERED = { maxEntries: 1000, maxLength: 4096 };

/** Twelve hexadecimal digits that stand for a secret. */
export function createDigest(store: Store): (secret: string) => string {
  const key = keyOf(store);
  return memoize((secret) => digestOf(key, secret), REMEMBERED);
}

/** The same for as long as this process runs, by a key that is stored nowhere. */
export function createPassingDigest(): (secret: string) => string {
  const key = randomBytes(KEY_BYTES);
  return memoize((secret) => digestOf(key, secret), REMEMBERED);
}

function digestOf(key: Buffer, secret: string): string {
  return createHmac('sha256', key).update(secret).digest('hex').slice(0, DIGITS);
}

/** Tells the key from others, and tells nothing of it. Null: the store has no key yet. */
export function keyFingerprint(store: Store): string | null {
  const key = readKey(store);
  if (key === undefined) return null;
  return digestOf(key, 'fingerprint');
}

function keyOf(store: Store): Buffer {
  const known = readKey(store);
  if (known !== undefined) return known;
  store
    .prepare("INSERT OR IGNORE INTO secret (name, value) VALUES ('placeholder-key', ?)")
    .run(randomBytes(KEY_BYTES));
  return readKey(store) ?? randomBytes(KEY_BYTES);
}

function readKey(store: Store): Buffer | undefined {
  return store.prepare<[], Buffer>("SELECT value FROM secret WHERE name = 'placeholder-key'").pluck().get();
}
