/** Sessions as rows, under a row for each group where they are grouped. */
import type { SessionSummary } from '../../api.ts';

export const GROUPS = ['name', 'client', 'server', 'run'] as const;

export type SessionGroup = (typeof GROUPS)[number] | '';

export type SessionLine =
  | {
      type: 'group';
      key: string;
      label: string;
      count: number;
      errors: number;
      isOpen: boolean;
      href: string | null;
    }
  | { type: 'session'; session: SessionSummary; level: number };

const KEY_OF: Record<Exclude<SessionGroup, ''>, (session: SessionSummary) => string | null> = {
  name: ({ name }) => name,
  client: ({ client }) => client?.name ?? null,
  server: ({ server, target }) => server?.name ?? target,
  run: ({ run }) => run,
};

/** The key of the group of those that have none: nobody is called that. */
const NONE = ' ';

/** Groups stand in the order of their first session; `shut` has the keys of those that are closed. */
export function groupRows(
  sessions: readonly SessionSummary[],
  group: SessionGroup,
  shut: ReadonlySet<string>,
  /** What else the groups are called, by their keys. */
  names: ReadonlyMap<string, string> = new Map(),
): SessionLine[] {
  if (!(group in KEY_OF)) return sessions.map((session) => ({ type: 'session', session, level: 1 }));
  const keyOf = KEY_OF[group as Exclude<SessionGroup, ''>];
  const groups = Map.groupBy(sessions, (session) => keyOf(session) ?? NONE);
  return [...groups].flatMap(([key, inside]) => {
    const isOpen = !shut.has(key);
    const errors = inside.reduce((sum, one) => sum + one.errors, 0);
    const label = key === NONE ? `no ${group}` : (names.get(key) ?? key);
    const href = group === 'run' && key !== NONE ? `/run/${key}` : null;
    const head: SessionLine = { type: 'group', key, label, count: inside.length, errors, isOpen, href };
    const rows: SessionLine[] = inside.map((session) => ({ type: 'session', session, level: 2 }));
    return isOpen ? [head, ...rows] : [head];
  });
}
