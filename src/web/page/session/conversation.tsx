/** A session as a conversation: its times at the top, rows on the left, the chosen frame or the facts of the session on the right. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { SessionDetail } from '../../api.ts';
import { FramePane } from '../frame/frame-pane.tsx';
import { Narrowing } from '../list/narrowing.tsx';
import { RowList } from '../list/row-list.tsx';
import { counted } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { Button, NoticeBox, Unseen } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import { SessionLinks } from '../menus/session-links.tsx';
import { useKeys } from '../shell/keys.ts';
import { useChanges } from '../shell/live.ts';
import { address, go, setQuery, withQuery } from '../shell/router.ts';
import { about, useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { type Listing, useListing } from './listing.ts';
import { LiveBar, useFollowing } from './live-bar.tsx';
import { Overview } from './overview.tsx';
import css from './session.module.css';
import { SessionFacts } from './session-facts.tsx';
import { type LoadedOutline, useOutline } from './use-outline.ts';

export function ConversationScreen({ params }: { params: Readonly<Record<string, string>> }): VNode {
  const given = params['id'] ?? '';
  return <Opened key={given} given={given} seq={Number(params['seq'] ?? 0)} />;
}

/** `given`: what the address names the session by. */
function Opened({ given, seq }: { given: string; seq: number }): VNode {
  const [version, setVersion] = useState(0);
  const [isPaused, setPaused] = useState(false);
  // Asked for together with what the session is, not after it.
  const loaded = useOutline(given, isPaused);
  const { value: detail, failure } = useAnswer<SessionDetail>(
    `sessions/${encodeURIComponent(given)}`,
    version,
  );
  const id = detail?.session.session;
  useChanges((change) => {
    const isOwn = 'id' in change && change.id === id;
    // What happened to an open one before a stream that resumed nothing, nobody has told.
    const mayDiffer = failure !== null || detail?.session.state === 'open';
    const isUntold = change.kind === 'begin' && !change.resumed && mayDiffer;
    if (isUntold || (isOwn && (change.kind === 'ended' || change.kind === 'session')))
      setVersion((n) => n + 1);
  });
  if (failure !== null && id === undefined) return <TroubleBox failure={failure} />;
  if (detail === null || id === undefined) return <Unseen>Loading…</Unseen>;
  // The address is about to name it by its id.
  if (id !== given) return <Unseen>Loading…</Unseen>;
  return <Conversation {...{ detail, seq, loaded, isPaused }} onPause={() => setPaused(!isPaused)} />;
}

type ConversationProps = {
  detail: SessionDetail;
  seq: number;
  loaded: LoadedOutline;
  isPaused: boolean;
  onPause(): void;
};

function Conversation({ detail, seq, loaded, isPaused, onPause }: ConversationProps): VNode {
  const id = detail.session.session;
  const isLive = detail.session.state === 'open';
  const listing = useListing(detail, seq, loaded);
  const following = useFollowing(isLive, seq, listing.rows.index.length);
  const { rows, active, findings } = listing;
  const hasSide = seq > 0 || address.value.query.get('facts') === '1';
  const leave = () => go(hasSide ? withQuery({ ptr: null, facts: null }, `/s/${id}`) : '/');
  useConversationKeys(listing, leave, following.turn);
  if (loaded.isGone) return <Gone />;
  if (loaded.failure !== null && loaded.outline.count === 0) return <TroubleBox failure={loaded.failure} />;
  return (
    <div class={css.screen} data-detail={hasSide ? '' : undefined}>
      <Tools detail={detail} listing={listing} isComplete={loaded.isComplete} />
      <Overview
        outline={loaded.outline}
        version={loaded.version}
        scale={listing.wholeScale}
        range={listing.range}
        onRange={listing.setRange}
      />
      {isLive && (
        <LiveBar
          sessions={[{ outline: loaded.outline, startedAt: Date.parse(detail.session.startedAt) * 1000 }]}
          {...{ following, isPaused }}
          onPause={onPause}
        />
      )}
      <div class={css.panes}>
        <RowList
          label="Messages"
          columns={listing.columns}
          count={rows.index.length}
          rowAt={listing.rowAt}
          version={listing.version}
          active={active}
          onActive={(index, isStep) => listing.show(index, isStep ? 'replace' : 'push')}
          onOpen={listing.open}
          onToggle={listing.toggle}
          follow={isLive ? following : undefined}
          isMain
        />
        <aside class={css.side} aria-label="Detail">
          {seq > 0 ? (
            <FramePane session={id} seq={seq} findings={findings.get(seq) ?? []} />
          ) : (
            <SessionFacts detail={detail} />
          )}
        </aside>
      </div>
    </div>
  );
}

function useConversationKeys(listing: Listing, leave: () => void, turnFollow: () => void): void {
  const { query } = address.value;
  useKeys({
    n: () => listing.nextError(1),
    N: () => listing.nextError(-1),
    w: () => setQuery({ wf: query.get('wf') === '0' ? null : '0' }, 'replace'),
    '+': () => listing.zoom(0.5),
    '=': () => listing.zoom(0.5),
    '-': () => listing.zoom(2),
    '0': () => listing.setRange(null),
    f: turnFollow,
    Escape: leave,
  });
}

function Gone(): VNode {
  return (
    <NoticeBox title="This session is gone" icon="triangle-alert">
      <p>It was removed from the store while this page was open.</p>
      <a href="/">All sessions</a>
    </NoticeBox>
  );
}

type ToolsProps = { detail: SessionDetail; listing: Listing; isComplete: boolean };

function Tools({ detail, listing, isComplete }: ToolsProps): VNode {
  const { query } = address.value;
  const turn = (name: string) => setQuery({ [name]: query.get(name) === '1' ? null : '1' });
  const count = counted(listing.rows.index.length, 'row');
  return (
    <header class={`${parts.tools} ${css.header}`}>
      <h1>
        <a href={withQuery({ ptr: null, row: null, facts: '1' }, `/s/${detail.session.session}`)}>
          <Brief text={detail.session.name ?? detail.session.session} />
        </a>
      </h1>
      {/* Only a server understands filters. */}
      {about.value?.can.search && (
        <Narrowing
          what="messages"
          session={detail.session.session}
          failure={listing.selection.failure ?? listing.marked.failure}
        />
      )}
      <Button
        pressed={query.get('raw') === '1'}
        label="Each frame a row, in the order in which they passed"
        onClick={() => turn('raw')}
      >
        Raw order
      </Button>
      {listing.hasGaps && (
        <Button
          pressed={query.get('fold') === '1'}
          label="Leave times out in which nothing happened"
          onClick={() => turn('fold')}
        >
          Fold idle
        </Button>
      )}
      {listing.range && (
        <Button icon="x" label="Show all times again" onClick={() => listing.setRange(null)}>
          Times
        </Button>
      )}
      <SessionLinks detail={detail} filter={query.get('filter') ?? ''} findings={listing.found} />
      <span class={css.count}>{isComplete ? count : `${count} so far`}</span>
      <Unseen live="count">{isComplete ? count : ''}</Unseen>
    </header>
  );
}
