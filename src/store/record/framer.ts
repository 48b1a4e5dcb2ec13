/** What makes frames of the items that arrive in the writer's thread: one kind for stdio, one for HTTP. */

import type { StdioGap } from '../file/columns.ts';
import type { Item } from './batch.ts';
import type { PendingPiece } from './unfinished.ts';

export type Framer = {
  feed(item: Item): void;
  /** `feed` threw at this item: counts it, and what depends on it, as lost. */
  abandon(item: Item): void;
  /** Counts chunks of stdio that were dropped on their way here. */
  gap(gap: StdioGap): void;
  /**
   * The pieces of lines, bodies and events that are not whole yet and not stored. An HTTP exchange without a session gets
   * one, so that it can be stored as far as it has come.
   */
  unfinished(): PendingPiece[];
  /** Whether `unfinished` has anything to do. */
  hasUnfinished(): boolean;
  /** Time passes (`at` in microseconds): sessions may end by idleness. */
  tick(at: number): void;
  /** Nothing follows. Settles when no frame is under way any more. */
  finish(): Promise<void>;
};
