/** What all doors have in common, as others see it: it names nothing that is not theirs. */

/** Options of all doors. Those that are left out are as for `tapedeck record`: the configuration files count, then the defaults. */
export type RecordingOptions = {
  /** A name for the sessions, to find them by. */
  name?: string | undefined;
  /** Labels for the sessions. */
  labels?: Readonly<Record<string, string>> | undefined;
  /** The store to record into, a path; default: `TAPEDECK_DB`, else the platform's data folder. */
  db?: string | undefined;
  /** Survive power loss, too: every commit reaches the disk. */
  durable?: boolean | undefined;
  /** Record at most this much of a line, body or event, as `"64mb"`; default: `"256mb"`. All of it passes. */
  maxFrame?: string | undefined;
  /** Memory for what waits to be stored, as `"64mb"`; default: `"256mb"`. What comes beyond it is counted as lost. */
  maxQueue?: string | undefined;
  /** Delete sessions that ended longer ago, as `"30d"`. */
  olderThan?: string | undefined;
  /** Delete the oldest sessions while the store takes more on disk, as `"2gb"`. */
  maxSize?: string | undefined;
  /** Delete the oldest sessions while there are more. */
  maxSessions?: number | undefined;
  /** Pack the payloads of sessions that ended longer ago, as `"7d"`. */
  packAfter?: string | undefined;
  /** Spare sessions with errors from those limits. */
  keepErrors?: boolean | undefined;
  /** JSON paths of values that are redacted in every message, as `"$..card"`. */
  redact?: readonly string[] | undefined;
  /** What else is redacted, as `"ticket=/TCK-[0-9]+/"`. */
  redactRule?: readonly string[] | undefined;
  /** Ids of rules that do not count. */
  noRedactRule?: readonly string[] | undefined;
  /** Store secrets as they are. */
  noRedact?: boolean | undefined;
  /** `meta`: no payloads at all, only sizes, times and hashes. */
  capture?: 'full' | 'meta' | undefined;
  /**
   * Called with one sentence when something cannot be recorded; the traffic goes on. Default: `process.emitWarning`. What it throws
   * is ignored.
   */
  onTrouble?: ((text: string) => void) | undefined;
};

/** What every door has besides what it hands out. */
export type Door = {
  /** Settles once everything that has passed so far is stored, or given up and counted. Never rejects. */
  flush(): Promise<void>;
  /** Ends the recording, and settles once it is stored. What passes afterwards is not recorded. Never rejects. */
  close(): Promise<void>;
  /** As `close`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
};
