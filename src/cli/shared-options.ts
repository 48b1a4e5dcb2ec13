/** Options that mean the same in several commands. */

export const DB_OPTION = {
  type: 'string',
  describe: 'The store (default: TAPEDECK_DB, else the platform’s data folder)',
  requiresArg: true,
  // Given twice, the last one counts, as for every other option.
  coerce: (db: string | string[]) => (Array.isArray(db) ? db.at(-1) : db),
} as const;

export const JSON_OPTION = {
  type: 'boolean',
  default: false,
  describe: 'For programs: one JSON object a line',
} as const;

/** What stands for `-` on the command line, which yargs would drop. */
export const STDIN = '/dev/stdin';

export const TARGET = {
  type: 'string',
  describe: 'A client (claude-desktop, cursor, …: see `wrap --list`), the path of a config, or all',
} as const;

export const SERVERS = {
  type: 'string',
  array: true,
  default: [] as string[],
  describe: 'Only these servers',
} as const;

export const DRY_RUN_OPTION = {
  type: 'boolean',
  default: false,
  describe: 'Show the lines that would change, and write nothing',
} as const;
