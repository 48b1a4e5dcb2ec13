/** The limits of a store. Whoever reads options needs these and nothing else. */

/** Null: no such limit. */
export type RetentionLimits = {
  /** Sessions that ended longer ago go. */
  olderThanMs: number | null;
  /** On disk, the store with its WAL. */
  maxBytes: number | null;
  maxSessions: number | null;
  /** Sessions with errors: age does not matter to them, and of the others' limits they are the last to go. */
  keepErrors: boolean;
  /** Of a store that is shipped: sessions that are wholly in the engine go so long after they ended. */
  localKeepMs: number | null;
  /** And those that are not yet stay, up to so much together; null: up to `maxBytes`. */
  maxUnshippedBytes: number | null;
};

/** What recorders see to in the background. */
export type UpkeepRules = RetentionLimits & {
  /** Sessions that ended longer ago are packed; null: none. */
  packAfterMs: number | null;
};

export const NO_LIMITS: RetentionLimits = {
  ...{ olderThanMs: null, maxBytes: null, maxSessions: null, localKeepMs: null, maxUnshippedBytes: null },
  keepErrors: false,
};
