/** All sessions of the store: one a row, the latest first. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { RunList } from '../../api.ts';
import { Narrowing } from '../list/narrowing.tsx';
import { type ListRow, RowList } from '../list/row-list.tsx';
import { counted } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { LinkButton, Unseen } from '../look/parts.tsx';
import { useKeys } from '../shell/keys.ts';
import { address, go, setQuery } from '../shell/router.ts';
import { type ApiFailure, about, useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { EmptyStore } from './empty-store.tsx';
import { GROUPS, groupRows, type SessionGroup, type SessionLine } from './group.ts';
import { columnsOf, SORTS, sessionRow } from './session-row.tsx';
import css from './sessions.module.css';
import { useMarked, useSessions } from './use-sessions.ts';

export function SessionsScreen(): VNode {
  const { query } = address.value;
  const [filter, sort, group] = [
    query.get('filter') ?? '',
    query.get('sort') ?? '',
    query.get('group') ?? '',
  ];
  const picked = (query.get('pick') ?? '').split(',').filter((id) => id !== '');
  const { sessions, total, failure, loadMore, isComplete, version } = useSessions(filter, sort);
  const marked = useMarked(query.get('hl') ?? '', total);
  const shut = query.get('shut') ?? '';
  const runs = useRunNames(group === 'run', total);
  const lines = useMemo(
    () => groupRows(sessions, group as SessionGroup, new Set(shut.split('\n')), runs),
    [version, group, shut, runs],
  );
  const chosen = query.get('at');
  const active = lines.findIndex(
    (line) => (line.type === 'session' ? line.session.session : line.key) === chosen,
  );
  const pick = (id: string) => {
    const next = picked.includes(id) ? picked.filter((one) => one !== id) : [...picked, id].slice(-2);
    setQuery({ pick: next.join(',') }, 'replace');
  };
  useKeys({
    ' ': () => {
      const line = lines[active];
      if (line?.type !== 'session') return false;
      pick(line.session.session);
      return true;
    },
  });
  if (failure !== null && failure.at === null && sessions.length === 0 && filter === '')
    return <TroubleBox failure={failure} />;
  if (isComplete && total === 0 && filter === '') return <EmptyStore />;
  const onOpen = (index: number) => {
    const line = lines[index];
    if (line?.type === 'session') go(`/s/${line.session.session}`);
    if (line?.type === 'group' && line.href !== null) go(line.href);
  };
  const view = (index: number): ListRow => rowOf(lines[index], picked, pick, marked.ids);
  return (
    <div class={parts.screen}>
      <h1 class={parts.hidden}>Sessions</h1>
      <Tools {...{ sort, group, picked, total, isComplete }} failure={failure ?? marked.failure} />
      <RowList
        label="Sessions"
        columns={columnsOf(sort)}
        count={lines.length}
        rowAt={view}
        version={`${version} ${marked.version} ${picked}`}
        active={active}
        onActive={(index, isStep) => {
          const line = lines[index];
          if (line === undefined) return;
          if (line.type === 'group') setQuery({ at: line.key }, 'replace');
          else if (isStep) setQuery({ at: line.session.session }, 'replace');
          else go(`/s/${line.session.session}`);
        }}
        onOpen={onOpen}
        onToggle={(index) => toggle(lines[index], shut)}
        onSight={(_, last) => last > lines.length - 100 && loadMore()}
        isMain
      />
    </div>
  );
}

/** People know a run by its name, or by its client. */
function useRunNames(isWanted: boolean, version: number): ReadonlyMap<string, string> {
  const { value } = useAnswer<RunList>(isWanted && about.value?.can.runs ? 'runs' : null, version);
  return useMemo(
    () =>
      new Map(
        value?.runs.flatMap(({ run, name, client }) => {
          const called = name ?? client;
          return called === null ? [] : [[run, `${called} ${run}`] as const];
        }),
      ),
    [value],
  );
}

function toggle(line: SessionLine | undefined, shut: string): void {
  if (line?.type !== 'group') return;
  const names = shut.split('\n').filter((name) => name !== '');
  const next = names.includes(line.key) ? names.filter((name) => name !== line.key) : [...names, line.key];
  setQuery({ shut: next.join('\n') }, 'replace');
}

function rowOf(
  line: SessionLine | undefined,
  picked: readonly string[],
  pick: (id: string) => void,
  marked: ReadonlySet<string>,
): ListRow {
  if (line === undefined) return { cells: [] };
  if (line.type === 'group') return sessionRow(line, false, pick);
  const { session } = line.session;
  const row = sessionRow(line, picked.includes(session), pick);
  return marked.has(session) ? { ...row, tone: 'marked' } : row;
}

type ToolsProps = {
  sort: string;
  group: string;
  picked: readonly string[];
  failure: ApiFailure | null;
  total: number;
  isComplete: boolean;
};

function Tools({ sort, group, picked, failure, total, isComplete }: ToolsProps): VNode {
  return (
    <div class={parts.tools}>
      <Narrowing what="sessions" failure={failure} anew={{ at: null }} />
      <label class={parts.choice}>
        <span>Group by</span>
        <select
          value={group}
          onChange={(event) => setQuery({ group: event.currentTarget.value, shut: null })}
        >
          <option value="">nothing</option>
          {GROUPS.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <label class={parts.choice}>
        <span>Sort by</span>
        <select
          value={sort === '' ? '-started' : sort}
          onChange={({ currentTarget: { value } }) => setQuery({ sort: value === '-started' ? '' : value })}
        >
          {SORTS.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
          {sort !== '' && SORTS.every(([value]) => value !== sort) && <option value={sort}>{sort}</option>}
        </select>
      </label>
      {picked.length === 2 && <LinkButton href={`/diff/${picked.join('/')}`}>Compare the two</LinkButton>}
      <span class={css.count}>{counted(total, 'session')}</span>
      <Unseen live="count">{isComplete ? `${counted(total, 'session')} shown` : ''}</Unseen>
    </div>
  );
}
