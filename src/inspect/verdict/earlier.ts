/**
 * What the server of a session listed in an earlier session. Sessions are of one server where target, transport and the name that
 * the server gives itself are the same. Compared are only sessions that were redacted alike, so that a placeholder is no change.
 */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';
import { jsonOf } from '../../protocol/message/conversation.ts';
import type { Place } from '../../protocol/message/correlate.ts';
import { withoutByteOrderMark } from '../../protocol/text.ts';
import type { Store } from '../../store/file/open.ts';
import { prepareLinks } from '../../store/read/exchanges.ts';
import { preparePayloads } from '../../store/read/frames.ts';
import { requestsOfMethods } from '../../store/read/outline.ts';
import { IMPORTED } from '../../store/read/sessions.ts';
import {
  compareDefinitions,
  createToolPages,
  type DefinitionChange,
  type Definitions,
} from './definitions.ts';

/** The last whole list of tools of an earlier session, by the id of that session. */
export type EarlierTools = { session: string; tools: Definitions };

type Known = {
  number: number;
  id: string;
  server: string;
  startedAt: number;
  frames: number;
  indexed: number;
};

/** So far back an earlier session is looked for, in sessions of any server. */
const MOST_SESSIONS = 1000;

/** Of so many earlier sessions of the server. */
const MOST_EARLIER = 5;

function newestSessions(store: Store, notAfter: number): Known[] {
  return store
    .prepare<[number, number], Known>(
      `SELECT number, id, started_at AS startedAt, frames, indexed, json_array(target, transport, server_name,
         redaction) AS server
       FROM session WHERE started_at <= ? AND server_name IS NOT NULL
         AND number NOT IN (SELECT session FROM label WHERE key = '${IMPORTED}')
       ORDER BY started_at DESC, number DESC LIMIT ?`,
    )
    .all(notAfter, MOST_SESSIONS);
}

/** Null where no earlier session of the server has a whole list. */
export function earlierTools(
  store: Store,
  { number, startedAt }: { number: number; startedAt: number },
): EarlierTools | null {
  const sessions = newestSessions(store, startedAt);
  const own = sessions.findIndex((one) => one.number === number);
  const reach = { frames: Number.POSITIVE_INFINITY, bytes: Number.POSITIVE_INFINITY };
  return own < 0 ? null : before(store, sessions, own, reach);
}

/** No further into a session than `frames`, and no more `bytes` of frames altogether, which are counted down. */
type Reach = { readonly frames: number; bytes: number };

function before(store: Store, sessions: readonly Known[], own: number, reach: Reach): EarlierTools | null {
  const server = sessions[own]?.server;
  const earlier = sessions.slice(own + 1).filter((one) => one.server === server);
  for (const session of earlier.slice(0, MOST_EARLIER)) {
    // A list may stand further on: then nobody can say which was the last.
    if (session.frames > reach.frames || session.indexed < session.frames) return null;
    const tools = lastTools(store, session, reach);
    if (tools !== null) return { session: session.id, tools };
  }
  return null;
}

/** The last whole list, looked for from the end: a client may ask for it a thousand times. */
function lastTools(store: Store, { number, frames }: Known, reach: Reach): Definitions | null {
  const upTo = Math.min(frames, reach.frames);
  const requests = requestsOfMethods(store, number, ['tools/list'], { after: 0, upTo });
  if (requests.length === 0) return null;
  const { answerTo } = prepareLinks(store, number);
  const valueAt = prepareValues(store, number, reach);
  let pages: Page[] = [];
  for (const request of requests.toReversed()) {
    const answer = answerTo(request);
    const result = answer === null ? null : valueAt(answer)?.['result'];
    const asked = valueAt(request);
    if (!isObject(result) || asked === null) continue;
    const { params } = asked;
    const cursor = isObject(params) ? params['cursor'] : undefined;
    pages.unshift({ cursor, result });
    if (cursor !== undefined) continue;
    const whole = putTogether(pages);
    if (whole !== null) return whole;
    pages = [];
  }
  return null;
}

type Page = { cursor: unknown; result: JsonObject };

/** Of pages that begin with the first one of a list. */
function putTogether(pages: readonly Page[]): Definitions | null {
  const listing = createToolPages();
  return pages.reduce<Definitions | null>(
    (whole, { cursor, result }) => listing.page(cursor, result) ?? whole,
    null,
  );
}

function prepareValues(store: Store, session: number, reach: Reach): (place: Place) => JsonObject | null {
  const payloadOf = preparePayloads(store, session);
  const sizeOf = store
    .prepare<[number, number], number>('SELECT size FROM frame WHERE session = ? AND seq = ?')
    .pluck();
  return ({ seq, n }) => {
    reach.bytes -= sizeOf.get(session, seq) ?? 0;
    if (reach.bytes < 0) return null;
    const frame = payloadOf(seq);
    if (frame === undefined) return null;
    try {
      const value: unknown = JSON.parse(withoutByteOrderMark(jsonOf(frame).toString('utf8')));
      const message: unknown = Array.isArray(value) ? value[n] : value;
      return isObject(message) ? message : null;
    } catch {
      return null;
    }
  };
}

/** What a session's server lists otherwise than in its session before, whose id is `since`. */
export type ChangedTools = { since: string; changes: readonly DefinitionChange[] };

/** `list` looks at the newest sessions of so many servers, and no further than this. */
const MOST_SERVERS = 10;

const MOST_FRAMES = 2000;

const MOST_BYTES = 16 * 1024 * 1024;

/**
 * By the id of the newest session of each server: what changed since its session before. Takes a few milliseconds, and with lists of
 * megabytes some hundreds, however large the store is: beyond `MOST_FRAMES` and `MOST_BYTES` it claims nothing.
 */
export function changedTools(store: Store): Map<string, ChangedTools> {
  const sessions = newestSessions(store, Number.MAX_SAFE_INTEGER);
  const seen = new Set<string>();
  const found = new Map<string, ChangedTools>();
  const reach = { frames: MOST_FRAMES, bytes: MOST_BYTES };
  for (const [i, session] of sessions.entries()) {
    if (seen.has(session.server)) continue;
    seen.add(session.server);
    if (seen.size > MOST_SERVERS) break;
    const tools = lastTools(store, session, reach);
    const earlier = tools === null ? null : before(store, sessions, i, reach);
    if (tools === null || earlier === null) continue;
    const changes = compareDefinitions(earlier.tools, tools);
    if (changes.length > 0) found.set(session.id, { since: earlier.session, changes });
  }
  return found;
}
