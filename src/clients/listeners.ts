/** The URL servers that are wrapped: which ports must be served, and where they lead. */
import type { Keeper, WrappedUrl } from './kept.ts';
import type { Target } from './targets.ts';
import { openConfig, wrappedUrlOf } from './wrapped.ts';

export type Listener = WrappedUrl & { name: string; file: string };

/** Throws `TapedeckError` `usage` with the reason where the config cannot be read. */
export function listenersOf(target: Target, keeper: Keeper): Listener[] {
  const open = openConfig(target, keeper);
  return open.config.entries.flatMap((entry) => {
    const url = wrappedUrlOf(entry, open);
    return url === undefined ? [] : [{ ...url, name: entry.name, file: target.file }];
  });
}
