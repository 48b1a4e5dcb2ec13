/**
 * Looks for changes of the store while somebody wants to know of them, and tells them as events. It compares with what it saw
 * before: a pause of any length leaves out nothing but the steps in between.
 */

import type { Store } from '../../store/file/open.ts';
import { countSessions, type SessionMark, sessionMarks } from '../../store/read/ranking.ts';
import { stateOf } from '../../store/read/sessions.ts';
import { lastFrame } from '../../store/read/slices.ts';
import type { Change } from '../api.ts';
import type { StoreKeeper } from '../store-keeper.ts';
import { takeLate } from './error-lines.ts';

const POLL_MS = 100;

/** A recorder that is killed changes nothing in the store, and what has ended changes seldom: that is looked for less often. */
const LOOK_AT_ALL_MS = 1000;

export type Watch = {
  /** From what is there now on changes are told, sooner or later. Only the first call counts. */
  begin(): void;
  set(isOn: boolean): void;
};

/** What was seen of a session. `upTo`: the last frame that an outline shows; null where nobody has asked yet. */
type Seen = SessionMark & { isOpen: boolean; upTo: number | null };

export function createWatch(keeper: StoreKeeper, tell: (changes: Change[]) => void): Watch {
  let seen: ReadonlyMap<string, Seen> | undefined;
  let lastStore: Store | undefined;
  let lastVersion: unknown;
  let lookedAtAll = { at: 0, version: undefined as unknown };
  let timer: NodeJS.Timeout | undefined;

  function look(store: Store): Change[] {
    const version = store.pragma('data_version', { simple: true });
    const isOther = store !== lastStore;
    const isDue = performance.now() - lookedAtAll.at >= LOOK_AT_ALL_MS;
    if (!isOther && !isDue && version === lastVersion) return [];
    const before = seen ?? new Map<string, Seen>();
    const isWhole =
      isOther || (isDue && version !== lookedAtAll.version) || countSessions(store) !== before.size;
    if (isWhole || isDue)
      lookedAtAll = { at: performance.now(), version: isWhole ? version : lookedAtAll.version };
    lastStore = store;
    lastVersion = version;
    const marks = sessionMarks(store, isWhole ? null : openAmong(before));
    const found = new Map(isWhole ? [] : before);
    const isFirst = seen === undefined;
    for (const mark of marks) found.set(mark.id, seenOf(isFirst ? null : store, mark, before.get(mark.id)));
    seen = found;
    return isFirst ? [] : changesBetween(before, found);
  }

  function lookNow(): Change[] {
    try {
      const { store, release } = keeper.lend();
      try {
        return look(store);
      } finally {
        release();
      }
    } catch {
      // A store that cannot be read now is looked at again. Whoever asks for something of it is told why.
      return [];
    }
  }

  function poll(): void {
    const late = takeLate().map((id): Change => ({ kind: 'session', id }));
    const changes = [...lookNow(), ...late];
    if (changes.length > 0) tell(changes);
    timer = setTimeout(poll, POLL_MS);
  }

  return {
    begin() {
      if (seen === undefined) lookNow();
    },
    set(isOn) {
      clearTimeout(timer);
      if (isOn) poll();
    },
  };
}

function openAmong(seen: ReadonlyMap<string, Seen>): { numbers: number[]; after: number } {
  const all = [...seen.values()];
  return {
    numbers: all.filter(({ isOpen }) => isOpen).map(({ number }) => number),
    after: all.reduce((most, { number }) => Math.max(most, number), 0),
  };
}

/** `store` null: the last frame is not looked for. */
function seenOf(store: Store | null, mark: SessionMark, before: Seen | undefined): Seen {
  const isOpen = stateOf(mark) === 'open';
  if (isOpen) return { ...mark, isOpen, upTo: mark.indexed };
  const isSame = before?.isOpen === false && before.frames === mark.frames;
  if (isSame) return { ...mark, isOpen, upTo: before.upTo };
  return { ...mark, isOpen, upTo: store === null ? null : (lastFrame(store, mark.number)?.seq ?? 0) };
}

function changesBetween(before: ReadonlyMap<string, Seen>, after: ReadonlyMap<string, Seen>): Change[] {
  const changes: Change[] = [];
  let isIndexed = false;
  for (const [id, now] of after) {
    const then = before.get(id);
    if (then === now) continue;
    const isCompleted = then !== undefined && !then.isOpen && then.indexed !== now.indexed;
    if (then === undefined || then.facts !== now.facts || isCompleted) changes.push({ kind: 'session', id });
    if (now.upTo !== null && now.upTo > (then?.upTo ?? 0))
      changes.push({ kind: 'frames', id, upTo: now.upTo });
    if (then?.isOpen !== false && !now.isOpen) changes.push({ kind: 'ended', id });
    isIndexed ||= isCompleted;
  }
  for (const id of before.keys()) if (!after.has(id)) changes.push({ kind: 'pruned', id });
  if (isIndexed) changes.push({ kind: 'indexed' });
  return changes;
}
