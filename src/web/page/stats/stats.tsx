/** How many calls there were, how they ended and how long they took: of a session, or of all. */
import type { ComponentChildren, VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { StatsGroup, StatsLine, StatsSample } from '../../api.ts';
import { FilterBox } from '../list/filter-box.tsx';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { counted, showCount, showLasting, showMoment, showSize } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { LinkButton, NoticeBox, Sender, Status, Unseen } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import { useLines } from '../shell/lines.ts';
import { address, go, setQuery } from '../shell/router.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { Chart, type ChartBar } from './chart.tsx';
import css from './stats.module.css';

type Figures = {
  progress: { done: number; total: number } | null;
  stats: Extract<StatsLine, { stats: unknown }>['stats'] | null;
  overTime: Extract<StatsLine, { overTime: unknown }>['overTime'] | null;
};

function nothing(): Figures {
  return { progress: null, stats: null, overTime: null };
}

function add(figures: Figures, line: StatsLine): void {
  if ('progress' in line) figures.progress = line.progress;
  else if ('stats' in line) figures.stats = line.stats;
  else if ('overTime' in line) figures.overTime = line.overTime;
}

const GROUPINGS = ['tool', 'method', 'session'] as const;

export function StatsScreen({ params }: { params: Readonly<Record<string, string>> }): VNode {
  const id = params['id'] ?? null;
  const { query } = address.value;
  const [by, filter] = [query.get('by') ?? 'tool', query.get('filter') ?? ''];
  const route = id === null ? 'stats' : `sessions/${encodeURIComponent(id)}/stats`;
  const asked = new URLSearchParams({ by, ...(filter === '' ? {} : { filter }) });
  const { state, version, failure } = useLines<StatsLine, Figures>(`${route}?${asked}`, nothing, add);
  if (failure !== null && failure.code !== 'usage') return <TroubleBox failure={failure} />;
  const { stats, progress, overTime } = state;
  return (
    <div class={css.screen}>
      <header class={parts.tools}>
        {id !== null && (
          <LinkButton href={`/s/${id}`} icon="arrow-left">
            Conversation
          </LinkButton>
        )}
        <h1>Statistics{id === null ? ' of all sessions' : ''}</h1>
        <FilterBox
          label="Filter, such as since=1d"
          value={filter}
          onFilter={(text) => setQuery({ filter: text, row: null })}
          failure={failure}
        />
        <label class={parts.choice}>
          <span>By</span>
          <select value={by} onChange={(event) => setQuery({ by: event.currentTarget.value, row: null })}>
            {GROUPINGS.filter((one) => id === null || one !== 'session').map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </header>
      {stats === null ? (
        <p class={css.waiting} role="status">
          {failure === null &&
            (progress === null
              ? 'Counting …'
              : `Counting: ${showCount(progress.done)} of ${counted(progress.total, 'session')}`)}
        </p>
      ) : stats.all.count === 0 && stats.groups.length === 0 ? (
        <NoticeBox title="No calls" icon="circle-help">
          <p>{filter === '' ? 'Nothing was called yet.' : 'The filter leaves none.'}</p>
        </NoticeBox>
      ) : (
        <Groups id={id} stats={stats} overTime={overTime} version={version} />
      )}
    </div>
  );
}

type GroupsProps = {
  id: string | null;
  stats: NonNullable<Figures['stats']>;
  overTime: Figures['overTime'];
  version: number;
};

function Groups({ id, stats, overTime, version }: GroupsProps): VNode {
  const { query } = address.value;
  const filter = query.get('filter') ?? '';
  const active = stats.groups.findIndex((group) => keyOf(group) === query.get('row'));
  const shown = stats.groups[active] ?? stats.all;
  const hrefOf = (...terms: string[]) => callsHref(id, [filter === '' ? '' : `(${filter})`, ...terms]);
  const latencies = useMemo(() => latencyBars(shown, hrefOf), [shown, id, filter]);
  const times = useMemo(() => timeBars(overTime, hrefOf), [overTime, id, filter]);
  const isOfSessions = stats.groups[0]?.session !== undefined;
  const columns = isOfSessions ? SESSION_COLUMNS : CALL_COLUMNS;
  return (
    <>
      <Totals stats={stats} />
      <div class={css.charts}>
        <Chart title="Latency of the answers" bars={latencies} tick={stepText} isLog unit="calls">
          <span class={css.quiet}>{active < 0 ? 'all calls' : <Brief text={nameOf(shown)} />}</span>
        </Chart>
        <Chart title="Calls over time" bars={times} tick={tickOf(overTime?.stepMs ?? 1)} unit="calls">
          {overTime !== null && (
            <span class={css.quiet}>
              each {stepText(overTime.stepMs)}, errors in <span class={css.red}>red</span>
            </span>
          )}
        </Chart>
      </div>
      <div class={css.table}>
        <RowList
          label="Calls"
          columns={columns}
          count={stats.groups.length}
          rowAt={(index) => rowOf(stats.groups[index], hrefOf, isOfSessions)}
          version={`${version} ${id} ${filter}`}
          active={active}
          onActive={(index) => {
            const key = keyOf(stats.groups[index]);
            setQuery({ row: key === query.get('row') ? null : key }, 'replace');
          }}
          onOpen={(index) => {
            const group = stats.groups[index];
            if (group !== undefined) go(hrefOf(group.filter));
          }}
          isMain
        />
      </div>
    </>
  );
}

/** Where the calls are shown: in their session, or found in all. */
function callsHref(id: string | null, terms: readonly string[]): string {
  const filter = terms.filter((term) => term !== '').join(' ');
  return `${id === null ? '/search' : `/s/${id}`}?${new URLSearchParams({ filter })}`;
}

function keyOf(group: StatsGroup | undefined): string {
  if (group === undefined) return '';
  return group.session ?? `${group.kind} ${group.askedBy} ${group.method} ${group.target ?? ''}`;
}

function nameOf({ method, target, session, name }: StatsGroup): string {
  return session === undefined ? [method ?? '', target ?? ''].join(' ').trim() : (name ?? session);
}

function Totals({ stats: { all, sessions, sample, total } }: Pick<GroupsProps, 'stats'>): VNode {
  const parts = [
    [showCount(sessions), sessions === 1 ? 'session' : 'sessions'],
    [showCount(all.count), 'calls'],
    [showCount(all.errors ?? 0), 'protocol errors'],
    [showCount(all.toolErrors ?? 0), 'tool errors'],
    [showCount(all.unanswered ?? 0), 'unanswered'],
    [timeOf(all.p50Ms), 'p50'],
    [timeOf(all.p95Ms), 'p95'],
    [timeOf(all.p99Ms), 'p99'],
    ...(total === null
      ? []
      : [
          [timeOf(total.serverMs), 'time of servers'],
          [timeOf(total.personMs), 'of people'],
          [timeOf(total.clientMs), 'of clients'],
          [showSize(total.definitionBytes), 'tool definitions'],
        ]),
  ];
  const lacking = total?.sessionsLackingPayloads ?? 0;
  return (
    <>
      <dl class={css.totals}>
        {parts.map(([figure, word]) => (
          <div key={word}>
            <dt>{word}</dt>
            <dd>{figure}</dd>
          </div>
        ))}
      </dl>
      {sample === null ? null : <p>{sampleText(sample, sessions)}</p>}
      {lacking === 0 ? null : (
        <p>
          Calls whose frames have no payload are not counted: {showCount(lacking)} sessions have such frames.
        </p>
      )}
    </>
  );
}

/** What a reader has to know of figures that are of a sample. */
function sampleText({ isScaled, recorded, sampled, leftOut }: StatsSample, sessions: number): string {
  const out = leftOut === 0 ? '' : ` ${showCount(leftOut)} that are not in the sample are left out.`;
  if (!isScaled) return `Not scaled: ${showCount(sampled)} of these sessions stand for more than themselves.`;
  if (sampled === 0) return out.trim();
  return `Estimated: ${showCount(recorded)} recorded sessions stand for about ${showCount(sessions)}. Charts over time count what was recorded.${out}`;
}

/** A round time, without the zeros that say how exact a measured one is. */
function stepText(ms: number): string {
  return showLasting(ms * 1000)
    .replace(/\.0+(?= )/, '')
    .replace(/ 0 (?:s|min|h)$/, '');
}

function timeOf(ms: number | null | undefined): string {
  return ms == null ? '–' : showLasting(ms * 1000);
}

type HrefOf = (...terms: string[]) => string;

function latencyBars({ bars, filter }: StatsGroup, hrefOf: HrefOf): ChartBar[] {
  return bars.map(({ fromMs, toMs, count, filter: own }) => ({
    from: Math.max(fromMs, 0.001),
    to: toMs,
    value: count,
    label: `${showLasting(fromMs * 1000)} – ${showLasting(toMs * 1000)}`,
    href: hrefOf(filter, own),
  }));
}

function timeBars(overTime: Figures['overTime'], hrefOf: HrefOf): ChartBar[] {
  if (overTime === null) return [];
  const { stepMs, bars } = overTime;
  return bars.map(({ at, calls, errors, filter }) => ({
    from: Date.parse(at),
    to: Date.parse(at) + stepMs,
    value: calls,
    bad: errors,
    label: momentOf(at, stepMs),
    href: hrefOf(filter),
  }));
}

function momentOf(at: string, stepMs: number): string {
  const millis = String(Date.parse(at) % 1000).padStart(3, '0');
  return stepMs < 1000 ? `${showMoment(at)}.${millis}` : showMoment(at);
}

const DAY = 86_400_000;

/** As much of a moment as tells it from its neighbours. */
function tickOf(stepMs: number): (at: number) => string {
  return (at) => {
    const moment = showMoment(new Date(at).toISOString(), new Date(at));
    if (stepMs >= DAY / 2) return new Date(at).toLocaleDateString('en-CA');
    if (stepMs < 1000) return `${moment.slice(3)}.${String(Math.round(at) % 1000).padStart(3, '0')}`;
    return stepMs < 60_000 ? moment : moment.slice(0, 5);
  };
}

const FIGURE_COLUMNS: readonly ListColumn[] = [
  { label: 'Calls', width: '68px', align: 'end' },
  { label: 'Errors', width: '56px', align: 'end' },
  { label: 'Tool errors', width: '80px', align: 'end', isExtra: true },
  { label: 'Open', width: '48px', align: 'end', isExtra: true },
  { label: 'p50', width: '68px', align: 'end', isExtra: true },
  { label: 'p95', width: '68px', align: 'end' },
  { label: 'p99', width: '68px', align: 'end', isExtra: true },
  { label: 'Max', width: '68px', align: 'end', isExtra: true },
  { label: 'Size', width: '68px', align: 'end', isExtra: true },
];

const CALL_COLUMNS: readonly ListColumn[] = [
  { label: 'Method and tool', width: 'minmax(120px, 1fr)' },
  ...FIGURE_COLUMNS,
];

const SESSION_COLUMNS: readonly ListColumn[] = [
  { label: 'Session', width: 'minmax(120px, 1fr)' },
  ...FIGURE_COLUMNS,
];

function rowOf(group: StatsGroup | undefined, hrefOf: HrefOf, isOfSessions: boolean): ListRow {
  if (group === undefined) return { cells: [] };
  const { kind, count, bytes, errors, toolErrors, unanswered, p50Ms, p95Ms, p99Ms, maxMs, session } = group;
  const isCall = kind !== 'notification';
  const figure = (value: ComponentChildren) => (isCall ? value : '');
  const href = isOfSessions ? `/s/${session}/stats` : hrefOf(group.filter);
  return {
    tone: isCall ? undefined : 'quiet',
    cells: [
      <Name group={group} />,
      <a href={href} title={isOfSessions ? 'The statistics of this session' : 'Show these'}>
        {showCount(count)}
      </a>,
      figure(<Bad count={errors ?? 0} tone="error" />),
      figure(<Bad count={toolErrors ?? 0} tone="error" />),
      figure(<Bad count={unanswered ?? 0} tone="warn" />),
      figure(timeOf(p50Ms)),
      figure(timeOf(p95Ms)),
      figure(timeOf(p99Ms)),
      figure(timeOf(maxMs)),
      <span class={css.quiet}>{showSize(bytes)}</span>,
    ],
  };
}

function Name({ group: { askedBy, method, target, session, name } }: { group: StatsGroup }): VNode {
  if (session !== undefined)
    return (
      <span class={css.name}>
        <Brief text={name ?? session} /> <span class={css.quiet}>{name === null ? '' : session}</span>
      </span>
    );
  return (
    <span class={css.name}>
      <Sender isByClient={askedBy === 'client'} title={`by the ${askedBy}`} />
      <Unseen>by the {askedBy}</Unseen>
      <Brief text={method ?? ''} />
      {target != null && (
        <span class={css.target}>
          <Brief text={target} />
        </span>
      )}
    </span>
  );
}

function Bad({ count, tone }: { count: number; tone: 'error' | 'warn' }): VNode {
  return count === 0 ? <span class={css.quiet}>0</span> : <Status tone={tone}>{showCount(count)}</Status>;
}
