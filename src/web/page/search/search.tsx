/** Frames of all sessions by their text and a filter, as they are found. */
import type { ComponentChildren, VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { SearchHitView, SearchLine } from '../../api.ts';
import { useDraft } from '../list/draft.ts';
import { FilterBox } from '../list/filter-box.tsx';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { counted, showCount, showMoment } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { Button, Icon, NoticeBox, Sender, Status, Unseen } from '../look/parts.tsx';
import { Brief, Recorded } from '../look/text.tsx';
import { useLines } from '../shell/lines.ts';
import { address, go, setQuery } from '../shell/router.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import css from './search.module.css';

/** More are not held; a narrower filter finds what is behind them. */
const LIMIT = 10_000;

type Session = Extract<SearchLine, { session: unknown }>['session'];

type Row = { type: 'session'; session: Session; hits: number } | { type: 'hit'; hit: SearchHitView };

type Found = {
  rows: Row[];
  /** Where the rows of a session begin, by its id. */
  heads: Map<string, Extract<Row, { type: 'session' }>>;
  last: string;
  progress: { done: number; total: number } | null;
  hits: number;
  hasMore: boolean;
};

function nothing(): Found {
  return { rows: [], heads: new Map(), last: '', progress: null, hits: 0, hasMore: false };
}

function add(found: Found, line: SearchLine): void {
  if ('progress' in line) found.progress = line.progress;
  else if ('session' in line)
    found.heads.set(line.session.session, { type: 'session', session: line.session, hits: 0 });
  else if ('hit' in line) addHit(found, line.hit);
  else found.hasMore = line.more;
}

function addHit(found: Found, hit: SearchHitView): void {
  const head = found.heads.get(hit.session);
  if (head === undefined) return;
  found.progress = null;
  found.hits += 1;
  head.hits += 1;
  const row: Row = { type: 'hit', hit };
  if (found.last === hit.session || head.hits === 1) {
    found.rows.push(...(head.hits === 1 ? [head, row] : [row]));
    found.last = hit.session;
    return;
  }
  // Sessions that were recorded at the same time come mixed.
  const at = found.rows.indexOf(head);
  found.rows.splice(at + head.hits, 0, row);
}

export function SearchScreen(): VNode {
  const { query } = address.value;
  const [q, filter] = [query.get('q') ?? '', query.get('filter') ?? ''];
  const isAsked = q !== '' || filter !== '';
  const path = `search?${new URLSearchParams({
    ...{ q, filter, limit: String(LIMIT) },
    ...(query.get('index') === 'no' ? { index: 'no' } : {}),
  })}`;
  const [attempt, setAttempt] = useState(0);
  const asked = isAsked ? path : null;
  const found = useLines<SearchLine, Found>(asked, nothing, add, attempt);
  const { state, version, failure, isStopped } = found;
  const isAtWork = isAsked && !found.isComplete && failure === null && !isStopped;
  if (failure !== null && failure.at === null && failure.code !== 'usage')
    return <TroubleBox failure={failure} />;
  return (
    <div class={parts.screen}>
      <h1 class={parts.hidden}>Search</h1>
      <div class={parts.tools}>
        <TextBox value={q} />
        <FilterBox
          label="Filter, such as tool=search dur>1s"
          value={filter}
          onFilter={(text) => setQuery({ filter: text, at: null })}
          failure={failure}
        />
        {(isAtWork || isStopped) && (
          <Button
            kind="framed"
            icon={isStopped ? 'search' : 'x'}
            onClick={() => (isStopped ? setAttempt(attempt + 1) : found.stop())}
          >
            {isStopped ? 'Search again' : 'Stop'}
          </Button>
        )}
        <Count found={state} {...{ isAtWork, isAsked, isStopped }} />
      </div>
      {isAtWork && state.progress !== null && <Making progress={state.progress} />}
      <Hits found={state} {...{ version, isAtWork, isAsked, isStopped, q }} />
    </div>
  );
}

/** The text is searched for when it is entered: each letter would begin anew. */
function TextBox({ value }: { value: string }): VNode {
  const [text, setText] = useDraft(value);
  return (
    <form
      class={`${parts.field} ${css.text}`}
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        setText(null);
        setQuery({ q: text, at: null });
      }}
    >
      <Icon name="search" />
      <input
        type="search"
        aria-label="Text that the frames contain"
        placeholder="Text in any frame, then Enter"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        autofocus={value === ''}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </form>
  );
}

type Stage = { isAtWork: boolean; isAsked: boolean; isStopped: boolean };

function Count({ found, isAtWork, isAsked, isStopped }: Stage & { found: Found }): VNode {
  const so = isStopped ? ', then stopped' : '';
  const text = `${showCount(found.hits)}${found.hasMore ? '+' : ''} in ${counted(found.heads.size, 'session')}${so}`;
  return (
    <span class={css.count}>
      {isAsked && (isAtWork && found.hits === 0 ? 'Searching …' : text)}
      <Unseen live="count">{isAsked && !isAtWork ? `${text} found` : ''}</Unseen>
    </span>
  );
}

