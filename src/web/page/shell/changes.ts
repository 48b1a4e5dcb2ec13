/**
 * What changes in the store, as the server tells it. A browser opens six connections to a host and no more, so all windows that
 * are seen share one stream: the one that holds a lock of the browser has it, and tells the others. When that window is closed or
 * hidden, another one gets the lock, and goes on where it was.
 */
import { createParser } from 'eventsource-parser';
import type { Change } from '../../api.ts';

/** The name of the lock, and of what the windows tell each other by. */
const NAME = 'tapedeck-changes';

/** The server says something every 15 s: a connection on which nothing comes has died without a word, as in a laptop's sleep. */
const SILENCE_MS = 40_000;

/** Null: a request found nobody, so that all is asked for anew. */
type Told = { id: string; change: Change } | null;

/** Asks for the stream with these headers, and gives its text. */
type Ask = (headers: Record<string, string>, signal: AbortSignal) => Promise<AsyncIterable<string>>;

export type Changes = {
  /** Calls back with each change, until the signal ends it or the stream ends. */
  follow(onChange: (change: Change) => void, signal: AbortSignal): Promise<void>;
  /** An answer was given after this event: whoever has not followed yet begins there. */
  saw(id: string | null): void;
  /** A request failed that a change had asked for, perhaps: the next stream resumes nothing, and all is asked for again. */
  beginAnew(): void;
};

export function createChanges(ask: Ask): Changes {
  // Without locks (a page that came neither from this machine nor encrypted) each window has a stream of its own.
  const others = navigator.locks === undefined ? null : new BroadcastChannel(NAME);
  const last = lastEvent();
  /** Ends the stream, where this window has it. */
  let cut = new AbortController();
  let listener: ((change: Change) => void) | null = null;
  /** Whether something was told that this window did not hear. */
  let isBehind = false;

  function forget(): void {
    last.forget();
    cut.abort();
  }

  others?.addEventListener('message', ({ data }: MessageEvent<Told>) => {
    if (data === null) return forget();
    if (listener === null) {
      isBehind = true;
      return;
    }
    last.reached(data.id);
    listener(data.change);
  });

  async function stream(onChange: (change: Change) => void, signal: AbortSignal): Promise<void> {
    const own = new AbortController();
    cut = own;
    const from = last.id();
    const resume: Record<string, string> = from === undefined ? {} : { 'last-event-id': from };
    const watch = () => setTimeout(() => own.abort(), SILENCE_MS);
    let silence = watch();
    const parser = createParser({
      onEvent({ id = '', event, data }) {
        const change = { kind: event, ...JSON.parse(data === '' ? '{}' : data) } as Change;
        last.reached(id);
        // It was told what it had not heard, or that it has to look anew.
        isBehind = false;
        others?.postMessage({ id, change } satisfies Told);
        onChange(change);
      },
    });
    try {
      for await (const text of await ask(resume, AbortSignal.any([signal, own.signal]))) {
        clearTimeout(silence);
        silence = watch();
        parser.feed(text);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  function hear(onChange: (change: Change) => void, signal: AbortSignal): void {
    listener = onChange;
    const leave = () => {
      listener = null;
      isBehind = true;
    };
    signal.addEventListener('abort', leave, { once: true });
  }

  return {
    async follow(onChange, signal) {
      if (others === null) return stream(onChange, signal);
      hear(onChange, signal);
      const isOurs = await navigator.locks.request(NAME, { ifAvailable: true }, async (lock) => {
        if (lock !== null && !signal.aborted) await stream(onChange, signal);
        return lock !== null;
      });
      if (isOurs || signal.aborted) return;
      if (isBehind) onChange({ kind: 'begin', resumed: false });
      isBehind = false;
      await navigator.locks.request(NAME, { signal }, () => stream(onChange, signal));
    },
    saw: last.saw,
    beginAnew() {
      forget();
      others?.postMessage(null satisfies Told);
    },
  };
}

/** The last event that this window knows of, by its id: the run of the server, and a number in it. */
function lastEvent() {
  let id: string | undefined;
  /** Whether a stream has told where it is, which says more than answers do. */
  let isTold = false;

  function forget(): void {
    id = undefined;
    isTold = true;
  }

  return {
    id: () => id,
    forget,
    reached(next: string): void {
      id = next;
      isTold = true;
    },
    /** Answers overtake each other: the earliest counts. */
    saw(next: string | null): void {
      if (isTold || next === null) return;
      const [[run, number], [nextRun, nextNumber]] = [(id ?? next).split('-'), next.split('-')];
      if (run !== nextRun) forget();
      else if (id === undefined || Number(nextNumber) < Number(number)) id = next;
    },
  };
}
