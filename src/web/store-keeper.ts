/**
 * The store as the viewer reads it: never changed, and followed when it is removed, replaced or made while one looks on. A store
 * that is not there is an empty one.
 */

import { statSync } from 'node:fs';
import { openTemporaryStore, openUnchanged, type Store } from '../store/file/open.ts';

/** Whoever is lent the store gives it back: then it can be closed, where it is no longer the one of its name. */
export type Loan = { store: Store; release(): void };

export type StoreKeeper = {
  /** Throws `TapedeckError` for a store of another version, and SQLite's errors. */
  lend(): Loan;
};

/** A store that was opened: `place` is its file's on the disk, null for none. */
type Opened = { store: Store; place: string | null; users: number; isCurrent: boolean };

export function createStoreKeeper(file: string): StoreKeeper {
  let current: Opened | undefined;

  function leave(opened: Opened): void {
    if (opened.users === 0 && !opened.isCurrent) opened.store.close();
  }

  /** One that is being made has nothing to show yet, and is looked at again. */
  function open(place: string | null): Opened {
    const store = place === null ? null : openUnchanged(file);
    const shown = store === null ? { store: openTemporaryStore(), place: null } : { store, place };
    return { ...shown, users: 0, isCurrent: true };
  }

  return {
    lend() {
      const place = placeOf(file);
      if (current !== undefined && current.place !== place) {
        current.isCurrent = false;
        leave(current);
        current = undefined;
      }
      current ??= open(place);
      const opened = current;
      opened.users += 1;
      return {
        store: opened.store,
        release() {
          opened.users -= 1;
          leave(opened);
        },
      };
    },
  };
}

function placeOf(file: string): string | null {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? null : `${stats.dev}:${stats.ino}`;
}
