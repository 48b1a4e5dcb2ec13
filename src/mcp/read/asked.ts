/** What a tool is asked, and how it answers: shared by all tools of this room. */

import { TapedeckError } from '../../errors.ts';
import type { Store } from '../../store/file/open.ts';
import { openSideFile, type SideFile } from '../../store/keep/side-file.ts';
import type { Work } from '../../web/work.ts';
import { createVeil, type Lack, LargeSession, type Opened } from './redacted.ts';
import { createRoom, type Room } from './room.ts';
import { createScope, type FenceOptions, type SeenScope } from './scope.ts';

/** Checked by the schema of the tool before. */
export type ToolArguments = {
  session?: string;
  filter?: string;
  text?: string | string[];
  limit?: number;
  cursor?: string;
  seq?: number;
  from?: number;
  all?: boolean;
  by?: 'tool' | 'method' | 'session';
  severity?: 'note' | 'warning' | 'error';
  a?: string;
  b?: string;
  /** Of what is no tool: the beginning of a name, URIs. */
  value?: string;
  uris?: string[];
};

export type ToolQuestion = {
  store: Store;
  scope: SeenScope;
  room: Room;
  args: ToolArguments;
  keepsIndex: boolean;
};

/** What a tool says. `recorded` alone has what was recorded. */
export type ToolAnswer = {
  recorded: Record<string, unknown>;
  /** What was left out, and how to get it. */
  leftOut?: string[];
  /** For the next page. */
  cursor?: string;
  incomplete?: Incomplete[];
};

/** What the answer does not cover yet, in figures; `leftOut` says what to do. */
type Incomplete = { what: string; session?: string; done: number; of: number; unit: string };

/** A job of a reader thread. `fence`: the same for all of one server. */
export type AskedText = { fence: FenceOptions; args: ToolArguments; copiesLarge: boolean };

/** In place of an answer: the thread that copies large sessions has to be asked. */
export type Elsewhere = { isElsewhere: true };

const scopes = new WeakMap<Store, { key: string; scope: SeenScope }>();

/** Runs a function of this room as a work of a reader thread. */
export function askedWork(answer: (asked: ToolQuestion) => Promise<object>): Work {
  return async (store, params, emit) => {
    const { fence, args, copiesLarge } = JSON.parse(params['asked'] ?? '') as AskedText;
    const veil = createVeil(store, fence.reveal);
    const scope = scopeOf(store, fence, copiesLarge);
    scope.copies.begin();
    try {
      const { keepsIndex } = fence;
      const found = await answer({ store, scope, room: createRoom(veil), args, keepsIndex });
      await emit(JSON.stringify(withLacks(found, scope.copies.lacks())));
    } catch (error) {
      if (error instanceof LargeSession)
        await emit(JSON.stringify({ isElsewhere: true } satisfies Elsewhere));
      else if (error instanceof TapedeckError)
        throw withoutSecrets(withReasons(error, scope.copies.lacks()), veil);
      else throw error;
    }
  };
}

/** So many sessions that are being redacted are told of. */
const MOST_LACKS = 3;

function withLacks(answer: Partial<ToolAnswer>, lacks: readonly Lack[]): Partial<ToolAnswer> {
  if (lacks.length === 0) return answer;
  const shown = lacks.slice(0, MOST_LACKS);
  const rest = lacks.length - shown.length;
  const incomplete = shown.map(({ session, done, of }) => ({
    ...{ what: 'redaction', session, done, of, unit: 'frames' },
  }));
  return {
    ...answer,
    incomplete: [...(answer.incomplete ?? []), ...incomplete],
    leftOut: [
      ...(answer.leftOut ?? []),
      ...shown.map(lackText),
      ...(rest === 0 ? [] : [`The same goes for ${rest} more sessions.`]),
    ],
  };
}

/** What cannot be found may be what is not redacted yet. */
function withReasons(error: TapedeckError, lacks: readonly Lack[]): TapedeckError {
  if (error.code !== 'not-found' || lacks.length === 0) return error;
  return new TapedeckError(error.code, [error.message, ...lacks.map(lackText)].join(' '), { cause: error });
}

export function lackText({ session, done, of, isFinal }: Lack): string {
  const first = `Session ${session} was recorded without redaction, and only the first ${done} of its ${of} frames are redacted`;
  return isFinal
    ? `${first}: it is too large, or has grown. All of it can be asked about after: tapedeck redact ${session}`
    : `${first} so far: the answer is about these. The rest is being redacted: ask the same again in some seconds.`;
}

function withoutSecrets(error: TapedeckError, veil: <T>(value: T) => T): TapedeckError {
  const column = 'column' in error ? { column: error.column } : {};
  return Object.assign(new TapedeckError(error.code, veil(error.message), { cause: error }), column);
}

function scopeOf(store: Store, fence: FenceOptions, copiesLarge: boolean): SeenScope {
  const key = JSON.stringify(fence);
  const known = scopes.get(store);
  if (known?.key === key) return known.scope;
  const scope = createScope(store, fence, copiesLarge);
  scopes.set(store, { key, scope });
  return scope;
}

/** The session that is asked about, and as what it may be read. */
export async function openAsked({ scope, args }: Pick<ToolQuestion, 'scope' | 'args'>): Promise<Opened> {
  return scope.open(scope.find(args.session ?? 'latest'));
}

/** The file beside the store; null where it may not be kept, or cannot. */
export function sideFor(store: Store, keepsIndex: boolean): SideFile | null {
  if (!keepsIndex) return null;
  try {
    return openSideFile(store);
  } catch (error) {
    if (error instanceof Error && 'code' in error) return null;
    throw error;
  }
}

/** A whole number in a cursor. Throws `TapedeckError` `usage`. */
export function cursorNumber(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw badCursor(cursor);
}

export function badCursor(cursor: string): TapedeckError {
  const got = JSON.stringify(cursor.slice(0, 100));
  return new TapedeckError(
    'usage',
    `Expected the cursor of the answer before, got ${got}. Leave it out to begin at the beginning.`,
  );
}

/** A page of rows that are all there, from a cursor on. `what`: of what the rest is told. */
export function pageOf<T>(
  room: Room,
  rows: readonly T[],
  cursor: string | undefined,
  most: number,
): { page: T[]; next?: string; rest: number } {
  const from = cursorNumber(cursor);
  const page = room.fill(rows.slice(from, from + most));
  const done = from + page.length;
  const rest = Math.max(0, rows.length - done);
  return { page, rest, ...(rest > 0 && page.length > 0 ? { next: String(done) } : {}) };
}

/** `3 more calls: ask again with the cursor`. */
export function restText(rest: number, what: string): string {
  return `${rest} more ${what}: ask again with this cursor.`;
}
