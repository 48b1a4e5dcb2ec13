/**
 * What of a store may be seen: the fence that the command line sets, without the sessions of `tapedeck mcp` itself. Every reader of
 * this room comes to sessions and frames through a scope, so that nothing beyond the fence is shown, named or counted.
 */

import { TapedeckError } from '../../errors.ts';
import { type Filter, isAboutSessions, parseFilter } from '../../inspect/filter/filter.ts';
import { prepareSessionTest, selectFrames } from '../../inspect/filter/sql.ts';
import type { Store } from '../../store/file/open.ts';
import type { FrameSelection } from '../../store/read/frames.ts';
import { eachSession, findSession, type SessionRow, stateOf } from '../../store/read/sessions.ts';
import { createUnveiling, type Opened, prepareHeads, type Unveiling } from './redacted.ts';

/** As the command line has it. Texts are filters. */
export type FenceOptions = {
  /** Ids, beginnings of ids, names or `latest`; none: all. */
  sessions: readonly string[];
  filter: string | null;
  /** As after `since=`. */
  since: string | null;
  /** From when on a time such as `2h` counts: microseconds since the Unix epoch. */
  now: number;
  reveal: boolean;
  keepsIndex: boolean;
};

/** By which our own sessions are known. */
export const SERVER_NAME = 'mcp-tapedeck';

export type SeenScope = {
  /** Whether only some frames of a session may be seen. */
  cutsSessions: boolean;
  /** Whether there is a fence at all. */
  hasFence: boolean;
  /** Those that may be seen, the newest first. */
  sessions(): SessionRow[];
  /** Those of them with a frame for which a filter holds. */
  sessionsWith(filter: Filter | undefined): AsyncGenerator<SessionRow>;
  /** By id, the beginning of one, name or `latest`. Throws `TapedeckError`. */
  find(reference: string): SessionRow;
  /** What the row of a session says, as it may be shown. */
  head: ReturnType<typeof prepareHeads>;
  /** The session as it may be read: itself, or a redacted copy. */
  open: Unveiling['open'];
  copies: Unveiling;
  /** A session's frames that may be seen, and for which a filter holds; undefined: all. */
  only(opened: Pick<Opened, 'store'>, filter: Filter | undefined): FrameSelection | undefined;
  /** The same as one filter, for readers that take no selection; undefined: everything. */
  within(filter: Filter | undefined): Filter | undefined;
};

/** Reads the filter of a tool. Throws `TapedeckError` `usage`. */
export function readToolFilter(text: string | undefined): Filter | undefined {
  return text === undefined || text.trim() === '' ? undefined : parseFilter(text, Date.now() * 1000);
}

/** `copiesLarge`: as for `createUnveiling`. */
export function createScope(store: Store, options: FenceOptions, copiesLarge: boolean): SeenScope {
  const fence = fenceOf(options);
  const isNamed = createNameTest(options.sessions);
  const seen = fence === undefined ? null : createFenceTest(store, fence);
  const copies = createUnveiling(store, options.reveal, copiesLarge);
  const { open } = copies;
  const cutsSessions = fence !== undefined && !isAboutSessions(fence);
  const within = (filter: Filter | undefined) => (cutsSessions ? joined([fence, filter]) : filter);

  function sessions(): SessionRow[] {
    const inFence = seen?.();
    return [...eachSession(store)].filter(
      (session) => !isHidden(session, store, isNamed) && (inFence?.(session) ?? true),
    );
  }

  return {
    cutsSessions,
    hasFence: fence !== undefined,
    sessions,
    async *sessionsWith(filter) {
      const whole = within(filter);
      for (const session of sessions()) {
        if (filter === undefined || whole === undefined) yield session;
        else {
          const opened = isAboutSessions(whole) ? { store, session, lack: null } : await open(session);
          if (prepareTest(opened.store, whole)(opened.session)) yield session;
        }
      }
    },
    find: (reference) => findAmong(store, reference, sessions()),
    head: prepareHeads(store, options.reveal),
    open,
    copies,
    only(opened, filter) {
      const whole = within(filter);
      return whole === undefined ? undefined : selectFrames(opened.store, whole);
    },
    within: (filter) => joined([fence, filter]),
  };
}

