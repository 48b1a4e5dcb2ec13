/** Two sessions side by side: what their servers offer, every call with its answer, and how long they took. */
import type { VNode } from 'preact';
import type { DiffLine, SessionDetail } from '../../api.ts';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { counted, showLasting, showMoment } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { Button, type IconName, LinkButton, NoticeBox, Status, Unseen } from '../look/parts.tsx';
import { Recorded } from '../look/text.tsx';
import { useLines } from '../shell/lines.ts';
import { address, go, setQuery, withQuery } from '../shell/router.ts';
import { useAnswer } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import css from './compare.module.css';
import { IgnoreForm, ignoreParams } from './ignore-rules.tsx';
import { CallPane, type ComparedCall, type ComparedOffer, OfferPane } from './pair-pane.tsx';

type ComparedTiming = Extract<DiffLine, { type: 'timing' }>;

type Compared = {
  offers: ComparedOffer[];
  calls: ComparedCall[];
  timings: ComparedTiming[];
  summary: Extract<DiffLine, { type: 'summary' }> | null;
};

function nothing(): Compared {
  return { offers: [], calls: [], timings: [], summary: null };
}

function add(compared: Compared, line: DiffLine): void {
  if ('progress' in line) return;
  if (line.type === 'list') compared.offers.push(line);
  else if (line.type === 'call') compared.calls.push(line);
  else if (line.type === 'timing') compared.timings.push(line);
  else compared.summary = line;
}

export function CompareScreen({ params }: { params: Readonly<Record<string, string>> }): VNode {
  const { query } = address.value;
  const sides = { a: params['a'] ?? '', b: params['b'] ?? '' };
  const path = `diff?${new URLSearchParams([...Object.entries(sides), ...ignoreParams(query)])}`;
  const { state, version, failure, isComplete } = useLines<DiffLine, Compared>(path, nothing, add);
  const hasTimes = query.get('view') === 'times';
  if (failure !== null && failure.code !== 'usage') return <TroubleBox failure={failure} />;
  return (
    <div class={parts.screen}>
      <header class={`${parts.tools} ${css.header}`}>
        <h1>
          <Unseen>Compare</Unseen>
          <Side name="a" id={sides.a} />
          <Side name="b" id={sides.b} />
        </h1>
        <LinkButton href={withQuery({ at: null }, `/diff/${sides.b}/${sides.a}`)}>Swap</LinkButton>
        <Button
          kind="framed"
          pressed={hasTimes}
          onClick={() => setQuery({ view: hasTimes ? null : 'times' })}
        >
          Times
        </Button>
        <Button
          kind="framed"
          pressed={query.get('all') === '1'}
          onClick={() => setQuery({ all: query.get('all') === '1' ? null : '1', at: null })}
        >
          Equal calls too
        </Button>
        <p class={css.summary} role="status">
          {isComplete ? state.summary?.text : 'Comparing …'}
        </p>
        <IgnoreForm />
        {failure !== null && (
          <p class={css.wrong} role="alert">
            {failure.message}
          </p>
        )}
      </header>
      {hasTimes ? (
        <Times timings={state.timings} />
      ) : (
        <Differing compared={state} version={version} isComplete={isComplete} sides={sides} />
      )}
    </div>
  );
}

function Side({ name, id }: { name: string; id: string }): VNode {
  const { value } = useAnswer<SessionDetail>(`sessions/${encodeURIComponent(id)}`);
  const session = value?.session;
  return (
    <span class={css.title}>
      <span class={css.side}>{name}</span>
      <a href={`/s/${id}`}>
        <Recorded text={session?.name ?? session?.session ?? id} />
      </a>
      {session && <span class={css.when}>{showMoment(session.startedAt)}</span>}
    </span>
  );
}

type Row =
  | { type: 'title'; text: string }
  | { type: 'offer'; offer: ComparedOffer }
  | { type: 'call'; call: ComparedCall };

type DifferingProps = {
  compared: Compared;
  version: number;
  isComplete: boolean;
  sides: { a: string; b: string };
};

const COLUMNS: readonly ListColumn[] = [
  { label: 'Verdict', width: '128px' },
  { label: 'Call', width: 'minmax(120px, 1fr)' },
  { label: 'a', width: '52px', align: 'end' },
  { label: 'b', width: '52px', align: 'end' },
  { label: 'Why', width: 'minmax(120px, 1.2fr)', isExtra: true },
];

