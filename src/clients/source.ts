/**
 * A config as a tree that knows where everything stands in its source, whatever its format. Only this much of it is
 * known: maps, lists, strings; all else is its own source text.
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
export function placeOf(text: string, offset: number): string {
  const before = text.slice(0, offset).split('\n');
  return `line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`;
}

/** Everything that means something, without positions and without the members given: two texts can be compared by it. */
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
