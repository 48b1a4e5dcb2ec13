/** Tools that a well-known provider refuses: a note for each tool and provider, once in a session. */

import { BoundedMap } from '../../../protocol/bounded.ts';
import { isObject, type JsonObject } from '../../../protocol/json/read.ts';
import { eachSubSchema } from '../../schema/walk.ts';
import { type CheckedMessage, type Inspector, MAX_REMEMBERED, resultOf, shown } from '../checked-message.ts';
import type { Report } from '../rules.ts';
import { TOOL_RULES, type ToolRuleId, tooManyTools } from './provider-rules.ts';

const RULES = Object.entries(TOOL_RULES) as [ToolRuleId, (typeof TOOL_RULES)[ToolRuleId]][];

export function inspectProviders(report: Report): Inspector {
  const told = new BoundedMap<string, true>(MAX_REMEMBERED);
  /** Of the list that is being read, over its pages. */
  let count = 0;

  function message(seen: CheckedMessage): void {
    const result = seen.asked?.method === 'tools/list' ? resultOf(seen) : null;
    if (result === null || !Array.isArray(result['tools'])) return;
    if (seen.asked?.params?.['cursor'] === undefined) count = 0;
    count += result['tools'].length;
    for (const tool of result['tools'])
      if (isObject(tool) && typeof tool['name'] === 'string') judge(seen, tool['name'], tool['inputSchema']);
    const expected = result['nextCursor'] === undefined ? tooManyTools(count) : null;
    if (expected !== null && isNew('VS Code'))
      report('vscode-tools', 'server', seen, expected, `${count} of this server`);
  }

  function judge(seen: CheckedMessage, name: string, schema: unknown): void {
    const input: JsonObject = isObject(schema) ? schema : {};
    const tool = { name, input, schemas: [...eachSubSchema(input)] };
    const found = RULES.flatMap(([id, rule]) => {
      const fault = rule.find(tool);
      return fault === null ? [] : [{ id, fault, ...rule }];
    });
    for (const provider of new Set(found.map((one) => one.provider))) {
      const [first, ...others] = found.filter((one) => one.provider === provider);
      if (first === undefined || !isNew(`${provider} ${name}`)) continue;
      const more = others.length === 0 ? '' : `; against ${others.map(({ id }) => id).join(', ')} too`;
      report(first.id, 'server', seen, `${shown(name)} ${first.wanted}`, first.fault + more);
    }
  }

  function isNew(key: string): boolean {
    const isFirst = !told.has(key);
    told.set(key, true);
    return isFirst;
  }

  return { message };
}
