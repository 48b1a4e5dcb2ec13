/**
 * What a client asks for again although it has an answer that is fresh still. Specification 2026-07-28, server/utilities/caching.
 *
 * A client may have had a reason, so what it may have been is taken for one: a notification of a change, any failure, a call of
 * a tool (which may change what resources and prompts there are, but not the tools), a subscription that began or ended.
 */

import { BoundedMap } from '../../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import type { Place } from '../../../protocol/message/correlate.ts';
import { paramsKey } from '../../verdict/repeats.ts';
import { formatCount, formatDuration, formatSize } from '../../view/text.ts';
import {
  type CheckedHttpExchange,
  type CheckedMessage,
  type CheckedSession,
  type Inspector,
  MAX_REMEMBERED,
  methodOf,
  resultOf,
  shown,
} from '../checked-message.ts';
import type { Report } from '../rules.ts';
import { CACHEABLE, isLifetime } from './caching.ts';

/** Microseconds. A client that asks sooner after an answer may not have read it by then. */
const CROSSING = 100_000;

/** An answer that its client may use. `turn`: when it was asked for, counted in messages. `http`: the HTTP exchange that it came on. */
type Fresh = {
  place: Place;
  at: number;
  turn: number;
  ttlMs: number;
  isPrivate: boolean;
  http: number | null;
};

/** A request for what was fresh; `what` it asked for, in words. */
type Again = { key: string; asked: Asked; fresh: Fresh };

type Asked = Pick<CheckedMessage, 'place' | 'side' | 'revision' | 'at' | 'http'> & { what: string };

/** What one list or resource was asked for again. */
type Cost = { first: Again; count: number; bytes: number };

/** What changes together: `tools/list` is of `tools`, `server/discover` of `server`. */
const KINDS = ['server', 'tools', 'prompts', 'resources'];

