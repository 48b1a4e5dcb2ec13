/**
 * Follows the lists that a verification asks for. The pages of a list belong together, however many there are on either side;
 * what they hold is compared by name, whatever its order.
 */

import { sourceAt } from '../../protocol/json/edit.ts';
import type { PathProgress } from '../../protocol/json/path.ts';
import type { IgnoreRules } from '../match/ignore.ts';
import { collectOffer, compareList, type ListChange, type ListMethod, type Offer } from './offers.ts';

type ListCheck = {
  /** A list is asked for from its beginning. */
  begin(method: ListMethod): void;
  takeRecorded(method: ListMethod, answer: Buffer): void;
  takeLive(method: ListMethod, answer: Buffer): void;
  /** The live list's next page, as JSON text; null where it has no more. */
  liveCursor(method: ListMethod): string | null;
  /** Whether all recorded pages were taken, but not all live ones. */
  isBehind(method: ListMethod): boolean;
  /** What has changed, as far as the pages say that were taken, and was not returned before. */
  news(method: ListMethod): ListChange[];
  /** All that has changed; of a list that was asked for several times what was found last. */
  changes(): ListChange[];
};

type List = {
  recorded: Map<string, Buffer>;
  live: Map<string, Buffer>;
  isRecordedWhole: boolean;
  liveCursor: string | null;
  cursors: Set<string>;
  told: Set<string>;
};

const MAX_PAGES = 1000;

/** `ignored`: what does not count of a thing in a list, by its member in results; null where nothing of a result counts. */
export function createListCheck(tools: IgnoreRules['tools'], ignored: PathProgress | null): ListCheck {
  const lists = new Map<ListMethod, List>();
  const found = new Map<string, ListChange>();

  function listOf(method: ListMethod): List {
    const known = lists.get(method);
    if (known !== undefined) return known;
    const list: List = {
      recorded: new Map(),
      live: new Map(),
      isRecordedWhole: false,
      liveCursor: null,
      cursors: new Set(),
      told: new Set(),
    };
    lists.set(method, list);
    return list;
  }

  function collect(things: Map<string, Buffer>, method: ListMethod, answer: Buffer): void {
    const offer: Offer = new Map([[method, things]]);
    if (ignored !== null) collectOffer(offer, method, answer, ignored);
  }

  /** Until all pages are known, what a side lacks may still come. */
  function isSure({ isRecordedWhole, liveCursor }: List, { change }: ListChange): boolean {
    if (change === 'removed') return liveCursor === null;
    return change === 'changed' || isRecordedWhole;
  }

  return {
    begin: (method) => void lists.delete(method),
    takeRecorded(method, answer) {
      const list = listOf(method);
      collect(list.recorded, method, answer);
      list.isRecordedWhole = cursorIn(answer) === null;
    },
    takeLive(method, answer) {
      const list = listOf(method);
      collect(list.live, method, answer);
      const cursor = cursorIn(answer);
      // A server may lead in a circle.
      const isNew = cursor !== null && !list.cursors.has(cursor) && list.cursors.size < MAX_PAGES;
      list.liveCursor = isNew ? cursor : null;
      if (isNew) list.cursors.add(cursor);
    },
    liveCursor: (method) => listOf(method).liveCursor,
    isBehind(method) {
      const { isRecordedWhole, liveCursor } = listOf(method);
      return isRecordedWhole && liveCursor !== null;
    },
    news(method) {
      const list = listOf(method);
      const all = compareList(method, list.recorded, list.live, tools);
      const fresh = all.filter((change) => isSure(list, change) && !list.told.has(change.name));
      for (const change of fresh) {
        list.told.add(change.name);
        found.set(`${change.kind} ${change.name}`, change);
      }
      return fresh;
    },
    changes: () => [...found.values()],
  };
}

function cursorIn(answer: Buffer): string | null {
  const text = sourceAt(answer, ['result', 'nextCursor']);
  return text === undefined || text === 'null' ? null : text;
}
