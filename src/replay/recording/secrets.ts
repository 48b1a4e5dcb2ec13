/**
 * Redacts live messages by the rules of the recording, so that they can be compared with it. A placeholder identifies its
 * secret where its key is at hand: in the store itself, or in the store that a text recording was exported from. Keys are
 * never exported, so elsewhere a placeholder only names the rule that found the secret. A recording whose secrets are
 * numbered (protocol/redact/numbers.ts) has no key: match/key.ts binds live secrets to its numbers.
 */

import {
  createSecretNumbers,
  highestNumber,
  NUMBERED_KEY,
  type SecretNumbers,
} from '../../protocol/redact/numbers.ts';
import { joinProfiles, PLAIN_PROFILE, type RedactionProfile } from '../../protocol/redact/profile.ts';
import { createRedactor } from '../../protocol/redact/redactor.ts';
import type { SessionRedaction } from '../../store/file/columns.ts';
import type { Store } from '../../store/file/open.ts';
import { createDigest, createPassingDigest, keyFingerprint } from '../../store/file/secret.ts';

export type RecordingSecrets = {
  /** Whether each placeholder identifies its secret, or is a number of one. */
  isExact: boolean;
  numbers: SecretNumbers | null;
  /** A message as it would have been recorded. What was recorded stays as it is. */
  redacted(json: Buffer): Buffer;
  /** By further rules, too: as it would be recorded now, and as it may be shown. The same function where there are none. */
  redactedNow(json: Buffer): Buffer;
  /** A redacted message for comparisons: without the digests of secrets where their key is not at hand. */
  comparable(redacted: Buffer): Buffer;
  /** The same where no live secret is bound to a number: then all secrets of a rule are alike. */
  alike(redacted: Buffer): Buffer;
};

const PLACEHOLDER = /(\[redacted:[a-z0-9-]+:)[0-9a-f]{12}\]/g;

const BEGINNING = '[redacted:';

/** `keyStores`: where the key may be. `more`: rules that count besides those of the recording. `texts`: all of it. */
export function readSecrets(
  redaction: SessionRedaction | null,
  keyStores: readonly Store[],
  more: RedactionProfile,
  texts: () => Iterable<string>,
): RecordingSecrets {
  const isNumbered = redaction?.key === NUMBERED_KEY;
  const numbers = isNumbered
    ? createSecretNumbers(createPassingDigest(), () => highestNumber(texts()))
    : null;
  const owner = keyStores.find((one) => keyFingerprint(one) === redaction?.key);
  const digest = numbers?.digits ?? (owner === undefined ? () => '0'.repeat(12) : createDigest(owner));
  const isExact = redaction === null || isNumbered || owner !== undefined;
  const redacted = redaction === null ? asItIs : redactorOf(redaction, digest);
  const hasMore = more.rules.length + more.paths.length > 0;
  return {
    isExact,
    numbers,
    redacted,
    redactedNow: hasMore ? redactorOf(joinProfiles(redaction ?? PLAIN_PROFILE, more), digest) : redacted,
    comparable: isExact ? asItIs : withoutDigests,
    alike: isExact && !isNumbered ? asItIs : withoutDigests,
  };
}

function asItIs(json: Buffer): Buffer {
  return json;
}

function redactorOf(profile: RedactionProfile, digest: (secret: string) => string) {
  const redactor = createRedactor(profile, digest);
  return (json: Buffer) => redactor.payload(json, false, false)?.payload ?? json;
}

export function withoutDigests(json: Buffer): Buffer {
  if (!hasPlaceholder(json)) return json;
  return Buffer.from(json.toString('latin1').replaceAll(PLACEHOLDER, '$1]'), 'latin1');
}

/** Whether a message holds what looks like a placeholder, with or without its digits. */
export function mayHoldPlaceholder(json: Buffer): boolean {
  return json.includes(BEGINNING);
}

/** Whether a recorded message holds a placeholder, so that no server must get it. */
export function hasPlaceholder(json: Buffer): boolean {
  return mayHoldPlaceholder(json) && new RegExp(PLACEHOLDER).test(json.toString('latin1'));
}

/** The placeholders of a text in their order, each as its rule and its digits. */
export function placeholdersIn(json: Buffer): { rule: string; digits: string }[] {
  if (!mayHoldPlaceholder(json)) return [];
  return [...json.toString('latin1').matchAll(PLACEHOLDER)].map(([whole, rule = '']) => ({
    rule,
    digits: whole.slice(rule.length, -1),
  }));
}