function Differing({ compared, version, isComplete, sides }: DifferingProps): VNode {
  const { query } = address.value;
  const hasEqual = query.get('all') === '1';
  const rows = rowsOf(compared, hasEqual);
  const active = Number(query.get('at') ?? -1);
  const chosen = rows[active];
  if (isComplete && rows.length === 0)
    return (
      <NoticeBox title="Both sessions are equal" icon="check">
        <p>
          The servers offer the same, and each call of one has an equal call with an equal answer in the
          other.
          {compared.summary !== null &&
            compared.summary.notCompared.length > 0 &&
            ` Not compared: ${compared.summary.notCompared.join(', ')}, because only one of them asked for it.`}
        </p>
      </NoticeBox>
    );
  const isOpen = chosen !== undefined && chosen.type !== 'title';
  return (
    <div class={css.panes} data-detail={isOpen ? '' : undefined}>
      <RowList
        label="Differences"
        columns={COLUMNS}
        count={rows.length}
        rowAt={(index) => rowOf(rows[index])}
        version={`${version} ${hasEqual}`}
        active={active}
        onActive={(index) => setQuery({ at: String(index) }, 'replace')}
        onOpen={(index) => {
          const row = rows[index];
          if (row?.type === 'call')
            go(row.call.b === null ? `/s/${sides.a}/f/${row.call.a}` : `/s/${sides.b}/f/${row.call.b}`);
        }}
        isMain
      />
      <Unseen live="count">{isComplete ? counted(rows.length, 'row') : ''}</Unseen>
      {isOpen && (
        <aside class={css.pane} aria-label="Difference">
          <Button icon="x" label="Close the detail" onClick={() => setQuery({ at: null }, 'replace')} />
          {chosen.type === 'call' ? (
            <CallPane key={active} call={chosen.call} sides={sides} />
          ) : (
            <OfferPane offer={chosen.offer} />
          )}
        </aside>
      )}
    </div>
  );
}

function rowsOf({ offers, calls }: Compared, hasEqual: boolean): Row[] {
  const shown = calls.filter(({ verdict }) => hasEqual || verdict !== 'equal');
  const rows: Row[] = [];
  if (offers.length > 0) rows.push({ type: 'title', text: 'What the servers offer' });
  for (const offer of offers) rows.push({ type: 'offer', offer });
  if (shown.length > 0) rows.push({ type: 'title', text: hasEqual ? 'Calls' : 'Calls that differ' });
  for (const call of shown) rows.push({ type: 'call', call });
  return rows;
}

const VERDICTS: Readonly<Record<ComparedCall['verdict'], { tone: 'ok' | 'error' | 'warn'; icon: IconName }>> =
  {
    equal: { tone: 'ok', icon: 'check' },
    differs: { tone: 'error', icon: 'circle-x' },
    'other arguments': { tone: 'warn', icon: 'triangle-alert' },
    'only in a': { tone: 'warn', icon: 'arrow-left' },
    'only in b': { tone: 'warn', icon: 'arrow-right' },
  };

function rowOf(row: Row | undefined): ListRow {
  if (row === undefined) return { cells: [] };
  if (row.type === 'title') return { cells: [row.text], tone: 'group', isOpen: true };
  if (row.type === 'offer') {
    const { kind, name, change, reasons } = row.offer;
    return {
      level: 2,
      cells: [
        <Status
          tone={reasons.length > 0 ? 'error' : 'warn'}
          icon={reasons.length > 0 ? 'circle-x' : 'triangle-alert'}
        >
          {change}
        </Status>,
        <>
          <span class={css.quiet}>{kind}</span> <Recorded text={name} />
        </>,
        '',
        '',
        <Recorded text={reasons.length > 0 ? reasons.join('; ') : 'not breaking'} />,
      ],
    };
  }
  const { verdict, method, target, a, b, why, askedBy } = row.call;
  return {
    level: 2,
    tone: verdict === 'equal' ? 'quiet' : undefined,
    cells: [
      <Status tone={VERDICTS[verdict].tone} icon={VERDICTS[verdict].icon}>
        {verdict}
      </Status>,
      <>
        {askedBy === 'server' && <span class={css.quiet}>asked by the server: </span>}
        <Recorded text={[method, target ?? ''].join(' ').trim()} />
      </>,
      a === null ? '' : `#${a}`,
      b === null ? '' : `#${b}`,
      why !== null && <Recorded text={why} />,
    ],
  };
}

/** The slowest first, as `diff` has them. */
function Times({ timings }: { timings: readonly ComparedTiming[] }): VNode {
  const most = ({ a, b }: ComparedTiming) => Math.max(a.p95Ms ?? 0, b.p95Ms ?? 0);
  const rows = timings.toSorted((x, y) => most(y) - most(x));
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
    <div class={css.times} tabIndex={0}>
      <table>
        <caption>How long the answers took, the slowest first</caption>
        <thead>
          <tr>
            {['Call', 'Calls a', 'Calls b', 'p50 a', 'p50 b', 'p95 a', 'p95 b'].map((title) => (
              <th scope="col" key={title}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ method, target, a, b }) => (
            <tr key={`${method} ${target}`}>
              <th scope="row">
                <Recorded text={[method, target ?? ''].join(' ').trim()} />
              </th>
              <td>{a.count}</td>
              <td>{b.count}</td>
              <td>{timeOf(a.p50Ms)}</td>
              <td class={slower(a.p50Ms, b.p50Ms)}>{timeOf(b.p50Ms)}</td>
              <td>{timeOf(a.p95Ms)}</td>
              <td class={slower(a.p95Ms, b.p95Ms)}>{timeOf(b.p95Ms)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function timeOf(ms: number | null): string {
  return ms === null ? '–' : showLasting(ms * 1000);
}

/** Half as much again, and more than a millisecond, is worth a look. */
function slower(a: number | null, b: number | null): string | undefined {
  return a !== null && b !== null && b > a * 1.5 && b - a > 1 ? css.slower : undefined;
}
