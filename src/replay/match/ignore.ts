/**
 * Reads what the user wants to ignore: `--ignore <json-path>`, relative to the `params` of every request, and
 * `--ignore-tool <name>:<json-path>`, relative to the `arguments` of the calls of one tool. The name of a request's target
 * (tool, prompt, resource) always counts: no path makes one tool answer for another.
 */

import { TapedeckError } from '../../errors.ts';
import { canonicalText, KEEP_ALL, type MemberFilter } from '../../protocol/json/canonical.ts';
import {
  followInto,
  followThrough,
  NO_PATHS,
  type PathProgress,
  parseJsonPath,
} from '../../protocol/json/path.ts';
import { findMember, type Span } from '../../protocol/json/read.ts';
import { nearest } from '../../protocol/nearest.ts';
import type { CallTopic } from '../recording/topics.ts';
import type { HintWords } from './hints.ts';

export type IgnoreRules = {
  params: PathProgress;
  /** Whether one of the paths is `$`: of the params, only the target counts. */
  isEveryParamIgnored: boolean;
  tools: ReadonlyMap<string, ToolRules>;
  /** What must be there with any value; arrays whose elements may come in any order. */
  anyValue: readonly PlacedPath[];
  anyOrder: readonly PlacedPath[];
};

/** A path into the params of the requests for one tool, or of all where it is null. */
type PlacedPath = { tool: string | null; path: PathProgress };

/** The ignored arguments of one tool. */
export type ToolRules = { isEveryArgumentIgnored: boolean; arguments: PathProgress };

export const IGNORE_NOTHING: IgnoreRules = {
  params: NO_PATHS,
  isEveryParamIgnored: false,
  tools: new Map(),
  anyValue: [],
  anyOrder: [],
};

/** The values of the options: arrays of paths. */
export type MatchPaths = {
  ignore: readonly string[];
  ignoreTool?: readonly string[] | undefined;
  anyValue?: readonly string[] | undefined;
  anyOrder?: readonly string[] | undefined;
};

/** Reads the values of the options. Throws `TapedeckError` `usage`. */
export function readIgnoreRules(
  ignore: readonly string[],
  ignoreTool: readonly string[] = [],
  anyValue: readonly string[] = [],
  anyOrder: readonly string[] = [],
): IgnoreRules {
  if (ignore.length + ignoreTool.length + anyValue.length + anyOrder.length === 0) return IGNORE_NOTHING;
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
    anyValue: anyValue.map((text) => readPlaced(text, '--any-value')),
    anyOrder: anyOrder.map((text) => readPlaced(text, '--any-order')),
  };
}

/** `$.arguments.list` of all requests, or `tool:$.list` of the arguments of one tool. */
function readPlaced(text: string, option: string): PlacedPath {
  const colon = text.startsWith('$') ? -1 : text.indexOf(':$');
  const tool = colon > 0 ? text.slice(0, colon) : null;
  const path = parseJsonPath(text.slice(colon > 0 ? colon + 1 : 0), option);
  if (path.isWhole)
    throw new TapedeckError(
      'usage',
      `${option} ${text}: expected a path into the params, like $.arguments.ids.`,
    );
  return { tool, path: tool === null ? path.start : parseJsonPath(`$.arguments${path.text.slice(1)}`).start };
}

/** Marks what of the requests for a tool may have any value, or any order. */
export function placing(
  base: MemberFilter,
  { anyValue, anyOrder }: Pick<IgnoreRules, 'anyValue' | 'anyOrder'>,
  tool: string | null,
): MemberFilter {
  const of = (paths: readonly PlacedPath[]) =>
    paths.flatMap(({ tool: own, path }) => (own === null || own === tool ? path : []));
  return marking(base, of(anyValue), of(anyOrder));
}

function marking(base: MemberFilter, values: PathProgress, orders: PathProgress): MemberFilter {
  if (values.length + orders.length === 0) return base;
  return {
    ...base,
    enter(step) {
      const inside = base.enter(step);
      if (inside === null) return null;
      const [value, order] = [followThrough(values, step), followThrough(orders, step)];
      const inner = marking(inside, value.rest, order.rest);
      if (value.isEnd) return { ...inner, takes: 'any value' };
      return order.isEnd ? { ...inner, takes: 'any order' } : inner;
    },
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

/** Follows which of the paths ever lead to anything: one with a slip in it ignores nothing, and nobody would know. */
export type IgnoreWatch = {
  /** A request was compared. Its params stand at `params` of `bytes`. */
  see(asked: CallTopic, bytes: Buffer, params: Span | null): void;
  /** A sentence for each path that met its tool and led to nothing, or whose tool nobody knows but one much like it. */
  remarks(words: HintWords, of?: CallTopic): string[];
};

type Watched = { text: string; tool: string | null; path: PathProgress; met: number; isFound: boolean };

const MAX_TOOLS = 1000;

export function createIgnoreWatch(ignore: readonly string[], ignoreTool: readonly string[]): IgnoreWatch {
  const watched: Watched[] = [
    ...ignore.map((text) => watch(text, null, parseJsonPath(text))),
    ...ignoreTool.map((text) => {
      const { name, path } = readToolPath(text);
      return watch(text, name, path);
    }),
  ];
  const tools = new Set<string>();

  function remark({ text, tool, met, isFound }: Watched, words: HintWords): string[] {
    if (isFound) return [];
    const option = tool === null ? words.ignore(text) : words.ignoreTool(text);
    if (met > 0) return [`${option} led to nothing in ${met === 1 ? '1 call' : `${met} calls`}`];
    const meant = tool === null ? null : nearest(tool, [...tools]);
    return meant === null
      ? []
      : [`${option}: no such tool was called; did you mean ${JSON.stringify(meant)}?`];
  }

  return {
    see({ method, target }, bytes, params) {
      if (watched.length === 0) return;
      const isTool = method === 'tools/call' && target !== null;
      if (isTool && tools.size < MAX_TOOLS) tools.add(target);
      for (const one of watched) {
        if (one.isFound || (one.tool !== null && !(isTool && one.tool === target))) continue;
        const value = one.tool === null ? params : argumentsOf(bytes, params);
        if (value === null) continue;
        one.isFound = leadsTo(bytes, value, one.path);
        if (target !== null) one.met += 1;
      }
    },
    remarks: (words, of) =>
      watched
        .filter(({ tool }) => of === undefined || tool === null || of.method === 'tools/call')
        .flatMap((one) => remark(one, words)),
  };
}

function watch(text: string, tool: string | null, path: ReturnType<typeof parseJsonPath>): Watched {
  return { text, tool, path: path.start, met: 0, isFound: path.isWhole };
}

function argumentsOf(bytes: Buffer, params: Span | null): Span | null {
  return params?.type === 'object' ? (findMember(bytes, params.start, 'arguments') ?? null) : null;
}

function leadsTo(bytes: Buffer, value: Span, path: PathProgress): boolean {
  let isFound = false;
  const following = (paths: PathProgress): MemberFilter => ({
    enter(step) {
      const after = followInto(paths, step);
      isFound ||= after === null;
      return after === null || after.length === 0 ? null : following(after);
    },
    dropsEmpty: false,
  });
  canonicalText(bytes, value, following(path));
  return isFound;
}