export function inspectRefetches(
  report: Report,
  { basis, mayMissFrames = false }: CheckedSession,
): Inspector {
  const fresh = new BoundedMap<string, Fresh>(MAX_REMEMBERED);
  /** By place of the request. */
  const asked = new BoundedMap<string, { key: string; turn: number; again: Again | null }>(MAX_REMEMBERED);
  /** What waits for the end of its HTTP exchange, whose headers say by whose authorization it came. */
  const waiting = new BoundedMap<number, { again: Again; bytes: number }>(MAX_REMEMBERED);
  const authorizations = new BoundedMap<number, string>(MAX_REMEMBERED);
  const subscribed = new BoundedMap<number, true>(MAX_REMEMBERED);
  const costs = new BoundedMap<string, Cost>(MAX_REMEMBERED);
  /** By kind: since when answers count. */
  const since = new Map<string, number>();
  let turn = 0;

  function message(seen: CheckedMessage): void {
    turn += 1;
    const method = methodOf(seen);
    if (method !== null && seen.message.kind === 'request') request(seen, method);
    else if (method !== null) changed(method);
    if (seen.asked !== null && seen.correlation.relation === 'reply') answer(seen, seen.asked.place);
  }

  function request(seen: CheckedMessage, method: string): void {
    if (method === 'tools/call') forget('prompts', 'resources');
    if (method === 'subscriptions/listen') {
      forget(...KINDS);
      if (seen.http !== null) subscribed.set(seen.http, true);
    }
    const key = CACHEABLE.has(method) ? keyOf(method, seen.params) : null;
    if (key === null) return;
    const before = fresh.get(key);
    const isFresh = before !== undefined && mayServe(before, method, seen.at);
    const again = isFresh ? { key, asked: askedOf(seen), fresh: before } : null;
    asked.set(textOf(seen.place), { key, turn, again });
  }

  function mayServe(answer: Fresh, method: string, at: number): boolean {
    const age = at - answer.at;
    const isKnown = answer.turn >= (since.get(kindOf(method)) ?? 0);
    return isKnown && age > CROSSING && age < answer.ttlMs * 1000;
  }

  function changed(method: string): void {
    const kind = /^notifications\/(\w+)\/(?:list_changed|updated)$/.exec(method)?.[1];
    if (kind !== undefined) forget(kind);
    if (method === 'notifications/cancelled') forget(...KINDS);
  }

  function answer(seen: CheckedMessage, place: Place): void {
    const own = asked.get(textOf(place));
    asked.delete(textOf(place));
    const result = resultOf(seen);
    const isFailed = result === null || result['isError'] === true;
    if (isFailed || seen.asked?.method === 'subscriptions/listen') forget(...KINDS);
    else if (seen.asked?.method === 'tools/call') forget('prompts', 'resources');
    if (own === undefined || result?.['resultType'] !== 'complete') return;
    if (own.again !== null) taken(own.again, seen.size);
    keep(own, seen, result);
  }

  function keep(
    { key, turn }: { key: string; turn: number },
    { place, at, http }: CheckedMessage,
    { ttlMs, cacheScope }: JsonObject,
  ): void {
    // What says nothing of its scope is for nobody else.
    const isPrivate = cacheScope !== 'public';
    if (isLifetime(ttlMs)) fresh.set(key, { place, at, turn, ttlMs, isPrivate, http });
    else fresh.delete(key);
  }

  function taken(again: Again, bytes: number): void {
    const { http } = again.asked;
    if (http === null || !again.fresh.isPrivate) count(again, bytes);
    else waiting.set(http, { again, bytes });
  }

  function httpExchange({ number, status, requestHeaders }: CheckedHttpExchange): void {
    turn += 1;
    authorizations.set(number, requestHeaders.get('authorization') ?? '');
    if (subscribed.has(number) || (status !== null && status >= 400)) forget(...KINDS);
    const own = waiting.get(number);
    waiting.delete(number);
    const before = own?.again.fresh.http ?? null;
    if (own === undefined || before === null) return;
    if (authorizations.get(before) === authorizations.get(number)) count(own.again, own.bytes);
  }

  function count(again: Again, bytes: number): void {
    const cost = costs.get(again.key) ?? { first: again, count: 0, bytes: 0 };
    costs.set(again.key, { ...cost, count: cost.count + 1, bytes: cost.bytes + bytes });
  }

  /** Answers of these kinds that were asked for before serve no longer: they may be of before a change. */
  function forget(...kinds: string[]): void {
    for (const kind of kinds) since.set(kind, turn);
  }

  function end(): void {
    for (const { first, count, bytes } of costs.values()) {
      const { asked, fresh } = first;
      const after = formatDuration((asked.at - fresh.at) / 1000);
      const other = basis === 'stateless' ? ', perhaps by another client' : '';
      const often = count === 1 ? '' : `; ${formatCount(count, 'time')} in all`;
      report(
        'fetched-again',
        asked.side,
        asked,
        `#${fresh.place.seq} to serve for its \`ttlMs\` of ${fresh.ttlMs}`,
        `${asked.what} again after ${after}${other}${often}, for ${formatSize(bytes)}`,
      );
    }
  }

  // A notification that was not recorded may have been the reason.
  return mayMissFrames ? {} : { message, httpExchange, end };
}

function kindOf(method: string): string {
  return method.slice(0, method.indexOf('/'));
}

const META = 'io.modelcontextprotocol/';

/** Equal where one answer serves both; null where it serves no other request, as the answer to a further round. */
function keyOf(method: string, params: JsonObject | null): string | null {
  if (params?.['inputResponses'] !== undefined || params?.['requestState'] !== undefined) return null;
  const meta = isObject(params?.['_meta']) ? params['_meta'] : {};
  // A server may list for one client what another could not use.
  const asker = ['protocolVersion', 'clientCapabilities', 'clientInfo'].map((name) => meta[META + name]);
  const key = paramsKey({ params: params === null ? {} : { ...params, _meta: null }, asker });
  return key === null ? null : `${method} ${key}`;
}

/** Without its params, which may be large. */
function askedOf({ place, side, revision, at, http, message, params }: CheckedMessage): Asked {
  const { uri, cursor } = params ?? {};
  const target = uri ?? cursor;
  const method = message.kind === 'request' ? message.canonical : '';
  const what = target === undefined ? method : `${method} ${shown(target)}`;
  return { place, side, revision, at, http, what };
}

function textOf({ seq, n }: Place): string {
  return `${seq}.${n}`;
}
