/** Answers that come line by line: what has come is shown, while more comes. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../api.ts';
import { ApiFailure, failureOf, source } from './source.ts';

export type Lines<S> = {
  /** What the lines so far have made; the same object, changed. */
  state: S;
  /** Another one whenever the state has changed. */
  version: number;
  failure: ApiFailure | null;
  isComplete: boolean;
  /** Whether it was stopped: what had come by then stays. */
  isStopped: boolean;
  stop(): void;
};

type Progress = Pick<Lines<unknown>, 'failure' | 'isComplete' | 'isStopped'>;

const UNDER_WAY: Progress = { failure: null, isComplete: false, isStopped: false };

/**
 * Asks a route that streams, and puts its lines together; asks anew for another path or `attempt`. Null asks for nothing.
 * Screens are drawn once a frame, however many lines come.
 */
export function useLines<L extends object, S>(
  path: string | null,
  begin: () => S,
  add: (state: S, line: L) => void,
  attempt: number = 0,
): Lines<S> {
  const latest = useRef({ begin, add });
  latest.current = { begin, add };
  const stop = useRef(() => {});
  const of = path === null ? null : `${attempt} ${path}`;
  const [lines, setLines] = useState<Shown<S>>(() => nothing(begin, of));
  useEffect(() => {
    const abort = new AbortController();
    const { state } = nothing(latest.current.begin, of);
    let version = 0;
    let frame = 0;
    const show = (progress: Progress) => {
      frame = 0;
      version += 1;
      setLines({ state, version, ...progress, of });
    };
    const take = (line: L | ApiError) => {
      if ('error' in line) throw new ApiFailure(line.error);
      latest.current.add(state, line);
      frame ||= requestAnimationFrame(() => show(UNDER_WAY));
    };
    const end = (failure: ApiFailure | null) => {
      cancelAnimationFrame(frame);
      if (!abort.signal.aborted) show({ failure, isComplete: failure === null, isStopped: false });
    };
    const leave = () => {
      abort.abort();
      cancelAnimationFrame(frame);
    };
    stop.current = () => {
      leave();
      show({ ...UNDER_WAY, isStopped: true });
    };
    if (path !== null)
      read<L | ApiError>(path, abort.signal, take).then(
        () => end(null),
        (error) => end(failureOf(error)),
      );
    return leave;
  }, [of]);
  return { ...(lines.of === of ? lines : nothing(begin, of)), stop: () => stop.current() };
}

type Shown<S> = Omit<Lines<S>, 'stop'> & { of: string | null };

function nothing<S>(begin: () => S, of: string | null): Shown<S> {
  return { state: begin(), version: 0, ...UNDER_WAY, of };
}

async function read<L>(path: string, signal: AbortSignal, take: (line: L) => void): Promise<void> {
  for await (const line of source().lines<L>(path, signal)) take(line);
}
