/** The state of a conversation on the screen, all of it from the address: which rows, which of them is chosen, which times. */
import { useMemo } from 'preact/hooks';
import type { FindingView, SessionDetail } from '../../api.ts';
import type { ListColumn, ListRow } from '../list/row-list.tsx';
import { type SelectedFrames, useSelection } from '../list/use-selection.ts';
import { address, go, setQuery, withQuery } from '../shell/router.ts';
import { eventRow, type SessionEvent, useEvents } from './events.tsx';
import { COLUMNS, messageRow, waterfallColumn } from './message-row.tsx';
import { isError, outcomeOf } from './outcome.ts';
import type { SessionOutline } from './outline.ts';
import { type ListedRows, listRows, placeOf } from './rows.ts';
import {
  idleGaps,
  makeScale,
  rangeText,
  readRange,
  type TimeRange,
  type TimeScale,
  zoomed,
} from './scale.ts';
import { type Checked, useCheck } from './use-check.ts';
import type { LoadedOutline } from './use-outline.ts';

export type Listing = {
  rows: ListedRows;
  columns: readonly ListColumn[];
  rowAt(index: number): ListRow;
  /** What the rows are drawn from; they are drawn anew when it changes. */
  version: unknown;
  active: number;
  show(index: number, how: 'push' | 'replace'): void;
  open(index: number): void;
  toggle(index: number, isToOpen: boolean): void;
  nextError(step: 1 | -1): void;
  selection: SelectedFrames;
  /** What is highlighted. */
  marked: SelectedFrames;
  /** Of the whole session, and of what is looked at. */
  wholeScale: TimeScale;
  range: TimeRange | null;
  setRange(range: TimeRange | null): void;
  zoom(factor: number): void;
  hasGaps: boolean;
} & Pick<Checked, 'findings' | 'found'>;

const NO_FINDINGS: readonly FindingView[] = [];

export function useListing(detail: SessionDetail, seq: number, loaded: LoadedOutline): Listing {
  const { query } = address.value;
  const { outline, version, isComplete } = loaded;
  const id = detail.session.session;
  const isLive = detail.session.state === 'open';
  const [isRaw, open, row] = [query.get('raw') === '1', query.get('open') ?? '', query.get('row')];
  const opened = useMemo(() => new Set(open.split(',').map(Number)), [open]);
  const isOpen = (i: number) => open === 'all' || opened.has(outline.number('seq', i));
  const times = useTimes(detail, loaded);
  const { range, scale } = times;
  const events = useEvents(detail, outline, times.end);
  const selection = useSelection(id, query.get('filter') ?? '', isComplete ? version : 0);
  const marked = useSelection(id, query.get('hl') ?? '', isComplete ? version : 0);
  const { findings, fateOf, found } = useCheck(id, isComplete ? `${version} ${detail.session.state}` : null);
  const rows = useMemo(
    () => listRows(outline, { isRaw, isOpen, range, isSelected: selection.has, events }),
    [version, isRaw, open, range, selection, events],
  );
  const hasWaterfall = query.get('wf') !== '0';
  const shownScale = hasWaterfall ? scale : null;
  const columns = useMemo(
    () => [...Object.values(COLUMNS), ...(shownScale ? [waterfallColumn(shownScale)] : [])],
    [shownScale],
  );
  const chosen = seq > 0 ? outline.find(seq, Number(query.get('n') ?? 0)) : -1;
  const chosenEvent = row === null ? -1 : events.findIndex(({ key }) => key === row);
  const active =
    chosenEvent >= 0
      ? rows.index.indexOf(-1 - chosenEvent)
      : chosen >= 0
        ? placeOf(outline, rows, chosen, isRaw)
        : -1;
  const isMarked = (i: number) =>
    marked.has !== null &&
    (has(outline, marked.has, i) || has(outline, marked.has, outline.partner[i] ?? -1));
  const rowAt = (index: number): ListRow => {
    const i = rows.index[index] ?? 0;
    const event = events[-1 - i];
    if (event !== undefined) return eventRow(event, shownScale);
    const tone = isMarked(i) ? 'marked' : undefined;
    const own = findings.get(outline.number('seq', i)) ?? NO_FINDINGS;
    const fate = fateOf(outline.number('seq', i), outline.number('n', i));
    const ofAnswer = isRaw ? undefined : findings.get(outline.number('seq', outline.partner[i] ?? -1));
    return messageRow(outline, i, {
      ...{ isRaw, level: rows.level[index] ?? 1, isOpen: isOpen(i), isLive, scale: shownScale, tone },
      fate,
      findings: ofAnswer === undefined ? own : [...own, ...ofAnswer],
    });
  };
  const actions = actionsOf({ id, outline, rows, events, opened, active, isRaw, isLive });
  const setRange = (next: TimeRange | null) => setQuery({ t: next && rangeText(next) });
  const zoom = (factor: number) => {
    const about = chosen >= 0 ? outline.number('at', chosen) : (scale.from + scale.to) / 2;
    setRange(zoomed([scale.from, scale.to], about, factor, [0, times.end]));
  };
  const drawn = useMemo(() => ({}), [rows, columns, marked, findings, fateOf, isLive]);
  return {
    ...{
      rows,
      columns,
      rowAt,
      version: drawn,
      active,
      selection,
      marked,
      range,
      setRange,
      zoom,
      findings,
      found,
    },
    ...{ ...actions, wholeScale: times.wholeScale, hasGaps: times.hasGaps },
  };
}

