/** The joint between the filter language, which the store does not know, and all that reads frames. */
import type { SessionRow, StoredFrame } from './reader.ts';

/** Some frames of a session: SQL for their `seq`, with `@session` for the session's number and these values by name. */
export type FrameSelection = {
  sql: string;
  values: Readonly<Record<string, string | number>>;
  /** Whether a frame that has not ended is among them. */
  hasUnfinished: (session: SessionRow, frame: StoredFrame) => boolean;
};

/** The condition that a `seq` is among the selected; nothing where all are. */
export function amongSql(seq: string, only: FrameSelection | undefined): string {
  return only === undefined ? '' : `AND ${seq} IN (${only.sql})`;
}
