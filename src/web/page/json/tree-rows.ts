/** The rows of a tree: a value each, and the lines of a long string that is opened. */
import type { JsonNodes } from './nodes.ts';

export type TreeRows = {
  /** The node of each row; of the line of a string its node too. */
  node: number[];
  /** Where a line of a string begins in the text; -1 of the row of a value. */
  from: number[];
  level: number[];
};

/** A string that is longer is opened and closed like an object. */
const SHORT = 96;

/** Of a string this much is shown when it is opened; more on demand. */
export const SHOWN = 2048;

/** So many values are all open at first. */
const FEW = 3000;

export function isLong(nodes: JsonNodes, i: number): boolean {
  const [start, end] = [nodes.start[i] ?? 0, nodes.end[i] ?? 0];
  return nodes.text[start] === '"' && end - start > SHORT;
}

export function isContainer(nodes: JsonNodes, i: number): boolean {
  const first = nodes.text[nodes.start[i] ?? 0];
  return first === '{' || first === '[';
}

/** Whether a value is open before anyone touched it. */
function isOpenAtFirst(nodes: JsonNodes, i: number, level: number): boolean {
  if (!isContainer(nodes, i)) return (nodes.end[i] ?? 0) - (nodes.start[i] ?? 0) <= SHOWN;
  return nodes.count <= FEW || level < 3;
}

export type TreeState = {
  /** Values that are not as they were at first. */
  turned: ReadonlySet<number>;
  /** Strings that are shown to their end. */
  whole: ReadonlySet<number>;
  /** How many characters a line has. */
  width: number;
};

export function isOpenNode(nodes: JsonNodes, i: number, level: number, turned: ReadonlySet<number>): boolean {
  return isOpenAtFirst(nodes, i, level) !== turned.has(i);
}

export function treeRows(nodes: JsonNodes, { turned, whole, width }: TreeState): TreeRows {
  const rows: TreeRows = { node: [], from: [], level: [] };
  const ends: number[] = [];
  let i = 0;
  while (i < nodes.count) {
    while (ends.length > 0 && i >= (ends.at(-1) ?? 0)) ends.pop();
    const level = ends.length + 1;
    push(rows, i, -1, level);
    const isOpen = isOpenNode(nodes, i, level, turned);
    if (isContainer(nodes, i)) {
      if (isOpen) {
        ends.push(nodes.next[i] ?? i + 1);
        i += 1;
      } else i = nodes.next[i] ?? i + 1;
      continue;
    }
    if (isOpen && isLong(nodes, i)) addLines(rows, nodes, i, level + 1, whole.has(i), width);
    i += 1;
  }
  return rows;
}

function push(rows: TreeRows, node: number, from: number, level: number): void {
  rows.node.push(node);
  rows.from.push(from);
  rows.level.push(level);
}

function addLines(
  rows: TreeRows,
  nodes: JsonNodes,
  i: number,
  level: number,
  isWhole: boolean,
  width: number,
): void {
  const start = (nodes.start[i] ?? 0) + 1;
  const end = (nodes.end[i] ?? 0) - 1;
  const until = isWhole ? end : Math.min(end, start + SHOWN);
  for (let at = start; at < until; at = lineEnd(nodes.text, at, until, width)) push(rows, i, at, level);
  if (until < end) push(rows, i, end, level);
}

/** Behind the `\n` that stands in a string for a new line, or where the width ends; never within an escape or a character. */
export function lineEnd(text: string, from: number, until: number, width: number): number {
  const most = Math.min(until, from + width);
  let at = from;
  while (at < most) {
    const isEscape = text[at] === '\\';
    const length = isEscape ? (text[at + 1] === 'u' ? 6 : 2) : isHigh(text.charCodeAt(at)) ? 2 : 1;
    at += length;
    if (isEscape && text[at - 1] === 'n' && length === 2) break;
  }
  return Math.min(at, until);
}

function isHigh(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00;
}
