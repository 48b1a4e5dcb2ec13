/** The box for the filter language, on every screen that has rows. The server alone knows the language. */
import type { VNode } from 'preact';
import { useId, useRef } from 'preact/hooks';
import parts from '../look/parts.module.css';
import { Icon } from '../look/parts.tsx';
import type { ApiFailure } from '../shell/source.ts';
import { type CompletionList, remember, useCompletions } from './completions.ts';
import { useDraft } from './draft.ts';
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
  const [text, setText] = useDraft(value);
  const offer = useCompletions(session);
  const commit = (filter: string) => {
    setText(null);
    offer.close();
    remember(filter);
    onFilter(filter);
  };
  const take = (index: number) => {
    const taken = offer.withWord(box.current?.value ?? '', index);
    setText(taken.text);
    requestAnimationFrame(() => box.current?.setSelectionRange(taken.caret, taken.caret));
    offer.ask(taken.text, taken.caret);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (!actOn(event.key, { offer, input: box.current, take, commit })) return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isOpen = offer.words.length > 0;
  return (
    <div class={css.box}>
      <div class={parts.field}>
        <Icon name="search" />
        <input
          ref={box}
          class={css.mono}
          data-filter
          type="text"
          role="combobox"
          aria-label={label}
          aria-expanded={isOpen}
          aria-controls={isOpen ? `${id}-words` : undefined}
          aria-autocomplete="list"
          aria-activedescendant={isOpen && offer.at >= 0 ? `${id}-${offer.at}` : undefined}
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
            offer.ask(typed, selectionStart ?? typed.length);
          }}
          onFocus={() => text === '' && offer.askHistory()}
          onBlur={() => {
            offer.close();
            if (text !== value) commit(text);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      {isOpen && (
        <div class={css.words} id={`${id}-words`} role="listbox" aria-label="Completions">
          {offer.words.map((word, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the box has the focus and the keys
            <div
              key={word.text}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === offer.at}
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

type Acts = {
  offer: CompletionList;
  input: HTMLInputElement | null;
  take(index: number): void;
  commit(filter: string): void;
};

/** As the ARIA practices have it for a box with a list: arrows choose, Enter takes what is chosen, Escape closes, then leaves. */
function actOn(key: string, { offer, input, take, commit }: Acts): boolean {
  const filter = input?.value ?? '';
  const caret = input?.selectionStart ?? filter.length;
  if (key === 'ArrowDown') offer.move(1, filter, caret);
  else if (key === 'ArrowUp') offer.move(-1, filter, caret);
  else if (key === 'Enter') offer.takeChosen(take) || commit(filter);
  else if (key === 'Tab') return offer.takeChosen(take);
  else if (key === 'Escape') offer.close() || input?.blur();
  else return false;
  return true;
}
