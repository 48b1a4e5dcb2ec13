/**
 * What a server says its tools are, and what changed in that. Only whole lists are compared, from the first page to the last. A
 * tool is loosened where one of its annotations promises less than before. Annotations are hints of the server about itself
 * (specification, schema, ToolAnnotations): that they change proves no intent.
 */

import { isObject, type JsonObject } from '../../protocol/json/read.ts';

type Definition = Readonly<Record<Part, unknown>> & { promises: readonly string[] };

/** By the tool's name. */
export type Definitions = ReadonlyMap<string, Definition>;

const PARTS = ['title', 'description', 'inputSchema', 'outputSchema', 'annotations'] as const;

type Part = (typeof PARTS)[number];

export type DefinitionChange = {
  tool: string;
  change: 'added' | 'removed' | 'changed';
  /** What of it changed. */
  parts: readonly Part[];
  /** The annotations that promise less. */
  loosened: readonly string[];
};

/** What each annotation promises, where it does; what is missing promises nothing. */
const PROMISES: Readonly<Record<string, boolean>> = {
  readOnlyHint: true,
  idempotentHint: true,
  destructiveHint: false,
  openWorldHint: false,
};

function definitionOf(tool: JsonObject): Definition {
  const parts = Object.fromEntries(PARTS.map((part) => [part, tool[part]])) as Record<Part, unknown>;
  const annotations = isObject(tool['annotations']) ? tool['annotations'] : {};
  const promises = Object.keys(PROMISES).filter((hint) => annotations[hint] === PROMISES[hint]);
  return { ...parts, promises };
}

/** Whether two parts are equal, in whatever order their members stand. By far the most are spelled alike, which is told quickly. */
function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other) || spelled(one) === spelled(other);
}

/** Equal values have equal texts. */
function spelled(value: unknown): string | undefined {
  return JSON.stringify(value, (_, inner: unknown) =>
    isObject(inner) ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1))) : inner,
  );
}

/** In the order of the later list, what was removed last. */
export function compareDefinitions(before: Definitions, after: Definitions): DefinitionChange[] {
  const changes: DefinitionChange[] = [];
  for (const [tool, definition] of after) {
    const old = before.get(tool);
    if (old === undefined) changes.push({ tool, change: 'added', parts: [], loosened: [] });
    else {
      const parts = PARTS.filter((part) => !isSame(old[part], definition[part]));
      const loosened = old.promises.filter((hint) => !definition.promises.includes(hint));
      if (parts.length > 0) changes.push({ tool, change: 'changed', parts, loosened });
    }
  }
  for (const tool of before.keys())
    if (!after.has(tool)) changes.push({ tool, change: 'removed', parts: [], loosened: [] });
  return changes;
}

/** `another description`, `annotations that promise less: readOnlyHint`. */
export function changeText({ change, parts, loosened }: DefinitionChange): string {
  if (change !== 'changed') return change;
  const others = parts.filter((part) => part !== 'annotations' || loosened.length === 0);
  return [
    ...(others.length === 0 ? [] : [`other ${others.join(', ')}`]),
    ...(loosened.length === 0 ? [] : [`no longer ${loosened.map(promiseText).join(', ')}`]),
  ].join('; ');
}

function promiseText(hint: string): string {
  return `${hint} ${PROMISES[hint]}`;
}

/** Puts the pages of lists together. */
export type ToolPages = {
  /** Takes the answer to a `tools/list`, with the cursor that it was asked for; returns the list where it is whole by that. */
  page(cursor: unknown, result: JsonObject): Definitions | null;
};

export function createToolPages(): ToolPages {
  let pages: Map<string, Definition> | null = null;
  let next: unknown;
  return {
    page(cursor, result) {
      const { tools, nextCursor } = result;
      if (cursor === undefined) pages = new Map();
      else if (cursor !== next) pages = null;
      next = nextCursor;
      if (pages === null || !Array.isArray(tools)) {
        pages = null;
        return null;
      }
      for (const tool of tools)
        if (isObject(tool) && typeof tool['name'] === 'string') pages.set(tool['name'], definitionOf(tool));
      if (nextCursor !== undefined) return null;
      const whole = pages;
      pages = null;
      return whole;
    },
  };
}
