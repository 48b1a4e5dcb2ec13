import { once } from 'node:events';
import { createServer } from 'node:net';
import { TapedeckError } from '../errors.ts';
import { type Keeper, sha256, type WrappedUrl } from './keeper.ts';
import type { Target } from './targets.ts';
import { originalUrl, urlProblem } from './url.ts';
import { openConfig, wrappedUrlOf } from './wrapped.ts';

/** Below the ports that Linux, macOS and Windows assign themselves, so that no other program gets one by chance. */
const FIRST = 18_000;

const COUNT = 10_000;

/**
 * Returns a port that nothing listens on and no other entry has. The same `seed` gets the same port if it is free, so that
 * an entry that is wrapped again keeps its port.
 */
export async function choosePort(seed: string, taken: ReadonlySet<number>): Promise<number> {
  const start = Number.parseInt(sha256(seed).slice(0, 8), 16);
  for (let i = 0; i < COUNT; i += 1) {
    const port = FIRST + ((start + i) % COUNT);
    if (!taken.has(port) && (await isFree(port))) return port;
  }
  throw new TapedeckError('busy', `no port between ${FIRST} and ${FIRST + COUNT} is free`);
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen({ host: '127.0.0.1', port, exclusive: true });
    await once(server, 'listening');
    return true;
  } catch {
    return false;
  } finally {
    server.close();
  }
}

/** The URL servers that are wrapped: which ports must be served, and where they lead. */

export type Listener = WrappedUrl & { name: string; file: string };

/**
 * The URLs of the servers that this config has for the folder; of one that is wrapped, the server's own. Without those that only the client can resolve.
 * Throws `TapedeckError` with the reason where the config cannot be read.
 */
export function serverUrlsOf(target: Target, keeper: Keeper, folder: string): string[] {
  const open = openConfig(target, keeper);
  return open.config.entries.flatMap((entry) => {
    const { server, path, isDisabled } = entry;
    const isElsewhere = path[0] === 'projects' && path[1] !== folder;
    if (server.kind !== 'url' || isDisabled || isElsewhere) return [];
    const url = server.url.value.value;
    const wrapped = wrappedUrlOf(entry, open);
    const own = wrapped === undefined ? url : originalUrl(url, wrapped.url);
    return urlProblem(own) === null ? [own] : [];
  });
}

/** Throws `TapedeckError` with the reason where the config cannot be read. */
export function listenersOf(target: Target, keeper: Keeper): Listener[] {
  const open = openConfig(target, keeper);
  return open.config.entries.flatMap((entry) => {
    const url = wrappedUrlOf(entry, open);
    return url === undefined ? [] : [{ ...url, name: entry.name, file: target.file }];
  });
}
