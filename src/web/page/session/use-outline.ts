/** The outline of a session, slice by slice, and what comes while it is recorded. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import type { Outline } from '../../api.ts';
import { useChanges } from '../shell/live.ts';
import { type ApiFailure, failureOf, source } from '../shell/source.ts';
import { SessionOutline } from './outline.ts';

const FIRST_SLICE = 500;
const SLICE = 5000;
const DRAWN_EVERY_MS = 600;

export type LoadedOutline = {
  outline: SessionOutline;
  /** Changes with each slice. */
  version: number;
  /** Whether all is there that is stored at this moment. */
  isComplete: boolean;
  failure: ApiFailure | null;
  /** Whether its session was removed meanwhile. */
  isGone: boolean;
};

type State = Omit<LoadedOutline, 'version'> & {
  session: string;
  upTo: number;
  isLoading: boolean;
  /** Whether more came while it was loading. */
  hasMore: boolean;
};

function begin(session: string): State {
  const outline = new SessionOutline();
  return {
    session,
    outline,
    isComplete: false,
    failure: null,
    isGone: false,
    isLoading: false,
    hasMore: false,
    upTo: 0,
  };
}

/** While `isPaused`, what comes is not asked for. */
export function useOutline(session: string, isPaused: boolean): LoadedOutline {
  const [version, draw] = useReducer((n: number) => n + 1, 0);
  const state = useRef(begin(session));
  if (state.current.session !== session) state.current = begin(session);
  const abort = useRef(new AbortController());

  const load = async () => {
    const now = state.current;
    now.hasMore = true;
    if (now.isLoading) return;
    now.isLoading = true;
    const { signal } = abort.current;
    try {
      let next: number | null = null;
      let drawnAt = 0;
      while ((next !== null || now.hasMore) && !signal.aborted) {
        now.hasMore = false;
        next ??= now.upTo;
        const limit = now.outline.count === 0 ? FIRST_SLICE : SLICE;
        const slice: Outline = await source().json(
          `sessions/${encodeURIComponent(session)}/outline?after=${next}&limit=${limit}`,
          signal,
        );
        now.outline.append(slice);
        now.upTo = slice.seq.at(-1) ?? now.upTo;
        next = slice.next;
        now.isComplete = next === null;
        now.failure = null;
        // The rows are made anew each time: at first at once, then now and then, until all is there.
        if (performance.now() - drawnAt < DRAWN_EVERY_MS && !now.isComplete) continue;
        draw(undefined);
        drawnAt = performance.now();
      }
    } catch (error) {
      if (!signal.aborted) now.failure = failureOf(error);
      draw(undefined);
    }
    now.isLoading = false;
  };

  useEffect(() => {
    abort.current = new AbortController();
    void load();
    return () => abort.current.abort();
  }, [session]);
  useEffect(() => {
    if (!isPaused && state.current.isComplete) void load();
  }, [isPaused]);
  useChanges((change) => {
    if (change.kind === 'pruned' && change.id === session) {
      state.current.isGone = true;
      draw(undefined);
    }
    const isOwn = 'id' in change && change.id === session && change.kind !== 'pruned';
    const isAnew = change.kind === 'begin' && !change.resumed;
    if ((isOwn || isAnew) && !isPaused) void load();
  });
  const { outline, isComplete, failure, isGone } = state.current;
  return { outline, version, isComplete, failure, isGone };
}
