/** The list of all screens: rows of one height, of which only those in sight exist. */
import {
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type Range,
  Virtualizer,
} from '@tanstack/virtual-core';
import { Component, type ComponentChildren, type VNode } from 'preact';
import { useId, useLayoutEffect, useReducer, useRef, useState } from 'preact/hooks';
import { useKeys } from '../shell/keys.ts';
import css from './row-list.module.css';

const ROW = 24;
const OVERSCAN = 6;

/** No browser has elements of any height; of a longer list these are there, and the others when it is scrolled towards them. */
const WINDOW = 500_000;

/** So many rows before its end the window moves on. */
const NEAR = 1000;

export type ListColumn = {
  label: string;
  /** As `grid-template-columns` has it. */
  width: string;
  align?: 'end';
  /** Less than what the row is about. */
  isMuted?: boolean;
  /** Left out where the list is narrow, or only where it is as narrow as on a phone. */
  isExtra?: boolean | 'phone';
  /** In place of the label. */
  head?: ComponentChildren;
};

export type ListRow = {
  cells: ComponentChildren[];
  /** How deep it is nested; 1 is outermost. */
  level?: number;
  /** Whether what is below is shown; null where nothing is below. */
  isOpen?: boolean | null;
  tone?: 'quiet' | 'error' | 'group' | 'marked' | 'faded' | undefined;
};

export type RowListProps = {
  /** What the list is of, for those who do not see it. */
  label: string;
  columns: readonly ListColumn[];
  count: number;
  rowAt(index: number): ListRow;
  /** Rows are drawn anew when it changes. */
  version: unknown;
  /** The chosen row; -1 for none. */
  active: number;
  /** With `isStep`, by a key that goes from row to row. */
  onActive(index: number, isStep: boolean): void;
  onOpen?: ((index: number) => void) | undefined;
  onToggle?: ((index: number, open: boolean) => void) | undefined;
  /** Without a head. */
  isBare?: boolean;
  /** Whether the keys go here when the focus is nowhere else. */
  isMain?: boolean;
  /** The list stays at its end while rows come; called with false when its user scrolls away from there. */
  follow?: { isOn: boolean; onLeave(): void } | undefined;
  /** The first and last row in sight, whenever they change. */
  onSight?(first: number, last: number): void;
};

export function RowList(props: RowListProps): VNode {
  const { label, columns, count, active, isMain, isBare, version, rowAt } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const id = useId();
  const virtual = useVirtual(scroller, props);
  const step = useSteps(props, virtual);
  useKeys(isMain ? mainKeys(step) : {});
  const columnCount = columns.length;
  const widths = (shown: readonly ListColumn[]) => shown.map(({ width }) => width).join(' ');
  const style = {
    '--columns': widths(columns),
    '--columns-narrow': widths(columns.filter(({ isExtra }) => isExtra !== true)),
    '--columns-phone': widths(columns.filter(({ isExtra }) => !isExtra)),
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || step[event.key]?.() === undefined) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={css.list}
      ref={scroller}
      role="treegrid"
      aria-label={label}
      aria-rowcount={isBare ? count : count + 1}
      aria-colcount={columnCount}
      aria-activedescendant={active >= 0 && active < count ? `${id}-${active}` : undefined}
      tabIndex={0}
      style={style}
      onKeyDown={onKeyDown}
    >
      {isBare ? null : <Head columns={columns} />}
      <div class={css.rows} role="rowgroup" style={{ height: `${virtual.height()}px` }}>
        {virtual.items().map(({ index, start }) => (
          <RowView
            key={index === active ? 'active' : index % virtual.slots()}
            {...{ id, index, start, version, rowAt, columns }}
            first={isBare ? 1 : 2}
            isActive={index === active}
            onActive={props.onActive}
            onOpen={props.onOpen}
            onToggle={props.onToggle}
          />
        ))}
      </div>
    </div>
  );
}

function Head({ columns }: Pick<RowListProps, 'columns'>): VNode {
  return (
    <div class={css.head} role="row" aria-rowindex={1}>
      {columns.map((column, i) => (
        <div class={cellClass(column)} role="columnheader" aria-colindex={i + 1} key={column.label}>
          {column.head ?? column.label}
        </div>
      ))}
    </div>
  );
}

function cellClass({ align, isExtra, isMuted }: ListColumn): string {
  const extra = isExtra === 'phone' ? css.phoneExtra : isExtra ? css.extra : '';
  return `${css.cell} ${align === 'end' ? css.end : ''} ${extra} ${isMuted ? css.quiet : ''}`;
}

