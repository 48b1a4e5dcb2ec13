import arrowLeft from 'lucide-static/icons/arrow-left.svg';
import arrowRight from 'lucide-static/icons/arrow-right.svg';
import check from 'lucide-static/icons/check.svg';
import chevronDown from 'lucide-static/icons/chevron-down.svg';
import chevronRight from 'lucide-static/icons/chevron-right.svg';
import circleHelp from 'lucide-static/icons/circle-question-mark.svg';
import circleX from 'lucide-static/icons/circle-x.svg';
import copy from 'lucide-static/icons/copy.svg';
import download from 'lucide-static/icons/download.svg';
import moon from 'lucide-static/icons/moon.svg';
import pencil from 'lucide-static/icons/pencil.svg';
import radio from 'lucide-static/icons/radio.svg';
import search from 'lucide-static/icons/search.svg';
import sun from 'lucide-static/icons/sun.svg';
import sunMoon from 'lucide-static/icons/sun-moon.svg';
import triangleAlert from 'lucide-static/icons/triangle-alert.svg';
import x from 'lucide-static/icons/x.svg';
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import css from './parts.module.css';

/** All icons of the page, by the name of their file at lucide. */
const ICONS = {
  'arrow-left': arrowLeft,
  'arrow-right': arrowRight,
  check,
  'chevron-down': chevronDown,
  'chevron-right': chevronRight,
  'circle-help': circleHelp,
  'circle-x': circleX,
  copy,
  download,
  moon,
  pencil,
  radio,
  search,
  sun,
  'sun-moon': sunMoon,
  'triangle-alert': triangleAlert,
  x,
};

export type IconName = keyof typeof ICONS;

/** Says nothing to a screen reader: the word that it stands beside does. */
export function Icon({ name }: { name: IconName }): VNode {
  return (
    <svg class={css.icon} viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

type ButtonProps = {
  children?: ComponentChildren;
  icon?: IconName;
  /** What it does: its name where it shows an icon alone, else more than its words say. */
  label?: string;
  kind?: 'plain' | 'framed' | 'primary';
  pressed?: boolean;
  disabled?: boolean;
  onClick(event: MouseEvent): void;
};

export function Button({
  children,
  icon,
  label,
  kind = 'plain',
  pressed,
  disabled,
  onClick,
}: ButtonProps): VNode {
  return (
    <button
      type="button"
      class={`${css.button} ${kind === 'plain' ? '' : css[kind]}`}
      aria-label={children ? undefined : label}
      title={label}
      aria-pressed={pressed}
      disabled={disabled}
      onClick={onClick}
    >
      {icon && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** A link that looks like a button. */
export function LinkButton({
  href,
  icon,
  children,
}: {
  href: string;
  icon?: IconName;
  children: ComponentChildren;
}): VNode {
  return (
    <a class={`${css.button} ${css.framed}`} href={href}>
      {icon && <Icon name={icon} />}
      {children}
    </a>
  );
}

type StatusProps = {
  tone: 'ok' | 'error' | 'warn' | 'live' | 'quiet';
  icon?: IconName;
  children: ComponentChildren;
};

/** How something went: a colour, always with a word, and mostly with an icon. */
export function Status({ tone, icon, children }: StatusProps): VNode {
  return (
    <span class={`${css.status} ${css[tone]}`}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}

/** Which side something came from, as an arrow. */
export function Sender({ isByClient, title }: { isByClient: boolean; title: string }): VNode {
  return (
    <span class={isByClient ? css.byClient : css.byServer} title={title}>
      <Icon name={isByClient ? 'arrow-right' : 'arrow-left'} />
    </span>
  );
}

/** A page or pane that has only something to say: what happened, and what to do. */
export function NoticeBox({
  title,
  icon,
  children,
}: {
  title: string;
  icon?: IconName;
  children?: ComponentChildren;
}): VNode {
  return (
    <section class={css.notice}>
      <h1>
        {icon && <Icon name={icon} />}
        {title}
      </h1>
      {children}
    </section>
  );
}

type UnseenProps = { children: ComponentChildren; live?: 'count' | 'done' };

/**
 * There for screen readers, seen by nobody; with `live` a text that is said when it changes: what was done at once, a count that
 * goes on changing now and then.
 */
export function Unseen({ children, live }: UnseenProps): VNode {
  if (live === 'count') return <Count text={String(children)} />;
  return (
    <span class={css.hidden} role={live === 'done' ? 'status' : undefined}>
      {children}
    </span>
  );
}

const SPOKEN_EVERY_MS = 5000;

/** At most every five seconds: what comes in faster would never be said to its end. */
function Count({ text }: { text: string }): VNode {
  const [spoken, setSpoken] = useState(text);
  const last = useRef(0);
  useEffect(() => {
    const speak = () => {
      last.current = Date.now();
      setSpoken(text);
    };
    const wait = last.current + SPOKEN_EVERY_MS - Date.now();
    if (wait <= 0) return speak();
    const timer = setTimeout(speak, wait);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <span class={css.hidden} role="status">
      {spoken}
    </span>
  );
}
