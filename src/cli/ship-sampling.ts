/** The options of what is shipped, the same for all commands that ship. Asked before anything is started, so this loads nothing. */

import { readAge, readRate } from '../config/sizes.ts';
import { TapedeckError } from '../errors.ts';
import type { ShipSampling } from '../store/sample/ship-sample.ts';

export const SHIP_SAMPLING_OPTIONS = {
  'ship-sample': {
    type: 'string',
    describe: 'Ship this share of the sessions, 10% or 0.1, each as a whole, beside those of --ship-keep',
  },
  'ship-keep': {
    type: 'string',
    describe:
      'With --ship-sample: ship sessions that have what this filter asks for, too (default status~error)',
  },
  'decide-after': {
    type: 'string',
    describe:
      'With --ship-sample: so long after its beginning decide of a session that is open (default 10m)',
  },
} as const;

export type RawShipSampling = Readonly<
  Partial<Record<keyof typeof SHIP_SAMPLING_OPTIONS, string | undefined>>
>;

const KEEP = 'status~error';

const DECIDE_AFTER = '10m';

/** Null: all sessions are shipped. Throws `TapedeckError` `usage`; whether the filter is one, `checkShipSampling` says. */
export function readShipSampling(raw: RawShipSampling): ShipSampling | null {
  const { 'ship-sample': sample, 'ship-keep': keep, 'decide-after': after } = raw;
  if (keep === '')
    throw new TapedeckError('usage', 'Expected a value after `--ship-keep`, got an empty one.');
  if (sample !== undefined)
    return {
      rate: readRate('--ship-sample', sample),
      keep: keep ?? KEEP,
      decideAfterMs: readAge('--decide-after', after ?? DECIDE_AFTER),
    };
  if (keep === undefined && after === undefined) return null;
  const option = keep === undefined ? '--decide-after' : '--ship-keep';
  throw new TapedeckError(
    'usage',
    `Expected \`--ship-sample\` with \`${option}\`, for how many of the other sessions are shipped. Example: --ship-sample 5% --ship-keep status~error`,
  );
}

/** Throws `TapedeckError` `usage`. The filter language is loaded only where there is a filter. */
export async function checkShipSampling(sampling: ShipSampling | null): Promise<void> {
  if (sampling === null) return;
  const { parseFilter } = await import('../inspect/filter/filter.ts');
  parseFilter(sampling.keep, Date.now() * 1000);
}

/** As words of a command line. */
export function shipSamplingWords(sampling: ShipSampling | null): string[] {
  if (sampling === null) return [];
  const { rate, keep, decideAfterMs } = sampling;
  // No number of a command line has an exponent.
  const share = String(rate).includes('e') ? rate.toFixed(20) : rate;
  return [`--ship-sample=${share}`, `--ship-keep=${keep}`, `--decide-after=${decideAfterMs}ms`];
}
