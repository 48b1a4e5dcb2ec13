/** What a filter selects of all that is followed. What it says of a call may change with the answer, so it is asked again. */
import { useEffect, useReducer, useRef } from 'preact/hooks';
import { readSelection } from '../list/use-selection.ts';
import type { SessionOutline } from '../session/outline.ts';
import { type ApiFailure, failureOf } from '../shell/source.ts';
import type { FeedRow, LiveSession } from './feed.ts';

type Has = (seq: number) => boolean;

export type FeedFilter = {
  /** Whether a message is selected, by itself or by its answer; null without a filter. */
  has: ((row: FeedRow) => boolean) | null;
  failure: ApiFailure | null;
  /** Another object when something of it has changed. */
  version: object;
};

/** While messages come, it is asked again so often at most. */
const AGAIN_MS = 300;

/** `version`: of what is followed. */
export function useFeedFilter(sessions: readonly LiveSession[], filter: string, version: number): FeedFilter {
  const [turn, again] = useReducer((n: number) => n + 1, 0);
  const state = useRef(newState(filter));
  if (state.current.filter !== filter) {
    state.current.abort.abort();
    state.current = newState(filter);
  }
  useEffect(() => () => state.current.abort.abort(), []);
  useEffect(() => {
    const own = state.current;
    const grown = sessions.filter(({ summary, outline }) => own.asked.get(summary.session) !== outline.count);
    if (filter === '' || own.isAsking || own.failure !== null || grown.length === 0) return;
    own.isAsking = true;
    void Promise.all(grown.map((session) => ask(own, session)))
      .catch((error) => {
        const failure = failureOf(error);
        // Anything else may be better the next time, such as a session that is gone.
        if (failure.code === 'usage') own.failure = failure;
      })
      .then(() => {
        if (own.abort.signal.aborted) return;
        own.version = {};
        again(undefined);
        setTimeout(() => {
          own.isAsking = false;
          again(undefined);
        }, AGAIN_MS);
      });
  }, [filter, version, turn]);
  const { by, failure, version: known } = state.current;
  const has = ({ of: { summary, outline }, i }: FeedRow) => isSelected(by.get(summary.session), outline, i);
  return { has: filter === '' ? null : has, failure, version: known };
}

type State = {
  filter: string;
  by: Map<string, Has>;
  /** How much of each session there was when it was asked about. */
  asked: Map<string, number>;
  isAsking: boolean;
  failure: ApiFailure | null;
  abort: AbortController;
  version: object;
};

function newState(filter: string): State {
  return {
    ...{ filter, by: new Map(), asked: new Map(), isAsking: false, failure: null },
    ...{ abort: new AbortController(), version: {} },
  };
}

async function ask(
  { filter, by, asked, abort }: State,
  { summary, outline, after }: LiveSession,
): Promise<void> {
  const { session } = summary;
  const { count } = outline;
  let found: Has | null = null;
  await readSelection(session, { filter, after: String(after) }, abort.signal, ({ has }) => {
    found = has;
  });
  asked.set(session, count);
  if (found !== null) by.set(session, found);
}

function isSelected(has: Has | undefined, outline: SessionOutline, i: number): boolean {
  if (has === undefined) return false;
  const answer = outline.partner[i] ?? -1;
  return has(outline.number('seq', i)) || (answer >= 0 && has(outline.number('seq', answer)));
}
