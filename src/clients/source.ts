import { type Node as JsonNode, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser';
import { type AST, parseTOML, ParseError as TomlSourceParseError } from 'toml-eslint-parser';
import { TapedeckError } from '../errors.ts';

/**
 * A config in JSON or TOML as a tree with the place of every node in the source. The tree knows maps, lists and strings;
 * anything else is kept as source text.
 */

/** Offsets in UTF-16 units; `end` is behind the last one. */
export type Node = { start: number; end: number } & Content;

type Content =
  | { kind: 'map'; members: readonly Member[] }
  | { kind: 'list'; items: readonly Node[] }
  | { kind: 'string'; value: string }
  | { kind: 'other'; source: string };

export type StringNode = Node & { kind: 'string' };

export type ListNode = Node & { kind: 'list' };

export type MapNode = Node & { kind: 'map' };

export type Member<N extends Node = Node> = {
  key: string;
  value: N;
  /** What to insert right behind the value, so that the same map gets this member too. */
  beside: (key: string, source: string) => string;
};

/** The line end of the text: that of its first line. */
export function lineEndOf(text: string): string {
  return /\r?\n/.exec(text)?.[0] ?? '\n';
}

/** The white space before this offset, where nothing else stands before it on its line; else null. */
export function indentAt(text: string, offset: number): string | null {
  const lineStart = text.lastIndexOf('\n', offset - 1) + 1;
  const lead = text.slice(lineStart, offset);
  return lineStart > 0 && /^[ \t]*$/.test(lead) ? lead : null;
}

/** Line and column, from 1, as editors count them. */
function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}

/** The meaning of a tree, without positions and without these members. Two texts are compared by it. */
export function meaningOf(node: Node, without: ReadonlySet<Member>): unknown {
  switch (node.kind) {
    case 'map':
      return node.members
        .filter((member) => !without.has(member))
        .map(({ key, value }) => [key, meaningOf(value, without)]);
    case 'list':
      return { list: node.items.map((item) => meaningOf(item, without)) };
    case 'string':
      return node.value;
    case 'other':
      return { source: node.source };
  }
}

/** JSON as clients write it: with comments and trailing commas. */

/** Throws `TapedeckError` `corrupt` where it is none. A text without any value is an empty map. */
export function parseJson(text: string): Node {
  const errors: ParseError[] = [];
  const root = parseTree(text, errors, { allowTrailingComma: true, allowEmptyContent: true });
  const [first] = errors;
  if (first !== undefined) {
    const what = printParseErrorCode(first.error);
    throw new TapedeckError('corrupt', `it is not valid JSON: ${what} at ${placeOf(text, first.offset)}`);
  }
  if (root === undefined) return { kind: 'map', members: [], start: text.length, end: text.length };
  return toNode(text, root);
}

function toNode(text: string, { type, offset: start, length, children = [], value }: JsonNode): Node {
  const end = start + length;
  switch (type) {
    case 'object':
      return { kind: 'map', start, end, members: children.map((property) => toMember(text, property)) };
    case 'array':
      return { kind: 'list', start, end, items: children.map((item) => toNode(text, item)) };
    case 'string':
      return { kind: 'string', start, end, value: value as string };
    default:
      return { kind: 'other', start, end, source: text.slice(start, end) };
  }
}

function toMember(text: string, { offset, children }: JsonNode): Member {
  const [key, value] = children as [JsonNode, JsonNode];
  return {
    key: key.value as string,
    value: toNode(text, value),
    // Only when it is needed: a line may be as long as the file.
    beside(name, source) {
      const indent = indentAt(text, offset);
      const gap = indent === null ? ' ' : lineEndOf(text) + indent;
      return `,${gap}${JSON.stringify(name)}: ${source}`;
    },
  };
}

/** TOML as one tree: tables, dotted keys and inline tables that name the same thing are one map. */

