/** What a filter may go on with: asked of the server, or what was entered before. What keys do never depends on when it comes. */
import { useReducer, useRef } from 'preact/hooks';
import type { Completions } from '../../api.ts';
import { source } from '../shell/source.ts';

export type CompletionList = {
  words: Completions['words'];
  /** Which of them is chosen; -1 for none, as before any arrow. */
  at: number;
  /** Offers what may stand at the caret. */
  ask(filter: string, caret: number): void;
  /** Offers what was entered before, if anything was. */
  askHistory(): void;
  /** Chooses the next or the one before; where nothing is offered yet, the first or last of what then comes. */
  move(by: 1 | -1, filter: string, caret: number): void;
  /** Whether there is, or will be, a chosen word, which `take` then gets: at once, or as soon as it is there. */
  takeChosen(take: (index: number) => void): boolean;
  /** Offers no more, until it is asked again. False if nothing was asked since the last time. */
  close(): boolean;
  /** The filter with a word of the offer in it. */
  withWord(filter: string, index: number): { text: string; caret: number };
};

type State = {
  found: Completions;
  at: number;
  /** For which filter this was found. */
  of: string;
  isAsked: boolean;
  /** While the answer is on its way. */
  abort: AbortController | null;
  /** What keys want of the answer, in their order. */
  waiting: (() => void)[];
};

const MOST_WORDS = 40;

const NOTHING: Completions = { from: 0, to: 0, words: [] };

const CLOSED: State = { found: NOTHING, at: -1, of: '', isAsked: false, abort: null, waiting: [] };

/** `session`: whose values are offered first. */
export function useCompletions(session: string | undefined): CompletionList {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const state = useRef(CLOSED);
  const set = (next: State) => {
    state.current.abort?.abort();
    state.current = next;
    draw(undefined);
  };
  const ask = (filter: string, caret: number) => {
    const abort = new AbortController();
    // What was found for the text before stays in sight till then, with nothing chosen.
    const { found, of } = state.current;
    set({ ...CLOSED, found, of, isAsked: true, abort, waiting: [] });
    const show = (next: Completions) => {
      if (abort.signal.aborted) return;
      const { waiting } = state.current;
      state.current = { ...CLOSED, found: next, of: filter, isAsked: true };
      for (const act of waiting) act();
      draw(undefined);
    };
    source()
      .json<Completions>(completePath(filter, caret, session), abort.signal)
      .then(
        (found) => show({ ...found, words: found.words.slice(0, MOST_WORDS) }),
        () => show(NOTHING),
      );
  };
  const askHistory = () => {
    const words = readHistory().map((text) => ({ text, about: 'used before' }));
    if (words.length > 0) set({ ...CLOSED, found: { ...NOTHING, words }, isAsked: true });
  };
  const step = (by: 1 | -1) => {
    const { at, found } = state.current;
    const { length } = found.words;
    const next = at < 0 && by < 0 ? length - 1 : (at + by + length) % length;
    state.current = { ...state.current, at: length === 0 ? -1 : next };
    draw(undefined);
  };
  return {
    words: state.current.found.words,
    at: state.current.at,
    ask,
    askHistory,
    move(by, filter, caret) {
      if (!state.current.isAsked && filter === '') askHistory();
      if (!state.current.isAsked) ask(filter, caret);
      if (state.current.abort === null) step(by);
      else state.current.waiting.push(() => step(by));
    },
    takeChosen(take) {
      const { abort, waiting, at } = state.current;
      if (abort === null && at >= 0) take(at);
      else if (abort !== null && waiting.length > 0)
        waiting.push(() => state.current.at >= 0 && take(state.current.at));
      else return false;
      return true;
    },
    close() {
      const { isAsked } = state.current;
      set(CLOSED);
      return isAsked;
    },
    withWord(filter, index) {
      const { found, of } = state.current;
      const word = found.words[index]?.text ?? '';
      // A click may take a word while more was typed at its end.
      const to = found.to + filter.length - of.length;
      return { text: filter.slice(0, found.from) + word + filter.slice(to), caret: found.from + word.length };
    },
  };
}

const HISTORY = 'tapedeck-filters';
const KEPT = 20;

function readHistory(): string[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(HISTORY) ?? '[]');
    return Array.isArray(kept) ? kept.filter((one) => typeof one === 'string').slice(0, KEPT) : [];
  } catch {
    return [];
  }
}

/** It is offered from now on, where nothing is typed yet. */
export function remember(filter: string): void {
  if (filter.trim() === '') return;
  const kept = [filter, ...readHistory().filter((one) => one !== filter)].slice(0, KEPT);
  try {
    localStorage.setItem(HISTORY, JSON.stringify(kept));
  } catch {
    // A browser that keeps nothing forgets filters too.
  }
}

function completePath(filter: string, caret: number, session: string | undefined): string {
  const query = new URLSearchParams({ filter, at: String(caret) });
  if (session !== undefined) query.set('session', session);
  return `complete?${query}`;
}