/** Whether one frame is among the selected. */
export function prepareAmong(
  { store, session }: Pick<Opened, 'store' | 'session'>,
  only: FrameSelection | undefined,
): (seq: number) => boolean {
  if (only === undefined) return () => true;
  const test = store.prepare<[object]>(`SELECT 1 FROM (${only.sql}) WHERE seq = @seq LIMIT 1`);
  return (seq) => test.get({ ...only.values, session: session.number, seq }) !== undefined;
}

function fenceOf({ sessions, filter, since, now }: FenceOptions): Filter | undefined {
  const named = sessions.map((text): Filter => term('session', text));
  return joined([
    named.length === 0 ? undefined : { type: 'or', parts: named },
    filter === null ? undefined : parseFilter(filter, now),
    since === null ? undefined : parseFilter(`since="${since}"`, now),
  ]);
}

function term(field: 'session', value: string): Filter {
  return { type: 'term', field, isNegated: false, test: { type: 'equals', value } };
}

function joined(filters: readonly (Filter | undefined)[]): Filter | undefined {
  const parts = filters.filter((one) => one !== undefined);
  return parts.length === 0 ? undefined : { type: 'and', parts };
}

function prepareTest(store: Store, filter: Filter): (session: SessionRow) => boolean {
  const { candidates, holds } = prepareSessionTest(store, filter);
  const known = new Set(candidates);
  return (session) => known.has(session.number) && holds(session);
}

/**
 * Whether a session is inside the fence. What was found out about one is kept until it has new frames: to find that no frame of a
 * session is inside takes reading all of them.
 */
function createFenceTest(store: Store, fence: Filter): () => (session: SessionRow) => boolean {
  const known = new Map<string, { frames: number; indexed: number; isInside: boolean }>();
  const holds = prepareSessionTest(store, fence).holds;
  return () => {
    // What a session is called, and which is the latest, may have changed.
    const candidates = new Set(prepareSessionTest(store, fence).candidates);
    return (session) => {
      const { id, frames, indexed } = session;
      if (!candidates.has(session.number)) return false;
      const before = known.get(id);
      if (before?.frames === frames && before.indexed === indexed) return before.isInside;
      const isInside = holds(session);
      known.set(id, { frames, indexed, isInside });
      return isInside;
    };
  };
}

/** Whether the command line names a session outright. */
function createNameTest(references: readonly string[]): (session: SessionRow) => boolean {
  return ({ id, name }) =>
    references.some((text) => text !== 'latest' && (text === name || (text !== '' && id.startsWith(text))));
}

/**
 * Sessions of `tapedeck mcp` are seen where they are named and over. One that is open may hold the very call that is being answered.
 * Before its handshake is read, such a session is known by its command.
 */
function isHidden(session: SessionRow, store: Store, isNamed: (session: SessionRow) => boolean): boolean {
  const { serverName, number } = session;
  const isOwn = serverName === SERVER_NAME || (serverName === null && startsTapedeck(store, number));
  return isOwn && (stateOf(session) === 'open' || !isNamed(session));
}

const OWN_COMMAND = /(?:^|[\\/])(?:mcp-)?tapedeck(?:\.js)?(?:@[^\s/\\]*)?$/;

function startsTapedeck(store: Store, session: number): boolean {
  const text = store
    .prepare<[number], string | null>('SELECT command FROM session WHERE number = ?')
    .pluck()
    .get(session);
  const words: unknown[] = text == null ? [] : JSON.parse(text);
  const at = words.findIndex((word) => OWN_COMMAND.test(String(word)));
  return at >= 0 && words[at + 1] === 'mcp';
}

/** In the words of the tools. */
function findAmong(store: Store, reference: string, sessions: readonly SessionRow[]): SessionRow {
  try {
    return findSession(
      store,
      reference,
      sessions.map(({ number }) => number),
    );
  } catch (error) {
    if (!(error instanceof TapedeckError)) throw error;
    const got = JSON.stringify(reference.slice(0, 100));
    const what =
      error.code === 'ambiguous'
        ? `Expected one session, but several begin with ${got}. Give more of the id.`
        : `Expected a session by its id, the beginning of one, its name or "latest", got ${got}: there is none that may be seen.`;
    throw new TapedeckError(error.code, `${what} See the tool list_sessions.`, { cause: error });
  }
}
