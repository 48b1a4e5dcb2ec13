import type { VNode } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { counted } from '../look/format.ts';
import { Icon } from '../look/parts.tsx';
import css from './json.module.css';
import type { JsonNodes } from './nodes.ts';

/** So many places are counted and gone to. */
const MOST = 10_000;
const SLICE_MS = 12;

type FindBoxProps = { nodes: JsonNodes; from: number; onFind(node: number): void };

/** Looks for a text in keys and values; Enter goes to the next place, with Shift to the one before. */
export function FindBox({ nodes, from, onFind }: FindBoxProps): VNode {
  const [wanted, setWanted] = useState('');
  const [found, setFound] = useState<number[]>([]);
  useEffect(() => {
    setFound([]);
    if (wanted === '') return;
    const abort = new AbortController();
    findAll(nodes, wanted, abort.signal)
      .then(setFound)
      .catch(() => {});
    return () => abort.abort();
  }, [nodes, wanted]);
  const at = found.indexOf(from);
  const step = (by: number) => {
    const next = at < 0 ? (by > 0 ? 0 : found.length - 1) : (at + by + found.length) % found.length;
    const node = found[next];
    if (node !== undefined) onFind(node);
  };
  return (
    <label class={css.find}>
      <Icon name="search" />
      <input
        type="text"
        placeholder="Find in this frame"
        aria-label="Find in this frame"
        spellcheck={false}
        value={wanted}
        onInput={(event) => setWanted(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') step(event.shiftKey ? -1 : 1);
        }}
      />
      <span class={css.found} role="status">
        {wanted !== '' && (at < 0 ? counted(found.length, 'place') : `${at + 1} of ${found.length}`)}
      </span>
    </label>
  );
}

/** The values in whose key or text it stands, letters of either case. */
async function findAll(nodes: JsonNodes, wanted: string, signal: AbortSignal): Promise<number[]> {
  const pattern = new RegExp(wanted.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi');
  const found: number[] = [];
  let until = performance.now() + SLICE_MS;
  for (let match = pattern.exec(nodes.text); match !== null; match = pattern.exec(nodes.text)) {
    const node = nodeAt(nodes, match.index);
    if (node >= 0 && node !== found.at(-1)) found.push(node);
    if (found.length >= MOST) break;
    if (performance.now() < until) continue;
    await new Promise((done) => setTimeout(done));
    signal.throwIfAborted();
    until = performance.now() + SLICE_MS;
  }
  return found;
}

/** The last value that begins, with its key, at or before a place. */
function nodeAt(nodes: JsonNodes, place: number): number {
  let [low, high] = [0, nodes.count];
  while (low < high) {
    const middle = (low + high) >> 1;
    const key = nodes.key[middle] ?? -1;
    const begin = key >= 0 ? key : (nodes.start[middle] ?? 0);
    if (begin <= place) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
