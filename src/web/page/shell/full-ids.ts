/** An address may name a session by the beginning of its id, by its name or as the latest: it becomes one that goes on to mean the same. */
import { useEffect } from 'preact/hooks';
import type { SessionDetail } from '../../api.ts';
import { address, go, withQuery } from './router.ts';
import { source } from './source.ts';

const FULL_ID = /^[0-9a-f]{12}$/;

/** Where the ids of sessions stand in a path, by its first word. */
const PLACES: Readonly<Record<string, readonly number[]>> = { s: [2], diff: [2, 3] };

export function useFullIds(): void {
  const { path } = address.value;
  useEffect(() => {
    const abort = new AbortController();
    withFullIds(path, abort.signal)
      .then((full) => {
        if (full !== path) go(withQuery({}, full), 'replace');
      })
      // The screen says itself that there is no such session.
      .catch(() => {});
    return () => abort.abort();
  }, [path]);
}

async function withFullIds(path: string, signal: AbortSignal): Promise<string> {
  const words = path.split('/');
  for (const place of PLACES[words[1] ?? ''] ?? []) {
    const given = words[place] ?? '';
    if (given === '' || FULL_ID.test(given)) continue;
    const detail: SessionDetail = await source().json(`sessions/${encodeURIComponent(given)}`, signal);
    words[place] = detail.session.session;
  }
  signal.throwIfAborted();
  return words.join('/');
}
