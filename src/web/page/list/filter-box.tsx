/** The box for the filter language, on every screen that has rows. The server alone knows the language. */
import type { VNode } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import type { Completions } from '../../api.ts';
import { Icon } from '../look/parts.tsx';
import { type ApiFailure, source } from '../shell/source.ts';
import css from './filter-box.module.css';

type FilterBoxProps = {
  label: string;
  value: string;
  onFilter(filter: string): void;
  /** Whose values are offered first. */
  session?: string;
  /** What the server says against the filter. */
  failure: ApiFailure | null;
};

export function FilterBox({ label, value, session, onFilter, failure }: FilterBoxProps): VNode {
  const id = useId();
  const box = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const words = useCompletions(session);
  useEffect(() => setText(value), [value]);
  const commit = (filter: string) => {
    words.close();
    remember(filter);
    onFilter(filter);
  };
  const take = (index: number) => {
    const taken = words.take(text, index);
    setText(taken.text);
    requestAnimationFrame(() => box.current?.setSelectionRange(taken.caret, taken.caret));
    words.ask(taken.text, taken.caret);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const act = keyActs({ words, commit: () => commit(text), take, leave: () => box.current?.blur() })[
      event.key
    ];
    if (act === undefined || act() === false) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isOpen = words.shown.length > 0;
  return (
    <div class={css.box}>
      <div class={css.field}>
        <Icon name="search" />
        <input
          ref={box}
          data-filter
          type="text"
          role="combobox"
          aria-label={label}
          aria-expanded={isOpen}
          aria-controls={isOpen ? `${id}-words` : undefined}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && words.at >= 0 ? `${id}-${words.at}` : undefined}
          aria-invalid={failure !== null}
          aria-describedby={failure ? `${id}-wrong` : undefined}
          placeholder={label}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          value={text}
          onInput={(event) => {
            const { value: typed, selectionStart } = event.currentTarget;
            setText(typed);
            words.ask(typed, selectionStart ?? typed.length);
          }}
          onFocus={() => text === '' && words.showHistory()}
          onBlur={() => {
            words.close();
            if (text !== value) commit(text);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {isOpen && (
        <div class={css.words} id={`${id}-words`} role="listbox" aria-label="Completions">
          {words.shown.map((word, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the box has the focus and the keys
            <div
              key={word.text}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === words.at}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(i)}
            >
              <code>{word.text}</code>
              <span>{word.about}</span>
            </div>
          ))}
        </div>
      )}
      {failure && <Wrong id={`${id}-wrong`} failure={failure} />}
    </div>
  );
}

/** The sentence of the command line, below the column where the filter is wrong. */
function Wrong({ id, failure }: { id: string; failure: ApiFailure }): VNode {
  return (
    <p class={css.wrong} id={id} role="alert">
      {failure.at !== null && (
        <span class={css.column} aria-hidden="true">
          {' '.repeat(Math.max(0, failure.at - 1))}^
        </span>
      )}
      {failure.message}
    </p>
  );
}

type Acts = { words: Words; commit(): void; take(index: number): void; leave(): void };

function keyActs({ words, commit, take, leave }: Acts): Record<string, () => unknown> {
  const isOpen = words.shown.length > 0;
  return {
    ArrowDown: () => (isOpen ? words.move(1) : words.showHistory()),
    ArrowUp: () => isOpen && words.move(-1),
    Tab: () => isOpen && take(Math.max(0, words.at)),
    Enter: () => (isOpen && words.at >= 0 ? take(words.at) : commit()),
    Escape: () => (isOpen ? words.close() : leave()),
  };
}

type Word = Completions['words'][number];

type Words = {
  shown: readonly Word[];
  at: number;
  ask(filter: string, caret: number): void;
  showHistory(): void;
  move(by: number): void;
  close(): void;
  take(filter: string, index: number): { text: string; caret: number };
};

const NO_WORDS: Completions & { at: number } = { from: 0, to: 0, words: [], at: -1 };

function useCompletions(session: string | undefined): Words {
  const [state, setState] = useState(NO_WORDS);
  const asked = useRef<AbortController | null>(null);
  const close = () => {
    asked.current?.abort();
    setState(NO_WORDS);
  };
  return {
    shown: state.words,
    at: state.at,
    close,
    ask(filter, caret) {
      asked.current?.abort();
      const abort = new AbortController();
      asked.current = abort;
      source()
        .json<Completions>(completePath(filter, caret, session), abort.signal)
        .then((found) => setState({ ...found, words: found.words.slice(0, 40), at: -1 }))
        .catch(() => setState(NO_WORDS));
    },
    showHistory() {
      const words = readHistory().map((text) => ({ text, about: 'used before' }));
      setState({ from: 0, to: 0, words, at: -1 });
    },
    move(by) {
      setState((now) => ({ ...now, at: (now.at + by + now.words.length) % now.words.length }));
    },
    take(filter, index) {
      const word = state.words[index]?.text ?? '';
      return {
        text: filter.slice(0, state.from) + word + filter.slice(state.to),
        caret: state.from + word.length,
      };
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

function remember(filter: string): void {
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
