/** A button with a menu below it, for the keyboard as well. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import parts from '../look/parts.module.css';
import { Button, Icon, type IconName, Unseen } from '../look/parts.tsx';
import { useKeys } from '../shell/keys.ts';
import { failureOf } from '../shell/source.ts';
import css from './menus.module.css';

export type MenuItem = {
  label: string;
  about?: string;
  /** Settles when it is done; the text is what was done, in a word or two. */
  act(): Promise<string>;
};

type MenuProps = {
  label: string;
  icon: IconName;
  items: readonly MenuItem[];
  hotkey?: string;
  children?: ComponentChildren;
};

type Said = { text: string; isBad: boolean };

const NOTHING_SAID: Said = { text: '', isBad: false };

/** How long it says what was done. */
const SAID_MS = 2000;

export function Menu({ label, icon, items, hotkey, children }: MenuProps): VNode {
  const id = useId();
  const [at, setAt] = useState(-1);
  const [said, setSaid] = useState(NOTHING_SAID);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const isOpen = at >= 0;
  useKeys(hotkey === undefined ? {} : { [hotkey]: () => setAt(0) });
  // At once: the next key is the menu's.
  useLayoutEffect(() => {
    if (at >= 0) list.current?.querySelectorAll<HTMLElement>('[role=menuitem]')[at]?.focus();
  }, [at]);
  useEffect(() => {
    if (said.text === '' || said.isBad) return;
    const timer = setTimeout(() => setSaid(NOTHING_SAID), SAID_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const close = () => {
    setAt(-1);
    button.current?.focus();
  };
  const choose = async (item: MenuItem) => {
    close();
    try {
      setSaid({ text: await item.act(), isBad: false });
    } catch (error) {
      setSaid({ text: failureOf(error).message, isBad: true });
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const acts: Record<string, () => void> = {
      ArrowDown: () => setAt((at + 1) % items.length),
      ArrowUp: () => setAt((at - 1 + items.length) % items.length),
      Home: () => setAt(0),
      End: () => setAt(items.length - 1),
      Escape: close,
      Tab: () => setAt(-1),
    };
    const act = acts[event.key];
    if (act === undefined) return;
    event.stopPropagation();
    if (event.key !== 'Tab') event.preventDefault();
    act();
  };
  return (
    <div
      class={css.menu}
      onFocusOut={(event) => {
        const to = event.relatedTarget;
        if (isOpen && !(to instanceof Node && event.currentTarget.contains(to))) setAt(-1);
      }}
    >
      <button
        ref={button}
        type="button"
        class={parts.button}
        aria-label={label}
        title={hotkey === undefined ? label : `${label} (${hotkey})`}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setAt(isOpen ? -1 : 0)}
      >
        <Icon name={said.text !== '' && !said.isBad ? 'check' : icon} />
        {children}
      </button>
      <Saying said={said} onClose={() => setSaid(NOTHING_SAID)} />
      {isOpen && (
        <div
          ref={list}
          id={id}
          class={css.items}
          role="menu"
          aria-label={label}
          tabIndex={-1}
          onKeyDown={onKeyDown}
        >
          {items.map((item, i) => (
            <button
              key={item.label}
              type="button"
              role="menuitem"
              tabIndex={i === at ? 0 : -1}
              onClick={() => choose(item)}
              onMouseMove={() => i !== at && setAt(i)}
            >
              <span>{item.label}</span>
              {item.about !== undefined && <span class={css.about}>{item.about}</span>}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

/** What was done for those who do not see the icon; what could not be done for all. */
function Saying({ said: { text, isBad }, onClose }: { said: Said; onClose(): void }): VNode {
  if (!isBad) return <Unseen live="done">{text}</Unseen>;
  return (
    <p class={css.said} role="alert">
      {text}
      <Button icon="x" label="Close" onClick={onClose} />
    </p>
  );
}
