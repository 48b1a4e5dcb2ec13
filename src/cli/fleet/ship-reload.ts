/** SIGHUP reads the configuration file of `ship --watch` anew: which sessions are shipped, all or nothing. */

import { parseArgs } from 'node:util';
import { findConfigurationFiles } from '../../config/location.ts';
import { escapeText } from '../../protocol/text.ts';
import type { ShipSampling } from '../../store/sample/ship-sample.ts';
import { blameSetting } from '../config/blame.ts';
import { withConfig } from '../config/words.ts';
import { type Io, say } from '../io.ts';
import { checkShipSampling, readShipSampling, SHIP_SAMPLING_OPTIONS } from '../ship-sampling.ts';

const OPTIONS = { ...SHIP_SAMPLING_OPTIONS, to: { type: 'string' } } as const;

type Reread = { sampling: ShipSampling | null; to: string | undefined };

/**
 * Calls `onRead` with what the files say now, or says why all stays as it is. `argv`: the words of the command line; `to`: the engine
 * that they named at the start. Never rejects.
 */
export async function reloadShipping(
  io: Io,
  argv: readonly string[],
  to: string | undefined,
  onRead: (sampling: ShipSampling | null) => void,
): Promise<void> {
  try {
    const next = await reread(io, argv);
    onRead(next.sampling);
    say(io, 'the configuration was read anew: which sessions are shipped counts from now on');
    if (next.to !== to) say(io, 'changed, and counts from the next start on: the engine');
  } catch (error) {
    say(io, escapeText(`everything stays as it was: ${(error as Error).message}`));
  }
}

/** Throws `TapedeckError` with the place of what is wrong. */
async function reread(io: Io, argv: readonly string[]): Promise<Reread> {
  const files = findConfigurationFiles(argv, io);
  const args = withConfig(argv, files, io.env);
  // The others were checked at the start, and stay what they are.
  const { values } = parseArgs({ args, options: OPTIONS, strict: false, allowPositionals: true });
  const given = values as Partial<Record<keyof typeof OPTIONS, string>>;
  const sampling = readShipSampling(given);
  await checkShipSampling(sampling).catch((error) => blameSetting(files, io.env, 'ship.keep', error));
  return { sampling, to: given.to };
}