function has(outline: SessionOutline, isMarked: (seq: number) => boolean, i: number): boolean {
  return i >= 0 && isMarked(outline.number('seq', i));
}

function useTimes(detail: SessionDetail, { outline, version }: LoadedOutline) {
  const { query } = address.value;
  const [t, isFolded] = [query.get('t'), query.get('fold') === '1'];
  const last = outline.count === 0 ? 0 : outline.number('at', outline.count - 1);
  const end = Math.max(1000, last, detail.session.lasted ?? 0);
  const gaps = useMemo(() => idleGaps(outline), [version]);
  const range = useMemo(() => readRange(t), [t]);
  return useMemo(() => {
    const folded = isFolded ? gaps : [];
    const wholeScale = makeScale([0, end], folded);
    const scale = range === null ? wholeScale : makeScale(range, folded);
    return { end, range, wholeScale, scale, hasGaps: gaps.length > 0 };
  }, [gaps, range, isFolded, end]);
}

type ActionsContext = {
  id: string;
  outline: SessionOutline;
  rows: ListedRows;
  events: readonly SessionEvent[];
  opened: ReadonlySet<number>;
  active: number;
  isRaw: boolean;
  isLive: boolean;
};

function actionsOf({ id, outline, rows, events, opened, active, isRaw, isLive }: ActionsContext) {
  const show = (index: number, how: 'push' | 'replace') => {
    const i = rows.index[index];
    if (i === undefined) return;
    const event = events[-1 - i];
    if (event !== undefined) return go(withQuery({ row: event.key, n: null, ptr: null }, `/s/${id}`), how);
    const n = outline.number('n', i);
    const query = { row: null, ptr: null, n: n > 0 ? String(n) : null };
    go(withQuery(query, `/s/${id}/f/${outline.number('seq', i)}`), how);
  };
  return {
    show,
    open(index: number) {
      const { href } = events[-1 - (rows.index[index] ?? 0)] ?? {};
      if (href !== undefined) go(href);
      else show(index, 'push');
    },
    toggle(index: number, isToOpen: boolean) {
      const at = outline.number('seq', rows.index[index] ?? -1);
      const next = [...opened].filter((one) => one > 0 && one !== at);
      setQuery({ open: (isToOpen ? [...next, at] : next).join(',') }, 'replace');
    },
    nextError(step: 1 | -1) {
      const from = active < 0 && step < 0 ? rows.index.length : active;
      for (let at = from + step; at >= 0 && at < rows.index.length; at += step) {
        const i = rows.index[at] ?? 0;
        const partner = isRaw ? -1 : (outline.partner[i] ?? -1);
        const isWrong = i < 0 ? events[-1 - i]?.isWrong : isError(outcomeOf(outline, i, partner, isLive));
        if (isWrong) return show(at, 'replace');
      }
    },
  };
}
