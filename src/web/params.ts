/** What the works of the viewer read of a request, and how its session is answered for: afresh, or as it was. */

import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { TapedeckError } from '../errors.ts';
import type { Store } from '../store/file/open.ts';
import { findSession, type SessionRow, stateOf } from '../store/read/sessions.ts';
import { VERSION } from '../version.ts';
import type { Emit, Params, Work } from './work.ts';

/** A whole number of the query. Throws `TapedeckError` `usage`. */
export function numberParam(
  params: Params,
  name: string,
  { least = 0, most, otherwise }: { least?: number; most: number; otherwise?: number },
): number {
  const text = params[name];
  if (text === undefined && otherwise !== undefined) return otherwise;
  const value = /^\d{1,15}$/.test(text ?? '') ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new TapedeckError(
    'usage',
    `Expected a whole number from ${least} to ${most} as \`${name}\`, got \`${text ?? ''}\`.`,
  );
}

/** The session that a route names, by an id, the beginning of one, a name, or `latest`. Throws `TapedeckError`. */
export function sessionParam(store: Store, { session = '' }: Params): SessionRow {
  return findSession(store, session);
}

/**
 * Emits the head for what is read of a session. True: the client has it already, and nothing more is to be sent. A session that is
 * recorded or redacted at the moment is never kept by a client.
 */
export async function emitFreshness(
  store: Store,
  session: SessionRow,
  params: Params,
  emit: Emit,
): Promise<boolean> {
  const etag = entityTag(store, session);
  if (etag === null) return false;
  const isKnown = params['if-none-match']?.split(/,\s*/).includes(etag) === true;
  const headers = { ETag: etag, 'Cache-Control': 'private, no-cache' };
  await emit({ status: isKnown ? 304 : 200, headers });
  return isKnown;
}

/** Differs where anything about the session does: its frames, its index, its redaction, and the program that shows it. */
export function entityTag(store: Store, session: SessionRow): string | null {
  if (stateOf(session) === 'open') return null;
  const { redaction, isChanging } = store
    .prepare<[number, number], { redaction: string | null; isChanging: 0 | 1 }>(
      'SELECT redaction, EXISTS (SELECT 1 FROM masking WHERE session = ?) AS isChanging FROM session WHERE number = ?',
    )
    .get(session.number, session.number) ?? { redaction: null, isChanging: 1 };
  if (isChanging === 1) return null;
  const facts = JSON.stringify([VERSION, redaction, session]);
  return `"${createHash('sha256').update(facts).digest('base64url').slice(0, 22)}"`;
}

/**
 * Does a work. A session that is removed while it is read breaks whatever reads it: then it is not found, or, where another one has
 * the name by now, that one is read instead. Any other error is thrown as it is.
 */
export async function doWork(
  ...[work, store, params, emit, isLeft]: [Work, ...Parameters<Work>]
): Promise<void> {
  let hasBegun = false;
  const emitNoting: Emit = (piece) => {
    hasBegun = true;
    return emit(piece);
  };
  try {
    await work(store, params, emitNoting, isLeft);
  } catch (error) {
    if (error instanceof TapedeckError) throw error;
    const isMoved = sessionNames(params).filter((name) => findSession(store, name).id !== name).length > 0;
    if (hasBegun || !isMoved) throw error;
    await work(store, params, emit, isLeft);
  }
}

function sessionNames(params: Params): string[] {
  return ['session', 'a', 'b'].flatMap((name) => params[name] || []);
}

/** Lets the thread answer others in between, so that nobody waits for longer than a slice takes. */
export function breathe(): Promise<void> {
  return nextTurn();
}
