/** The frames that a filter selects, as the server says, run by run. */
import { useEffect, useState } from 'preact/hooks';
import type { ApiError, SelectLine } from '../../api.ts';
import { ApiFailure, failureOf, source } from '../shell/source.ts';

export type SelectedFrames = {
  /** Whether a frame is selected; null without a filter. */
  has: ((seq: number) => boolean) | null;
  count: number;
  isComplete: boolean;
  failure: ApiFailure | null;
};

const ALL: SelectedFrames = { has: null, count: 0, isComplete: true, failure: null };

/** Asked for anew when `version` changes, while what is known stays. */
export function useSelection(session: string, filter: string, version: number): SelectedFrames {
  const [state, setState] = useState<{ of: string; selection: SelectedFrames }>({ of: '', selection: ALL });
  useEffect(() => {
    if (filter === '') return;
    const abort = new AbortController();
    const tell = (selection: SelectedFrames) => setState({ of: filter, selection });
    readSelection(session, { filter }, abort.signal, tell).catch((error) => {
      if (!abort.signal.aborted) tell({ has: null, count: 0, isComplete: true, failure: failureOf(error) });
    });
    return () => abort.abort();
  }, [session, filter, version]);
  if (filter === '') return ALL;
  return state.of === filter ? state.selection : { ...ALL, has: () => false, isComplete: false };
}

/** `asked.after`: only of the frames behind that one. Tells what it knows as it comes; rejects with what went wrong. */
export async function readSelection(
  session: string,
  asked: { filter: string; after?: string },
  signal: AbortSignal,
  tell: (selection: SelectedFrames) => void,
): Promise<void> {
  /** The firsts and lasts of runs, in order. */
  const [firsts, lasts]: [number[], number[]] = [[], []];
  const has = (seq: number) => {
    const at = lastAtMost(firsts, seq);
    return at >= 0 && seq <= (lasts[at] ?? -1);
  };
  let count = 0;
  const path = `sessions/${session}/select?${new URLSearchParams(asked)}`;
  for await (const line of source().lines<SelectLine | ApiError>(path, signal)) {
    if ('error' in line) throw new ApiFailure(line.error);
    if ('done' in line) return tell({ has, count: line.count, isComplete: true, failure: null });
    for (const [from, to] of line.runs) {
      firsts.push(from);
      lasts.push(to);
      count += to - from + 1;
    }
    tell({ has, count, isComplete: false, failure: null });
  }
}

function lastAtMost(sorted: readonly number[], value: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