/** A map while it is gathered from all over the file. */
type TomlMap = { kind: 'map'; start: number; end: number; members: TomlMember[] };

type TomlMember = {
  key: string;
  value: Node | TomlMap;
  beside: (key: string, source: string) => string;
};

/** Throws `TapedeckError` `corrupt` where it is none. */
export function parseToml(text: string): Node {
  const root: TomlMap = { kind: 'map', start: 0, end: text.length, members: [] };
  for (const part of read(text)) {
    if (part.type === 'TOMLKeyValue') addKeyValue(text, root, part);
    // Lists of tables hold no servers: only that they are the same afterwards counts.
    else if (part.resolvedKey.some((key) => typeof key === 'number')) addSource(text, root, part);
    else {
      const table = mapAt(root, part.resolvedKey.map(String), part.range);
      for (const pair of part.body) addKeyValue(text, table, pair);
    }
  }
  return root;
}

function read(text: string): (AST.TOMLKeyValue | AST.TOMLTable)[] {
  try {
    return parseTOML(text, { tomlVersion: '1.1' }).body[0].body;
  } catch (error) {
    if (!(error instanceof TomlSourceParseError)) throw error;
    const { message, lineNumber, column } = error;
    throw new TapedeckError(
      'corrupt',
      `it is not valid TOML: ${message} at line ${lineNumber}, column ${column + 1}`,
    );
  }
}

/** The tables at this path and below, each to the end of its last line. */
export function tomlTables(text: string, path: readonly string[]): { start: number; end: number }[] {
  return read(text).flatMap((part) => {
    if (part.type !== 'TOMLTable' || !path.every((key, i) => part.resolvedKey[i] === key)) return [];
    const [start, end] = part.range;
    const rest = /^[^\r\n]*\r?\n?/.exec(text.slice(end))?.[0].length ?? 0;
    return [{ start, end: end + rest }];
  });
}

function addKeyValue(text: string, map: TomlMap, { key, value }: AST.TOMLKeyValue, isInline = false): void {
  const names = key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value));
  const last = key.keys.at(-1) ?? key;
  const prefix = text.slice(key.range[0], last.range[0]);
  const gap = () => (isInline ? ', ' : lineEndOf(text) + (indentAt(text, key.range[0]) ?? ''));
  const parent = mapAt(map, names.slice(0, -1), key.range);
  parent.members.push({
    key: names.at(-1) ?? '',
    value: tomlSourceToNode(text, value),
    beside: (name, source) => `${gap()}${prefix}${name} = ${source}`,
  });
}

function addSource(text: string, root: TomlMap, { key, range: [start, end] }: AST.TOMLTable): void {
  const source = text.slice(start, end);
  const name = text.slice(...key.range);
  root.members.push({
    key: `[[${name}]]`,
    value: { kind: 'other', start, end, source },
    beside: () => '',
  });
}

function mapAt(root: TomlMap, path: readonly string[], [start, end]: AST.TOMLNode['range']): TomlMap {
  let map = root;
  for (const key of path) {
    const found = map.members.find((member) => member.key === key)?.value;
    if (found?.kind === 'map') map = found as TomlMap;
    else {
      const made: TomlMap = { kind: 'map', start, end, members: [] };
      map.members.push({ key, value: made, beside: () => '' });
      map = made;
    }
  }
  return map;
}

function tomlSourceToNode(text: string, node: AST.TOMLContentNode): Node {
  const [start, end] = node.range;
  if (node.type === 'TOMLArray')
    return { kind: 'list', start, end, items: node.elements.map((item) => tomlSourceToNode(text, item)) };
  if (node.type === 'TOMLInlineTable') {
    const map: TomlMap = { kind: 'map', start, end, members: [] };
    for (const pair of node.body) addKeyValue(text, map, pair, true);
    return map;
  }
  return node.kind === 'string'
    ? { kind: 'string', start, end, value: node.value }
    : { kind: 'other', start, end, source: text.slice(start, end) };
}
