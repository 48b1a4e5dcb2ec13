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
  return own < 0 ? null : before(store, sessions, own, Number.POSITIVE_INFINITY);
}

function before(
  store: Store,
  sessions: readonly Known[],
  own: number,
  mostFrames: number,
): EarlierTools | null {
  const server = sessions[own]?.server;
  const earlier = sessions.slice(own + 1).filter((one) => one.server === server);
  for (const session of earlier.slice(0, MOST_EARLIER)) {
    // A list may stand further on: then nobody can say which was the last.
    if (session.frames > mostFrames || session.indexed < session.frames) return null;
    const tools = lastTools(store, session, session.frames);
    if (tools !== null) return { session: session.id, tools };
  }
  return null;
}

function lastTools(store: Store, { number }: Known, upTo: number): Definitions | null {
  const requests = requestsOfMethods(store, number, ['tools/list'], { after: 0, upTo });
  if (requests.length === 0) return null;
  const { answerTo } = prepareLinks(store, number);
  const valueAt = prepareValues(store, number);
  const listing = createToolPages();
  let last: Definitions | null = null;
  for (const request of requests) {
    const answer = answerTo(request);
    const result = answer === null ? null : valueAt(answer)?.['result'];
    if (!isObject(result)) continue;
    const params = valueAt(request)?.['params'];
    last = listing.page(isObject(params) ? params['cursor'] : undefined, result) ?? last;
  }
  return last;
}

function prepareValues(store: Store, session: number): (place: Place) => JsonObject | null {
  const payloadOf = preparePayloads(store, session);
  return ({ seq, n }) => {
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

/** `list` looks at the newest sessions of so many servers, and no further into a session than this. */
const MOST_SERVERS = 10;

const MOST_FRAMES = 2000;

/**
 * By the id of the newest session of each server: what changed since its session before. Takes a few milliseconds, however large
 * the store is: in sessions of more than `MOST_FRAMES` it may find nothing.
 */
export function changedTools(store: Store): Map<string, ChangedTools> {
  const sessions = newestSessions(store, Number.MAX_SAFE_INTEGER);
  const seen = new Set<string>();
  const found = new Map<string, ChangedTools>();
  for (const [i, session] of sessions.entries()) {
    if (seen.has(session.server)) continue;
    seen.add(session.server);
    if (seen.size > MOST_SERVERS) break;
    const tools = lastTools(store, session, Math.min(session.frames, MOST_FRAMES));
    const earlier = tools === null ? null : before(store, sessions, i, MOST_FRAMES);
    if (tools === null || earlier === null) continue;
    const changes = compareDefinitions(earlier.tools, tools);
    if (changes.length > 0) found.set(session.id, { since: earlier.session, changes });
  }
  return found;
}
