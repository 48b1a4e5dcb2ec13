/** What the metrics of a recorder say of the shipping of its store: read from the store alone, so that they outlive every process. */

import type { Store } from '../store/file/open.ts';
import { shipStatus } from './report.ts';

export type ShipFigures = {
  /** A process of this host ships the store, and nothing is in its way. */
  isConnected: boolean;
  /** Frames that the engine has taken since the store is shipped, and their bytes. What is shipped anew counts again. */
  frames: number;
  bytes: number;
  /** Transactions by their end. */
  transactions: Readonly<Record<'committed' | 'refused' | 'failed', number>>;
  /** When the last one was committed, in seconds since the Unix epoch; null: none was. */
  committedAt: number | null;
  /** How long the oldest frame that is not in the engine has been waiting, in seconds. */
  lag: number;
  backlog: Readonly<Record<'sessions' | 'frames' | 'bytes', number>>;
  /** Sessions of which it is not decided yet whether they are shipped, and those that are not. */
  undecidedSessions: number;
  sampledOutSessions: number;
  refusedSessions: number;
  /** What had to go before it was shipped. */
  lostFrames: number;
};

type Counted = {
  target: string | null;
  frames: number;
  bytes: number;
  committed: number;
  refused: number;
  failed: number;
  committedAt: number | null;
};

/** Null: nobody has shipped this store yet. */
export function readShipFigures(store: Store): ShipFigures | null {
  return store.transaction(() => {
    const counted = store
      .prepare<[], Counted>(
        `SELECT target, frames, bytes, committed, refused, failed, committed_at AS committedAt FROM shipper`,
      )
      .get();
    const status = shipStatus(store);
    if (counted === undefined || status === null) return null;
    const { target, frames, bytes, committed, refused, failed, committedAt } = counted;
    return {
      isConnected: status.pid !== null && target !== null && status.trouble === null,
      ...{ frames, bytes, transactions: { committed, refused, failed } },
      committedAt: committedAt === null ? null : committedAt / 1e6,
      ...{ lag: status.lagMs / 1000, backlog: status.backlog },
      ...{ undecidedSessions: status.undecided.sessions, sampledOutSessions: status.sampledOut.sessions },
      ...{ refusedSessions: status.refused.length, lostFrames: status.lost.frames },
    };
  })();
}
