/** TOML as one tree: tables, dotted keys and inline tables that name the same thing are one map. */
import { type AST, ParseError, parseTOML } from 'toml-eslint-parser';
import { TapedeckError } from '../errors.ts';
import { indentAt, lineEndOf, type Node } from './source.ts';

/** A map while it is gathered from all over the file. */
type Gathered = { kind: 'map'; start: number; end: number; members: GatheredMember[] };
type GatheredMember = {
  key: string;
  value: Node | Gathered;
  beside: (key: string, source: string) => string;
};

/** Throws `TapedeckError` `usage` where it is none. */
export function parseToml(text: string): Node {
  const root: Gathered = { kind: 'map', start: 0, end: text.length, members: [] };
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
    if (!(error instanceof ParseError)) throw error;
    const { message, lineNumber, column } = error;
    throw new TapedeckError(
      'usage',
      `it is not valid TOML: ${message} at line ${lineNumber}, column ${column + 1}`,
    );
  }
}

function addKeyValue(text: string, map: Gathered, { key, value }: AST.TOMLKeyValue, isInline = false): void {
  const names = key.keys.map((part) => (part.type === 'TOMLBare' ? part.name : part.value));
  const last = key.keys.at(-1) ?? key;
  const prefix = text.slice(key.range[0], last.range[0]);
  const gap = () => (isInline ? ', ' : lineEndOf(text) + (indentAt(text, key.range[0]) ?? ''));
  const parent = mapAt(map, names.slice(0, -1), key.range);
  parent.members.push({
    key: names.at(-1) ?? '',
    value: toNode(text, value),
    beside: (name, source) => `${gap()}${prefix}${name} = ${source}`,
  });
}

function addSource(text: string, root: Gathered, { key, range: [start, end] }: AST.TOMLTable): void {
  const source = text.slice(start, end);
  const name = text.slice(...key.range);
  root.members.push({
    key: `[[${name}]]`,
    value: { kind: 'other', start, end, source },
    beside: () => '',
  });
}

function mapAt(root: Gathered, path: readonly string[], [start, end]: AST.TOMLNode['range']): Gathered {
  let map = root;
  for (const key of path) {
    const found = map.members.find((member) => member.key === key)?.value;
    if (found?.kind === 'map') map = found as Gathered;
    else {
      const made: Gathered = { kind: 'map', start, end, members: [] };
      map.members.push({ key, value: made, beside: () => '' });
      map = made;
    }
  }
  return map;
}

function toNode(text: string, node: AST.TOMLContentNode): Node {
  const [start, end] = node.range;
  if (node.type === 'TOMLArray')
    return { kind: 'list', start, end, items: node.elements.map((item) => toNode(text, item)) };
  if (node.type === 'TOMLInlineTable') {
    const map: Gathered = { kind: 'map', start, end, members: [] };
    for (const pair of node.body) addKeyValue(text, map, pair, true);
    return map;
  }
  return node.kind === 'string'
    ? { kind: 'string', start, end, value: node.value }
    : { kind: 'other', start, end, source: text.slice(start, end) };
}
