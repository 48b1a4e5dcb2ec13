/** Everything that is being recorded, as it passes. */
import type { VNode } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { Narrowing } from '../list/narrowing.tsx';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { counted, showMoment } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { Button, NoticeBox, Status, Unseen } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import { LiveBar, useFollowing } from '../session/live-bar.tsx';
import { COLUMNS, messageRow } from '../session/message-row.tsx';
import { useKeys } from '../shell/keys.ts';
import { address, go } from '../shell/router.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { type FeedRow, momentOf, useFeed } from './feed.ts';
import css from './live.module.css';
import { type FeedFilter, useFeedFilter } from './use-feed-filter.ts';

const { message, status, latency, size } = COLUMNS;

const LIVE_COLUMNS: readonly ListColumn[] = [
  { label: 'Time', width: '72px', align: 'end' },
  { label: 'Session', width: 'minmax(80px, 0.4fr)', isExtra: true },
  // The time stands here on a phone too.
  { ...message, width: 'minmax(112px, 2fr)' },
  ...[status, latency, size],
];

export function LiveScreen(): VNode {
  const [isPaused, setPaused] = useState(false);
  const [active, setActive] = useState(-1);
  const { sessions, rows: all, failure, isReady, version } = useFeed(isPaused);
  const { query } = address.value;
  const selected = useFeedFilter(sessions, query.get('filter') ?? '', version);
  const marked = useFeedFilter(sessions, query.get('hl') ?? '', version);
  const rows = selected.has === null ? all : all.filter(selected.has);
  const following = useFollowing(true, 0, rows.length);
  const drawn = useMemo(() => ({}), [version, selected.version, marked.version]);
  useKeys({ f: following.turn, Escape: () => go('/') });
  const open = sessions.filter(({ summary }) => summary.state === 'open');
  const isIdle = isReady && open.length === 0 && all.length === 0 && !isPaused;
  if (failure !== null && !isReady) return <TroubleBox failure={failure} />;
  const show = (index: number) => {
    const row = rows[index];
    if (row !== undefined) go(`/s/${row.of.summary.session}/f/${row.of.outline.number('seq', row.i)}`);
  };
  return (
    <div class={parts.screen}>
      <h1 class={parts.hidden}>Live</h1>
      <Unseen live="count">{counted(rows.length, 'message')}</Unseen>
      {!isIdle && (
        <LiveBar
          sessions={open}
          following={following}
          isPaused={isPaused}
          onPause={() => setPaused(!isPaused)}
        >
          <span class={css.count}>{counted(open.length, 'session')} being recorded</span>
          <Narrowing what="messages" failure={selected.failure ?? marked.failure} />
        </LiveBar>
      )}
      {isReady && all.length === 0 ? (
        <NoticeBox title="Nothing is being recorded" icon="radio">
          <p>What passes in any session stands here as soon as it is stored.</p>
          <Button kind="framed" onClick={() => go('/')}>
            All sessions
          </Button>
        </NoticeBox>
      ) : (
        <RowList
          label="Messages of all sessions"
          columns={LIVE_COLUMNS}
          count={rows.length}
          rowAt={(index) => liveRow(rows[index], marked.has)}
          version={drawn}
          active={active}
          onActive={(index, isStep) => (isStep ? setActive(index) : show(index))}
          onOpen={show}
          follow={following}
          isMain
        />
      )}
    </div>
  );
}

function liveRow(row: FeedRow | undefined, isMarked: FeedFilter['has']): ListRow {
  if (row === undefined) return { cells: [] };
  const { summary, outline } = row.of;
  const isLive = summary.state === 'open';
  const options = {
    isRaw: false,
    level: 1,
    isOpen: false,
    isLive,
    scale: null,
    tone: isMarked?.(row) ? ('marked' as const) : undefined,
    findings: [],
  };
  const { cells, tone } = messageRow(outline, row.i, options);
  const name = summary.name ?? summary.session;
  const first = [
    <span key="at" class={css.muted}>
      {showMoment(new Date(momentOf(row) / 1000).toISOString())}
    </span>,
    isLive ? (
      <Brief key="name" text={name} />
    ) : (
      <Status key="name" tone="quiet">
        <Brief text={name} />
      </Status>
    ),
  ];
  return { cells: [...first, ...cells.slice(2)], tone };
}
