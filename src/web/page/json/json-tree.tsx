/** A JSON text as a tree, each value as it was written. */
import type { ComponentChildren, VNode } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type ListRow, RowList } from '../list/row-list.tsx';
import { CopyButton } from '../look/copy.tsx';
import { counted, showSize } from '../look/format.ts';
import { Button, Icon } from '../look/parts.tsx';
import { Recorded } from '../look/text.tsx';
import { address, setQuery } from '../shell/router.ts';
import { FindBox } from './find-box.tsx';
import css from './json.module.css';
import { findPointer, type JsonNodes, keyText, placeIn, pointerOf, readNodes } from './nodes.ts';
import { isContainer, isLong, isOpenNode, lineEnd, SHOWN, treeRows } from './tree-rows.ts';

/** Characters of a value that a row has at most; the list cuts it where the pane ends. */
const PREVIEW = 400;

const COLUMNS = [{ label: 'Value', width: '1fr', head: <></> }];

/** The values of a text; null until they are read. */
function useNodes(text: string): JsonNodes | null {
  const [nodes, setNodes] = useState<JsonNodes | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    readNodes(text, abort.signal)
      .then(setNodes)
      .catch(() => {});
    return () => abort.abort();
  }, [text]);
  return nodes?.text === text ? nodes : null;
}

export function JsonTree({ text }: { text: string }): VNode {
  const nodes = useNodes(text);
  return nodes === null ? <p class={css.wait}>Reading {showSize(text.length)}…</p> : <Tree nodes={nodes} />;
}

function Tree({ nodes }: { nodes: JsonNodes }): VNode {
  const [turned, setTurned] = useState<ReadonlySet<number>>(new Set());
  const [whole, setWhole] = useState<ReadonlySet<number>>(new Set());
  const place = useRef<HTMLDivElement>(null);
  const width = Math.max(40, Math.floor(((place.current?.clientWidth ?? 560) - 96) / 7.3));
  const rows = useMemo(() => treeRows(nodes, { turned, whole, width }), [nodes, turned, whole, width]);
  const pointer = address.value.query.get('ptr');
  const chosen = pointer === null ? -1 : findPointer(nodes, pointer);
  const active = chosen < 0 ? -1 : rows.node.indexOf(chosen);
  const openTo = (node: number) => {
    const next = new Set(turned);
    for (let at = nodes.parent[node] ?? -1; at >= 0; at = nodes.parent[at] ?? -1)
      if (!isOpenNode(nodes, at, levelOf(nodes, at), next)) turn(next, at);
    setTurned(next);
    setQuery({ ptr: pointerOf(nodes, node) }, 'replace');
  };
  const onToggle = (index: number) => {
    const next = new Set(turned);
    turn(next, rows.node[index] ?? 0);
    setTurned(next);
  };
  const showWhole = (node: number) => setWhole(new Set([...whole, node]));
  const rowAt = (index: number) =>
    rowOf(
      { nodes, turned, width, showWhole },
      rows.node[index] ?? 0,
      rows.from[index] ?? -1,
      rows.level[index] ?? 1,
    );
  const value = () => nodes.text.slice(nodes.start[chosen] ?? 0, nodes.end[chosen] ?? nodes.text.length);
  return (
    <div class={css.tree} ref={place}>
      <div class={css.tools}>
        <FindBox nodes={nodes} from={chosen} onFind={openTo} />
        <CopyButton text={value} label="Copy the value">
          Value
        </CopyButton>
        <CopyButton
          text={() => (chosen < 0 ? '' : pointerOf(nodes, chosen))}
          label="Copy its path (JSON Pointer)"
        >
          Path
        </CopyButton>
      </div>
      <RowList
        label="Values"
        columns={COLUMNS}
        count={rows.node.length}
        rowAt={rowAt}
        version={rows}
        active={active}
        onActive={(index) => setQuery({ ptr: pointerOf(nodes, rows.node[index] ?? 0) }, 'replace')}
        onToggle={onToggle}
        isBare
      />
      {nodes.brokenAt >= 0 && (
        <p class={css.broken}>
          <Icon name="triangle-alert" /> What begins at character {nodes.brokenAt + 1} is not JSON:{' '}
          <code>
            <Recorded text={nodes.text.slice(nodes.brokenAt, nodes.brokenAt + 40)} />
          </code>
        </p>
      )}
    </div>
  );
}

