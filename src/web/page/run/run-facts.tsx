/** What a run was as a whole: its client, its time, its stretches, and whose clocks it was recorded by. */
import type { VNode } from 'preact';
import type { RunDetail, RunStretch } from '../../api.ts';
import { Narrowing } from '../list/narrowing.tsx';
import { counted, showCount, showLasting, showMoment } from '../look/format.ts';
import parts from '../look/parts.module.css';
import { Icon } from '../look/parts.tsx';
import { Recorded } from '../look/text.tsx';
import { address, setQuery, withQuery } from '../shell/router.ts';
import type { ApiFailure } from '../shell/source.ts';
import css from './run.module.css';

/** How people say what ties the sessions together. */
const EVIDENCE: Record<string, string> = {
  process: 'one client process',
  label: 'the label run',
  trace: 'a shared trace',
  peer: 'the process at the other end of a connection',
};

type RunFactsProps = { run: RunDetail; stretch: RunStretch | undefined; failure: ApiFailure | null };

export function RunFacts({ run, stretch, failure }: RunFactsProps): VNode {
  const { client, process, name } = run;
  const who =
    client === null
      ? (process?.program ?? 'an unknown client')
      : `${client.name} ${client.version ?? ''}`.trim();
  return (
    <header class={css.header}>
      <div class={css.title}>
        <h1>
          Run of <Recorded text={name ?? who} />
        </h1>
        <span class={css.muted}>
          {name !== null && (
            <>
              <Recorded text={who} />,{' '}
            </>
          )}
          {process !== null && `pid ${process.pid}, `}
          {counted(run.lanes.length, 'server')}, known by{' '}
          {run.evidence.map((kind) => EVIDENCE[kind] ?? kind).join(' and ')}
        </span>
      </div>
      {stretch !== undefined && <Times run={run} stretch={stretch} />}
      <Stretches run={run} />
      <Choices failure={failure} />
      <Clocks run={run} />
      {run.perhaps.length > 0 && (
        <p class={css.note}>
          <Icon name="circle-help" />
          <span>
            Perhaps also of this run, by a client of the same name at the same time:{' '}
            {run.perhaps.map((id, i) => (
              <span key={id}>
                {i > 0 && ', '}
                <a href={`/s/${id}`}>{id}</a>
              </span>
            ))}
          </span>
        </p>
      )}
    </header>
  );
}

function Times({ run, stretch }: { run: RunDetail; stretch: RunStretch }): VNode {
  const { from, to, waiting, thinking, calls, errors } = stretch;
  const share = to > from ? (waiting / (to - from)) * 100 : 0;
  return (
    <dl class={css.times}>
      <div>
        <dt>Began</dt>
        <dd>{showMoment(new Date(from / 1000).toISOString())}</dd>
      </div>
      <div>
        <dt>Lasted</dt>
        <dd>{showLasting(to - from)}</dd>
      </div>
      <div>
        <dt>Calls</dt>
        <dd>
          {run.next === null
            ? showCount(calls)
            : `${showCount(run.calls.length)} of ${showCount(calls)} so far`}
          {errors > 0 && <span class={css.errors}> {counted(errors, 'error')}</span>}
        </dd>
      </div>
      {run.stretches.length > 1 && (
        <div>
          <dt>All stretches</dt>
          <dd>
            {showLasting(run.waiting)} waiting, {showLasting(run.thinking)} thinking
          </dd>
        </div>
      )}
      <div class={css.share}>
        <dt>
          <span class={css.waitingKey} /> Waiting {showLasting(waiting)}
        </dt>
        <dd>
          <span class={css.thinkingKey} /> Thinking {showLasting(thinking)}
        </dd>
        <span class={css.track} aria-hidden="true">
          <span class={css.waiting} style={{ width: `${share}%` }} />
        </span>
      </div>
    </dl>
  );
}

function Stretches({ run }: { run: RunDetail }): VNode | null {
  if (run.stretches.length < 2) return null;
  return (
    <nav class={css.links} aria-label="Stretches of the run">
      {run.stretches.map((one) => (
        <a
          key={one.number}
          href={withQuery({ stretch: String(one.number), t: null, call: null })}
          aria-current={one.number === run.stretch ? 'page' : undefined}
          title={`${run.run}/${one.number}`}
        >
          <b>{one.number}</b> {showMoment(new Date(one.from / 1000).toISOString())} ·{' '}
          {counted(one.calls, 'call')}
          {one.errors > 0 && ` · ${counted(one.errors, 'error')}`}
        </a>
      ))}
    </nav>
  );
}

const GAPS = ['1', '5', '15', '60'];

function Choices({ failure }: { failure: ApiFailure | null }): VNode {
  const { query } = address.value;
  const gap = query.get('gap') ?? '5';
  const own = GAPS.includes(gap) ? GAPS : [...GAPS, gap];
  const anew = { stretch: null, t: null, call: null };
  return (
    <div class={css.choices}>
      <Narrowing what="calls" failure={failure} anew={anew} />
      <label class={parts.choice}>
        <span>Divide where nothing is asked for</span>
        <select value={gap} onChange={(event) => setQuery({ gap: event.currentTarget.value, ...anew })}>
          {own.map((minutes) => (
            <option key={minutes} value={minutes}>
              {minutes} min
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

/** Several machines: their clocks are not one clock. */
function Clocks({ run: { clocks, lanes } }: { run: RunDetail }): VNode | null {
  if (clocks.length < 2) return null;
  const offsets = readOffsets(address.value.query.get('offset'));
  const move = (clock: number, ms: number) => {
    const next = new Map(offsets).set(clock, ms * 1000);
    const text = [...next].filter(([, micros]) => micros !== 0).map((pair) => pair.join(':'));
    setQuery({ offset: text.join(','), t: null }, 'replace');
  };
  return (
    <div class={css.note}>
      <Icon name="triangle-alert" />
      <span>
        Recorded by {clocks.length} clocks, so the order of calls across servers may be another. Move one:{' '}
        {clocks.slice(1).map((_, i) => (
          <label key={i} class={css.offset}>
            <span>
              <Recorded
                text={lanes
                  .filter(({ clock }) => clock === i + 1)
                  .map(({ name, target }) => name ?? target)
                  .join(', ')}
              />
            </span>
            <input
              class={parts.input}
              type="number"
              step="10"
              value={(offsets.get(i + 1) ?? 0) / 1000}
              onChange={(event) => move(i + 1, event.currentTarget.valueAsNumber || 0)}
            />
            <span>ms</span>
          </label>
        ))}
      </span>
    </div>
  );
}

function readOffsets(text: string | null): Map<number, number> {
  const pairs = (text ?? '').split(',').map((pair) => pair.split(':').map(Number));
  return new Map(
    pairs.flatMap(([clock = Number.NaN, micros = Number.NaN]) =>
      Number.isInteger(clock) && Number.isFinite(micros) ? [[clock, micros] as const] : [],
    ),
  );
}
