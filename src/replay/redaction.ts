/**
 * What was redacted in the recording is redacted in what is compared with it, by the same rules. Placeholders tell which
 * secret they stand for if they were made with a key that is at hand: the store's own, or that of the store that a text
 * recording was exported from. The key is never exported, so elsewhere they tell no more than which rule found the
 * secret.
 */
import { createRedactor, type Redactor } from '../protocol/redact.ts';
import type { Store } from '../store/open.ts';
import { createDigest, keyFingerprint } from '../store/secret.ts';
import { sessionDetails } from '../store/session-details.ts';

export type Alike = {
  /** Whether it can be told which secret each placeholder stands for. */
  isExact: boolean;
  /** A message as it would have been recorded. What was recorded stays as it is. */
  redacted(json: Buffer): Buffer;
  /** That, as far as two of them can be compared: without the secrets' digests where their key is not at hand. */
  comparable(redacted: Buffer): Buffer;
};

const PLACEHOLDER = /(\[redacted:[a-z0-9-]+:)[0-9a-f]{12}\]/g;
const BEGINNING = '[redacted:';
const AS_IT_IS: Alike = { isExact: true, redacted: (json) => json, comparable: (json) => json };

/** `keyStores`: where the key may be. */
export function createAlike(store: Store, session: number, keyStores: readonly Store[]): Alike {
  const { redaction } = sessionDetails(store, session);
  if (redaction === null) return AS_IT_IS;
  const owner = keyStores.find((one) => keyFingerprint(one) === redaction.key);
  const redactor = createRedactor(
    redaction,
    owner === undefined ? () => '0'.repeat(12) : createDigest(owner),
  );
  const redacted = (json: Buffer) => redactedBy(redactor, json);
  return {
    isExact: owner !== undefined,
    redacted,
    comparable: owner === undefined ? withoutDigests : (json) => json,
  };
}

function redactedBy(redactor: Redactor, json: Buffer): Buffer {
  return redactor.payload(json, false, false)?.payload ?? json;
}

function withoutDigests(json: Buffer): Buffer {
  if (!hasPlaceholder(json)) return json;
  return Buffer.from(json.toString('latin1').replaceAll(PLACEHOLDER, '$1]'), 'latin1');
}

/** Whether something in a recorded message was redacted, so that nobody should get it for the real thing. */
export function hasPlaceholder(json: Buffer): boolean {
  return json.includes(BEGINNING) && new RegExp(PLACEHOLDER).test(json.toString('latin1'));
}