type RowViewProps = Pick<
  RowListProps,
  'version' | 'rowAt' | 'columns' | 'onActive' | 'onOpen' | 'onToggle'
> & {
  id: string;
  index: number;
  start: number;
  /** The number of the first row. */
  first: number;
  isActive: boolean;
};

/** Scrolling draws none of the rows that stay in sight anew. */
class RowView extends Component<RowViewProps> {
  override shouldComponentUpdate(next: RowViewProps): boolean {
    const now = this.props;
    return (
      next.version !== now.version ||
      next.index !== now.index ||
      next.isActive !== now.isActive ||
      next.start !== now.start ||
      next.columns !== now.columns
    );
  }

  onClick = (event: MouseEvent) => {
    const { index, onActive, onToggle, rowAt } = this.props;
    const isTwist = event.target instanceof Element && event.target.closest('[data-twist]') !== null;
    onActive(index, false);
    if (isTwist) onToggle?.(index, rowAt(index).isOpen !== true);
  };

  override render({ id, index, start, first, isActive, rowAt, columns, onOpen }: RowViewProps): VNode {
    const { cells, level = 1, isOpen = null, tone } = rowAt(index);
    return (
      // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the focus and the keys of its rows
      <div
        id={`${id}-${index}`}
        class={`${css.row} ${tone ? css[tone] : ''}`}
        role="row"
        data-tone={tone}
        aria-rowindex={index + first}
        aria-level={level}
        aria-expanded={isOpen ?? undefined}
        aria-selected={isActive}
        style={{ transform: `translateY(${start}px)`, '--level': level - 1 }}
        onClick={this.onClick}
        onDblClick={() => onOpen?.(index)}
      >
        {cells.map((cell, i) => (
          <div class={columns[i] && cellClass(columns[i])} role="gridcell" aria-colindex={i + 1} key={i}>
            {cell}
          </div>
        ))}
      </div>
    );
  }
}

type Virtual = {
  /** The rows that exist, and where. */
  items(): { index: number; start: number }[];
  height(): number;
  scrollTo(index: number): void;
  /** How many rows are in sight. */
  rows(): number;
  /** How many rows there always are: one that leaves at one end becomes the one that comes at the other, wherever that is. */
  slots(): number;
};

function useVirtual(scroller: { current: HTMLDivElement | null }, props: RowListProps): Virtual {
  const [, draw] = useReducer((n: number) => n + 1, 0);
  const base = useRef(0);
  const lastStart = useRef(0);
  const slots = useRef(1);
  const latest = useRef(props);
  latest.current = props;
  const { count, isBare } = props;
  base.current = Math.max(0, Math.min(base.current, count - WINDOW));
  const options = {
    count: Math.min(count, WINDOW),
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: OVERSCAN,
    scrollPaddingStart: isBare ? 0 : ROW,
    scrollToFn: elementScroll,
    observeElementRect,
    observeElementOffset,
    onChange: () => draw(undefined),
    /** The chosen row exists wherever the list is, because the focus names it. */
    rangeExtractor: ({ startIndex, endIndex, count: inWindow }: Range) => {
      const active = latest.current.active - base.current;
      // Who goes by whole pages sees none of the rows around.
      const isFar = Math.abs(startIndex - lastStart.current) > endIndex - startIndex;
      lastStart.current = startIndex;
      const around = isFar ? 0 : OVERSCAN;
      const inSight = Math.ceil((virtual.scrollRect?.height ?? 0) / ROW) + 1;
      slots.current = Math.min(inWindow, Math.max(inSight, endIndex - startIndex + 1) + 2 * around);
      const first = Math.max(0, Math.min(startIndex - around, inWindow - slots.current));
      const range = Array.from({ length: slots.current }, (_, i) => first + i);
      const isOutside = active < first || active >= first + slots.current;
      if (active >= 0 && active < inWindow && isOutside) range.push(active);
      return range;
    },
  };
  const [virtual]: [Virtualizer<HTMLDivElement, HTMLDivElement>, unknown] = useState(
    () => new Virtualizer<HTMLDivElement, HTMLDivElement>(options),
  );
  virtual.setOptions(options);
  useLayoutEffect(() => virtual._didMount(), [virtual]);
  useLayoutEffect(() => virtual._willUpdate());
  useFollow(scroller, props);
  /** Moves the window by whole rows, and what is seen with it. */
  const move = (to: number) => {
    const next = Math.max(0, Math.min(to, latest.current.count - WINDOW));
    if (next === base.current || scroller.current === null) return;
    scroller.current.scrollTop += (base.current - next) * ROW;
    base.current = next;
    draw(undefined);
  };
  useLayoutEffect(() => {
    const { range } = virtual;
    if (range === null) return;
    props.onSight?.(base.current + range.startIndex, base.current + range.endIndex);
    // Where it is scrolled to may be newer than what was drawn.
    const { scrollTop = 0, clientHeight = 0 } = scroller.current ?? {};
    const isNearEnd = (scrollTop + clientHeight) / ROW > WINDOW - NEAR;
    if (isNearEnd || (scrollTop / ROW < NEAR && base.current > 0))
      move(base.current + Math.round(scrollTop / ROW) - WINDOW / 2);
  });
  const scrollTo = (index: number, align: 'auto' | 'center') => {
    if (index < base.current || index >= base.current + WINDOW) move(index - WINDOW / 2);
    virtual.scrollToIndex(index - base.current, { align });
  };
  const { active } = props;
  // A row that the address chose is shown; one that was chosen here is in sight already.
  useLayoutEffect(() => {
    const { startIndex = 0, endIndex = -1 } = virtual.range ?? {};
    const place = active - base.current;
    if (active >= 0 && (place < startIndex || place > endIndex)) scrollTo(active, 'center');
  }, [active]);
  return {
    items: () =>
      virtual.getVirtualItems().map(({ index, start }) => ({ index: index + base.current, start })),
    height: () => virtual.getTotalSize(),
    slots: () => Math.max(1, slots.current),
    rows: () => Math.floor((virtual.scrollRect?.height ?? 0) / ROW),
    scrollTo: (index) => scrollTo(index, 'auto'),
  };
}

