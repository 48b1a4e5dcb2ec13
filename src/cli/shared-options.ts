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
