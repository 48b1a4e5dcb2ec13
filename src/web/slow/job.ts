/** What a slow work gets of a request, and how it goes through what takes long. */

import { TapedeckError } from '../../errors.ts';
import { type Filter, parseFilter } from '../../inspect/filter/filter.ts';
import type { Store } from '../../store/file/open.ts';
import { openSideFile, type SideFile } from '../../store/keep/side-file.ts';
import { findSession, type SessionRow } from '../../store/read/sessions.ts';
import { breathe } from '../params.ts';
import type { Emit, Params, Work } from '../work.ts';

export type Job = { store: Store; params: Params; emit: Emit; isLeft: () => boolean };

/** The work that is done by a function of a job. */
export function workOf(act: (job: Job) => Promise<void>): Work {
  return (store, params, emit, isLeft) => act({ store, params, emit, isLeft });
}

/** So long the thread does not listen. */
const SLICE_MS = 20;

/**
 * Goes through work that is done in steps. After each slice of it the thread gets a turn. Throws `TapedeckError` `stopped`
 * where nobody waits for the result any more.
 */
export async function* inSlices<T>(steps: Iterable<T>, { isLeft }: Pick<Job, 'isLeft'>): AsyncGenerator<T> {
  let until = performance.now() + SLICE_MS;
  for (const step of steps) {
    yield step;
    if (performance.now() < until) continue;
    await breathe();
    if (isLeft()) throw new TapedeckError('stopped', 'The client has gone.');
    until = performance.now() + SLICE_MS;
  }
}

/** How often progress is told. */
const PROGRESS_MS = 200;

/** Tells how far the work is, a few times a second. */
export function progressOf(job: Job, total: number): (done: number) => Promise<void> {
  let next = performance.now() + PROGRESS_MS;
  return async (done) => {
    if (performance.now() < next) return;
    next = performance.now() + PROGRESS_MS;
    await emitJson(job, { progress: { done: Math.min(done, total), total } });
  };
}

export function emitJson({ emit }: Job, value: object): Promise<void> {
  return emit(JSON.stringify(value));
}

/** The session that is asked about. Throws `TapedeckError` where there is none. */
export function sessionOf({ store, params }: Job, name = 'session'): SessionRow {
  const reference = params[name] ?? '';
  if (reference === '') throw new TapedeckError('usage', `Expected a session as \`${name}\`, got none.`);
  return findSession(store, reference);
}

/** Undefined where there is none. Throws `TapedeckError` `usage`. */
export function filterOf({ params }: Job): Filter | undefined {
  const written = params['filter'] ?? '';
  return written.trim() === '' ? undefined : parseFilter(written, Date.now() * 1000);
}

/** What a parameter may have several of: each stands on a line. */
export function listOf({ params }: Job, name: string): string[] {
  return (params[name] ?? '').split('\n').filter((one) => one !== '');
}

/** The file beside the store; null where it may not be kept , or cannot. */
export function sideOf({ store, params }: Job): SideFile | null {
  if (params['index'] === 'no' || params['no-index'] !== undefined) return null;
  try {
    return openSideFile(store);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
}
