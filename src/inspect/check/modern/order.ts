/** Tools stand in one order as long as they are the same. Specification 2026-07-28, server/tools, "Capabilities". */

import { createHash } from 'node:crypto';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import { type CheckedMessage, type Inspector, methodOf, resultOf, shown } from '../checked-message.ts';
import type { Report } from '../rules.ts';

/** So many tools are remembered, of all pages and of a list over its pages. */
const MAX_TOOLS = 65_536;

/** Two are the same only if nothing in their definitions differs. */
type Tool = { name: string; digest: string };

type Listed = { seq: number; tools: readonly Tool[] };

export function inspectToolOrder(report: Report): Inspector {
  /** By cursor: the page as it was listed last; none for the first. */
  const pages = new Map<string, Listed>();
  /** On those pages, each time that they were listed. */
  let remembered = 0;
  let whole: Listed | null = null;
  /** The list that is being read, over its pages. */
  let reading: { tools: Tool[]; next: unknown; isTold: boolean } | null = null;

  function message(seen: CheckedMessage): void {
    if (methodOf(seen) === 'notifications/tools/list_changed') restart();
    const result = seen.asked?.method === 'tools/list' ? resultOf(seen) : null;
    if (result !== null) list(seen, seen.asked?.params?.['cursor'], result);
  }

  function restart(): void {
    forgetPages();
    whole = null;
    reading = null;
  }

  function forgetPages(): void {
    pages.clear();
    remembered = 0;
  }

  function list(seen: CheckedMessage, cursor: unknown, { tools, nextCursor }: JsonObject): void {
    if (!Array.isArray(tools)) return;
    const listed = tools.slice(0, MAX_TOOLS).map(toolOf);
    if (cursor === undefined) reading = { tools: [], next: undefined, isTold: false };
    else if (reading?.next !== cursor) reading = null;
    const key = JSON.stringify(cursor ?? null);
    const isTold = compare(seen, pages.get(key), listed);
    remembered += listed.length;
    if (remembered > MAX_TOOLS) forgetPages();
    pages.set(key, { seq: seen.place.seq, tools: listed });
    if (reading !== null && reading.tools.length > MAX_TOOLS) reading = null;
    if (reading === null) return;
    for (const tool of listed) reading.tools.push(tool);
    reading.isTold ||= isTold;
    reading.next = nextCursor;
    if (nextCursor !== undefined) return;
    if (!reading.isTold) compare(seen, whole ?? undefined, reading.tools);
    whole = { seq: seen.place.seq, tools: reading.tools };
    reading = null;
  }

  /** Returns whether it has told of another order. */
  function compare(seen: CheckedMessage, before: Listed | undefined, tools: readonly Tool[]): boolean {
    const at = tools.findIndex(({ digest }, i) => digest !== before?.tools[i]?.digest);
    if (before === undefined || at < 0 || !isSameSet(before.tools, tools)) return false;
    const expected = `${before.tools[at]?.name} as tool ${at + 1}, in the order of #${before.seq}`;
    report('tool-order', seen.side, seen, expected, `${tools[at]?.name}`);
    return true;
  }

  return { message };
}

function isSameSet(before: readonly Tool[], after: readonly Tool[]): boolean {
  const [some, others] = [before, after].map((tools) => tools.map(({ digest }) => digest).sort());
  return some?.length === others?.length && some?.every((digest, i) => digest === others?.[i]) === true;
}

function toolOf(tool: unknown): Tool {
  const digest = createHash('sha256').update(JSON.stringify(tool)).digest('base64');
  return { name: shown(isObject(tool) ? tool['name'] : tool), digest };
}