/** The first search of a store makes its index; without it a search reads everything, the newest first. */
function Making({ progress: { done, total } }: { progress: { done: number; total: number } }): VNode {
  return (
    <div class={css.making}>
      <label>
        Making the index: {showCount(done)} of {counted(total, 'frame')}
        <progress max={total} value={done} />
      </label>
      <Button kind="framed" onClick={() => setQuery({ index: 'no' }, 'replace')}>
        Read without the index
      </Button>
      <span>The newest sessions come first. It takes longer than with an index.</span>
    </div>
  );
}

const COLUMNS: readonly ListColumn[] = [
  { label: '#', width: '56px', align: 'end' },
  { label: 'Time', width: '148px', isExtra: true },
  { label: 'Message', width: 'minmax(120px, 2fr)' },
  { label: 'Found', width: 'minmax(140px, 3fr)' },
];

type HitsProps = Stage & { found: Found; version: number; q: string };

function Hits({ found, version, isAtWork, isAsked, isStopped, q }: HitsProps): VNode {
  const { rows } = found;
  const at = address.value.query.get('at') ?? '';
  const active = rows.findIndex((row) => keyOf(row) === at);
  if (isStopped && rows.length === 0)
    return (
      <NoticeBox title="Stopped before anything was found" icon="search">
        <p>What holds it may stand where nothing was looked at yet.</p>
      </NoticeBox>
    );
  if (!isAsked || (rows.length === 0 && !isAtWork))
    return (
      <NoticeBox title={isAsked ? 'Nothing was found' : 'Search in all sessions'} icon="search">
        <p>
          {isAsked
            ? 'No frame holds all of that. A text is looked for in upper and lower case, as it passed on the wire.'
            : 'A text, a filter, or both. Frames that hold it come as they are found, the newest first.'}
        </p>
      </NoticeBox>
    );
  const open = (index: number) => {
    const row = rows[index];
    if (row === undefined) return;
    if (row.type === 'session') go(`/s/${row.session.session}`);
    else
      go(`/s/${row.hit.session}/f/${row.hit.seq}${q === '' ? '' : `?hl=${encodeURIComponent(textTerm(q))}`}`);
  };
  return (
    <RowList
      label="Found frames"
      columns={COLUMNS}
      count={rows.length}
      rowAt={(index) => rowOf(rows[index])}
      version={version}
      active={active}
      onActive={(index, isStep) => {
        const row = rows[index];
        if (isStep && row !== undefined) setQuery({ at: keyOf(row) }, 'replace');
        else open(index);
      }}
      onOpen={open}
      isMain
    />
  );
}

/** A filter for a text, whatever is in it. */
function textTerm(text: string): string {
  return `text~"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
}

function keyOf(row: Row): string {
  return row.type === 'session' ? row.session.session : `${row.hit.session}.${row.hit.seq}`;
}

function rowOf(row: Row | undefined): ListRow {
  if (row === undefined) return { cells: [] };
  if (row.type === 'session') return { cells: headCells(row), tone: 'group', level: 1, isOpen: true };
  const { seq, at, line, outcome, direction, excerpts } = row.hit;
  const isByClient = direction === 'client-to-server';
  const isBad = outcome === 'error' || outcome === 'tool-error';
  return {
    level: 2,
    cells: [
      <span class={css.muted}>{seq}</span>,
      <span class={css.muted}>{showMoment(at)}</span>,
      <span class={css.line}>
        <Sender isByClient={isByClient} title={isByClient ? 'from the client' : 'from the server'} />
        <span class={css.label}>
          <Brief text={line} />
        </span>
        {isBad && (
          <Status tone="error" icon="circle-x">
            {outcome.replace('-', ' ')}
          </Status>
        )}
      </span>,
      <Excerpts excerpts={excerpts} />,
    ],
  };
}

function headCells({
  session: { session, name, target, startedAt },
  hits,
}: Extract<Row, { type: 'session' }>): ComponentChildren[] {
  return [
    '',
    showMoment(startedAt),
    <span class={css.line}>
      <Brief text={name ?? target} />
      <span class={css.id}>{session}</span>
    </span>,
    <span class={css.id}>{counted(hits, 'frame')}</span>,
  ];
}

/** What stands before is cut first: what was found stays in sight. */
const BEFORE = 12;

function Excerpts({ excerpts }: Pick<SearchHitView, 'excerpts'>): VNode {
  return (
    <span class={css.excerpt}>
      {excerpts.map(([before, found, after], i) => (
        <span key={i}>
          {before.length > BEFORE && '…'}
          <Recorded text={before.slice(-BEFORE)} />
          <mark>
            <Recorded text={found} />
          </mark>
          <Recorded text={after} />{' '}
        </span>
      ))}
    </span>
  );
}
