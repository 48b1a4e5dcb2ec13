/** A session in a row: who spoke to whom, how much, and what went wrong. */
import type { ComponentChildren, VNode } from 'preact';
import type { SessionSummary } from '../../api.ts';
import type { ListColumn, ListRow } from '../list/row-list.tsx';
import { counted, showCount, showLasting, showMoment } from '../look/format.ts';
import { Icon, Status } from '../look/parts.tsx';
import { Brief, plainText } from '../look/text.tsx';
import { withQuery } from '../shell/router.ts';
import type { SessionLine } from './group.ts';
import css from './sessions.module.css';

type SessionColumn = ListColumn & { sort?: string };

const COLUMNS: readonly SessionColumn[] = [
  { label: 'Session', width: 'minmax(120px, 1.4fr)', sort: 'name' },
  { label: 'Client → server', width: 'minmax(120px, 1.6fr)', sort: 'client', isExtra: true },
  { label: 'Transport', width: '124px', isExtra: true },
  { label: 'Started', width: '136px', sort: 'started', isExtra: true },
  { label: 'Lasted', width: '84px', align: 'end', sort: 'lasted', isExtra: true },
  { label: 'Frames', width: '64px', align: 'end', sort: 'frames', isExtra: true },
  { label: 'Exchanges', width: '68px', align: 'end', sort: 'exchanges', isExtra: true },
  { label: 'Errors', width: '52px', align: 'end', sort: 'errors' },
  { label: 'Over time', width: '76px', isExtra: true },
  { label: 'Open', width: '44px', align: 'end', sort: 'open', isExtra: true },
  { label: 'Lost', width: '52px', align: 'end', sort: 'lost' },
  { label: 'End', width: '104px' },
];

const ALPHABETIC = ['name', 'client'];

/** What the heads sort by, for those who use the keyboard or see few of the columns: words from A on, figures from the largest on. */
export const SORTS: readonly (readonly [value: string, label: string])[] = COLUMNS.flatMap(
  ({ label, sort }) =>
    sort === undefined ? [] : [[ALPHABETIC.includes(sort) ? sort : `-${sort}`, label.toLowerCase()] as const],
);

/** A head that sorts says by what; a second click turns the order round. */
export function columnsOf(sort: string): ListColumn[] {
  return COLUMNS.map(({ sort: field, ...column }) => {
    if (field === undefined) return column;
    const [isUp, isDown] = [sort === field, sort === `-${field}`];
    const next = isDown ? field : isUp ? '' : `-${field}`;
    const head = (
      <a class={css.sort} href={withQuery({ sort: next })} tabIndex={-1}>
        {column.label}
        {isUp && ' ↑'}
        {isDown && ' ↓'}
      </a>
    );
    return { ...column, head };
  });
}

export function sessionRow(line: SessionLine, isPicked: boolean, pick: (id: string) => void): ListRow {
  if (line.type === 'group') return groupRow(line);
  const { session, level } = line;
  const { client, server, errors, unanswered, dropped } = session;
  const cells: ComponentChildren[] = [
    <Title key="title" session={session} level={level} isPicked={isPicked} pick={pick} />,
    <span key="peers" title={plainText(session.target)}>
      <Brief text={peer(client) ?? (session.capture === 'meta' ? '(no payloads)' : '?')} />
      <span class={css.arrow}> → </span>
      <Brief text={peer(server) ?? session.target} />
    </span>,
    <span key="transport" class={css.muted}>
      {session.transport} <Brief text={session.protocolVersion ?? ''} />
    </span>,
    <time key="started" dateTime={session.startedAt} title={session.startedAt}>
      {showMoment(session.startedAt)}
    </time>,
    session.lasted === null ? '' : showLasting(session.lasted),
    showCount(session.frames),
    showCount(session.exchanges),
    errors > 0 ? <Status tone="error">{showCount(errors)}</Status> : <span class={css.muted}>0</span>,
    <Spark key="spark" counts={session.errorsOverTime} />,
    unanswered > 0 ? <Status tone="warn">{showCount(unanswered)}</Status> : <span class={css.muted}>0</span>,
    dropped > 0 ? (
      <Status tone="error" icon="triangle-alert">
        {showCount(dropped)}
      </Status>
    ) : (
      <span class={css.muted}>0</span>
    ),
    <End key="end" session={session} />,
  ];
  return { cells, level };
}

function groupRow(group: Extract<SessionLine, { type: 'group' }>): ListRow {
  const { label, count, errors, isOpen, href } = group;
  const cells = COLUMNS.map(() => null as ComponentChildren);
  cells[0] = (
    <span class={css.group}>
      <span data-twist>
        <Icon name={isOpen ? 'chevron-down' : 'chevron-right'} />
      </span>
      {href === null ? (
        <Brief text={label} />
      ) : (
        <a href={href} tabIndex={-1} title="All its servers on one clock">
          <Brief text={label} />
        </a>
      )}
      <span class={css.muted}>{counted(count, 'session')}</span>
    </span>
  );
  cells[7] = errors > 0 && <Status tone="error">{showCount(errors)}</Status>;
  return { cells, level: 1, isOpen, tone: 'group' };
}

type TitleProps = { session: SessionSummary; level: number; isPicked: boolean; pick(id: string): void };

function Title({ session, level, isPicked, pick }: TitleProps): VNode {
  const { session: id, name } = session;
  return (
    <span class={level > 1 ? css.inner : css.name}>
      <input
        type="checkbox"
        tabIndex={-1}
        aria-label={`Compare ${plainText(name ?? id)}`}
        title="Choose two to compare (space bar)"
        checked={isPicked}
        onClick={(event) => {
          event.stopPropagation();
          pick(id);
        }}
      />
      {name === null ? <code>{id}</code> : <Brief text={name} />}
      {name !== null && <code class={css.id}>{id}</code>}
    </span>
  );
}

function peer(who: SessionSummary['client']): string | null {
  return who && [who.name, who.version].filter((word) => word !== null).join(' ');
}

const ENDS: Record<string, string> = {
  'client-closed': 'client left',
  deleted: 'deleted',
  gone: 'gone',
  idle: 'idle',
  stopped: 'stopped',
  'cut-off': 'cut off',
  unknown: 'unknown',
};

function End({ session }: { session: SessionSummary }): VNode {
  const { state, exitCode, signal } = session;
  if (state === 'open') {
    return (
      <Status tone="live" icon="radio">
        recording
      </Status>
    );
  }
  if (state === 'cut-off') {
    return (
      <Status tone="warn" icon="triangle-alert">
        cut off
      </Status>
    );
  }
  if (signal !== null) return <Status tone="warn">{signal}</Status>;
  if (exitCode !== null) return <Status tone={exitCode === 0 ? 'quiet' : 'error'}>exit {exitCode}</Status>;
  return <Status tone="quiet">{ENDS[state] ?? state}</Status>;
}

const [WIDTH, HEIGHT] = [72, 14];

/** Errors over the session's time; the count beside it says the same in a figure. */
function Spark({ counts }: { counts: readonly number[] | null }): VNode | null {
  if (counts === null || counts.every((count) => count === 0)) return null;
  const most = Math.max(...counts);
  const step = WIDTH / counts.length;
  const bars = counts.map((count, i) => {
    const height = count === 0 ? 1 : Math.max(3, (count / most) * HEIGHT);
    return `M${(i * step).toFixed(1)} ${HEIGHT - height}h${(step - 1).toFixed(1)}v${height}h-${(step - 1).toFixed(1)}z`;
  });
  return (
    <svg class={css.spark} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true">
      <path d={bars.join('')} />
    </svg>
  );
}
