import { TapedeckError } from '../errors.ts';

const UNITS: Record<string, number> = { '': 1, b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3, tb: 1024 ** 4 };

/** A size of at least one byte, as `512kb` or `64 MB`, in bytes. Throws `TapedeckError` `usage`. */
export function readSize(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([kmgt]?b?)$/i.exec(text);
  const unit = UNITS[(match?.[2] ?? '').toLowerCase().replace(/^([kmgt])$/, '$1b')];
  const bytes = Math.round(Number(match?.[1]) * (unit ?? Number.NaN));
  if (!Number.isSafeInteger(bytes) || bytes < 1) {
    throw new TapedeckError(
      'usage',
      `Expected a size after \`${option}\`, got \`${text}\`. Examples: 512kb, 64mb, 1gb`,
    );
  }
  return bytes;
}
