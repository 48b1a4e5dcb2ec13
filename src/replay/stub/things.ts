/** The tools, prompts and resources of an offer, by their names, as far as an invented answer needs them. */

import { memberAt, sourceAt } from '../../protocol/json/edit.ts';
import { eachElement, isObject, type JsonObject } from '../../protocol/json/read.ts';
import type { ListMethod } from '../verify/offers.ts';
import type { EraOffer } from './ask.ts';

/** Schemas as JSON text; null where there is none. */
type OfferedTool = { input: string | null; output: string | null; needsTask: boolean };

type Things = {
  tools: ReadonlyMap<string, OfferedTool>;
  prompts: ReadonlyMap<string, JsonObject>;
  /** The resource with this URI, or the template that it is of. */
  resource(uri: string): JsonObject | undefined;
};

/** Of several things with one name the last counts. */
export function readThings({ lists }: EraOffer): Things {
  const tools = new Map<string, OfferedTool>();
  const prompts = new Map<string, JsonObject>();
  const resources = new Map<string, JsonObject>();
  const templates: [string, JsonObject][] = [];

  function each(
    method: ListMethod,
    member: string,
    name: string,
    visit: (name: string, json: Buffer) => void,
  ): void {
    for (const page of lists.get(method) ?? []) {
      const json = Buffer.from(page.json);
      const list = page.member === 'result' ? memberAt(json, [member]) : undefined;
      if (list?.type !== 'array') continue;
      eachElement(json, list.start, ({ start, end, type }) => {
        const thing = json.subarray(start, end);
        const named: unknown = type === 'object' ? JSON.parse(sourceAt(thing, [name]) ?? 'null') : null;
        if (typeof named === 'string') visit(named, thing);
      });
    }
  }

  each('tools/list', 'tools', 'name', (name, tool) => {
    tools.set(name, {
      input: sourceAt(tool, ['inputSchema']) ?? null,
      output: sourceAt(tool, ['outputSchema']) ?? null,
      needsTask: sourceAt(tool, ['execution', 'taskSupport']) === '"required"',
    });
  });
  each('prompts/list', 'prompts', 'name', (name, json) => prompts.set(name, objectOf(json)));
  each('resources/list', 'resources', 'uri', (uri, json) => resources.set(uri, objectOf(json)));
  each('resources/templates/list', 'resourceTemplates', 'uriTemplate', (template, json) =>
    templates.push([template, objectOf(json)]),
  );
  return {
    tools,
    prompts,
    resource: (uri) => resources.get(uri) ?? templates.find(([template]) => isOfTemplate(uri, template))?.[1],
  };
}

function objectOf(json: Buffer): JsonObject {
  const value: unknown = JSON.parse(json.toString());
  return isObject(value) ? value : {};
}

/**
 * Whether a URI can be an expansion of a template (RFC 6570). Each expression takes the shortest text that lets the template go on;
 * one without an operator takes no slash.
 */
export function isOfTemplate(uri: string, template: string): boolean {
  const [start = '', ...parts] = template.split(/(\{[^{}]*\})/);
  if (!uri.startsWith(start)) return false;
  let at = start.length;
  for (let i = 0; i < parts.length; i += 2) {
    const [expression = '', literal = ''] = [parts[i], parts[i + 1]];
    const isLast = i + 2 >= parts.length;
    const next = isLast ? uri.length - literal.length : uri.indexOf(literal, at);
    if (next < at || !uri.startsWith(literal, next)) return false;
    if (/^\{\w/.test(expression) && uri.slice(at, next).includes('/')) return false;
    at = next + literal.length;
  }
  return at === uri.length;
}
