/** The sessions of the store that a filter selects, page by page, kept up to date while they are recorded. */
import { useEffect, useReducer, useRef, useState } from 'preact/hooks';
import type { SessionDetail, SessionPage, SessionSummary } from '../../api.ts';
import { useChanges } from '../shell/live.ts';
import { type ApiFailure, failureOf, source } from '../shell/source.ts';

/** The first page is soon there and fills any window; the others are as large as they may be. */
const FIRST_PAGE = 100;
const PAGE = 500;

type Sessions = {
  sessions: readonly SessionSummary[];
  /** Of the filter, also those that are not loaded yet. */
  total: number;
  failure: ApiFailure | null;
  isComplete: boolean;
  /** Changes with anything of the above. */
  version: number;
  loadMore(): void;
};

type State = {
  sessions: SessionSummary[];
  total: number;
  next: string | null;
  failure: ApiFailure | null;
  isComplete: boolean;
  isLoading: boolean;
};

export function useSessions(filter: string, sort: string): Sessions {
  const [version, draw] = useReducer((n: number) => n + 1, 0);
  const state = useRef<State>({ ...NONE });
  const abort = useRef(new AbortController());
  const loading = useRef(Promise.resolve());

  /** From the beginning `least` or more: a list that is asked for again does not become shorter. */
  const load = async (after: string | null, least: number) => {
    const own = abort.current;
    state.current.isLoading = true;
    try {
      const come: SessionSummary[] = [];
      let next = after;
      let total = 0;
      do {
        const limit = next === null ? Math.min(PAGE, Math.max(FIRST_PAGE, least)) : PAGE;
        const page: SessionPage = await source().json(pathOf(filter, sort, next, limit), own.signal);
        come.push(...page.sessions);
        ({ next, total } = page);
      } while (next !== null && come.length < least);
      const sessions = after === null ? come : [...state.current.sessions, ...come];
      const isComplete = next === null;
      state.current = { sessions, total, next, failure: null, isComplete, isLoading: false };
    } catch (error) {
      if (own.signal.aborted) return;
      state.current = { ...state.current, failure: failureOf(error), isLoading: false };
    }
    draw(undefined);
  };

  const again = (least: number) => {
    abort.current.abort();
    abort.current = new AbortController();
    loading.current = load(null, least);
  };
  useEffect(() => {
    again(0);
    return () => abort.current.abort();
  }, [filter, sort]);
  useChanges((change) => {
    const isNew = change.kind === 'session' || change.kind === 'pruned';
    if (isNew || (change.kind === 'begin' && !change.resumed)) again(state.current.sessions.length);
    if (change.kind === 'frames' || change.kind === 'ended') void refresh(change.id);
  });

  const refresh = async (id: string) => {
    // What is on its way may be older than this change, and would take its place.
    await loading.current;
    const detail = await source()
      .json<SessionDetail>(`sessions/${id}`, abort.current.signal)
      .catch(() => null);
    const at = state.current.sessions.findIndex(({ session }) => session === id);
    if (detail === null || at < 0) return;
    state.current.sessions = state.current.sessions.with(at, detail.session);
    draw(undefined);
  };

  const { sessions, total, failure, isComplete } = state.current;
  const loadMore = () => {
    const { next, isLoading } = state.current;
    if (next !== null && !isLoading) loading.current = load(next, 0);
  };
  return { sessions, total, failure, isComplete, version, loadMore };
}

type Marked = { ids: ReadonlySet<string>; failure: ApiFailure | null; version: number };

const UNMARKED: Marked = { ids: new Set(), failure: null, version: 0 };

/** The ids of all sessions that a filter selects; asked for anew when there are more sessions. */
export function useMarked(filter: string, total: number): Marked {
  const [marked, setMarked] = useState(UNMARKED);
  useEffect(() => {
    if (filter === '') return setMarked(UNMARKED);
    const abort = new AbortController();
    const load = async () => {
      const ids = new Set<string>();
      for (let after: string | null = null, isFirst = true; isFirst || after !== null; isFirst = false) {
        const page: SessionPage = await source().json(pathOf(filter, '', after, PAGE), abort.signal);
        for (const { session } of page.sessions) ids.add(session);
        after = page.next;
      }
      setMarked(({ version }) => ({ ids, failure: null, version: version + 1 }));
    };
    load().catch((error) => {
      if (abort.signal.aborted) return;
      setMarked(({ version }) => ({ ...UNMARKED, failure: failureOf(error), version: version + 1 }));
    });
    return () => abort.abort();
  }, [filter, total]);
  return marked;
}

const NONE: State = {
  sessions: [],
  total: 0,
  next: null,
  failure: null,
  isComplete: false,
  isLoading: false,
};

function pathOf(filter: string, sort: string, after: string | null, limit: number): string {
  const query = new URLSearchParams({ limit: String(limit) });
  if (filter !== '') query.set('filter', filter);
  if (sort !== '') query.set('sort', sort);
  if (after !== null) query.set('after', after);
  return `sessions?${query}`;
}
