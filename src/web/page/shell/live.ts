/** What changes in the store, while the tab is seen. A hidden one hears nothing; when it is seen again, it is told what it missed, or to look anew. */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import type { Change } from '../../api.ts';
import { ApiFailure, about, source } from './source.ts';

type Listener = (change: Change) => void;

const listeners = new Set<Listener>();

let abort: AbortController | null = null;

/** Why nothing of what changes is told at this moment: what is shown may be old. */
export const cutOff = signal<ApiFailure | null>(null);

/** Calls back with what changes. After a `begin` that resumed nothing, changes may have been missed. */
export function useChanges(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const own: Listener = (change) => latest.current(change);
    listeners.add(own);
    return () => void listeners.delete(own);
  }, []);
}

/** Begins to listen, and does so as long as the page is there. */
export function startLive(): void {
  if (about.value?.can.live !== true || source().changes === null) return;
  const turn = () => (document.visibilityState === 'visible' ? listen() : abort?.abort());
  document.addEventListener('visibilitychange', turn);
  turn();
}

const RETRY_MS = [200, 500, 1000, 2000, 5000];

async function listen(): Promise<void> {
  if (abort !== null && !abort.signal.aborted) return;
  const own = new AbortController();
  abort = own;
  let tries = 0;
  const tell = (change: Change) => {
    if (change.kind === 'begin') tries = 0;
    cutOff.value = null;
    for (const listener of listeners) listener(change);
  };
  while (!own.signal.aborted) {
    await source()
      .changes?.(tell, own.signal)
      .catch((error) => {
        // A stream that only ended begins again at once.
        if (!own.signal.aborted && error instanceof ApiFailure) cutOff.value = error;
      });
    if (!own.signal.aborted) await pause(RETRY_MS[Math.min(tries, RETRY_MS.length - 1)] ?? 0, own.signal);
    tries += 1;
  }
}

function pause(millis: number, aborted: AbortSignal): Promise<void> {
  return new Promise((done) => {
    setTimeout(done, millis);
    aborted.addEventListener('abort', () => done(), { once: true });
  });
}
