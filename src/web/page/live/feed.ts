/** What passes in all sessions that are recorded at this moment, in order of its coming. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import type { Change, Outline, SessionDetail, SessionPage, SessionSummary } from '../../api.ts';
import { SessionOutline } from '../session/outline.ts';
import { useChanges } from '../shell/live.ts';
import { type ApiFailure, failureOf, source } from '../shell/source.ts';

/** So much of what was there before is shown. */
const BEFORE = 100;
const SLICE = 5000;

/** `after`: the frame after which it is shown. */
export type LiveSession = {
  summary: SessionSummary;
  outline: SessionOutline;
  startedAt: number;
  after: number;
};

/** A message, by its session and its index in that session's outline. */
export type FeedRow = { of: LiveSession; i: number };

type Feed = {
  sessions: LiveSession[];
  rows: FeedRow[];
  failure: ApiFailure | null;
  isReady: boolean;
  version: number;
};

type Followed = LiveSession & {
  upTo: number;
  isLoading: boolean;
  /** Whether more came while it was loading. */
  hasMore: boolean;
};

/** While `isPaused`, nothing is asked for. */
export function useFeed(isPaused: boolean): Feed {
  const [version, draw] = useReducer((n: number) => n + 1, 0);
  const state = useRef({
    ...{ followed: new Map<string, Followed>(), rows: [] as FeedRow[] },
    ...{ failure: null as ApiFailure | null, isReady: false },
  });
  const abort = useRef(new AbortController());

  const load = async (session: Followed) => {
    session.hasMore = true;
    if (session.isLoading) return;
    session.isLoading = true;
    try {
      await loadSlices(session);
    } finally {
      // It may have failed, or have been paused: the next one goes on where it stopped.
      session.isLoading = false;
    }
  };

  const loadSlices = async (session: Followed) => {
    let next: number | null = null;
    while (next !== null || session.hasMore) {
      session.hasMore = false;
      next ??= session.upTo;
      const path: string = `sessions/${session.summary.session}/outline?after=${next}&limit=${SLICE}`;
      const slice: Outline = await source().json(path, abort.current.signal);
      const from = session.outline.count;
      session.outline.append(slice);
      session.upTo = slice.seq.at(-1) ?? session.upTo;
      next = slice.next;
      for (let i = from; i < session.outline.count; i += 1)
        if (!session.outline.isAnswer(i)) state.current.rows.push({ of: session, i });
    }
  };

  const follow = async (summary: SessionSummary) => {
    const { session: id, startedAt, frames } = summary;
    if (state.current.followed.has(id)) return;
    const upTo = Math.max(0, frames - BEFORE);
    const own = {
      summary,
      outline: new SessionOutline(),
      startedAt: Date.parse(startedAt) * 1000,
      after: upTo,
    };
    const followed = { ...own, upTo, isLoading: false, hasMore: false };
    state.current.followed.set(id, followed);
    await load(followed);
  };

  const begin = async () => {
    const page: SessionPage = await source().json('sessions?limit=500', abort.current.signal);
    await Promise.all(page.sessions.filter(({ state: how }) => how === 'open').map(follow));
    if (!state.current.isReady) state.current.rows.sort((a, b) => momentOf(a) - momentOf(b));
    state.current.isReady = true;
    await Promise.all([...state.current.followed.values()].map(load));
  };

  const take = async (change: Change) => {
    if (change.kind === 'begin') return begin();
    if (change.kind === 'indexed') return;
    const known = state.current.followed.get(change.id);
    if (change.kind === 'pruned') return void state.current.followed.delete(change.id);
    if (known !== undefined && change.kind === 'frames') return load(known);
    const detail: SessionDetail = await source().json(`sessions/${change.id}`, abort.current.signal);
    if (known !== undefined) known.summary = detail.session;
    else await follow(detail.session);
  };

  const safely = (work: Promise<void>) => {
    const { signal } = abort.current;
    return work
      .then(
        () => {
          state.current.failure = null;
        },
        (error) => {
          if (!signal.aborted) state.current.failure = failureOf(error);
        },
      )
      .then(() => draw(undefined));
  };

  useEffect(() => {
    abort.current = new AbortController();
    if (!isPaused) void safely(begin());
    return () => abort.current.abort();
  }, [isPaused]);
  useChanges((change) => {
    if (!isPaused) void safely(take(change));
  });
  const { followed, rows, failure, isReady } = state.current;
  return { sessions: [...followed.values()], rows, failure, isReady, version };
}

/** Microseconds since the epoch. */
export function momentOf({ of, i }: FeedRow): number {
  return of.startedAt + of.outline.number('at', i);
}
