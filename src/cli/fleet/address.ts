/** The engine that a command line, the environment or the user's configuration names. */

import type { EngineAddress } from '../../engine/connect.ts';
import { TapedeckError } from '../../errors.ts';
import { type Io, say } from '../io.ts';

export const ENGINE_OPTIONS = {
  to: {
    type: 'string',
    describe: 'The engine, postgres://user@host/database (default: TAPEDECK_SHIP)',
    requiresArg: true,
    coerce: (url: string | string[]) => (Array.isArray(url) ? url.at(-1) : url),
  },
  'insecure-engine': {
    type: 'boolean',
    default: false,
    describe: 'Reach it beyond loopback without checking its certificate',
  },
} as const;

export type RawEngine = { to: string | undefined; 'insecure-engine': boolean };

/** Warns of a password that others can see. Throws `TapedeckError` `usage` where no engine is named, or none that can be read. */
export async function addressOf(
  io: Io,
  { to, 'insecure-engine': isInsecure }: RawEngine,
): Promise<EngineAddress> {
  const { hasPassword, readAddress } = await import('../../engine/connect.ts');
  const url = to ?? io.env['TAPEDECK_SHIP'];
  if (!url)
    throw new TapedeckError(
      'usage',
      'Expected an engine: --to postgres://user@host/database, TAPEDECK_SHIP, or `ship.url` in your configuration.',
    );
  // What a configuration file says is no word of this process.
  if (hasPassword(url) && process.argv.some((word) => word.includes(url)))
    say(
      io,
      'a password on a command line can be read by every user of this machine. PGPASSFILE keeps it in a file',
    );
  return readAddress(url, io.env, { isInsecure });
}
