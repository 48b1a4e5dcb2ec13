/** `--filter`, for the commands that take one. */
import type { Filter } from '../inspect/filter.ts';
import type { FrameSelection } from '../store/frame-selection.ts';
import type { Store } from '../store/open.ts';

export const FILTER_OPTION = {
  type: 'string',
  describe: "Only what this filter holds for, such as 'tool=search dur>1s'. See the README, “Filter”",
  requiresArg: true,
  coerce: (filter: string | string[]) => (Array.isArray(filter) ? filter.at(-1) : filter),
} as const;

/** Loaded only where there is a filter: every command starts the faster. Throws `TapedeckError` `usage`. */
export async function readFilter(text: string | undefined): Promise<Filter | undefined> {
  if (text === undefined) return undefined;
  const { parseFilter } = await import('../inspect/filter.ts');
  return parseFilter(text, Date.now() * 1000);
}

export async function selectionOf(
  store: Store,
  filter: Filter | undefined,
): Promise<FrameSelection | undefined> {
  if (filter === undefined) return undefined;
  const { selectFrames } = await import('../inspect/filter-sql.ts');
  return selectFrames(store, filter);
}
