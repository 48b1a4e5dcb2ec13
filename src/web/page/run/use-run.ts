/** A run with the calls of one stretch, page by page: each is shown when it is there. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { RunDetail } from '../../api.ts';
import { useChanges } from '../shell/live.ts';
import { type ApiFailure, failureOf, source } from '../shell/source.ts';

type Loaded = { run: RunDetail | null; failure: ApiFailure | null };

/** While one of its servers is recorded, it is asked for again so often at most. */
const AGAIN_MS = 2000;

/**
 * `query`: which stretch, and how the run is cut; null where nothing is to be asked for. What is shown stays until the new one
 * is there.
 */
export function useRun(id: string, query: URLSearchParams | null): Loaded {
  const path = `runs/${encodeURIComponent(id)}`;
  const key = query === null ? '' : `${path}?${query}`;
  const [loaded, setLoaded] = useState<Loaded & { of: string }>({ of: '', run: null, failure: null });
  const version = useAgain(loaded.run);
  useEffect(() => {
    if (query === null) return;
    const abort = new AbortController();
    const isShown = loaded.of === key;
    const load = async () => {
      let run: RunDetail | null = null;
      for (let next: number | null = 0; next !== null; next = run.next) {
        const asked = new URLSearchParams(query);
        if (next > 0) asked.set('after', String(next));
        const page: RunDetail = await source().json(`${path}?${asked}`, abort.signal);
        run = run === null ? page : { ...page, calls: [...run.calls, ...page.calls] };
        // What is asked for again is not shown shorter in between.
        if (!isShown || run.next === null) setLoaded({ of: key, run, failure: null });
      }
    };
    load().catch((error) => {
      if (!abort.signal.aborted)
        setLoaded(({ run, of }) => ({
          ...{ of: key, failure: failureOf(error) },
          run: of.startsWith(`${path}?`) ? run : null,
        }));
    });
    return () => abort.abort();
  }, [key, version]);
  return key !== '' && loaded.of.startsWith(`${path}?`) ? loaded : { run: null, failure: null };
}

/** Another number when something passed in one of the run's sessions; a session that is new may be one of them. */
function useAgain(run: RunDetail | null): number {
  const [version, setVersion] = useState(0);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(() => () => clearTimeout(timer.current ?? undefined), []);
  useChanges((change) => {
    const concerns =
      change.kind === 'session' ||
      ('id' in change && run?.lanes.some(({ session }) => session === change.id) === true);
    if (!concerns || timer.current !== null) return;
    timer.current = setTimeout(() => {
      timer.current = null;
      setVersion((n) => n + 1);
    }, AGAIN_MS);
  });
  return version;
}
