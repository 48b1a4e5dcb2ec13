import type { Filter } from '../inspect/filter/filter.ts';
import type { Store } from '../store/file/open.ts';
import type { FrameSelection } from '../store/read/frames.ts';

/** Options that mean the same in several commands. */

export const DB_OPTION = {
  type: 'string',
  describe: 'The store (default: TAPEDECK_DB, else the platform’s data folder)',
  requiresArg: true,
  // Given twice, the last one counts, as for every other option.
  coerce: (db: string | string[]) => (Array.isArray(db) ? db.at(-1) : db),
} as const;

/** For commands that read alone. */
export const READ_OPTIONS = {
  db: {
    ...DB_OPTION,
    describe: 'The store (default: TAPEDECK_DB, else the platform’s data folder), or the URL of an engine',
  },
  'insecure-engine': {
    type: 'boolean',
    default: false,
    describe: 'Reach an engine beyond loopback without checking its certificate',
  },
} as const;

export const JSON_OPTION = {
  type: 'boolean',
  default: false,
  describe: 'For programs: one JSON object per line',
} as const;

/** Replaces `-` on the command line, which yargs would drop. */
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

/** `--filter`, for the commands that take one. */

export const FILTER_OPTION = {
  type: 'string',
  describe: "Only what matches this filter, such as 'tool=search dur>1s' (see: help filter)",
  requiresArg: true,
  coerce: (filter: string | string[]) => (Array.isArray(filter) ? filter.at(-1) : filter),
} as const;

const FILTERS = { type: 'string', array: true, default: [] as string[], requiresArg: true } as const;

/** What a session is held to besides the rules of the protocol. */
export const ASSERTION_OPTIONS = {
  expect: { ...FILTERS, describe: 'A frame must match this filter, such as tool=search; may be repeated' },
  forbid: { ...FILTERS, describe: 'No frame may match this filter; may be repeated' },
  max: {
    ...FILTERS,
    describe: "A bound, and what it is for: 'tool=search dur<2s', 'size<=1mb'; may be repeated",
  },
} as const;

/** Loads the filter language only where there is a filter, so that every command starts faster. Throws `TapedeckError` `usage`. */
export async function readFilter(text: string | undefined): Promise<Filter | undefined> {
  if (text === undefined) return undefined;
  const { parseFilter } = await import('../inspect/filter/filter.ts');
  return parseFilter(text, Date.now() * 1000);
}

export async function selectionOf(
  store: Store,
  filter: Filter | undefined,
): Promise<FrameSelection | undefined> {
  if (filter === undefined) return undefined;
  const { selectFrames } = await import('../inspect/filter/sql.ts');
  return selectFrames(store, filter);
}
