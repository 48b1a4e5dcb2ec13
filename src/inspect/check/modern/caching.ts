/** What results say about how long, and by whom, they may be kept. Specification 2026-07-28, server/utilities/caching. */

import { BoundedMap } from '../../../protocol/bounded.ts';
import type { JsonObject } from '../../../protocol/json/read.ts';
import { SKILL_METHODS } from '../../../protocol/message/skills.ts';
import { type CheckedMessage, type Inspector, MAX_REMEMBERED, resultOf, shown } from '../checked-message.ts';
import type { Report } from '../rules.ts';

/** The methods whose whole results carry hints. */
export const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);

/** The skills extension (SEP-2640) requires them too; a host may ask again whenever a file was not what its entry says. */
const HINTED: ReadonlySet<string> = new Set([...CACHEABLE, ...SKILL_METHODS]);

const HINTS = ['ttlMs', 'cacheScope'] as const;

export function inspectCaching(report: Report): Inspector {
  /** By method and cursor: the scope of the first page of the list that goes on there. */
  const scopes = new BoundedMap<string, unknown>(MAX_REMEMBERED);

  function message(seen: CheckedMessage): void {
    const result = resultOf(seen);
    if (result === null || seen.asked === null) return;
    const { resultType } = result;
    if (resultType === 'input_required') interim(seen, result);
    // A result of no type is one of an older server.
    if (resultType !== 'complete' || !HINTED.has(seen.asked.method)) return;
    hints(seen, seen.asked.method, result);
    page(seen, seen.asked.method, seen.asked.params?.['cursor'], result);
  }

  function hints(seen: CheckedMessage, method: string, result: JsonObject): void {
    const { ttlMs, cacheScope } = result;
    const missing = HINTS.filter((hint) => result[hint] === undefined).map((hint) => `\`${hint}\``);
    if (missing.length > 0)
      report('cache-hint', seen.side, seen, `${missing.join(' and ')} in the answer to ${method}`, 'none');
    if (ttlMs !== undefined && !isLifetime(ttlMs))
      report('cache-hint-value', seen.side, seen, 'an integer from 0 on as `ttlMs`', shown(ttlMs));
    if (cacheScope !== undefined && cacheScope !== 'public' && cacheScope !== 'private')
      report('cache-hint-value', seen.side, seen, '"public" or "private" as `cacheScope`', shown(cacheScope));
  }

  function interim(seen: CheckedMessage, result: JsonObject): void {
    const given = HINTS.filter((hint) => result[hint] !== undefined).map((hint) => `\`${hint}\``);
    if (given.length > 0)
      report('cache-hint-interim', seen.side, seen, 'a request for input alone', given.join(' and '));
  }

  /** A page is held to the first of its list, as far as the cursor tells which that was. */
  function page(seen: CheckedMessage, method: string, cursor: unknown, result: JsonObject): void {
    const { cacheScope, nextCursor } = result;
    const before = typeof cursor === 'string' ? scopes.get(`${method} ${cursor}`) : undefined;
    if (before !== undefined && cacheScope !== undefined && cacheScope !== before)
      report('cache-pages', seen.side, seen, `${shown(before)} as on the first page`, shown(cacheScope));
    if (typeof nextCursor === 'string') scopes.set(`${method} ${nextCursor}`, before ?? cacheScope);
  }

  return { message };
}

/** A `ttlMs` that may be believed; 0: stale at once. */
export function isLifetime(ttlMs: unknown): ttlMs is number {
  return typeof ttlMs === 'number' && Number.isInteger(ttlMs) && ttlMs >= 0;
}
