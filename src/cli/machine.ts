/** This machine, as far as finding clients' configs depends on it, and where their copies are kept. */

import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Machine } from '../clients/clients.ts';
import { type Keeper, openKeeper } from '../clients/kept.ts';
import { dataFolder } from '../store/file/open.ts';

export function thisMachine(): Machine {
  return { platform: process.platform, home: homedir(), env: process.env, folder: process.cwd() };
}

/** Not beside the store: that may be elsewhere, and may be removed. */
export function keeperFolder(): string {
  return join(dataFolder(), 'wrapped');
}

export function thisKeeper(): Keeper {
  return openKeeper(keeperFolder());
}
