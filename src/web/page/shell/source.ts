/** Where answers come from: the API of a server, or the table of a report. Screens know this interface alone. */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { About, ApiError, Change } from '../../api.ts';

export interface AnswerSource {
  /** The answer of a route, by its path below `/api/`. Fails with a `ApiFailure`. */
  json<T>(path: string, signal: AbortSignal): Promise<T>;
  /** The lines of a route that streams, each when it comes. */
  lines<T>(path: string, signal: AbortSignal): AsyncIterable<T>;
  /** Bytes from `from` up to and without `to`; all without a range. */
  bytes(
    path: string,
    signal: AbortSignal,
    range?: readonly [from: number, to: number],
  ): Promise<Uint8Array<ArrayBuffer>>;
  /** Calls back with each change of the store, until the stream ends; null where nothing can change. */
  changes: ((onChange: (change: Change) => void, signal: AbortSignal) => Promise<void>) | null;
}

/** Why there is no answer, in the words of the server where it had some. */
export class ApiFailure extends Error {
  readonly code: string;
  /** The column of a filter where it is wrong. */
  readonly at: number | null;

  constructor({ code, message, at }: ApiError['error']) {
    super(message);
    this.code = code;
    this.at = at ?? null;
  }
}

export const UNAUTHORIZED = 'UNAUTHORIZED';

let current: AnswerSource | null = null;

export function source(): AnswerSource {
  if (current === null) throw new Error('The page has no source yet.');
  return current;
}

export function setSource(source: AnswerSource): void {
  current = source;
}

/** What the other end is and can do; null before it said so. */
export const about = signal<About | null>(null);

/** Why the other end says nothing of itself. */
export const troubleAtStart = signal<ApiFailure | null>(null);

export function failureOf(error: unknown): ApiFailure {
  return error instanceof ApiFailure ? error : new ApiFailure({ code: 'PAGE', message: String(error) });
}

export type Fetched<T> = { value: T | null; failure: ApiFailure | null; isLoading: boolean };

const NOTHING = { value: null, failure: null, isLoading: true };

/**
 * The answer of a route, asked for again when the path or `version` changes. A new path begins with nothing; a new version
 * keeps what is shown until the new one is there, also where that fails. Null asks for nothing.
 */
export function useAnswer<T>(path: string | null, version: number = 0): Fetched<T> {
  const [answer, setAnswer] = useState<Fetched<T> & { of: string | null }>({ ...NOTHING, of: path });
  useEffect(() => {
    if (path === null) return;
    const abort = new AbortController();
    source()
      .json<T>(path, abort.signal)
      .then((value) => setAnswer({ value, failure: null, isLoading: false, of: path }))
      .catch((error) => {
        if (abort.signal.aborted) return;
        const failed = { failure: failureOf(error), isLoading: false, of: path };
        setAnswer((before) => ({ value: before.of === path ? before.value : null, ...failed }));
      });
    return () => abort.abort();
  }, [path, version]);
  return answer.of === path ? answer : NOTHING;
}
