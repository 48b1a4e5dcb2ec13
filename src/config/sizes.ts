/** The limits of a store, as `prune`, `record` and the configuration file have them in common. */

import { TapedeckError } from '../errors.ts';
import { parseDuration, parseSize } from '../inspect/filter/values.ts';
import { NO_LIMITS, type RetentionLimits, type UpkeepRules } from '../store/keep/limits.ts';

export const RETENTION_OPTIONS = {
  'older-than': {
    type: 'string',
    describe: 'Delete sessions that ended longer ago: 90m, 12h, 30d, 2w',
  },
  'max-size': {
    type: 'string',
    describe: 'Delete the oldest sessions while the store takes more on disk: 500mb, 2gb (of 1024)',
  },
  'max-sessions': { type: 'string', describe: 'Delete the oldest sessions while there are more' },
  'keep-errors': {
    type: 'boolean',
    describe: 'Keep sessions with errors: --older-than spares them, the other limits take them last',
  },
  'local-keep': {
    type: 'string',
    describe:
      'Of a store that is shipped: delete sessions so long after they ended, once the engine has them',
  },
  'max-unshipped': {
    type: 'string',
    describe: 'And keep what it does not have, up to so much on disk (default: --max-size)',
  },
} as const;

export type RawRetention = {
  'older-than'?: string | undefined;
  'max-size'?: string | undefined;
  'max-sessions'?: string | undefined;
  'keep-errors'?: boolean | undefined;
  'local-keep'?: string | undefined;
  'max-unshipped'?: string | undefined;
};

/** Null: no limit was given. Throws `TapedeckError` `usage`. */
export function checkRetention(raw: RawRetention): RetentionLimits | null {
  const { 'older-than': age, 'max-size': size, 'max-sessions': count, 'keep-errors': keepErrors } = raw;
  const { 'local-keep': localKeep, 'max-unshipped': unshipped } = raw;
  const isLimited = [age, size, count, localKeep, unshipped].some((limit) => limit !== undefined);
  if (!isLimited) {
    if (keepErrors) {
      throw new TapedeckError(
        'usage',
        '`--keep-errors` goes with a limit. Example: --older-than 30d --keep-errors',
      );
    }
    return null;
  }
  return {
    olderThanMs: age === undefined ? null : readAge('--older-than', age),
    maxBytes: size === undefined ? null : readSize('--max-size', size),
    maxSessions: count === undefined ? null : readCount('--max-sessions', count),
    keepErrors: keepErrors ?? false,
    localKeepMs: localKeep === undefined ? null : readAge('--local-keep', localKeep),
    maxUnshippedBytes: unshipped === undefined ? null : readSize('--max-unshipped', unshipped),
  };
}

export const PACK_OPTION = {
  type: 'string',
  describe: 'Pack the payloads of sessions that ended longer ago, in the background: 7d (see pack)',
} as const;

export type RawUpkeep = RawRetention & { 'pack-after'?: string | undefined };

/** What a recorder sees to. Null: nothing. Throws `TapedeckError` `usage`. */
export function checkUpkeep(raw: RawUpkeep): UpkeepRules | null {
  const limits = checkRetention(raw);
  const age = raw['pack-after'];
  const packAfterMs = age === undefined ? null : readAge('--pack-after', age);
  if (limits === null && packAfterMs === null) return null;
  return { ...NO_LIMITS, ...limits, packAfterMs };
}

/** A share from 0 to 1, of `10%` or `0.1`. Throws `TapedeckError` `usage`. */
export function readRate(option: string, text: string): number {
  const [, digits, percent] = /^(\d+(?:\.\d+)?|\.\d+)(%?)$/.exec(text.trim()) ?? [];
  const rate = digits === undefined ? Number.NaN : Number(digits) / (percent === '%' ? 100 : 1);
  if (rate >= 0 && rate <= 1) return rate;
  throw new TapedeckError(
    'usage',
    `Expected a share after \`${option}\`, got \`${text}\`. Examples: 10%, 0.1`,
  );
}

/** In milliseconds. Throws `TapedeckError` `usage`. */
export function readAge(option: string, text: string): number {
  const ms = Math.round((parseDuration(text) ?? Number.NaN) / 1000);
  if (!Number.isSafeInteger(ms)) {
    throw new TapedeckError(
      'usage',
      `Expected a time after \`${option}\`, got \`${text}\`. Examples: 90m, 12h, 30d, 2w`,
    );
  }
  return ms;
}

/** Throws `TapedeckError` `usage`. */
export function readCount(option: string, text: string): number {
  const count = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isSafeInteger(count)) return count;
  throw new TapedeckError(
    'usage',
    `Expected a whole number after \`${option}\`, got \`${text}\`. Example: ${option} 1000`,
  );
}

/** A size of at least one byte, as `512kb` or `64 MB`, in bytes. Throws `TapedeckError` `usage`. */
export function readSize(option: string, text: string): number {
  const bytes = Math.round(parseSize(text) ?? Number.NaN);
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new TapedeckError(
      'usage',
      `Expected a size after \`${option}\`, got \`${text}\`. Examples: 512kb, 64mb, 1gb`,
    );
  }
  return bytes;
}
