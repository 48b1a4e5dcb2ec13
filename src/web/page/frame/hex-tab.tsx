import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks';
import type { FrameDetail } from '../../api.ts';
import { RowList } from '../list/row-list.tsx';
import { source } from '../shell/source.ts';
import css from './frame.module.css';
import { bytesPath } from './payload.ts';

const PAGE = 64 * 1024;

/** Sixteen bytes a row, with their characters, take so many pixels; where less is there, it is eight. */
const WIDE = 580;

const columnsOf = (aRow: number) => [
  { label: 'Offset', width: '68px' },
  { label: 'Bytes', width: aRow === 16 ? '356px' : '176px' },
  { label: 'Characters', width: 'minmax(60px, 1fr)' },
];

/** The stored bytes, fetched where they are looked at. */
export function HexTab({ frame }: { frame: FrameDetail }): VNode {
  const [active, setActive] = useState(-1);
  const { pages, version, see } = usePages(frame);
  const place = useRef<HTMLDivElement>(null);
  const aRow = useIsWide(place) ? 16 : 8;
  const columns = useMemo(() => columnsOf(aRow), [aRow]);
  const rowAt = (index: number) => {
    const from = index * aRow;
    const page = pages.get(Math.floor(from / PAGE));
    const bytes = page?.subarray(from % PAGE, (from % PAGE) + aRow) ?? new Uint8Array();
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
    const characters = Array.from(bytes, (byte) =>
      byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '·',
    );
    return {
      cells: [
        <code key="offset" class={css.muted}>
          {from.toString(16).padStart(8, '0')}
        </code>,
        <code key="bytes" class={css.hex}>
          {hex.slice(0, 8).join(' ')} {hex.length > 8 && ' '}
          {hex.slice(8).join(' ')}
        </code>,
        <code key="characters" class={css.hex}>
          {characters.join('')}
        </code>,
      ],
    };
  };
  return (
    <div class={css.large} ref={place}>
      <RowList
        label="Bytes"
        columns={columns}
        count={Math.ceil(frame.storedBytes / aRow)}
        rowAt={rowAt}
        version={version}
        active={active}
        onActive={setActive}
        onSight={(first, last) => see(first * aRow, last * aRow)}
      />
    </div>
  );
}

function useIsWide(place: { current: HTMLElement | null }): boolean {
  const [isWide, setWide] = useState(true);
  useLayoutEffect(() => {
    if (place.current === null) return;
    const look = () => setWide((place.current?.clientWidth ?? WIDE) >= WIDE);
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(place.current);
    return () => sizes.disconnect();
  }, [place]);
  return isWide;
}

type Pages = {
  pages: ReadonlyMap<number, Uint8Array>;
  version: number;
  see(from: number, to: number): void;
};

function usePages(frame: FrameDetail): Pages {
  const [version, draw] = useReducer((n: number) => n + 1, 0);
  const pages = useRef(new Map<number, Uint8Array>());
  const asked = useRef(new Set<number>());
  const [abort] = useState(() => new AbortController());
  useEffect(() => () => abort.abort(), [abort]);
  const fetchPage = (page: number) => {
    if (asked.current.has(page)) return;
    asked.current.add(page);
    const range = [page * PAGE, Math.min(frame.storedBytes, (page + 1) * PAGE)] as const;
    source()
      .bytes(bytesPath(frame), abort.signal, range)
      .then((bytes) => {
        pages.current.set(page, bytes);
        draw(undefined);
      })
      .catch(() => asked.current.delete(page));
  };
  const see = (from: number, to: number) => {
    if (frame.storedBytes === 0) return;
    for (let page = Math.floor(from / PAGE); page <= Math.floor(to / PAGE); page += 1) fetchPage(page);
  };
  return { pages: pages.current, version, see };
}
