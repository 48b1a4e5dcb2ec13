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
  const key = placeholderKey(store);
  if (key === undefined) return null;
  return digestOf(key, 'fingerprint');
}

/** Gives a store that has no key this one. */
export function adoptKey(store: Store, key: Buffer): void {
  store.prepare(INSERT_KEY).run(key);
}

const INSERT_KEY = "INSERT OR IGNORE INTO secret (name, value) VALUES ('placeholder-key', ?)";

function keyOf(store: Store): Buffer {
  const known = placeholderKey(store);
  if (known !== undefined) return known;
  adoptKey(store, randomBytes(KEY_BYTES));
  return placeholderKey(store) ?? randomBytes(KEY_BYTES);
}

/** Undefined: the store has no key yet. */
export function placeholderKey(store: Store): Buffer | undefined {
  return store.prepare<[], Buffer>("SELECT value FROM secret WHERE name = 'placeholder-key'").pluck().get();
}
