/** The HTTP exchanges of a session as a waterfall; beside it the chosen one, whole. */
import type { VNode } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { HttpPage, HttpView } from '../../api.ts';
import { Narrowing } from '../list/narrowing.tsx';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { counted, microsOf, showLasting, showSize } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { LinkButton, NoticeBox, Status } from '../look/parts.tsx';
import { Brief } from '../look/text.tsx';
import { useKeys } from '../shell/keys.ts';
import { address, go, withQuery } from '../shell/router.ts';
import { type ApiFailure, about, failureOf, source } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { HttpExchangePane } from './exchange-pane.tsx';
import css from './http.module.css';
import { phasesOf, TimeBar, TimeLegend } from './time-bar.tsx';

const PAGE = 500;

type Loaded = { http: HttpView[]; isComplete: boolean; failure: ApiFailure | null };

export function HttpScreen({ params }: { params: Readonly<Record<string, string>> }): VNode {
  const id = params['id'] ?? '';
  const number = Number(params['number'] ?? 0);
  const { filter, http, isComplete, failure, marks, drawn } = useChosen(id);
  const active = http.findIndex((one) => one.http === number);
  const show = (index: number, isStep: boolean) => {
    const one = http[index];
    if (one) go(withQuery({}, `/s/${id}/h/${one.http}`), isStep ? 'replace' : 'push');
  };
  const nextError = (step: 1 | -1) => {
    const from = active < 0 && step < 0 ? http.length : active;
    for (let at = from + step; at >= 0 && at < http.length; at += step)
      if (isWrong(http[at])) return show(at, true);
  };
  useKeys({
    n: () => nextError(1),
    N: () => nextError(-1),
    Escape: () => go(withQuery({}, number > 0 ? `/s/${id}/http` : `/s/${id}`)),
  });
  if (failure !== null && filter === '' && http.length === 0) return <TroubleBox failure={failure} />;
  const view = spanOf(http);
  return (
    <div class={parts.screen}>
      <header class={parts.tools}>
        <LinkButton href={`/s/${id}`} icon="arrow-left">
          Conversation
        </LinkButton>
        <h1>HTTP exchanges</h1>
        <span class={css.muted}>
          {counted(http.length, 'exchange')}
          {http.length > 0 && `, ${showLasting(view.to - view.from)} in all`}
          {!isComplete && ' so far'}
        </span>
        {about.value?.can.search && <Narrowing what="exchanges" session={id} failure={failure} />}
        {http.length > 0 && <TimeLegend />}
      </header>
      {isComplete && http.length === 0 && filter === '' ? (
        <NoticeBox title="This session has no HTTP exchanges" icon="circle-help">
          <p>It was recorded over stdio, where messages are lines.</p>
        </NoticeBox>
      ) : (
        <div class={css.panes} data-detail={number > 0 ? '' : undefined}>
          <RowList
            label="HTTP exchanges"
            columns={COLUMNS}
            count={http.length}
            rowAt={(index) => ({
              ...rowOf(http[index], view),
              tone: marks.has(http[index]?.http ?? 0) ? 'marked' : undefined,
            })}
            version={drawn}
            active={active}
            onActive={show}
            isMain
          />
          {number > 0 && (
            <aside class={css.side} aria-label="HTTP exchange">
              <HttpExchangePane key={number} session={id} number={number} />
            </aside>
          )}
        </div>
      )}
    </div>
  );
}

function isWrong(one: HttpView | undefined): boolean {
  return one !== undefined && (one.status === null ? one.endedAt !== null : one.status >= 400);
}

/** What the filter of the address leaves, and what its highlight marks. */
function useChosen(id: string) {
  const { query } = address.value;
  const filter = query.get('filter') ?? '';
  const loaded = useHttp(id, filter);
  const marked = useHttp(id, query.get('hl') || null);
  const { http } = loaded;
  const marks = useMemo(() => new Set(marked.http.map((one) => one.http)), [marked]);
  const drawn = useMemo(() => ({}), [http, marks]);
  return { ...loaded, failure: loaded.failure ?? marked.failure, filter, marks, drawn };
}

const NO_EXCHANGES: Loaded = { http: [], isComplete: false, failure: null };

/** Page by page, each shown when it is there; null asks for nothing. */
function useHttp(id: string, filter: string | null): Loaded {
  const [loaded, setLoaded] = useState(NO_EXCHANGES);
  useEffect(() => {
    setLoaded(NO_EXCHANGES);
    if (filter === null) return;
    const abort = new AbortController();
    const load = async () => {
      const http: HttpView[] = [];
      let next: number | null = 0;
      while (next !== null) {
        const path = `sessions/${encodeURIComponent(id)}/http?${new URLSearchParams({
          ...{ after: String(next), limit: String(PAGE) },
          ...(filter === '' ? {} : { filter }),
        })}`;
        const page: HttpPage = await source().json(path, abort.signal);
        http.push(...page.http);
        next = page.next;
        setLoaded({ http: [...http], isComplete: next === null, failure: null });
      }
    };
    load().catch((error) => {
      if (!abort.signal.aborted) setLoaded((now) => ({ ...now, failure: failureOf(error) }));
    });
    return () => abort.abort();
  }, [id, filter]);
  return loaded;
}

const COLUMNS: readonly ListColumn[] = [
  { label: '#', width: '44px', align: 'end', isExtra: 'phone' },
  { label: 'Method', width: '60px' },
  { label: 'Path', width: 'minmax(80px, 200px)', isExtra: true },
  { label: 'Status', width: '84px' },
  { label: 'Took', width: '68px', align: 'end' },
  { label: 'Size', width: '64px', align: 'end', isExtra: true },
  { label: 'When', width: 'minmax(100px, 1fr)' },
];

type Span = { from: number; to: number };

/** Of all that is shown, in microseconds. */
function spanOf(http: readonly HttpView[]): Span {
  const ends = http.map((one) => microsOf(one.endedAt ?? one.responseAt ?? one.at));
  const starts = http.map(({ at }) => microsOf(at));
  const least = starts.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
  const most = ends.reduce((a, b) => Math.max(a, b), 0);
  return http.length === 0 ? { from: 0, to: 1 } : { from: least, to: Math.max(most, least + 1) };
}

function rowOf(one: HttpView | undefined, view: Span): ListRow {
  if (one === undefined) return { cells: [] };
  const { http, method, path, status, error, requestBytes, responseBytes } = one;
  const phases = phasesOf(one);
  const end = phases.at(-1)?.to ?? 0;
  return {
    cells: [
      <span class={css.muted}>{http}</span>,
      <Brief text={method} />,
      <Brief text={path} />,
      <HttpStatus status={status} error={error} />,
      one.endedAt === null ? 'open' : showLasting(end - microsOf(one.at)),
      <span class={css.muted}>{showSize(requestBytes + responseBytes)}</span>,
      <TimeBar phases={phases} from={view.from} to={view.to} />,
    ],
  };
}

function HttpStatus({ status, error }: { status: number | null; error: string | null }): VNode {
  if (status === null)
    return (
      <Status tone="error" icon="circle-x">
        {error === null ? 'none' : 'failed'}
      </Status>
    );
  if (status >= 400)
    return (
      <Status tone="error" icon="circle-x">
        {status}
      </Status>
    );
  return <span>{status}</span>;
}
