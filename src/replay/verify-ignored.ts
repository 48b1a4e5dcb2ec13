/**
 * A tool as it counts where some of its arguments do not (`--ignore-tool`, ignore.ts): without their schemas. Paths lead
 * from the arguments to one of them, and so through the `properties` and `items` of the input schema.
 */

import { type Followed, followInto } from '../protocol/json-path.ts';
import { canonicalText } from './canonical.ts';
import type { ToolRules } from './ignore.ts';

/** `tool`: canonical JSON. Gives such a text again. */
export function withoutIgnored(tool: Buffer, rules: ToolRules | undefined): Buffer {
  if (rules === undefined) return tool;
  const parsed = JSON.parse(tool.toString()) as Record<string, unknown>;
  if (rules.isEveryArgumentIgnored) delete parsed['inputSchema'];
  else parsed['inputSchema'] = schemaWithout(parsed['inputSchema'], rules.arguments);
  const text = Buffer.from(JSON.stringify(parsed));
  const canonical = canonicalText(text, { start: 0, end: text.length, type: 'object' });
  return typeof canonical === 'string' ? text : canonical;
}

function schemaWithout(schema: unknown, paths: Followed): unknown {
  if (paths.length === 0 || !isObject(schema)) return schema;
  const { properties, required, items } = schema;
  const changed = { ...schema };
  const isIgnored = (name: string) => followInto(paths, name) === null;
  if (isObject(properties)) {
    const kept = Object.entries(properties).flatMap(([name, own]) => {
      const after = followInto(paths, name);
      return after === null ? [] : [[name, schemaWithout(own, after)] as const];
    });
    changed['properties'] = Object.fromEntries(kept);
  }
  if (Array.isArray(required))
    changed['required'] = required.filter((name) => typeof name !== 'string' || !isIgnored(name));
  // All elements have one schema, so a path into the first one is a path into it.
  const ofElements = followInto(paths, 0);
  if (ofElements === null) delete changed['items'];
  else if (items !== undefined) changed['items'] = schemaWithout(items, ofElements);
  return changed;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
