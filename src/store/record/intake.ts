/**
 * What stands between the batches that arrive in the writer's thread and the store: one kind for stdio, one for HTTP. It
 * keeps what arrived until it is stored, so a store that is busy or full loses nothing by itself.
 */

import type { SessionEnd, StdioGap } from '../file/columns.ts';
import type { Store } from '../file/open.ts';
import type { Item } from './batch.ts';

export type Intake = {
  feed(item: Item): void;
  /** `feed` threw at this: it, and what depends on it, is counted as lost. */
  giveUpOn(item: Item): void;
  gap(gap: StdioGap): void;
  serverStarted(pid: number): void;
  /** A store has been opened (again). Throws SQLite's error. */
  open(store: Store, client: { pid: number; program: string } | null): void;
  /**
   * Stores everything that is whole, in one transaction; or throws SQLite's error, and nothing has changed. `withHeld`:
   * also what is not whole yet, as far as it has come.
   */
  save(withHeld: boolean): void;
  /** Forgets what `save` has just stored. */
  confirm(): void;
  /** Whether something that is not whole yet waits to be stored. */
  hasHeld(): boolean;
  /** Forgets what waits, and counts it as lost. */
  giveUp(): void;
  /** Indexes for about so many milliseconds. True: nothing is left. Throws SQLite's error. */
  index(maxMs: number): boolean;
  /** Gives up on the index: readers complete it. */
  stopIndexing(): void;
  /** Time passes (`at` in microseconds). True: something has ended by itself, and wants to be stored. */
  tick(at: number): boolean;
  /** Nothing follows. Settles when all that was fed can be saved. */
  finish(): Promise<void>;
  /** Stores how it ended. Throws SQLite's error. */
  end(end: SessionEnd): void;
};
