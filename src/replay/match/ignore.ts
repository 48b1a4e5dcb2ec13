/**
 * Reads what the user wants to ignore: `--ignore <json-path>`, relative to the `params` of every request, and
 * `--ignore-tool <name>:<json-path>`, relative to the `arguments` of the calls of one tool. The name of a request's target
 * (tool, prompt, resource) always counts: no path makes one tool answer for another.
 */

import { TapedeckError } from '../../errors.ts';
import { KEEP_ALL, type MemberFilter } from '../../protocol/json/canonical.ts';
import { followInto, NO_PATHS, type PathProgress, parseJsonPath } from '../../protocol/json/path.ts';

export type IgnoreRules = {
  params: PathProgress;
  /** Whether one of the paths is `$`: of the params, only the target counts. */
  isEveryParamIgnored: boolean;
  tools: ReadonlyMap<string, ToolRules>;
};

/** The ignored arguments of one tool. */
export type ToolRules = { isEveryArgumentIgnored: boolean; arguments: PathProgress };

export const IGNORE_NOTHING: IgnoreRules = {
  params: NO_PATHS,
  isEveryParamIgnored: false,
  tools: new Map(),
};

/** Reads the values of both options. */
export function readIgnoreRules(ignore: readonly string[], ignoreTool: readonly string[] = []): IgnoreRules {
  const paths = ignore.map((text) => parseJsonPath(text));
  const tools = new Map<string, ToolRules>();
  for (const text of ignoreTool) {
    const { name, path } = readToolPath(text);
    const known = tools.get(name) ?? { isEveryArgumentIgnored: false, arguments: NO_PATHS };
    tools.set(name, {
      isEveryArgumentIgnored: known.isEveryArgumentIgnored || path.isWhole,
      arguments: [...known.arguments, ...path.start],
    });
  }
  return {
    params: paths.flatMap(({ start }) => start),
    isEveryParamIgnored: paths.some(({ isWhole }) => isWhole),
    tools,
  };
}

function readToolPath(text: string): { name: string; path: ReturnType<typeof parseJsonPath> } {
  const colon = text.indexOf(':$');
  if (colon > 0) {
    const name = text.slice(0, colon);
    return { name, path: parseJsonPath(text.slice(colon + 1), `--ignore-tool ${name}:`) };
  }
  throw new TapedeckError(
    'usage',
    `--ignore-tool ${text}: expected <tool name>:<json-path>, like now:$.timestamp; ` +
      (text.includes(':') ? 'got no `$` after the colon.' : 'got no colon.'),
  );
}

/** Leaves out of a value what the paths lead to, and what `base` leaves out. */
export function ignoring(base: MemberFilter, paths: PathProgress): MemberFilter {
  if (paths.length === 0) return base;
  return {
    enter(step) {
      const inside = base.enter(step);
      const after = inside === null ? null : followInto(paths, step);
      return inside === null || after === null ? null : ignoring(inside, after);
    },
    dropsEmpty: base.dropsEmpty,
  };
}

/** The filter for the arguments of a tool, or null where none of them counts. */
export function argumentsFilter({ tools }: IgnoreRules, tool: string | null): MemberFilter | null {
  const rules = tool === null ? undefined : tools.get(tool);
  if (rules === undefined) return KEEP_ALL;
  return rules.isEveryArgumentIgnored ? null : ignoring(KEEP_ALL, rules.arguments);
}
