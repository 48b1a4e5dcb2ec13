/** Which messages stand in the list, in which order, how deep. */
import type { SessionOutline } from './outline.ts';

/** `raw`: each message a row, in order of `seq`; else a call is one row, with what came up in it below. */
export type RowChoice = {
  isRaw: boolean;
  /** The calls that are opened, by index. */
  isOpen(index: number): boolean;
  /** Only what lies in this range, in microseconds since the session's start. */
  range: readonly [from: number, to: number] | null;
  /** Only frames for which this is true; null for all. */
  isSelected: ((seq: number) => boolean) | null;
  /** When what is no message happened, in order: what stands between the messages, unless they are filtered. */
  events: readonly { at: number }[];
};

export type ListedRows = {
  /** The index of each row in the outline; of a row that is no message, −1 less its place among the events. */
  index: number[];
  level: number[];
};

export function listRows(outline: SessionOutline, choice: RowChoice): ListedRows {
  const rows: ListedRows = { index: [], level: [] };
  const add = (i: number, level: number) => {
    rows.index.push(i);
    rows.level.push(level);
  };
  const count = outline.count;
  const events = choice.isSelected === null ? choice.events : [];
  let event = 0;
  const addEvents = (until: number) => {
    for (; event < events.length && (events[event]?.at ?? 0) < until; event += 1) {
      const { at = 0 } = events[event] ?? {};
      if (choice.range === null || (at >= choice.range[0] && at <= choice.range[1])) add(-1 - event, 1);
    }
  };
  for (let i = 0; i < count; i += 1) {
    if (choice.isRaw) {
      if (isShown(outline, choice, i, false)) add(i, 1);
      continue;
    }
    if (outline.isAnswer(i) || (outline.parent[i] ?? -1) >= 0) continue;
    if (!isShown(outline, choice, i, true)) continue;
    addEvents(outline.number('at', i));
    addWithInner(outline, choice, i, 1, add);
  }
  if (!choice.isRaw) addEvents(Number.POSITIVE_INFINITY);
  return rows;
}

function addWithInner(
  outline: SessionOutline,
  choice: RowChoice,
  i: number,
  level: number,
  add: (i: number, level: number) => void,
): void {
  add(i, level);
  if (!choice.isOpen(i)) return;
  for (const child of outline.children.get(i) ?? []) addWithInner(outline, choice, child, level + 1, add);
}

function isShown(outline: SessionOutline, choice: RowChoice, i: number, isCall: boolean): boolean {
  const { range, isSelected } = choice;
  if (range !== null) {
    const end = isCall ? outline.endOf(i) : outline.number('at', i);
    if (outline.number('at', i) > range[1] || (end !== 0 && end < range[0])) return false;
  }
  return isSelected === null || isWanted(outline, isSelected, i, isCall);
}

/** A call is wanted for its own sake, for its answer's, or for what came up in it. */
function isWanted(
  outline: SessionOutline,
  isSelected: (seq: number) => boolean,
  i: number,
  isCall: boolean,
): boolean {
  if (isSelected(outline.number('seq', i))) return true;
  if (!isCall) return false;
  const partner = outline.partner[i] ?? -1;
  if (partner > i && isSelected(outline.number('seq', partner))) return true;
  return (outline.children.get(i) ?? []).some((child) => isWanted(outline, isSelected, child, true));
}

/** The place of a message in the list; of an answer that of its request; of what is folded away that of its call. -1 for none. */
export function placeOf(outline: SessionOutline, rows: ListedRows, index: number, isRaw: boolean): number {
  let wanted = index;
  if (!isRaw && outline.isAnswer(wanted)) wanted = outline.partner[wanted] ?? wanted;
  for (;;) {
    const place = rows.index.indexOf(wanted);
    if (place >= 0) return place;
    wanted = isRaw ? -1 : (outline.parent[wanted] ?? -1);
    if (wanted < 0) return -1;
  }
}
