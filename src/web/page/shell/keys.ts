/** The keyboard. Keys work wherever the focus is, but not in a box for text, and never with a modifier: those are the browser's. */
import { useLayoutEffect, useRef } from 'preact/hooks';

/** A key by its name, two after each other with a space between (`g s`). Return false to leave it to others. */
export type KeyMap = Readonly<Record<string, (event: KeyboardEvent) => unknown>>;

const maps: { current: KeyMap }[] = [];

/** These keys work as long as the component is there; the latest one that knows a key gets it. */
export function useKeys(keys: KeyMap): void {
  const map = useRef(keys);
  map.current = keys;
  // With the component's first sight, not some time after it: who sees it may press a key.
  useLayoutEffect(() => {
    maps.push(map);
    return () => void maps.splice(maps.indexOf(map), 1);
  }, []);
}

const SEQUENCE_MS = 1000;

export function startKeys(): void {
  let before = { key: '', at: 0 };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return;
    const { target } = event;
    const isTyping = target instanceof HTMLElement && target.closest('input, textarea, select') !== null;
    if (isTyping && event.key !== 'Escape') return;
    // Enter and the space bar are what presses a button or follows a link.
    if (
      target instanceof HTMLElement &&
      /^(?:Enter| )$/.test(event.key) &&
      target.closest('button, a, summary')
    )
      return;
    const sequence = event.timeStamp - before.at < SEQUENCE_MS ? `${before.key} ${event.key}` : event.key;
    before = { key: event.key, at: event.timeStamp };
    if (handle(sequence, event) || (sequence !== event.key && handle(event.key, event)))
      event.preventDefault();
  });
}

function handle(key: string, event: KeyboardEvent): boolean {
  for (const { current } of maps.toReversed()) {
    const act = current[key];
    if (act !== undefined && act(event) !== false) return true;
  }
  return false;
}

/** All keys, as the help shows them. */
export const ALL_KEYS: readonly (readonly [
  group: string,
  rows: readonly (readonly [keys: string, does: string])[],
])[] = [
  [
    'Everywhere',
    [
      ['/', 'Go to the filter'],
      ['?', 'Show this help'],
      ['Esc', 'Go back, close'],
      ['g s', 'Sessions'],
      ['g f', 'Search'],
      ['g l', 'Live'],
      ['g t', 'Statistics'],
    ],
  ],
  [
    'Rows',
    [
      ['j k', 'Next and previous row; so do ↓ and ↑'],
      ['PgUp PgDn', 'A page up and down'],
      ['Home End', 'First and last row'],
      ['→ ←', 'Open and close'],
      ['Enter', 'Show the detail'],
    ],
  ],
  [
    'Conversation',
    [
      ['n N', 'Next and previous error'],
      ['[ ]', 'From an answer to its request, and back'],
      ['1 2 3 4 5', 'Tabs of the detail'],
      ['c', 'Copy menu'],
      ['f', 'Follow what comes, or stop'],
      ['w', 'Waterfall on and off'],
      ['+ − 0', 'Zoom in, out, and all of it'],
    ],
  ],
];
