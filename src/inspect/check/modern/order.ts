/** Tools stand in one order as long as they are the same. Specification 2026-07-28, server/tools, "Capabilities". */

import { BoundedMap } from '../../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import { type CheckedMessage, type Inspector, methodOf, resultOf, shown } from '../checked-message.ts';
import type { Report } from '../rules.ts';

/** So many pages are compared. */
const MAX_PAGES = 1000;

/** Definitions in their order, each as its JSON: an order is another only if nothing else is. */
type Listed = { seq: number; tools: readonly string[] };

export function inspectToolOrder(report: Report): Inspector {
  /** By cursor: the page as it was listed last; none for the first. */
  const pages = new BoundedMap<string, Listed>(MAX_PAGES);
  let whole: Listed | null = null;
  /** The list that is being read, over its pages. */
  let reading: { tools: string[]; next: unknown; isTold: boolean } | null = null;

  function message(seen: CheckedMessage): void {
    if (methodOf(seen) === 'notifications/tools/list_changed') restart();
    const result = seen.asked?.method === 'tools/list' ? resultOf(seen) : null;
    if (result !== null) list(seen, seen.asked?.params?.['cursor'], result);
  }

  function restart(): void {
    pages.clear();
    whole = null;
    reading = null;
  }

  function list(seen: CheckedMessage, cursor: unknown, { tools, nextCursor }: JsonObject): void {
    if (!Array.isArray(tools)) return;
    const listed = tools.map((tool) => JSON.stringify(tool));
    if (cursor === undefined) reading = { tools: [], next: undefined, isTold: false };
    else if (reading?.next !== cursor) reading = null;
    const key = JSON.stringify(cursor ?? null);
    const isTold = compare(seen, pages.get(key), listed);
    pages.set(key, { seq: seen.place.seq, tools: listed });
    if (reading === null) return;
    reading.tools.push(...listed);
    reading.isTold ||= isTold;
    reading.next = nextCursor;
    if (nextCursor !== undefined) return;
    if (!reading.isTold) compare(seen, whole ?? undefined, reading.tools);
    whole = { seq: seen.place.seq, tools: reading.tools };
    reading = null;
  }

  /** Returns whether it has told of another order. */
  function compare(seen: CheckedMessage, before: Listed | undefined, tools: readonly string[]): boolean {
    const at = before === undefined ? -1 : tools.findIndex((tool, i) => tool !== before.tools[i]);
    if (before === undefined || at < 0 || !isSameSet(before.tools, tools)) return false;
    const [expected, found] = [nameOf(before.tools[at]), nameOf(tools[at])];
    const where = `as tool ${at + 1}`;
    report('tool-order', seen.side, seen, `${expected} ${where}, in the order of #${before.seq}`, `${found}`);
    return true;
  }

  return { message };
}

function isSameSet(before: readonly string[], after: readonly string[]): boolean {
  if (before.length !== after.length) return false;
  const sorted = after.toSorted();
  return before.toSorted().every((tool, i) => tool === sorted[i]);
}

function nameOf(json: string | undefined): string {
  const tool: unknown = JSON.parse(json ?? 'null');
  return shown(isObject(tool) ? tool['name'] : tool);
}
