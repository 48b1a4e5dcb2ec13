/**
 * Numbers the secrets of one recording in the order in which they first come: `[redacted:github-token:000000000002]` is the
 * second one. Such a placeholder needs no key, is the same in every re-recording, and gives nothing of its secret away but
 * that it is another one than the first. It tells a replay less than a digest does: which live secret it stands for shows
 * only once one is bound to it.
 */

/** The key of a recording whose placeholders are numbers. */
export const NUMBERED_KEY = 'numbered';

const DIGITS = 12;

export type SecretNumbers = {
  /** The number that the secret stands for; where none is bound to it, digits that tell it from all others. */
  digits(secret: string): string;
  /** The same, but an unknown secret gets the next number. */
  assign(secret: string): string;
  /** Whether these are the digits of a secret that has no number. */
  isOpen(digits: string): boolean;
  /** Whether a live secret has this number. */
  isTaken(number: string): boolean;
  bind(digits: string, number: string): void;
};

/**
 * `tell` makes twelve hexadecimal digits that tell one live secret from another. `used`: the highest number that the
 * recording has so far; asked when the first one is assigned.
 */
export function createSecretNumbers(tell: (secret: string) => string, used = () => 0): SecretNumbers {
  const numbers = new Map<string, string>();
  const taken = new Set<string>();
  const open = new Set<string>();
  let last: number | null = null;

  function bind(digits: string, number: string): void {
    numbers.set(digits, number);
    taken.add(number);
    open.delete(digits);
  }

  return {
    digits(secret) {
      const own = tell(secret);
      const number = numbers.get(own);
      if (number === undefined) open.add(own);
      return number ?? own;
    },
    assign(secret) {
      const own = tell(secret);
      const known = numbers.get(own);
      if (known !== undefined) return known;
      last = (last ?? used()) + 1;
      const number = String(last).padStart(DIGITS, '0');
      bind(own, number);
      return number;
    },
    isOpen: (digits) => open.has(digits),
    isTaken: (number) => taken.has(number),
    bind,
  };
}

const NUMBER = /(?:\[redacted:[a-z0-9-]+:|masked-)(\d{12})/g;

/** The highest number in these texts. */
export function highestNumber(texts: Iterable<string>): number {
  let highest = 0;
  for (const text of texts)
    for (const [, digits] of text.matchAll(NUMBER)) highest = Math.max(highest, Number(digits));
  return highest;
}
