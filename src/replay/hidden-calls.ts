/** Recorded calls that look the same because what tells them apart was redacted. None of them answers anybody. */
import type { RequestKey } from './key.ts';

export type Hidden = {
  /** `exact` tells redacted values apart, `key` does not. */
  add(key: RequestKey, exact: RequestKey): void;
  isAmbiguous(key: RequestKey): boolean;
};

export function createHidden(): Hidden {
  const exactOf = new Map<string, string>();
  const ambiguous = new Set<string>();
  return {
    add({ digest }, exact) {
      const name = digest.toString('latin1');
      const own = exact.digest.toString('latin1');
      if ((exactOf.get(name) ?? own) !== own) ambiguous.add(name);
      exactOf.set(name, own);
    },
    isAmbiguous: ({ digest }) => ambiguous.size > 0 && ambiguous.has(digest.toString('latin1')),
  };
}