function turn(turned: Set<number>, node: number): void {
  if (!turned.delete(node)) turned.add(node);
}

function levelOf(nodes: JsonNodes, node: number): number {
  let level = 1;
  for (let at = nodes.parent[node] ?? -1; at >= 0; at = nodes.parent[at] ?? -1) level += 1;
  return level;
}

type RowContext = {
  nodes: JsonNodes;
  turned: ReadonlySet<number>;
  width: number;
  showWhole(node: number): void;
};

function rowOf(context: RowContext, node: number, from: number, level: number): ListRow {
  const { nodes, turned, width, showWhole } = context;
  const end = (nodes.end[node] ?? 0) - 1;
  if (from === end) return { cells: [<Rest key="rest" {...{ nodes, node, showWhole }} />], level };
  if (from >= 0) {
    const line = nodes.text.slice(from, lineEnd(nodes.text, from, end, width));
    const cell = (
      <span class={`${css.line} ${css.string}`}>
        <Recorded text={line} />
      </span>
    );
    return { cells: [cell], level };
  }
  const canOpen = isContainer(nodes, node) ? (nodes.size[node] ?? 0) > 0 : isLong(nodes, node);
  const isOpen = canOpen ? isOpenNode(nodes, node, level, turned) : null;
  const cell = (
    <span class={css.line}>
      <span class={css.twist} data-twist={canOpen ? '' : undefined}>
        {isOpen !== null && <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} />}
      </span>
      <Key nodes={nodes} node={node} />
      <Value nodes={nodes} node={node} isOpen={isOpen === true} />
    </span>
  );
  return { cells: [cell], level, isOpen };
}

function Rest({ nodes, node, showWhole }: Pick<RowContext, 'nodes' | 'showWhole'> & { node: number }): VNode {
  const length = (nodes.end[node] ?? 0) - (nodes.start[node] ?? 0) - 2;
  return (
    <span class={css.line}>
      <Button kind="plain" onClick={() => showWhole(node)}>
        Show all {showSize(length)}; {showSize(length - SHOWN)} more
      </Button>
    </span>
  );
}

function Key({ nodes, node }: { nodes: JsonNodes; node: number }): VNode | null {
  const key = keyText(nodes, node);
  if (key !== '') {
    return (
      <span class={css.key}>
        <Recorded text={key} />:
      </span>
    );
  }
  const parent = nodes.parent[node] ?? -1;
  // Counting the elements before it is cheap only where there are few.
  if (parent < 0 || (nodes.size[parent] ?? 0) > 5000) return null;
  return <span class={css.place}>{placeIn(nodes, node)}</span>;
}

function Value({ nodes, node, isOpen }: { nodes: JsonNodes; node: number; isOpen: boolean }): VNode {
  const { text } = nodes;
  const [start, end] = [nodes.start[node] ?? 0, nodes.end[node] ?? 0];
  const first = text[start] ?? '';
  if (isContainer(nodes, node)) {
    const size = nodes.size[node] ?? 0;
    const word = counted(size, first === '{' ? 'member' : 'element');
    return (
      <span class={css.punctuation}>
        {size === 0 ? text.slice(start, end) : isOpen ? first : `${first} … ${first === '{' ? '}' : ']'}`}
        {size > 0 && <span class={css.note}>{word}</span>}
      </span>
    );
  }
  const shown: ComponentChildren = <Recorded text={text.slice(start, Math.min(end, start + PREVIEW))} />;
  return (
    <>
      {end - start > SHOWN && <span class={css.note}>{showSize(end - start - 2)}</span>}
      <span class={first === '"' ? css.string : css.plain}>{shown}</span>
    </>
  );
}
