/** Lists the clients' configs, their servers, and which are wrapped. Shows nothing of the entries but their names. */

import { existsSync } from 'node:fs';
import { TapedeckError } from '../errors.ts';
import type { Entry } from './config.ts';
import type { Keeper, WrapRecord } from './keeper.ts';
import { goneFile } from './launcher.ts';
import type { Target } from './targets.ts';
import { isWrapped, openConfig } from './wrapped.ts';

export type ListedServer = {
  name: string;
  /** The keys on the way to it. */
  path: readonly string[];
  transport: 'stdio' | 'http' | null;
  isWrapped: boolean;
  isDisabled: boolean;
  /** Why it cannot be wrapped, or cannot start as it is wrapped; null if nothing is wrong. */
  problem: string | null;
};

export type ListedConfig = {
  target: Target;
  servers: readonly ListedServer[];
  /** Why the file cannot be read. */
  problem: string | null;
};

const TRANSPORTS = { stdio: 'stdio', url: 'http', none: null } as const;

export function listConfig(target: Target, keeper: Keeper): ListedConfig {
  try {
    const open = openConfig(target, keeper);
    const servers = open.config.entries.map((entry): ListedServer => {
      const { name, path, server, isDisabled } = entry;
      return {
        name,
        path,
        transport: TRANSPORTS[server.kind],
        isWrapped: isWrapped(entry, open),
        isDisabled,
        problem: problemOf(entry),
      };
    });
    return { target, servers, problem: null };
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    return { target, servers: [], problem: error.message };
  }
}

function problemOf({ server }: Entry): string | null {
  if (server.kind === 'none') return server.reason;
  const gone = server.kind === 'stdio' ? goneFile(server.words) : null;
  return gone === null ? null : `${gone} is gone: wrap it again`;
}

/** Files that were wrapped and are not there any more. */
export function goneFiles(keeper: Keeper): WrapRecord[] {
  return keeper.all().filter(({ file }) => !existsSync(file));
}