/** Keeps the end in sight; a scroll up by hand is what ends it. */
function useFollow(scroller: { current: HTMLDivElement | null }, { follow, count }: RowListProps): void {
  const before = useRef(0);
  const isOn = follow?.isOn ?? false;
  const onLeave = useRef(follow?.onLeave);
  onLeave.current = follow?.onLeave;
  useLayoutEffect(() => {
    const list = scroller.current;
    if (!isOn || list === null) return;
    list.scrollTop = list.scrollHeight;
    before.current = list.scrollTop;
    const onScroll = () => {
      if (list.scrollTop < before.current - ROW) onLeave.current?.();
      before.current = Math.max(before.current, list.scrollTop);
    };
    list.addEventListener('scroll', onScroll, { passive: true });
    return () => list.removeEventListener('scroll', onScroll);
  }, [isOn, count, scroller]);
}

type Steps = Record<string, () => true | undefined>;

/** What each key does; undefined where it does nothing here. */
function useSteps(
  { active, count, rowAt, onActive, onOpen, onToggle }: RowListProps,
  virtual: Virtual,
): Steps {
  const to = (index: number): true => {
    const next = Math.max(0, Math.min(count - 1, index));
    if (count > 0) {
      onActive(next, true);
      virtual.scrollTo(next);
    }
    return true;
  };
  const page = () => Math.max(1, virtual.rows() - 2);
  const here = () => (active >= 0 && active < count ? rowAt(active) : null);
  const open = (isOpen: boolean): true | undefined => {
    if (here()?.isOpen === !isOpen) {
      onToggle?.(active, isOpen);
      return true;
    }
    if (!isOpen && (here()?.level ?? 1) > 1) return to(parentOf(active, rowAt));
    return undefined;
  };
  const down = () => to(active + 1);
  const up = () => to(active - 1);
  return {
    ...{ j: down, ArrowDown: down, k: up, ArrowUp: up },
    PageDown: () => to(active + page()),
    PageUp: () => to(active - page()),
    Home: () => to(0),
    End: () => to(count - 1),
    ArrowRight: () => open(true),
    ArrowLeft: () => open(false),
    Enter: () => {
      if (active < 0 || onOpen === undefined) return undefined;
      onOpen(active);
      return true;
    },
  };
}

function parentOf(index: number, rowAt: (index: number) => ListRow): number {
  const level = rowAt(index).level ?? 1;
  let at = index - 1;
  while (at > 0 && (rowAt(at).level ?? 1) >= level) at -= 1;
  return at;
}

function mainKeys(steps: Steps): Record<string, () => unknown> {
  return Object.fromEntries(Object.entries(steps).map(([key, act]) => [key, () => act() ?? false]));
}
