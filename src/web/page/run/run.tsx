/** A run of a client: all its servers on one clock, what it did after each failure, and how long it waited. */
import type { VNode } from 'preact';
import { useMemo } from 'preact/hooks';
import type { RunCall, RunDetail } from '../../api.ts';
import { type ListColumn, type ListRow, RowList } from '../list/row-list.tsx';
import { counted, showLasting, showOffset } from '../look/format.ts';
import { Icon, Status, Unseen } from '../look/parts.tsx';
import { Brief, plainText } from '../look/text.tsx';
import { useKeys } from '../shell/keys.ts';
import { address, go, setQuery } from '../shell/router.ts';
import type { ApiFailure } from '../shell/source.ts';
import { TroubleBox } from '../shell/trouble.tsx';
import { isFailed } from './lanes.ts';
import css from './run.module.css';
import { RunFacts } from './run-facts.tsx';
import { RunLanes } from './run-lanes.tsx';
import { serverName, sightOf, zoomedSight } from './sight.ts';
import { useRun } from './use-run.ts';

const ASKED = ['stretch', 'gap', 'offset', 'filter'];

export function RunScreen({ params }: ScreenProps): VNode {
  const { query } = address.value;
  const asked = new URLSearchParams([...query].filter(([name]) => ASKED.includes(name)));
  const id = params['id'] ?? '';
  const { run, failure } = useRun(id, asked);
  const marked = useRun(id, markedOf(asked, query.get('hl')));
  if (failure !== null && (run === null || failure.code !== 'usage')) return <TroubleBox failure={failure} />;
  if (run === null) return <Unseen>Loading…</Unseen>;
  return <Run run={run} marked={marked.run} failure={failure ?? marked.failure} />;
}

/** What asks for the calls that are highlighted; null where none are. */
function markedOf(asked: URLSearchParams, highlight: string | null): URLSearchParams | null {
  if (!highlight) return null;
  const all = new URLSearchParams(asked);
  all.set('filter', highlight);
  return all;
}

type ScreenProps = { params: Readonly<Record<string, string>> };

const COLUMNS: readonly ListColumn[] = [
  { label: 'Time', width: '76px', align: 'end', isExtra: true },
  { label: 'Server', width: 'minmax(64px, 180px)' },
  { label: 'Call', width: 'minmax(92px, 1fr)' },
  { label: 'Status', width: '98px' },
  { label: 'Took', width: '64px', align: 'end' },
  { label: 'Then', width: 'minmax(80px, 240px)', isExtra: true },
];

/** `marked`: the run with those of its calls alone that are highlighted. */
type RunProps = { run: RunDetail; marked: RunDetail | null; failure: ApiFailure | null };

function Run({ run, marked, failure }: RunProps): VNode {
  const { calls, lanes, stretches } = run;
  const stretch = stretches.find(({ number }) => number === run.stretch);
  const { query } = address.value;
  const whole = useMemo(
    () => ({ from: 0, to: Math.max(1, (stretch?.to ?? 1) - (stretch?.from ?? 0)) }),
    [stretch],
  );
  const sight = sightOf(query.get('t'), whole);
  const began = stretch?.from ?? 0;
  const shifted = useMemo(() => calls.map((call) => ({ ...call, at: call.at - began })), [calls, began]);
  const marks = useMemo(() => new Set(marked?.calls.map((call) => nameOf(marked, call))), [marked]);
  const drawn = useMemo(() => ({}), [run, marks]);
  const chosen = query.get('call');
  const active = calls.findIndex(({ lane, seq }) => chosen === `${lane}.${seq}`);
  const choose = (index: number) => {
    const call = calls[index];
    if (call !== undefined) setQuery({ call: `${call.lane}.${call.seq}` }, 'replace');
  };
  const open = (index: number) => {
    const call = calls[index];
    if (call !== undefined) go(`/s/${lanes[call.lane]?.session}/f/${call.seq}`);
  };
  const zoom = (factor: number) => {
    const middle = shifted[active]?.at ?? (sight.from + sight.to) / 2;
    setQuery({ t: zoomedSight(sight, whole, middle, factor) }, 'replace');
  };
  const nextFailure = (step: 1 | -1) => {
    const from = active < 0 && step < 0 ? calls.length : active;
    for (let at = from + step; at >= 0 && at < calls.length; at += step)
      if (isFailed(calls[at])) return choose(at);
  };
  useKeys({
    n: () => nextFailure(1),
    N: () => nextFailure(-1),
    '+': () => zoom(0.5),
    '-': () => zoom(2),
    '0': () => setQuery({ t: null }, 'replace'),
    Escape: () => go('/?group=run'),
  });
  return (
    <div class={css.screen}>
      <RunFacts run={run} stretch={stretch} failure={failure} />
      {calls.length === 0 ? (
        <p class={css.nothing}>
          {query.has('filter')
            ? 'The filter selects no call of this run.'
            : 'Nothing was asked of any server of this run.'}
        </p>
      ) : (
        <>
          <RunLanes
            picture={{ calls: shifted, lanes: lanes.length, sight, active }}
            lanes={lanes}
            onChoose={choose}
          />
          <RowList
            label="Calls of all servers"
            columns={COLUMNS}
            count={calls.length}
            rowAt={(index) => callRow(run, index, began, marks)}
            version={drawn}
            active={active}
            onActive={choose}
            onOpen={open}
            isMain
          />
          <Unseen live="count">{run.next === null ? counted(calls.length, 'call') : ''}</Unseen>
        </>
      )}
    </div>
  );
}

