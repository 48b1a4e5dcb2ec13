/** This machine, as far as finding clients' configs depends on it, and where their copies are kept. */

import { join } from 'node:path';
import type { Machine } from '../clients/clients.ts';
import { type Keeper, openKeeper } from '../clients/keeper.ts';
import { dataFolder, homeFolder } from '../store/file/path.ts';
import type { Io } from './io.ts';

export function thisMachine(io: Io): Machine {
  return { platform: process.platform, home: homeFolder(io.env), env: io.env, folder: io.cwd() };
}

/** Not beside the store: that may be elsewhere, and may be removed. */
export function keeperFolder({ env }: Io): string {
  return join(dataFolder(env), 'wrapped');
}

export function thisKeeper(io: Io): Keeper {
  return openKeeper(keeperFolder(io));
}