/** The same in every answer about the run. */
function nameOf({ lanes }: RunDetail, { lane, seq }: RunCall): string {
  return `${lanes[lane]?.session} ${seq}`;
}

function callRow(run: RunDetail, index: number, began: number, marks: ReadonlySet<string>): ListRow {
  const call = run.calls[index];
  if (call === undefined) return { cells: [] };
  const lane = run.lanes[call.lane];
  const name = lane === undefined ? '' : serverName(lane);
  const cells = [
    <span key="time" class={css.muted}>
      {showOffset(call.at - began)}
    </span>,
    <span key="server" title={plainText(name)}>
      <Brief text={name} />
    </span>,
    <a key="call" class={css.call} href={`/s/${lane?.session}/f/${call.seq}`} tabIndex={-1}>
      {call.askedBy === 'server' && <Icon name="arrow-left" />}
      <span class={css.method}>
        <Brief text={call.method} />
      </span>
      {call.target !== null && (
        <span class={css.target}>
          <Brief text={call.target} />
        </span>
      )}
    </a>,
    <CallStatus key="status" call={call} />,
    call.lasted === null ? '' : showLasting(call.lasted),
    <ThenCell key="then" run={run} index={index} />,
  ];
  return { cells, tone: marks.has(nameOf(run, call)) ? 'marked' : undefined };
}

const WORDS: Record<string, string> = {
  'tool-error': 'tool error',
  unanswered: 'no answer',
  'input-required': 'asks back',
  fault: 'fault on purpose',
};

function CallStatus({ call }: { call: RunCall }): VNode {
  const { outcome } = call;
  const word = WORDS[outcome] ?? outcome;
  if (outcome === 'ok')
    return (
      <Status tone="ok" icon="check">
        {word}
      </Status>
    );
  if (isFailed(call))
    return (
      <Status tone="error" icon="circle-x">
        {word}
      </Status>
    );
  return (
    <Status tone="warn" icon="triangle-alert">
      {word}
    </Status>
  );
}

/** What came next after a failure. */
function ThenCell({ run, index }: { run: RunDetail; index: number }): VNode | null {
  const call = run.calls[index];
  if (call === undefined || !isFailed(call) || call.askedBy !== 'client') return null;
  if (call.next === null) return <span class={css.muted}>nothing more</span>;
  const next = run.calls[call.next.call];
  const lane = run.lanes[next?.lane ?? -1];
  const elsewhere =
    next !== undefined && next.lane !== call.lane && lane !== undefined ? ` of ${serverName(lane)}` : '';
  const what = call.next.isSame ? 'the same again' : `${next?.target ?? next?.method ?? ''}${elsewhere}`;
  return (
    <span>
      <Brief text={what} /> <span class={css.muted}>after {showLasting(call.next.after)}</span>
    </span>
  );
}
